"""Predictions of every head in a pass, against the largest entries of eager maps in float64."""

import numpy as np
import pytest
from eager_words import between_words, eager
from passing import SELF

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.passes.texts import prepare, queries_text
from attention_sieve.core.relations.observer import predictions
from attention_sieve.core.texts.relations import ROOT, Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import FIRST_WORD, word_map, words_of

TEXTS = (
    Text(("The unbelievable cat sat on the old mats.", "She drinks hot coffee, quickly.")),
    Text(("She ate.",)),
    Text(("Unbelievably, birds' apples!",)),
    Text(("Cats",)),
)
TIE = 1e-6
"""Two words that get so nearly the same attention are both right."""


def made_up_tree(words):
    """A tree over some words: the head of each stands two words before it, or else after it; the third is the root."""
    n_words = len(words.segments)
    heads = np.array([max(word - 2, ROOT) if word >= 2 else min(word + 2, n_words - 1) for word in range(n_words)])
    heads[heads == np.arange(n_words)] = ROOT
    heads[2:3] = ROOT
    return Dependencies(words=words, heads=heads, relations=("dep",) * n_words)


def answered(checkpoint, texts, settings=SELF, **more):
    prepared = [prepare(checkpoint, text, settings, truncate=True) for text in texts]
    trees = [made_up_tree(words_of(queries_text(text, settings.kind))) for text in texts]
    found = {}
    for batch in predictions(checkpoint, prepared, trees, settings, **more):
        found.update(batch)
    return prepared, trees, [found[place] for place in range(len(texts))]


def eager_words(checkpoint, text, words, settings, from_word):
    """Attention between words, special tokens left out, [layer head word word]."""
    of_token, n_words = word_map(words, text.queries).word_numbers, FIRST_WORD + len(words.segments)
    between = between_words(eager(checkpoint, text, settings), of_token, n_words, from_word)
    return between[..., FIRST_WORD:, FIRST_WORD:]


def assert_largest(found, between):
    """A prediction is another word with the largest attention, in the row or the column; -1 where all have 0."""
    n_words = between.shape[-1]
    assert found.shape == (2, *between.shape[:3])
    others = between * (1 - np.eye(n_words))
    for place in np.ndindex(found.shape):
        direction, layer, head, word = place
        candidates = others[layer, head, word] if direction == 0 else others[layer, head, :, word]
        if candidates.max() <= 0:
            assert found[place] == -1
        else:
            assert found[place] != word
            assert candidates[found[place]] >= candidates.max() - TIE


def assert_along_tree(found, tree, between, has_tokens):
    """Attention along a tree, and of the words that it does not join, summed up word by word from an eager map."""
    heads, words = tree.heads.tolist(), np.flatnonzero(has_tokens).tolist()
    expected = np.full((3, *between.shape[:3]), np.nan)
    for layer, word in np.ndindex(between.shape[0], between.shape[2]):
        is_visible = between[layer].sum(axis=0) > 0
        head = heads[word]
        if head != ROOT and has_tokens[[word, head]].all():
            for row, (query, key) in enumerate(((word, head), (head, word))):
                if is_visible[query, key]:
                    expected[row, layer, :, word] = between[layer, :, query, key]
        joined = {word, head, *(each for each in words if heads[each] == word)}
        others = [each for each in words if each not in joined and is_visible[each, word]]
        if others:
            expected[2, layer, :, word] = between[layer][:, others, word].mean(axis=-1)
    actual = np.stack([found.to_head, found.from_head, found.from_others])
    np.testing.assert_allclose(actual, expected, rtol=2e-4, atol=1e-6)
    return expected


@pytest.mark.parametrize(
    ("family", "from_word"),
    [("bert", "mean"), ("bert", "first"), ("roberta", "mean"), ("gpt2", "first"), ("llama", "mean"), ("mpnet", "mean")],
)
def test_predictions_are_the_largest_entries_of_eager_maps_and_attention_is_theirs(family, from_word, loaded):
    checkpoint = loaded(family)
    prepared, trees, found = answered(checkpoint, TEXTS, from_word=from_word)
    for text, tree, of_text in zip(prepared, trees, found):
        between = eager_words(checkpoint, text, tree.words, SELF, from_word)
        assert_largest(of_text.predicted, between)
        expected = assert_along_tree(of_text, tree, between, of_text.has_tokens)
        if len(tree.heads) > 6:
            assert np.isfinite(expected).any(axis=-1).all()


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_so_they_are_in_an_encoder_decoder_for_the_words_that_attend(kind, loaded):
    checkpoint = loaded("bart")
    texts = (TEXTS[0], Text(("She ate.", "A bird sat unbelievably on the old red mats.")))
    settings = PassSettings(kind)
    prepared, trees, found = answered(checkpoint, texts, settings)
    assert [len(tree.heads) for tree in trees] == ([8, 2] if kind == "encoder" else [5, 9])
    for text, tree, of_text in zip(prepared, trees, found):
        assert_largest(of_text.predicted, eager_words(checkpoint, text, tree.words, settings, "mean"))


def test_small_tiles_give_the_same(loaded, small_tiles):
    checkpoint = loaded("roberta")
    *_, whole = answered(checkpoint, TEXTS)
    small_tiles(50)
    *_, tiled = answered(checkpoint, TEXTS)
    for of_text, expected in zip(tiled, whole, strict=True):
        np.testing.assert_array_equal(of_text.predicted, expected.predicted)


def test_the_first_word_of_a_causal_model_predicts_nothing_and_sees_no_head(loaded):
    _, (tree, *_), found = answered(loaded("gpt2"), TEXTS[:3])
    for of_text in (each.predicted for each in found):
        np.testing.assert_array_equal(of_text[0, :, :, 0], -1)
        assert (of_text[0, :, :, 1:] >= 0).all()
        assert (of_text[0] < np.arange(of_text.shape[-1])).all()
        np.testing.assert_array_equal(of_text[1, :, :, -1], -1)
        assert (of_text[1, :, :, :-1] > np.arange(of_text.shape[-1] - 1)).all()
    assert tree.heads[0] == 2
    assert np.isnan(found[0].to_head[..., 0]).all()
    assert np.isfinite(found[0].from_head[..., 0]).all()
    assert np.isnan(found[0].from_others[..., -1]).all(), "no other word can see the last one"


def test_words_beyond_a_cut_are_not_predicted_predict_and_join_nothing_and_are_no_others(loaded):
    """Both segments are cut, so that words without tokens stand between words that have some."""
    checkpoint = loaded("bert")
    long = Text(("unbelievable cats " * 20 + "sat", "she eats " * 20 + "it"))
    prepared, (tree,), (found,) = answered(checkpoint, [long])
    has_tokens = word_map(tree.words, prepared[0].queries).has_tokens
    np.testing.assert_array_equal(found.has_tokens, has_tokens)
    assert not has_tokens[30]
    assert has_tokens[42]
    np.testing.assert_array_equal(found.predicted[..., ~has_tokens], -1)
    assert has_tokens[found.predicted[..., has_tokens]].all()
    between = eager_words(checkpoint, prepared[0], tree.words, SELF, "mean")
    assert_largest(found.predicted, between)
    assert_along_tree(found, tree, between, has_tokens)
    assert np.isnan(found.from_others[..., ~has_tokens]).all()
