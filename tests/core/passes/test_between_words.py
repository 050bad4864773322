"""Attention between words while the tiles pass, against transformers' own eager maps in float64."""

from itertools import chain

import numpy as np
import pytest
import torch
from eager_words import between_words, eager
from passing import SELF

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.passes.batches import WordCollector, collect
from attention_sieve.core.passes.texts import prepare, queries_text
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import CLS_WORD, FIRST_WORD, OTHER_SPECIAL, SPECIAL, WordMap, word_map, words_of

TEXTS = (
    Text(("The unbelievable cat sat on the old mats.", "She drinks hot coffee, quickly.")),
    Text(("She ate.",)),
    Text(("Unbelievably, birds' apples!",)),
)
FAMILIES = ("bert", "roberta", "albert", "distilbert", "xlm-roberta", "gpt2", "llama", "gpt_oss", "mpnet", "mistral")
"""Encoders, decoders, grouped queries, attention sinks, a softmax that is tapped, and windows."""


def maps_of(checkpoint, texts, settings=SELF, max_tokens=None):
    """Prepared texts, and their words on their tokens."""
    prepared = [prepare(checkpoint, text, settings, truncate=True) for text in texts]
    read = [queries_text(text, settings.kind) for text in texts]
    return prepared, [word_map(words_of(text), one.queries) for text, one in zip(read, prepared)]


def reduced(checkpoint, prepared, maps, reduce, settings=SELF, **more):
    """What is kept of each text."""
    of_text = dict(zip(prepared, maps))
    more = {"n_layers": checkpoint.attentions[settings.kind].n_layers} | more

    def collector(batch):
        return WordCollector(checkpoint, [of_text[text] for text in batch], reduce, **more)

    found = dict(chain.from_iterable(collect(checkpoint, prepared, settings, collector)))
    return [found[place] for place in range(len(prepared))]


def found_between(checkpoint, texts, settings=SELF, from_word="mean"):
    """All attention between words, by layer, of each text, and the words."""
    prepared, maps = maps_of(checkpoint, texts, settings)
    found = reduced(checkpoint, prepared, maps, keep_all, settings, from_word=from_word)
    return [one["attention"] for one in found], maps


def keep_all(layer, attention):
    return {"attention": attention}


def assert_equal(checkpoint, texts, settings=SELF, from_word="mean", atol=1e-6):
    found, maps = found_between(checkpoint, texts, settings, from_word)
    prepared, _ = maps_of(checkpoint, texts, settings)
    for of_text, one, text in zip(found, maps, prepared):
        n_words = FIRST_WORD + one.n_words
        expected = between_words(eager(checkpoint, text, settings), one.word_numbers, n_words, from_word)
        assert of_text.shape[-2] >= n_words
        np.testing.assert_allclose(of_text[..., :n_words, :n_words], expected, atol=atol)
        np.testing.assert_array_equal(of_text[..., n_words:, :], 0)
        np.testing.assert_array_equal(of_text[..., n_words:], 0)


@pytest.mark.parametrize("from_word", ["mean", "first"])
@pytest.mark.parametrize("family", FAMILIES)
def test_it_equals_sums_and_means_of_eager_maps(family, from_word, loaded):
    dtype, atol = ("float32", 1e-5) if family == "gpt_oss" else ("float64", 1e-6)
    assert_equal(loaded(family, dtype), TEXTS, from_word=from_word, atol=atol)


@pytest.mark.parametrize("from_word", ["mean", "first"])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_so_it_does_in_both_stacks_of_an_encoder_decoder(kind, from_word, loaded):
    texts = (TEXTS[0], Text(("She ate.", "A bird sat unbelievably on the old red mats.")))
    assert_equal(loaded("bart"), texts, PassSettings(kind), from_word)


@pytest.mark.parametrize("family", ["bert", "gpt2", "mpnet"])
@pytest.mark.parametrize("entries", [50, 700])
@pytest.mark.parametrize("from_word", ["mean", "first"])
def test_small_tiles_give_the_same(family, entries, from_word, loaded, small_tiles):
    """A word's pieces then stand in two tiles, and texts of a batch in tiles of their own."""
    checkpoint = loaded(family)
    small_tiles(entries)
    assert_equal(checkpoint, TEXTS, from_word=from_word)


def test_a_text_that_was_cut_has_empty_words_beyond_the_cut(loaded):
    checkpoint = loaded("bert")
    long = Text(("unbelievable cats " * 20 + "sat",))
    found, (one,) = found_between(checkpoint, [long])
    n_words = FIRST_WORD + one.n_words
    assert n_words == 2 + 41
    kept = np.concatenate([[True, True], one.has_tokens])
    assert 5 < kept.sum() < 20
    np.testing.assert_array_equal(found[0].any(axis=(0, 1, 2)), kept)
    np.testing.assert_array_equal(found[0].any(axis=(0, 1, 3)), kept)
    assert_equal(checkpoint, [long])


def test_cls_and_the_other_special_tokens_are_words_of_their_own(loaded):
    checkpoint = loaded("bert")
    (text,), (one,) = maps_of(checkpoint, TEXTS[:1])
    assert text.queries.tokens[0] == "[CLS]"
    assert text.queries.tokens.count("[SEP]") == 2
    seps = np.flatnonzero(text.queries.is_sep)
    attention = eager(checkpoint, text, SELF)
    found = found_between(checkpoint, TEXTS[:1])[0][0]
    np.testing.assert_allclose(found[:, :, CLS_WORD, CLS_WORD], attention[:, :, 0, 0], atol=1e-6)
    of_seps = attention[:, :, seps][..., seps].sum(-1).mean(-1)
    np.testing.assert_allclose(found[:, :, OTHER_SPECIAL, OTHER_SPECIAL], of_seps, atol=1e-6)
    special = (text.queries.segments == SPECIAL).sum()
    assert (one.word_numbers < FIRST_WORD).sum() == special == 3


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_other_number_formats_are_summed_in_the_one_of_the_statistics(dtype, loaded):
    checkpoint = loaded("bert", dtype)
    for of_text in found_between(checkpoint, TEXTS)[0]:
        assert of_text.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert_equal(checkpoint, TEXTS, atol=1e-12 if dtype == "float64" else 0.05)


def test_every_layer_is_reduced_once_and_in_order(loaded):
    checkpoint = loaded("gpt2")
    prepared, maps = maps_of(checkpoint, TEXTS)
    layers = checkpoint.attentions["self"]
    n_words = FIRST_WORD + max(one.n_words for one in maps)
    seen = []

    def reduce(layer, attention):
        seen.append((layer, attention.shape))
        return {"squares": attention.square().sum((1, 2, 3)), "layer": torch.full((len(attention),), layer)}

    found = reduced(checkpoint, prepared, maps, reduce)
    assert seen == [(layer, (3, layers.n_heads, n_words, n_words)) for layer in range(layers.n_layers)]
    for of_text in found:
        assert of_text["layer"].tolist() == list(range(layers.n_layers))
        assert of_text["squares"].shape == (layers.n_layers,)
    assert len({tuple(of_text["squares"]) for of_text in found}) == 3


def test_a_pass_that_shows_fewer_layers_is_an_error(loaded):
    checkpoint = loaded("bert")
    prepared, maps = maps_of(checkpoint, TEXTS)
    with pytest.raises(RuntimeError, match=r"The pass showed 2 layers and 5 were to be watched"):
        reduced(checkpoint, prepared, maps, keep_all, n_layers=5)


def test_words_without_tokens_are_no_error(loaded):
    checkpoint = loaded("bert")
    prepared, (one,) = maps_of(checkpoint, TEXTS[1:2])
    more = WordMap(n_words=one.n_words + 3, word_numbers=one.word_numbers)
    (found,) = reduced(checkpoint, prepared, [more], keep_all)
    assert found["attention"].shape[-1] == FIRST_WORD + one.n_words + 3
    np.testing.assert_array_equal(found["attention"][..., -3:], 0)
