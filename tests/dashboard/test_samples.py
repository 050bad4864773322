from collections import Counter

import pytest

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.relations import dependencies
from attention_sieve.core.texts.text import read_file
from attention_sieve.dashboard.samples import EXAMPLE, MARKED_PAIRS, read_sample

RELATIONS = ("nsubj", "dobj", "amod", "advmod")


def n_words(text):
    return sum(len(segment.split()) for segment in text.segments)


def test_each_sample_has_at_least_sixty_texts_and_both_has_all():
    pairs, texts = read_sample("pairs"), read_sample("texts")
    assert min(len(pairs), len(texts)) >= 60
    assert {len(text.segments) for text in pairs} == {2}
    assert {len(text.segments) for text in texts} == {1}
    assert read_sample("both") == pairs + texts


def test_no_text_and_no_segment_stands_twice():
    segments = [segment.lower() for text in (EXAMPLE, *read_sample("both")) for segment in text.segments]
    assert len(set(segments)) == len(segments)


def test_lengths_vary_and_none_is_too_long_for_a_small_model():
    lengths = [n_words(text) for text in read_sample("both")]
    assert min(lengths) <= 5
    assert 35 <= max(lengths) <= 80


def test_each_relation_occurs_in_at_least_forty_samples():
    found = [set(tree.relations) for tree in dependencies(read_sample("both"))]
    counts = {relation: sum(relation in relations for relations in found) for relation in RELATIONS}
    assert min(counts.values()) >= 40, counts


def test_the_example_is_one_sentence_of_medium_length_with_every_relation():
    assert len(EXAMPLE.segments) == 1
    (tree,) = dependencies([EXAMPLE])
    assert 12 <= len(tree.relations) <= 20
    assert set(RELATIONS) <= set(tree.relations)


def test_the_marked_pairs_are_those_of_short_functions_in_documents_of_their_own():
    texts = read_file(MARKED_PAIRS.name, MARKED_PAIRS.read_bytes())
    assert len({text.document for text in texts}) == len(texts) >= 20
    relations = Counter(relation for text in texts for relation in text.pairs.relations)
    assert min(relations["bracket"], relations["def-use"]) >= 50


def test_an_unknown_sample_is_named_with_the_ones_there_are():
    with pytest.raises(
        TextError, match=r'There is no sample "poems"\. Choose one of pairs, texts, both, varied, French\.'
    ):
        read_sample("poems")
