"""Patterns of trees, against spaCy's own DependencyMatcher, which goes through all combinations of words."""

import numpy as np
import pytest
from spacy.matcher import DependencyMatcher

from attention_sieve.core.texts.parsers import english_parser
from attention_sieve.core.texts.parsing import _pipeline
from attention_sieve.core.texts.patterns import OPERATORS, checked_tree, matched_words, tree_matches, word_patterns
from attention_sieve.dashboard.samples import read_sample


@pytest.fixture(scope="module")
def documents():
    return list(_pipeline(english_parser()).pipe(text.segments[0] for text in read_sample("varied")[:24]))


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_tree_is_matched_as_by_spacy_but_for_siblings_of_roots(operator, documents):
    node = {"LEFT_ID": "a", "REL_OP": operator, "RIGHT_ID": "b", "RIGHT_ATTRS": {"POS": {"IN": ["VERB", "AUX", "ADP"]}}}
    last = {"LEFT_ID": "b", "REL_OP": "<", "RIGHT_ID": "from", "RIGHT_ATTRS": {}}
    side = {"LEFT_ID": "a", "REL_OP": ".*", "RIGHT_ID": "c", "RIGHT_ATTRS": {"IS_PUNCT": True}}
    pattern = [{"RIGHT_ID": "a", "RIGHT_ATTRS": {"IS_ALPHA": True}}, node, last, side]
    tree, matcher = checked_tree(pattern, "here"), DependencyMatcher(documents[0].vocab)
    matcher.add("pattern", [pattern])
    n_matches = 0
    for document in documents:
        heads = np.array([-1 if word.head == word else word.head.i for word in document])
        fits = np.array(matched_words(word_patterns(tree), [document]))[:, 0]
        expected = {(ids[2], ids[0]) for _, ids in matcher(document) if "$" not in operator or heads[ids[0]] >= 0}
        assert set(map(tuple, tree_matches(tree, heads, fits).tolist())) == expected
        n_matches += len(expected)
    assert n_matches


def test_a_pattern_of_any_words_of_a_long_sentence_takes_bounded_time():
    nodes = [{"RIGHT_ID": "0", "RIGHT_ATTRS": {}}]
    nodes += [
        {"LEFT_ID": str(at - 1), "REL_OP": ".*", "RIGHT_ID": str(at) if at < 7 else "from", "RIGHT_ATTRS": {}}
        for at in range(1, 8)
    ]
    found = tree_matches(checked_tree(nodes, "here"), np.arange(-1, 299), np.ones((8, 300), bool))
    assert len(found) == sum(range(300 - 6))  # 300 ** 8 combinations
    assert (found[:, 0] - found[:, 1]).min() == 7
