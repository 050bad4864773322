"""Trees of texts through the store: equal to the parser's, parsed once, and never those of a file."""

from dataclasses import replace

import numpy as np
import pytest
from parses import unparsed

from attention_sieve.cache.store.store import tree_key
from attention_sieve.cache.trees import PARSED_PER_REPORT, NotKept, Trees
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.relations import dependencies
from attention_sieve.core.texts.text import Text, read_typed

TEXTS = (*read_typed("The cat sat.\nShe saw a dog ||| It ran away quickly.\nNo \U0001f600 here."), Text((" ",)))
GOLD = Text(("He saw her",), (("He", "saw", "her"),), ((2, 0, 2),), (("nsubj", "root", "obj"),))


def check(tree, expected):
    np.testing.assert_array_equal(tree.words.segments, expected.words.segments)
    np.testing.assert_array_equal(tree.words.spans, expected.words.spans)
    np.testing.assert_array_equal(tree.heads, expected.heads)
    assert tree.relations == expected.relations


def test_trees_are_the_parsers_and_come_back_without_it(store):
    every = (*TEXTS, GOLD, TEXTS[0])
    for tree, expected in zip(Trees(store).of(every), dependencies(every), strict=True):
        check(tree, expected)
    later = Trees(store)
    with unparsed(*(segment for text in TEXTS for segment in text.segments)):
        kept = list(later.kept(every))
    for tree, expected in zip(kept, dependencies(every), strict=True):
        check(tree, expected)
    assert all(a is b for a, b in zip(later.kept(every), kept, strict=True))  # now from memory


def test_a_text_that_brings_its_tree_is_not_stored_and_one_that_was_not_parsed_not_kept(store):
    trees = Trees(store)
    list(trees.of((GOLD, TEXTS[0])))
    assert store.size()[0] == 1
    assert store.get(tree_key(TEXTS[0])) is not None
    with pytest.raises(NotKept):
        list(trees.kept((GOLD, TEXTS[0], TEXTS[1])))


def test_no_words_are_stored(store):
    list(Trees(store).of(TEXTS))
    stored = b"".join(array.tobytes() for text in TEXTS for array in (store.get(tree_key(text)) or {}).values())
    assert b"nsubj" in stored
    assert b"cat" not in stored
    assert b"dog" not in stored


def test_nothing_is_parsed_before_a_tree_is_read(store):
    trees = Trees(store).of((replace(TEXTS[0], parser="no_such_parser"),))
    with pytest.raises(AnalysisError, match="no_such_parser"):
        next(trees)


def test_the_same_text_in_two_documents_is_kept_for_both(store):
    both = (replace(TEXTS[0], document="a"), replace(TEXTS[0], document="b"))
    expected = list(Trees(store).of(both))
    for tree, other in zip(Trees(store).kept(both), expected, strict=True):
        check(tree, other)


def test_a_reader_who_stops_keeps_what_was_parsed(store):
    texts = tuple(Text((f"The cat number {number} sat.",)) for number in range(2 * PARSED_PER_REPORT + 1))
    seen = []

    def stop(status):
        seen.append((status.done, status.total, status.is_parsing))
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Trees(store).of(texts, stop))
    assert seen == [(number * PARSED_PER_REPORT, len(texts), True) for number in (1, 2)]
    assert store.size()[0] == 2 * PARSED_PER_REPORT
    list(Trees(store).of(texts, lambda status: seen.append(status.done)))
    assert seen[2:] == [len(texts)]


def test_another_parser_parses_anew(store, monkeypatch):
    list(Trees(store).of(TEXTS[:1]))
    monkeypatch.setattr("attention_sieve.cache.store.store.parser_name", lambda _: "another 1.0")
    with pytest.raises(NotKept):
        list(Trees(store).kept(TEXTS[:1]))
