"""Predictions of every head in a pass, against the largest entries of eager maps in float64."""

import numpy as np
import pytest
import torch
from eager_words import between_words, eager
from passing import SELF

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.passes.texts import prepare, queries_text
from attention_sieve.core.relations.observer import most_attended, predictions
from attention_sieve.core.texts.relations import ROOT, Dependencies, dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import FIRST_WORD, word_map, words_of

TEXTS = (
    Text(("The unbelievable cat sat on the old mats.", "She drinks hot coffee, quickly.")),
    Text(("She ate.",)),
    Text(("Unbelievably, birds' apples!",)),
    Text(("Cats",)),
)
FAMILIES = ("bert", "roberta", "gpt2", "llama", "mpnet")
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


def predicted(checkpoint, texts, settings=SELF, **more):
    prepared, trees, found = answered(checkpoint, texts, settings, **more)
    words = [tree.words for tree in trees]
    for place, of_text in enumerate(found):
        has_tokens = word_map(words[place], prepared[place].queries).has_tokens
        np.testing.assert_array_equal(of_text.has_tokens, has_tokens)
    return prepared, words, [found[place].predicted for place in range(len(texts))]


def eager_words(checkpoint, text, words, settings, from_word):
    """Attention between words, special tokens left out, [layer head word word]."""
    of_token, n_words = word_map(words, text.queries).of_token, FIRST_WORD + len(words.segments)
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


@pytest.mark.parametrize("from_word", ["mean", "first"])
@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_are_the_largest_entries_of_eager_maps(family, from_word, loaded):
    checkpoint = loaded(family)
    prepared, words, found = predicted(checkpoint, TEXTS, from_word=from_word)
    for text, of_words, of_text in zip(prepared, words, found):
        assert_largest(of_text, eager_words(checkpoint, text, of_words, SELF, from_word))


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_so_they_are_in_an_encoder_decoder_for_the_words_that_attend(kind, loaded):
    checkpoint = loaded("bart")
    texts = (TEXTS[0], Text(("She ate.", "A bird sat unbelievably on the old red mats.")))
    settings = PassSettings(kind)
    prepared, words, found = predicted(checkpoint, texts, settings)
    assert [len(one.segments) for one in words] == ([8, 2] if kind == "encoder" else [5, 9])
    for text, of_words, of_text in zip(prepared, words, found):
        assert_largest(of_text, eager_words(checkpoint, text, of_words, settings, "mean"))


@pytest.mark.parametrize("entries", [50, 700])
def test_small_tiles_and_small_batches_give_the_same(entries, loaded, small_tiles):
    checkpoint = loaded("roberta")
    *_, whole = predicted(checkpoint, TEXTS)
    small_tiles(entries)
    *_, tiled = predicted(checkpoint, TEXTS, batch_tokens=8)
    for of_text, expected in zip(tiled, whole, strict=True):
        np.testing.assert_array_equal(of_text, expected)


def test_pieces_of_a_word_attend_by_their_mean_or_by_the_first(loaded):
    checkpoint = loaded("bert")
    *_, mean = predicted(checkpoint, TEXTS[:1])
    *_, first = predicted(checkpoint, TEXTS[:1], from_word="first")
    assert (mean[0] != first[0]).any()


def test_the_first_word_of_a_causal_model_predicts_nothing(loaded):
    *_, found = predicted(loaded("gpt2"), TEXTS[:3])
    for of_text in found:
        np.testing.assert_array_equal(of_text[0, :, :, 0], -1)
        assert (of_text[0, :, :, 1:] >= 0).all()
        assert (of_text[0] < np.arange(of_text.shape[-1])).all()
        np.testing.assert_array_equal(of_text[1, :, :, -1], -1)
        assert (of_text[1, :, :, :-1] > np.arange(of_text.shape[-1] - 1)).all()


def test_the_only_word_of_a_text_predicts_nothing(loaded):
    *_, found = predicted(loaded("bert"), TEXTS[3:])
    np.testing.assert_array_equal(found[0], np.full((2, 2, 3, 1), -1))


def test_words_beyond_a_cut_are_neither_predicted_nor_predict(loaded):
    """Both segments are cut, so that words without tokens stand between words that have some."""
    checkpoint = loaded("bert")
    long = Text(("unbelievable cats " * 20 + "sat", "she eats " * 20 + "it"))
    prepared, words, (found,) = predicted(checkpoint, [long])
    has_tokens = word_map(words[0], prepared[0].queries).has_tokens
    assert not has_tokens[30]
    assert has_tokens[42]
    np.testing.assert_array_equal(found[..., ~has_tokens], -1)
    assert has_tokens[found[..., has_tokens]].all()
    assert_largest(found, eager_words(checkpoint, prepared[0], words[0], SELF, "mean"))


def test_words_of_a_parser_are_predicted_too(loaded):
    checkpoint = loaded("bert")
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    trees = list(dependencies(TEXTS))
    ((_, found),) = [one for batch in predictions(checkpoint, prepared, trees, SELF) for one in batch if one[0] == 0]
    assert found.predicted.shape[-1] == len(trees[0].heads) == 9 + 7
    assert_largest(found.predicted, eager_words(checkpoint, prepared[0], trees[0].words, SELF, "mean"))


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


@pytest.mark.parametrize("from_word", ["mean", "first"])
@pytest.mark.parametrize("family", FAMILIES)
def test_attention_along_the_tree_and_from_other_words_is_that_of_eager_maps(family, from_word, loaded):
    checkpoint = loaded(family)
    prepared, trees, found = answered(checkpoint, TEXTS, from_word=from_word)
    for text, tree, of_text in zip(prepared, trees, found):
        between = eager_words(checkpoint, text, tree.words, SELF, from_word)
        expected = assert_along_tree(of_text, tree, between, of_text.has_tokens)
        if len(tree.heads) > 6:
            assert np.isfinite(expected).any(axis=-1).all()


def test_a_word_that_cannot_see_its_head_and_words_before_the_key_do_not_count(loaded):
    """In a causal model: "The" before its head; the last word, which no other can see."""
    _, (tree, *_), (found, *_) = answered(loaded("gpt2"), TEXTS[:1])
    assert tree.heads[0] == 2
    assert np.isnan(found.to_head[..., 0]).all()
    assert np.isfinite(found.from_head[..., 0]).all()
    assert np.isnan(found.from_others[..., -1]).all()


def test_words_beyond_a_cut_join_nothing_and_are_no_others(loaded):
    checkpoint = loaded("bert")
    prepared, (tree,), (found,) = answered(checkpoint, [Text(("unbelievable cats " * 20 + "sat", "she eats " * 20))])
    has_tokens = word_map(tree.words, prepared[0].queries).has_tokens
    between = eager_words(checkpoint, prepared[0], tree.words, SELF, "mean")
    assert_along_tree(found, tree, between, has_tokens)
    assert np.isnan(found.from_others[..., ~has_tokens]).all()


def test_the_largest_of_a_planted_map_worked_by_hand():
    """Two special words and four others, one of which is padding: a previous-word head and a next-word head."""
    attention = torch.zeros(1, 2, 6, 6)
    attention[..., :2] = 0.4  # special tokens take most of every row
    attention[..., range(6), range(6)] = 0.3  # so does the word itself
    for word in (3, 4):
        attention[0, 0, word, word - 1] = 0.1
        attention[0, 1, word - 1, word] = 0.1
    attention[..., 5, :] = attention[..., 5] = 0
    found = most_attended(0, attention)["predicted"]
    assert found.shape == (1, 2, 2, 4)
    assert found[0, :, 0].tolist() == [[-1, 0, 1, -1], [1, 2, -1, -1]]
    assert found[0, :, 1].tolist() == [[1, 2, -1, -1], [-1, 0, 1, -1]]
