"""What observers make of tiles: the map on screen, scores in a model with attention sinks, and nothing in between."""

from dataclasses import replace

import naive
import numpy as np
import pytest
import torch
from naive import Layout
from passing import SELF, Recorder, inputs_of, of_source, pass_texts
from torch.utils._python_dispatch import TorchDispatchMode

from attention_sieve.core.attention.observed import observe, observed_attention
from attention_sieve.core.attention.observers import MapObserver, Pass, current_pass
from attention_sieve.core.attention.settings import Window
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.roles.scores import ScoreObserver, score_batch
from attention_sieve.core.roles.sieves import batch_sieves
from attention_sieve.core.texts.relations import TokenPair
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("The two dogs ran.",)), Text(("Who sat on the mat?", "A black cat.")), Text(("Eat!",)))


def mean_of_blocks(attention, block):
    """Block by block, straight from the definition."""
    cuts = [range(start, min(start + block, attention.shape[-1])) for start in range(0, attention.shape[-1], block)]
    return np.stack(
        [np.stack([attention[:, :, rows][..., keys].mean((2, 3)) for keys in cuts], -1) for rows in cuts], -2
    )


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize(("queries", "keys"), [((0, 4), (0, 4)), ((5, 9), (1, 4)), ((0, 3), (6, 9)), ((2, 3), (0, 9))])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_window_and_overview_are_cut_from_the_whole_eager_map(family, queries, keys, loaded, folders):
    checkpoint = loaded(family, "float64")
    prepared = pass_texts(checkpoint, TEXTS)
    source = prepared[1].source
    n_tokens = len(source.ids)
    type_ids = source.type_ids if checkpoint.takes_type_ids else None
    eager = naive.eager_attention(type(checkpoint.model), folders(family), source.ids, type_ids)
    assert n_tokens % 4, "the last block shall be shorter"
    window = Window(queries, keys)
    seen = MapObserver(1, n_tokens, n_tokens, window, block=4)
    others = [MapObserver(row, prepared[row].n_tokens, prepared[row].n_tokens) for row in (0, 2)]
    observe(checkpoint.model, inputs_of(checkpoint, TEXTS), Pass(observers=[*others, seen]))
    expected = eager[:, :, slice(*queries), slice(*keys)]
    np.testing.assert_allclose(seen.attention().numpy(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(seen.overview().numpy(), mean_of_blocks(eager, 4), rtol=0, atol=1e-12)
    for other, row in zip(others, (0, 2)):
        assert other.attention().shape == (2, 3, prepared[row].n_tokens, prepared[row].n_tokens)


N_HEADS, N_TOKENS = 4, 9


def sunk_attention(query, key, sinks):
    """Causal attention with a logit for each head's sink, written out; rows sum to less than 1."""
    grouped = key.repeat_interleave(N_HEADS // key.shape[1], dim=1)
    logits = query @ grouped.transpose(-1, -2) / query.shape[-1] ** 0.5
    logits = logits.masked_fill(torch.ones(logits.shape[-2:]).triu(1).bool(), -torch.inf)
    column = sinks[:, None, None].expand(*logits.shape[:-1], 1)
    return torch.softmax(torch.cat([logits, column], -1), -1)[..., :-1]


def causal_mask(attention_mask=None, n_texts=2, n_tokens=N_TOKENS):
    from attention_sieve.core.attention.masks import attention_mask_function

    return attention_mask_function(
        batch_size=n_texts, q_length=n_tokens, kv_length=n_tokens, attention_mask=attention_mask
    )


def pass_through_the_door(layers, mask, sinks, observers):
    token = current_pass.set(Pass(observers=observers))
    try:
        with torch.inference_mode():
            return [observed_attention(torch.nn.Identity(), *layer, mask, s_aux=sinks)[0] for layer in layers]
    finally:
        current_pass.reset(token)


@pytest.fixture
def sunk():
    """Two layers' query, key and value of two texts, with two key heads for four heads, and the sinks' logits."""
    generator = torch.manual_seed(5)
    shapes = ((2, N_HEADS, N_TOKENS, 3), (2, 2, N_TOKENS, 3), (2, 2, N_TOKENS, 5))
    layers = [[torch.randn(shape, generator=generator, dtype=torch.float64) * 2 for shape in shapes] for _ in range(2)]
    return layers, torch.tensor([-2.0, 0.0, 1.0, 3.0], dtype=torch.float64)


@pytest.mark.usefixtures("tiles")
def test_a_sink_takes_its_share_of_every_row(sunk):
    layers, sinks = sunk
    recorder = Recorder(wants_entropy=True)
    outputs = pass_through_the_door(layers, causal_mask(), sinks, [recorder])
    maps = [sunk_attention(query, key, sinks) for query, key, _ in layers]
    for tile in recorder.tiles:
        expected = maps[tile.layer][tile.texts, :, tile.queries]
        torch.testing.assert_close(tile.probabilities, expected[..., : tile.probabilities.shape[-1]])
        torch.testing.assert_close(tile.row_sums, expected.sum(-1))
        shares = expected / expected.sum(-1, keepdim=True)
        torch.testing.assert_close(tile.entropy, torch.special.entr(shares).sum(-1))
    for output, attention, (_, _, value) in zip(outputs, maps, layers):
        torch.testing.assert_close(output, (attention @ value.repeat_interleave(2, 1)).transpose(1, 2))


@pytest.mark.usefixtures("tiles")
def test_scores_of_rows_that_sum_to_less_than_one_equal_their_definition(sunk, loaded):
    layers, sinks = sunk
    (text,) = pass_texts(loaded("bert"), [Text(("the cat sat", "on a"))])
    assert len(text.source.ids) == N_TOKENS - 1
    layout = Layout.of(3, 2, causal=True)
    pairs = [("nsubj", (2,), (1,)), ("amod", (3,), (6,))]
    token_pairs = [TokenPair(name, np.array(one), np.array(other)) for name, one, other in pairs]
    texts = [of_source(text.source, token_pairs)] * 2
    layers = [[part[:, :, :-1] for part in layer] for layer in layers]
    scores = ScoreObserver([batch_sieves(texts, causal=True)] * 2, N_HEADS, "cpu", torch.float64)
    pass_through_the_door(layers, causal_mask(n_tokens=N_TOKENS - 1), sinks, [scores])
    maps = torch.stack([sunk_attention(query, key, sinks) for query, key, _ in layers], dim=1).numpy()
    assert maps.sum(-1).mean() < 0.8
    for found, attention in zip(scores.scores()[0], maps):
        by_definition = naive.measures(attention, layout, pairs)
        np.testing.assert_allclose(found, np.stack([by_definition[name] for name in USUAL.measures]), rtol=1e-9)


def test_padding_that_sees_nothing_leaves_scores_beside_sinks_numbers(sunk, loaded):
    from transformers.masking_utils import sliding_window_causal_mask_function

    from attention_sieve.core.attention.masks import attention_mask_function

    layers, sinks = sunk
    short, long = pass_texts(loaded("bert"), [Text(("a",)), Text(("a cat sat", "on it a"))])
    padding = torch.arange(N_TOKENS) < torch.tensor([[short.n_tokens], [long.n_tokens]])
    assert padding.sum(1).tolist() == [3, N_TOKENS]
    mask = attention_mask_function(
        batch_size=2, q_length=N_TOKENS, kv_length=N_TOKENS, attention_mask=padding,
        mask_function=sliding_window_causal_mask_function(2),
    )  # fmt: skip
    scores = ScoreObserver([batch_sieves([short, long], causal=True)] * 2, N_HEADS, "cpu", torch.float64)
    pass_through_the_door(layers, mask, sinks, [scores])
    applicable = batch_sieves([short, long], causal=True).applicable
    np.testing.assert_array_equal(np.isfinite(scores.scores()[0]).all((2, 3)), applicable)


WAITS = {"aten._local_scalar_dense", "aten.item", "aten.nonzero", "aten.masked_select", "aten.equal", "aten.is_nonzero"}
"""What makes the processor wait for the device."""


class NoWaiting(TorchDispatchMode):
    """Notes every operation that waits, and every copy that leaves its device; `meta` copies come back as zeros."""

    def __init__(self):
        super().__init__()
        self.waits, self.copies = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = str(func.overloadpacket)
        indexed = name in ("aten.index", "aten.index_put", "aten.index_put_")
        by_truth = indexed and any(isinstance(at, torch.Tensor) and at.dtype == torch.bool for at in args[1])
        if name in WAITS or by_truth:
            self.waits.append(name)
        asked = kwargs.get("device")
        if name == "aten._to_copy" and asked is not None and torch.device(asked).type != args[0].device.type:
            self.copies.append((args[0].device.type, torch.device(asked).type))
            if args[0].is_meta:
                return torch.zeros(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        return func(*args, **kwargs)


def test_the_watcher_sees_what_waits():
    with NoWaiting() as watcher:
        found = torch.tensor([0.0, 1.0])
        _ = (float(found[1]), found[found > 0], found.nonzero(), found.masked_select(found > 0), found.equal(found))
        found.to("meta").cpu()
    waits = ["aten._local_scalar_dense", "aten.index", "aten.nonzero", "aten.masked_select", "aten.equal"]
    assert watcher.waits == waits
    assert watcher.copies == [("cpu", "meta"), ("meta", "cpu")]


def with_pairs(checkpoint):
    pair = TokenPair("amod", np.array([1]), np.array([2, 3]))
    return [replace(text, pairs=(pair,)) for text in pass_texts(checkpoint, TEXTS[:2])]


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_nothing_waits_for_the_device_inside_the_pass(family, loaded):
    checkpoint = loaded(family)
    attention = checkpoint.attentions["self"]
    texts = with_pairs(checkpoint)
    inputs = inputs_of(checkpoint, TEXTS[:2])
    assert "attention_mask" in inputs
    sieves = batch_sieves(texts, attention.causal)
    scores = ScoreObserver([sieves] * attention.n_layers, attention.n_heads, "cpu", torch.float32)
    observers = [scores, MapObserver(1, texts[1].n_tokens, texts[1].n_tokens, block=2)]
    assert scores.wants_entropy
    with NoWaiting() as watcher:
        assert observe(checkpoint.model, inputs, Pass(observers=observers, calls=attention.calls, stops=True)) is None
    assert (watcher.waits, watcher.copies) == ([], [])


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_scores_of_a_batch_come_back_in_one_copy(family, loaded):
    """On torch's device without values, whatever waited for one would fail."""
    import copy

    checkpoint = loaded(family)
    elsewhere = replace(checkpoint, device="meta", model=copy.deepcopy(checkpoint.model).to("meta"))
    attention = checkpoint.attentions["self"]
    assert isinstance(attention, AttentionLayers)
    with NoWaiting() as watcher:
        found = score_batch(elsewhere, with_pairs(checkpoint), SELF).texts
    shape = (len(USUAL.measures), attention.n_layers, attention.n_heads)
    assert [of_text.measures.shape for of_text in found] == [shape] * 2
    assert watcher.waits == []
    assert watcher.copies.count(("meta", "cpu")) == 1


def test_layers_with_the_same_window_share_their_sieves_on_the_device(loaded):
    checkpoint = loaded("bert")
    sieves = batch_sieves(with_pairs(checkpoint), causal=False)
    copies = []
    for n_layers in (1, 12):
        with NoWaiting() as watcher:
            ScoreObserver([sieves] * n_layers, 4, "meta", torch.float32)
        copies.append(watcher.copies.count(("cpu", "meta")))
    assert copies[0] == copies[1] > 0
