"""The texts that show what a head does, by hand."""

from dataclasses import replace

from made_heads import ROOT, predictions, surface

from core.descriptions.examples import examples
from core.descriptions.facts import HeadDescription, RelationFact, ShareFact

HEAD = (1, 2)
RELATION = RelationFact(
    relation="nsubj", direction="dependent-to-head", accuracy=0.8, low=0.7, high=0.9, baseline=0.4, offset=1,
    n_cases=50, p_value=0.001,
)  # fmt: skip
REST = ShareFact(target="cls", share=0.6, low=0.5, high=0.7, even=0.1)
PREVIOUS = replace(REST, target="previous")
TREE = ([1, ROOT, 3, ROOT], ["nsubj", "root", "nsubj", "root"])


def shown(facts, texts, shares=None):
    """The fact that is shown, and the places and links of the examples."""
    of_texts = [surface(previous={HEAD: share}) for share in shares or [0.1] * len(texts)]
    fact, found = examples(HeadDescription(head=HEAD, n_texts=len(texts), facts=facts), of_texts, texts)
    return fact, [(example.position, [(link.query, link.key) for link in example.links]) for example in found]


def test_a_relation_is_shown_where_most_of_its_words_are_right_less_those_that_are_wrong():
    half = predictions(*TREE, {HEAD: [1, -1, 0, -1]})
    both = predictions(*TREE, {HEAD: [1, -1, 3, -1]})
    one = predictions([1, ROOT], ["nsubj", "root"], {HEAD: [1, -1]})
    none = predictions(*TREE, {HEAD: [2, -1, 0, -1]})
    fact, found = shown((REST, RELATION), [half, none, one, both])
    assert fact is RELATION
    assert found == [(3, [(0, 1), (2, 3)]), (2, [(0, 1)]), (0, [(0, 1)])]


def test_the_other_direction_links_the_head_to_its_dependent():
    turned = replace(RELATION, direction="head-to-dependent")
    text = predictions([1, ROOT], ["nsubj", "root"], {}, {HEAD: [1, -1]})
    assert shown((turned,), [text])[1] == [(0, [(1, 0)])]


def test_the_previous_token_is_shown_where_it_gets_most_by_words_that_share_none():
    texts = [predictions(*TREE, {HEAD: [-1, 0, 1, 2]}) for _ in range(4)]
    fact, found = shown((PREVIOUS,), texts, [0.4, 0.9, 0.6, 0.7])
    assert fact is PREVIOUS
    assert found == [(place, [(1, 0), (3, 2)]) for place in (1, 3, 2)]


def test_equal_texts_are_shown_once():
    text = predictions([1, ROOT], ["nsubj", "root"], {HEAD: [1, -1]})
    assert shown((RELATION,), [text, text])[1] == [(0, [(0, 1)])]


def test_what_no_word_shows_has_no_example():
    assert shown((REST,), [predictions(*TREE, {HEAD: [1, -1, 3, -1]})]) == (None, [])
    assert examples(HeadDescription(head=HEAD, n_texts=0, facts=()), [], []) == (None, ())
