from collections import Counter
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_trees import HE_SAW_DOGS, SHE_SANG, flat, tree

from attention_sieve.core.knowledge.from_trees import properties
from attention_sieve.core.knowledge.from_trees.changes import bigram_shift
from attention_sieve.core.knowledge.from_trees.properties import (
    SENTENCES_OF_A_WORD,
    length,
    top_relations,
    tree_depth,
    tree_depth_matched,
    word_content,
)
from attention_sieve.core.knowledge.from_trees.rows import LEAST_OF_A_CLASS, balanced_rows


def chain(depth, n_words, name):
    """A tree of a depth, with other words on the root, and a unique last word."""
    heads = [f"w/NN/{max(place, 0)}/{'dep' if place else 'root'}" for place in range(depth + 1)]
    return tree(" ".join([*heads, *["w/NN/1/dep"] * (n_words - depth - 2), f"{name}/NN/1/dep"]), name)


def test_lengths_fall_into_six_bins_of_which_none_may_be_empty():
    found = length([flat(" ".join(["w"] * n_words)) for n_words in range(5, 29)], Random(0))
    assert Counter(one.label for one in found) == {"0": 4, "1": 4, "2": 4, "3": 4, "4": 5, "5": 3}
    assert [(len(one.words), one.label) for one in found][3:5] == [(8, "0"), (9, "1")]
    assert length([flat(" ".join(["w"] * n_words)) for n_words in range(5, 26)], Random(0)) == []


def test_the_depth_is_that_of_the_deepest_word_but_punctuation():
    nested = tree("Go/VB/0/root to/IN/1/prep the/DT/4/det end/NN/2/pobj !/./3/punct")
    beside = tree("Go/VB/0/root to/IN/1/prep it/PRP/2/pobj ,/,/2/punct please/UH/1/intj")
    found = tree_depth([HE_SAW_DOGS, nested, beside] * LEAST_OF_A_CLASS, Random(0))
    assert [one.words for one in found[:3]] == [HE_SAW_DOGS.words, nested.words, beside.words]
    assert [one.label for one in found] == ["2", "3", "2"] * LEAST_OF_A_CLASS


def test_depths_that_are_too_rare_are_no_classes():
    counts = {1: LEAST_OF_A_CLASS - 1, 2: LEAST_OF_A_CLASS, 3: LEAST_OF_A_CLASS}
    sentences = [chain(depth, 8, f"{depth}-{row}") for depth, n_rows in counts.items() for row in range(n_rows)]
    assert {one.label for one in tree_depth(sentences, Random(0))} == {"2", "3"}
    assert tree_depth(sentences[: 2 * LEAST_OF_A_CLASS - 2], Random(0)) == []


def test_matched_depths_have_the_same_lengths_in_each_part():
    numbers = {(2, 8): 100, (3, 8): 50, (2, 9): 30, (3, 9): 90, (2, 10): 40}
    sentences = [chain(*cell, f"{cell}{row}".replace(" ", "")) for cell, n in numbers.items() for row in range(n)]
    made = balanced_rows(tree_depth_matched(sentences, Random(0)), 10_000, Random(0))
    cells = Counter((row.part, len(row.text.segments[0].split()), row.label) for row in made)
    for part, n_words in product(("train", "validation", "test"), (8, 9, 10)):
        assert cells[part, n_words, "2"] == cells[part, n_words, "3"]
    assert sum(cells.values()) == 160
    assert not any(n_words == 10 for _, n_words, _ in cells)


def test_main_parts_are_named_in_order_and_coordinated_ones_once():
    three = tree("Sit/VB/0/root ,/,/1/punct run/VB/1/conj and/CC/1/cc go/VB/1/conj home/RB/1/advmod")
    sentences = [three, three, HE_SAW_DOGS, SHE_SANG, flat("a b c d e")]
    found = [one.label for one in top_relations(sentences * LEAST_OF_A_CLASS, Random(0))]
    assert found[:5] == ["root_conj"] * 2 + ["nsubj_root_dobj", "nsubj_root_conj", "OTHER"]


def test_rare_orders_are_other():
    sentences = [HE_SAW_DOGS] * 100 + [SHE_SANG] * 70 + [flat("a b c d e")] * 10
    assert top_relations(sentences[:170], Random(0))[169].label == "OTHER"
    labels = [one.label for one in top_relations(sentences, Random(0))]
    assert labels == ["nsubj_root_dobj"] * 100 + ["OTHER"] * 80


def test_too_few_sentences_have_no_orders():
    assert top_relations([HE_SAW_DOGS, SHE_SANG], Random(0)) == []
    assert top_relations([], Random(0)) == tree_depth([], Random(0)) == tree_depth_matched([], Random(0)) == []


def sentence_with(words, row):
    return flat(f"x {words} y {row}", f"{row}")


def test_a_sentence_counts_with_exactly_one_of_the_words_once():
    n = SENTENCES_OF_A_WORD
    only_first, only_second = [f"First {row}" for row in range(n)], [f"second {row}" for row in range(n)]
    others = ["first second", "first First", "second second"] * 3 + ["small red"] * n
    sentences = [sentence_with(words, row) for row, words in enumerate([*only_first, *only_second, *others])]
    found = word_content(sentences, Random(0))
    assert Counter(one.label for one in found) == {"first": n, "second": n, "small": n}
    assert [one.label for one in found[: 2 * n]] == ["first"] * n + ["second"] * n


def test_words_that_leave_others_too_few_sentences_are_passed_over():
    """The commonest word stands beside all others; without it there are two classes."""
    n = SENTENCES_OF_A_WORD
    sentences = [sentence_with(f"with {('alpha', 'beta_', 'gamma')[row % 3]}", row) for row in range(3 * n)]
    assert {one.label for one in word_content(sentences, Random(0))} == {"alpha", "gamma"}


def test_short_words_and_words_alone_once_in_too_few_sentences_are_no_classes():
    sentences = [sentence_with("red 2021 rare" if row else "red", row) for row in range(SENTENCES_OF_A_WORD)]
    assert word_content(sentences, Random(0)) == []
    often = ["alpha"] * SENTENCES_OF_A_WORD + ["gamma"] * (SENTENCES_OF_A_WORD - 1) + ["gamma gamma"]
    sentences = [sentence_with(words, row) for row, words in enumerate(often)]
    assert {one.label for one in word_content(sentences, Random(0))} == {"alpha"}


def test_no_more_words_than_the_authors_take(monkeypatch):
    monkeypatch.setattr(properties, "MOST_WORDS", 1)
    sentences = [sentence_with(("alpha", "gamma")[row % 2], row) for row in range(2 * SENTENCES_OF_A_WORD)]
    assert {one.label for one in word_content(sentences, Random(0))} == {"alpha"}


WORDS = st.lists(st.sampled_from(["a", "A", "b", "c", "n't", ",", '"', "."]), min_size=5, max_size=9)


@given(st.lists(WORDS, max_size=8), st.integers(0, 9))
def test_a_shifted_sentence_differs_by_exactly_one_swap_of_words(sentences, seed):
    made = [flat(" ".join(words), str(row)) for row, words in enumerate(sentences)]
    found = bigram_shift(made, Random(seed))
    assert [label for label in ("O", "I") for one in found if one.label == label].count("I") == len(found) // 2
    original = {str(row): tuple(words) for row, words in enumerate(sentences)}
    for one in found:
        before = original[one.unit]
        moved = [place for place, (was, now) in enumerate(zip(before, one.words)) if was != now]
        if one.label == "O":
            assert moved == []
            continue
        first, second = moved
        assert second == first + 1
        assert first >= 1
        assert (one.words[first], one.words[second]) == (before[second], before[first])
        assert not {",", '"', "."} & {before[first], before[second]}
        assert before[first].lower() != before[second].lower()


@pytest.mark.parametrize("words", ["a b , c .", "x a A a .", "a , b . c", '" b " c d'])
def test_sentences_without_two_words_to_swap_are_in_neither_class(words):
    swappable = words == '" b " c d'
    assert len(bigram_shift([flat(words)], Random(0))) == swappable
