"""Every surface statistic against an independent computation from transformers' own eager maps."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from eager_words import eager
from passing import SELF, Recorder, of_source, whole_tile

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings, Reach
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers
from attention_sieve.core.passes.batches import collect, model_inputs
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.surface.observer import SurfaceObserver
from attention_sieve.core.surface.per_text import SHARES, RowSettings, key_kinds, uniform_entropies
from attention_sieve.core.texts.text import Text

NAN = float("nan")
TEXTS = (
    Text(("the two dogs ran, who sat on a mat.",)),
    Text(("who sat on the mat?", "a black cat, unbelievably.")),
    Text(("eat!",)),
    Text(("it is",)),
)
ENOUGH = 14
"""Tokens that are left of a text that is cut."""


def found_of(checkpoint, prepared, settings=SELF, **options):
    """What was found of each text, passed in one batch."""
    collector = partial(SurfaceObserver, checkpoint, settings=RowSettings(**options))
    (batch,) = collect(checkpoint, prepared, settings, collector, batch_tokens=10_000)
    return [found for _, found in sorted(batch, key=lambda one: one[0])]


def marks(tokenizer, side):
    """Places of [CLS], of separators, of '.' and ',', and of all special tokens, from the ids alone."""
    ids = side.ids.tolist()
    sep_id = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    special = [
        i for i, token in enumerate(ids) if token in tokenizer.all_special_ids and token != tokenizer.unk_token_id
    ]
    own = [i for i in range(len(ids)) if i not in special]
    sep = [i for i in special if ids[i] == sep_id and i > own[0]]
    cls = [i for i in special if ids[i] == tokenizer.cls_token_id and i not in sep]
    dots = [i for i in own if tokenizer.decode([ids[i]]).strip() in (".", ",")]
    return cls, sep, dots, own


def naive(attention, tokenizer, text, causal=False):
    """Name -> value, straight from the definitions, from one text's own map."""
    same = text.queries is text.keys
    n_layers, n_heads, n_queries, n_keys = attention.shape
    cls, sep, dots, own = marks(tokenizer, text.keys)
    query_cls, query_sep, _, query_own = marks(tokenizer, text.queries)
    blank = np.full((n_layers, n_heads), NAN)

    def mean(values):
        return np.mean(values, axis=0) if len(values) else blank

    def on(keys, queries):
        return mean([attention[:, :, i, keys].sum(-1) for i in queries]) if keys else blank

    def beside(offset):
        there = [i for i in range(n_queries) if 0 <= i + offset < n_keys and not (causal and offset > 0)]
        return mean([attention[:, :, i, i + offset] for i in there]) if same else blank

    every = range(n_queries)
    logs = np.where(attention > 0, np.log(np.where(attention > 0, attention, 1)), 0)
    entropy = -(attention * logs).sum(-1)
    best = np.array(own)[attention[..., own].argmax(-1)]
    top = np.full((n_layers, n_heads, n_queries), -1)
    top[..., query_own] = best[..., query_own]
    column = attention[:, :, query_own].sum(2)[..., own].argmax(-1)
    distance = np.abs(attention.argmax(-1) - np.arange(n_queries)).mean(-1) if same else blank
    live = [i + 1 if causal else n_keys for i in every]
    pairs = [(a, b) for a in range(n_heads) for b in range(n_heads)]
    products = [np.sum(attention[:, a] * attention[:, b], axis=-1).mean(-1) for a, b in pairs]
    other = [j for j in range(n_keys) if j not in (*cls, *sep, *dots)]
    shares = {
        "self": beside(0),
        "previous": beside(-1),
        "next": beside(1),
        "cls": on(cls, every),
        "sep": on(sep, every),
        "punctuation": on(dots, every),
        "other": on(other, every),
        "sep from sep": on(sep, query_sep),
        "sep from others": on(sep, [i for i in every if i not in query_sep]),
        "first": on([0], every[1:]) if same and 0 not in cls else blank,
    }
    return {
        "shares": np.stack([shares[name] for name in SHARES]),
        "entropy": entropy.mean(-1),
        "cls_entropy": mean([entropy[:, :, i] for i in query_cls]),
        "uniform_entropy": np.full(n_layers, np.mean(np.log(live))),
        "cls_uniform_entropy": np.full(n_layers, np.mean([np.log(live[i]) for i in query_cls]) if query_cls else NAN),
        "confidence": attention[..., own].max(-1)[..., query_own].mean(-1),
        "distance": distance,
        "top_key": top,
        "top_column": np.array(own)[column],
        "agreement": np.mean(products, axis=0),
    }


def check(found, expected, tolerance=1e-6):
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("family", "in_tiles"),
    [*((family, True) for family in ("bert", "roberta", "gpt2", "llama", "deberta-v2", "xlnet")), ("bert", False)],
)
def test_every_statistic_equals_the_one_of_eager_maps(family, in_tiles, loaded, small_tiles):
    if in_tiles:
        small_tiles(150, 2)
    checkpoint = loaded(family, "float64")
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    causal = family in ("gpt2", "llama")
    assert len({text.n_tokens for text in prepared}) > 1
    # Llama's eager path takes its softmax in float32.
    tolerance = 1e-5 if family == "llama" else 1e-6
    for text, found in zip(prepared, found_of(checkpoint, prepared), strict=True):
        attention = eager(checkpoint, text, SELF)
        check(found, naive(attention, checkpoint.tokenizer, text, causal), tolerance)


def by_code(attention, tokenizer, text):
    """What the paper's code divides and smooths in another way than the paper says, from sums over whole maps."""
    n = attention.shape[-1]
    _, sep, _, _ = marks(tokenizer, text.keys)
    rest = [i for i in range(n) if i not in sep]
    summed = {
        "previous": np.trace(attention, -1, 2, 3) / n,
        "next": np.trace(attention, 1, 2, 3) / n,
        "sep from sep": attention[:, :, sep][..., sep].sum((2, 3)) / 2,
        "sep from others": attention[:, :, rest][..., sep].sum((2, 3)) / (n - 2),
    }
    smoothed = 0.9999 * attention + 0.0001 / n
    return summed, -(smoothed * np.log(smoothed)).sum(-1)


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2"])
def test_as_in_code_equals_the_formulas_of_the_code(family, loaded, small_tiles):
    small_tiles(150, 2)
    checkpoint = loaded(family, "float64")
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    separators = set()
    for text, found in zip(prepared, found_of(checkpoint, prepared, as_in_code=True), strict=True):
        attention = eager(checkpoint, text, SELF)
        summed, entropy = by_code(attention, checkpoint.tokenizer, text)
        expected = naive(attention, checkpoint.tokenizer, text)
        for name, value in summed.items():
            expected["shares"][SHARES.index(name)] = value
        check(found, {**expected, "entropy": entropy.mean(-1), "cls_entropy": entropy[:, :, 0]}, 1e-9)
        separators.add(len(marks(checkpoint.tokenizer, text.keys)[1]))
    assert len(separators) > 1, "texts with two separators, and with another number"


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("family", ["bart", "t5"])
def test_each_attention_of_an_encoder_decoder_has_its_statistics(family, kind, loaded, small_tiles):
    small_tiles(150, 2)
    checkpoint = loaded(family, "float64")
    settings = PassSettings(kind)
    texts = (Text(("the two dogs ran, who sat.", "a cat, eat.")), Text(("it is", "who sat on the red mat.")))
    prepared = [prepare(checkpoint, text, settings) for text in texts]
    for text, found in zip(prepared, found_of(checkpoint, prepared, settings), strict=True):
        attention = eager(checkpoint, text, settings)
        # What the decoder begins with is no separator, and it reads no end mark.
        expected = naive(attention, checkpoint.tokenizer, text, causal=kind == "decoder")
        check(found, expected)
        assert found.has_offsets == (kind != "cross")


def test_a_text_that_is_cut_has_the_statistics_of_what_is_left(loaded):
    checkpoint = loaded("bert", "float64")
    long = Text(("the cat, who sat on the mat. " * 8, "a dog ran. " * 9))
    text = prepare(checkpoint, long, SELF, truncate=True)
    assert text.source.n_cut > 0
    (found,) = found_of(checkpoint, [text])
    check(found, naive(eager(checkpoint, text, SELF), checkpoint.tokenizer, text))


WORDS = "The committee, who met in Vienna last week, decided that levels rise. Nobody expected the unbelievable storm."
LONG = tuple(Text((" ".join((WORDS.split() * 10)[:n_words]),)) for n_words in (3, 40, 140))


def test_float32_is_right_to_a_few_millionths_on_its_own_maps(bundled):
    prepared = [prepare(bundled, text, SELF) for text in LONG]
    assert max(text.n_tokens for text in prepared) > 150
    found, tolerances = found_of(bundled, prepared), {"distance": 1e-9}
    for text, of_text in zip(prepared, found, strict=True):
        own = Recorder()
        observe(bundled.model, model_inputs(bundled, [text]), Pass(observers=[own]))
        n_layers = bundled.attentions["self"].n_layers
        blocks = [[tile for tile in own.tiles if tile.layer == layer] for layer in range(n_layers)]
        rows = [sorted(of_layer, key=lambda tile: tile.queries.start) for of_layer in blocks]
        maps = torch.stack([torch.cat([tile.probabilities[0] for tile in of_layer], 1) for of_layer in rows])
        expected = naive(maps.double().numpy(), bundled.tokenizer, text)
        for name, value in expected.items():
            check(of_text, {name: value}, tolerances.get(name, 3e-6))


def test_float32_is_near_the_eager_maps_of_the_bundled_checkpoint(bundled):
    prepared = [prepare(bundled, text, SELF) for text in LONG]
    for text, found in zip(prepared, found_of(bundled, prepared), strict=True):
        expected = naive(eager(bundled, text, SELF), bundled.tokenizer, text)
        for exact in ("distance", "top_key", "top_column"):
            check(found, {exact: expected.pop(exact)}, 1e-9)
        check(found, expected, 1e-5)  # entropies of up to 5 nats, summed in float32 in the order of the processor


def test_a_mark_at_both_ends_is_a_beginning_and_a_separator(loaded):
    source = prepare(loaded("bert"), Text(("eat, it",)), SELF).source
    both = replace(source, is_cls=source.is_cls | source.is_sep)
    expected = [[True, False, False, False], *[[False] * 3 + [True]] * 3, [False, True, False, False]]
    expected[2] = [False, False, True, False]
    assert key_kinds(both).tolist() == expected


def test_punctuation_is_what_is_named(loaded):
    checkpoint = loaded("bert", "float64")
    text = prepare(checkpoint, Text(("who sat? eat!",)), SELF)
    (usual,), (asked,) = found_of(checkpoint, [text]), found_of(checkpoint, [text], punctuation=("?", "!"))
    assert np.isnan(usual.shares[SHARES.index("punctuation")]).all()
    attention = eager(checkpoint, text, SELF)
    signs = [i for i, token in enumerate(text.source.tokens) if token in "?!"]
    expected = attention[..., signs].sum(-1).mean(-1)
    np.testing.assert_allclose(asked.shares[SHARES.index("punctuation")], expected, atol=1e-12)


def test_outputs_agree_as_their_cosines_do(loaded):
    checkpoint = loaded("bert", "float64")
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    for text, found in zip(prepared, found_of(checkpoint, prepared), strict=True):
        recorder = Recorder(wants_outputs=True)
        observe(checkpoint.model, model_inputs(checkpoint, [text]), Pass(observers=[recorder]))
        outputs = np.stack([tile.outputs[0].numpy() for tile in recorder.tiles])
        unit = outputs / np.linalg.norm(outputs, axis=-1, keepdims=True)
        expected = np.einsum("laqc,lbqc->labq", unit, unit).mean(axis=(1, 2, 3))
        np.testing.assert_allclose(found.output_agreement, expected, atol=1e-9)


def test_outputs_of_a_model_in_its_own_way_are_not_seen(loaded):
    checkpoint = loaded("deberta-v2")
    (found,) = found_of(checkpoint, [prepare(checkpoint, TEXTS[0], SELF)])
    assert np.isnan(found.output_agreement).all()
    assert not np.isnan(found.agreement).any()


def test_windows_bound_what_uniform_attention_would_see(loaded):
    checkpoint = loaded("modernbert")
    text = prepare(checkpoint, Text(("the two dogs ran, who sat on a mat and ran",)), SELF)
    (found,) = found_of(checkpoint, [text])
    n_tokens, sees = text.n_tokens, 3
    assert n_tokens > 2 * sees + 1
    counts = [min(n_tokens, i + sees + 1) - max(0, i - sees) for i in range(n_tokens)]
    np.testing.assert_allclose(found.uniform_entropy, [math.log(n_tokens), np.mean(np.log(counts))])
    np.testing.assert_allclose(found.cls_uniform_entropy, [math.log(n_tokens), math.log(sees + 1)])


def test_a_causal_window_too(loaded):
    source = prepare(loaded("gpt2"), TEXTS[0], SELF).source
    reaches = (Reach(back=2), Reach())
    layers = AttentionLayers(calls=(0, 1), n_heads=3, causal=True, reaches=reaches)
    uniform, cls_uniform = uniform_entropies(of_source(source), layers)
    seen = np.arange(1, len(source.ids) + 1)
    np.testing.assert_allclose(uniform, [np.log(np.minimum(seen, 3)).mean(), np.log(seen).mean()])
    assert np.isnan(cls_uniform).all()


def test_rows_that_leave_a_share_to_a_sink_count_as_shares_of_their_sum(loaded):
    checkpoint = loaded("bert", "float64")
    text = prepare(checkpoint, TEXTS[0], SELF)
    whole = np.random.default_rng(0).dirichlet(np.ones(text.n_tokens), size=(3, text.n_tokens))
    found = []
    for kept in (1.0, 0.25):
        observer = SurfaceObserver(checkpoint, [text])
        sums = None if kept == 1 else torch.full((1, 3, text.n_tokens), kept, dtype=torch.float64)
        tile = replace(whole_tile(whole, observer), row_sums=sums)
        tile.probabilities.mul_(kept)
        tile.indicator_sums.mul_(kept)
        observer.observe(tile)
        found.append(observer.results()[0])
    for name in ("shares", "confidence", "distance", "agreement", "top_key", "top_column"):
        np.testing.assert_allclose(getattr(found[1], name), getattr(found[0], name), atol=1e-12, err_msg=name)


def test_a_head_that_is_off_agrees_with_none_in_its_output(loaded):
    checkpoint = loaded("bert", "float64")
    text = prepare(checkpoint, TEXTS[0], SELF)
    off = PassSettings(off=tuple((0, head) for head in range(3)))
    (found,) = found_of(checkpoint, [text], off)
    assert found.output_agreement[0] == 0
    assert found.output_agreement[1] > 0
