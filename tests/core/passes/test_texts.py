from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from passing import SELF, look_at, measure, measures_of, of_source, whole_map

from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.errors import AnalysisError, PairNeeded, TextTooLong
from attention_sieve.core.passes.texts import PassText, prepare, prepare_all, window_at, with_relations
from attention_sieve.core.roles import scores
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.roles.question import CHUNK
from attention_sieve.core.texts.relations import parse, token_pairs
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.core.texts.tokens import tokenize

TEXTS = read_typed(
    "The black cat quickly chased two birds on the mat.\n"
    "She ran.\n"
    "Who sat on it? ||| A red dog sat on the mat.\n"
    "Two dogs do not eat red apples.\n"
    "Eat!"
)
LONG = Text(("the cat " * 30,))


@pytest.fixture
def checkpoint(loaded):
    return loaded("bert")


@pytest.fixture
def passes(checkpoint):
    """Number of texts in each pass."""
    counted = []
    hook = checkpoint.model.register_forward_pre_hook(
        lambda _, __, named: counted.append(len(named["input_ids"])), with_kwargs=True
    )
    yield counted
    hook.remove()


def in_order(measured):
    return sorted(measured, key=lambda text: text.position)


def test_the_chain_equals_its_stages_called_by_hand(checkpoint):
    measured = in_order(measure(checkpoint, TEXTS))
    assert [text.position for text in measured] == [0, 1, 2, 3, 4]
    for text, relations, found in zip(TEXTS, parse(TEXTS), measured):
        tokenized = tokenize(text, checkpoint.tokenizer, checkpoint.max_tokens)
        prepared = PassText(kind="self", source=tokenized, pairs=token_pairs(tokenized, relations))
        by_hand = scores.score_batch(checkpoint, [prepared], SELF).texts[0].measures
        np.testing.assert_allclose(found.measures, by_hand, rtol=1e-4, atol=1e-5)
        assert found.measures.shape == (len(USUAL.measures), 2, 3)
        assert (found.n_tokens, found.n_cut) == (len(tokenized.ids), 0)


def test_a_text_measures_the_same_whatever_is_measured_with_it(checkpoint):
    together = in_order(measure(checkpoint, TEXTS))
    in_chunks = in_order(measure(checkpoint, [*TEXTS[:1] * (CHUNK - 2), *TEXTS]))[CHUNK - 2 :]
    backwards = in_order(measure(checkpoint, TEXTS[::-1]))[::-1]
    for one, two, three in zip(together, in_chunks, backwards):
        np.testing.assert_allclose(two.measures, one.measures, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(three.measures, one.measures, rtol=1e-4, atol=1e-5)


def test_a_long_text_stops_the_run_before_any_pass(checkpoint, passes):
    with pytest.raises(TextTooLong, match=r"^Text 3 has 62 tokens and this checkpoint takes 40\."):
        list(measure(checkpoint, [*TEXTS[:2], LONG]))
    assert passes == []


def test_a_chunk_is_parsed_only_when_its_turn_comes(checkpoint):
    first, later = Text(("the cat",)), Text(("the cat " * 18,), parser="no_such_parser")
    work = measure(checkpoint, [*[first] * 2 * CHUNK, later])
    assert len(list(islice(work, CHUNK))) == CHUNK
    with pytest.raises(AnalysisError, match="no_such_parser"):
        list(work)


@pytest.mark.parametrize(
    ("start", "window"),
    [((0, 0), ((0, 8), (0, 8))), ((5, 20), ((5, 13), (20, 28))), ((39, 37), ((32, 40), (32, 40)))],
)
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_window_of_a_long_text_is_cut_from_its_map_and_measured_as_a_whole(
    family, start, window, loaded, monkeypatch
):
    checkpoint = loaded(family, "float64")
    whole, measured = look_at(checkpoint, LONG, too_long="truncate")
    assert whole.overview is None
    monkeypatch.setattr("attention_sieve.core.passes.texts.WINDOW_TOKENS", 8)
    monkeypatch.setattr("attention_sieve.core.roles.scores.OVERVIEW_BLOCKS", 7)
    part, of_part = look_at(checkpoint, LONG, too_long="truncate", start=start)
    assert part.window == Window(*window)
    rows, columns = (slice(*side) for side in window)
    np.testing.assert_allclose(part.attention, whole.attention[:, :, rows, columns], rtol=0, atol=1e-12)
    assert part.block == 6
    assert part.overview.shape == (2, 3, 7, 7)
    last = whole.attention[:, :, 36:40, 30:36].mean((2, 3))
    np.testing.assert_allclose(part.overview[:, :, 6, 5], last, rtol=0, atol=1e-12)
    np.testing.assert_allclose(of_part.measures, measured.measures, rtol=1e-12, atol=1e-10)
    assert (of_part.n_tokens, of_part.n_cut) == (measured.n_tokens, measured.n_cut)


@pytest.mark.parametrize(("n_heads", "size"), [(3, 256), (256, 256), (257, 128), (1 << 14, 32)])
def test_a_window_holds_no_more_entries_than_allowed(n_heads, size, checkpoint):
    """At most 2 ** 25 in both layers together."""
    attentions = {"self": replace(checkpoint.attentions["self"], n_heads=n_heads)}
    prepared = of_source(tokenize(Text(("the cat " * 200,)), checkpoint.tokenizer, 300, truncate=True))
    window = window_at(replace(checkpoint, attentions=attentions), prepared, (3, 999))
    assert window == Window((3, 3 + size), (300 - size, 300))


def test_a_short_text_is_kept_whole_wherever_the_window_shall_begin(checkpoint):
    prepared = prepare(checkpoint, TEXTS[1], SELF)
    assert window_at(checkpoint, prepared, (3, 2)) == Window((0, prepared.n_tokens), (0, prepared.n_tokens))


def test_preparing_tells_which_texts_are_left_out(checkpoint):
    kept, left_out = prepare_all(checkpoint, [TEXTS[0], LONG, TEXTS[1], LONG], SELF, "skip")
    assert list(kept) == [0, 2]
    assert left_out == [(1, 62), (3, 62)]


@pytest.mark.parametrize("off", [((2, 0),), ((0, 0), (1, 3)), ((-1, 0),)])
def test_a_head_that_is_not_there_cannot_be_switched_off(off, checkpoint, passes):
    layer, head = off[-1]
    with pytest.raises(AnalysisError, match=rf"has no head L{layer} H{head}: it has 2 layers x 3 heads, .*\. Choose"):
        look_at(checkpoint, TEXTS[0], PassSettings(off=off))
    assert passes == []


def test_an_attention_that_is_not_there_is_refused_and_the_others_named(checkpoint, loaded):
    with pytest.raises(AnalysisError, match=r"has no cross attention\. Choose: self\."):
        look_at(checkpoint, TEXTS[2], PassSettings("cross"))
    with pytest.raises(AnalysisError, match=r"has no self attention\. Choose: encoder, decoder, cross\."):
        list(measure(loaded("t5"), TEXTS[2:3], SELF))


PAIRS = read_typed("The black cat sat. ||| A dog ran to two red birds.\nShe ran. ||| It is unbelievably red.")


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_an_encoder_decoder_reads_source_and_target(kind, loaded):
    checkpoint = loaded("bart", "float64")
    seen, measured = look_at(checkpoint, PAIRS[0], PassSettings(kind))
    source, target = (tokenize(Text((side,)), checkpoint.tokenizer, 40) for side in PAIRS[0].segments)
    n_queries = len(source.ids) if kind == "encoder" else len(target.ids)
    n_keys = len(target.ids) if kind == "decoder" else len(source.ids)
    n_layers, n_heads = checkpoint.attentions[kind].n_layers, checkpoint.attentions[kind].n_heads
    assert seen.attention.shape == (n_layers, n_heads, n_queries, n_keys)
    assert measured.measures.shape == (len(USUAL.measures), n_layers, n_heads)
    assert measured.n_tokens == max(n_queries, n_keys)
    np.testing.assert_allclose(seen.attention.sum(-1), 1, atol=1e-6)
    assert seen.causal == (kind == "decoder")
    relations = {"encoder": {"amod"}, "decoder": {"nsubj", "amod"}, "cross": set()}[kind]
    assert {pair.name for pair in seen.text.pairs} >= relations
    assert bool(seen.text.pairs) == bool(relations)
    for pair in seen.text.pairs:
        side = PAIRS[0].segments[0 if kind == "encoder" else 1]
        words = [seen.text.queries.spans[pieces] for pieces in (pair.dependent, pair.head)]
        assert all(side[spans[0, 0] : spans[-1, 1]].isalpha() for spans in words)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_texts_of_an_encoder_decoder_measure_the_same_together_and_alone(kind, loaded):
    checkpoint = loaded("bart", "float64")
    settings = PassSettings(kind)
    together = in_order(measure(checkpoint, PAIRS, settings))
    texts = [prepare(checkpoint, text, settings) for text in PAIRS]
    alone = [measures_of(checkpoint, [text], settings)[0] for text in with_relations(texts, PAIRS)]
    for one, by_itself in zip(together, alone):
        np.testing.assert_allclose(one.measures, by_itself, rtol=1e-9, atol=1e-10)
    found = {name for name, score in zip(USUAL.measures, together[0].measures) if np.isfinite(score).all()}
    delimiters = {"delimiter", "delimiter:cls", "delimiter:sep"}
    least = {"encoder": delimiters | {"local"}, "decoder": {"local", "sink"}, "cross": delimiters}[kind]
    assert found == least if kind == "cross" else found > least
    assert kind != "decoder" or "delimiter:sep" not in found


def test_cross_attention_is_scored_by_its_definition(loaded):
    checkpoint = loaded("bart", "float64")
    text = prepare(checkpoint, PAIRS[0], PassSettings("cross"))
    attention = whole_map(checkpoint, text, PassSettings("cross"))
    marked = [0, len(text.source.ids) - 1]
    by_hand = (attention[..., marked].mean(-1) / attention.mean(-1)).mean(-1)
    found = measures_of(checkpoint, [text], PassSettings("cross"))[0]
    np.testing.assert_allclose(found[USUAL.measures.index("delimiter")], by_hand)


def test_an_encoder_reads_a_text_without_a_target_and_a_decoder_does_not(loaded):
    checkpoint = loaded("t5")
    (alone,) = measure(checkpoint, TEXTS[:1], PassSettings("encoder"))
    assert np.isfinite(alone.measures[USUAL.measures.index("local")]).all()
    for kind in ("decoder", "cross"):
        with pytest.raises(PairNeeded, match=r"^Text 2 has no target for the decoder to read\. Give source and target"):
            list(measure(checkpoint, [PAIRS[0], TEXTS[0]], PassSettings(kind)))
