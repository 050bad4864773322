"""Pairs of spans that a file marks: which words they make, and which mistakes are named by their place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.given import NO_PAIR
from attention_sieve.core.texts.relations import ROOT, ROOT_RELATION, pairs_as_tree
from attention_sieve.core.texts.text import read_file, texts_sha256


def read(*items, name="a.jsonl"):
    return read_file(name, "\n".join(map(json.dumps, items)).encode())


def pair(start, end, relation="link"):
    return {"relation": relation, "from": start, "to": end}


def words(text):
    return [text.segments[side][start:end] for side, (start, end) in zip(text.pairs.segments, text.pairs.spans)]


def test_marked_spans_are_words_among_runs_of_letters_and_single_characters():
    (text,) = read({"text": "fold(New York, x1)", "document": "a", "pairs": [pair([5, 13], [0, 2])]})
    assert words(text) == ["fo", "ld", "(", "New York", ",", "x1", ")"]
    assert text.pairs.heads == (NO_PAIR, NO_PAIR, NO_PAIR, 0, NO_PAIR, NO_PAIR, NO_PAIR)
    assert text.document == "a"
    tree = pairs_as_tree(text.pairs)
    assert tree.heads.tolist() == [ROOT, ROOT, ROOT, 0, ROOT, ROOT, ROOT]
    assert tree.relations == (*[ROOT_RELATION] * 3, "link", *[ROOT_RELATION] * 3)


def test_a_character_keeps_its_place_across_line_breaks_and_spaces_at_the_ends():
    (text,) = read({"text": " \r\na =\t1\r\nb  ", "pairs": [pair([9, 12], [2, 5])]})
    assert text.segments == ("a = 1  b",)
    assert [words(text)[place] for place in (3, text.pairs.heads[3])] == ["b", "a"]


def test_pairs_join_two_texts_by_their_keys():
    item = {"text_a": "a b", "text_b": "c a", "pairs": [{"relation": "same", "from_b": [2, 3], "to_a": [0, 1]}]}
    (text,) = read(item)
    assert (words(text), text.pairs.heads, text.pairs.segments) == (["a", "b", "c", "a"], (-1, -1, -1, 0), (0, 0, 1, 1))
    assert text.pairs.is_across
    second = text.pairs.within_segment(1)
    assert (second.segments, second.heads, second.spans) == ((0, 0), (NO_PAIR, NO_PAIR), ((0, 1), (2, 3)))


def test_pairs_within_a_segment_stay_in_it():
    (text,) = read({"text_a": "a b", "text_b": "c d", "pairs": [{"relation": "x", "from_b": [2, 3], "to_b": [0, 1]}]})
    assert not text.pairs.is_across
    assert (text.pairs.heads, text.pairs.within_segment(1).heads) == ((-1, -1, -1, 2), (-1, 0))
    assert text.pairs.within_segment(0).relations == ("", "")


def test_lists_under_each_key_are_read_too_and_pairs_belong_to_what_identifies_texts():
    pairs = [[pair([0, 1], [2, 3])], [pair([2, 3], [0, 1])]]
    texts = read({"text": ["a b", "a b"], "pairs": pairs, "document": ["x", "y"]}, name="a.json")
    assert [(text.pairs.heads, text.document) for text in texts] == [((1, -1), "x"), ((-1, 0), "y")]
    assert len({texts_sha256([text]) for text in texts}) == 2


@given(st.data())
def test_every_character_that_is_no_space_is_in_one_word_and_every_pair_is_kept(data):
    text = data.draw(st.text("ab( \u0301😀", min_size=4, max_size=12).filter(lambda text: text == text.strip()))
    ends = sorted(data.draw(st.sets(st.integers(0, len(text)), min_size=4, max_size=4)))
    spans = [ends[:2], ends[2:]]
    if not all(text[slice(*span)].strip() for span in spans):
        return
    (found,) = read({"text": text, "pairs": [pair(spans[1], spans[0])]})
    covered = [place for span in found.pairs.spans for place in range(*span)]
    assert len(covered) == len(set(covered))
    assert {place for place, character in enumerate(text) if not character.isspace()} <= set(covered)
    (dependent,) = (place for place, head in enumerate(found.pairs.heads) if head != NO_PAIR)
    assert [words(found)[place] for place in (found.pairs.heads[dependent], dependent)] == [
        text[slice(*span)].strip() for span in spans
    ]


MISTAKES = [
    ({"text": "a b", "pairs": [pair([0, 9], [2, 3])]}, r'pair 1: "from" is \[0, 9\], in a text of 3 characters'),
    ({"text": "a b", "pairs": [pair([0, 1], [1, 2])]}, r"the span \[1, 2\] holds spaces alone"),
    ({"text": "abc", "pairs": [pair([0, 2], [1, 3])]}, r"the spans \[0, 2\] and \[1, 3\] overlap"),
    ({"text": "a b", "pairs": [pair([0, 1], [0, 1])]}, r"pair 1 begins and ends in \[0, 1\]"),
    ({"text": "a b", "pairs": [pair([0, 1], [0, 2])]}, r"a pair begins and ends in \[0, 1\]"),
    ({"text": "a b c", "pairs": [pair([0, 1], [2, 3]), pair([0, 1], [4, 5])]}, r"two pairs begin in \[0, 1\]"),
    ({"text": "a b", "pairs": [pair([0, 1], [2, 3], "root")]}, r"the relation is called 'root'.*none of all, punct"),
    ({"text": "a b", "pairs": [pair([0, 1], [2, 3], " ")]}, r"the relation is called ' ?'"),
    ({"text": "a b", "pairs": [{"relation": "x", "to": [0, 1]}]}, r"no span under 'from'"),
    ({"text": "a b", "pairs": [{"relation": 1, "from": [0, 1], "to": [2, 3]}]}, r'"relation" is a number'),
    ({"text": "a b", "pairs": {}}, r'"pairs" is an object\. Write a list of objects'),
    ({"text": "a b", "pairs": [[0, 1]]}, r"pair 1 is a list"),
    ({"text": "a b", "pairs": [], "format": 2}, r'"format" is 2, and pairs of format 1 are read'),
    ({"words": ["a"], "pairs": []}, r'"pairs" and "words"'),
]


@pytest.mark.parametrize(("item", "message"), MISTAKES)
def test_a_mistake_is_named_by_its_line(item, message):
    with pytest.raises(TextError, match=f"^Line 2.*{message}"):
        read({"text": "Fine."}, item)
