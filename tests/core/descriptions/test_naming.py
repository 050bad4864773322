"""The name of a head, by hand: at most five words, and never one that the tests do not carry."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_heads import FINDER, SHAPE, surface, text
from scipy.stats import t as student

from attention_sieve.core.descriptions.accuracies import (
    LEAST_CASES,
    MOSTLY,
    HeadDescription,
    KeyControl,
    MentionFact,
    RelationFact,
    RoleFact,
    ShareFact,
    SpreadFact,
)
from attention_sieve.core.descriptions.describe import ON_TOKENS, Known, describe_heads
from attention_sieve.core.descriptions.naming import _BY_RELATION, MOST_WORDS, NO_NAME, HeadName, name_of_head
from attention_sieve.core.relations.settings import DIRECTIONS

HEAD = (1, 2)
CONTROL = KeyControl(to_right=0.4, from_others=0.1, p_value=0.001, beats=True, from_everywhere=False)
RELATION = RelationFact(
    relation="dobj", direction=DIRECTIONS[1], accuracy=0.8, low=0.7, high=0.9, baseline=0.4, offset=-2,
    where_wrong=0.7, surplus=0.1, n_cases=200, p_value=0.001, control=CONTROL,
)  # fmt: skip
MENTIONS = MentionFact(
    source="stories", accuracy=0.8, low=0.7, high=0.9, nearest=0.4, same_word=0.5, where_wrong=0.7, surplus=0.1,
    n_cases=200, n_documents=40, p_value=0.001, control=CONTROL,
)  # fmt: skip
SHARE = ShareFact(target="cls", share=0.7, low=0.68, high=0.72, even=0.1, corrected_low=0.66)


def named(*facts, sight="around"):
    return name_of_head(HeadDescription(head=HEAD, n_texts=40, facts=facts, sight=sight))


def test_the_name_is_that_of_the_first_fact_that_passes_every_test():
    assert named(SHARE, RELATION) == HeadName(words="Rests on [CLS]", fact=SHARE)
    unsure = replace(SHARE, corrected_low=0.49)
    assert unsure.low > MOSTLY, "its own interval would carry it, but not the one that is corrected"
    assert named(unsure, RELATION) == HeadName(words="Verbs look at their objects", fact=RELATION)
    assert named(MENTIONS).words == "Mentions look at earlier ones"
    assert named() == HeadName(words=NO_NAME, fact=None)


@pytest.mark.parametrize(
    "change",
    [
        {"surplus": 0.0},
        {"low": 0.5},
        {"p_value": 0.05},
        {"p_value": float("nan")},
        {"control": replace(CONTROL, beats=False)},
    ],
    ids=["a guess does as well", "mostly wrong", "not significant", "no test", "from other words as well"],
)
@pytest.mark.parametrize("fact", [RELATION, MENTIONS], ids=["relation", "mentions"])
def test_an_accuracy_that_fails_one_test_gives_no_name(fact, change):
    assert named(fact).fact is fact
    assert named(replace(fact, **change)).words == NO_NAME


def test_what_is_no_habit_gives_no_name():
    partly = replace(SHARE, share=0.45, low=0.44, corrected_low=0.43)
    assert named(partly, SpreadFact(ratio=0.99), RoleFact(role="local")).words == NO_NAME
    assert named(replace(SHARE, corrected_low=float("nan"))).words == NO_NAME, "one text carries no name"


def test_a_share_is_corrected_for_all_heads_and_targets_and_equal_texts_count_once():
    texts = [surface(previous={HEAD: share}) for share in (0.7, 0.72, 0.74, 0.71)]
    (fact,) = describe_heads(Known(surface=texts))[HEAD].facts
    shares = np.array([0.7, 0.72, 0.74, 0.71])
    n_tests = SHAPE[0] * SHAPE[1] * len(ON_TOKENS)
    margin = student.isf(0.05 / n_tests / 2, 3) * shares.std(ddof=1) / 2
    assert fact.corrected_low == pytest.approx(shares.mean() - margin)
    (again,) = describe_heads(Known(surface=texts * 4))[HEAD].facts
    assert again.low > fact.low
    assert again.corrected_low == pytest.approx(fact.corrected_low)


def test_a_share_carries_the_name_in_shorter_and_in_longer_texts():
    """In the long texts of many it is more, but not surely so."""
    rng = np.random.default_rng(0)
    short = [surface(n_keys=10, cls={HEAD: 0.7 + rng.normal(0, 0.01)}) for _ in range(12)]
    long = [surface(n_keys=40, cls={HEAD: 0.75 + rng.normal(0, 0.3)}) for _ in range(12)]
    (sure,) = describe_heads(Known(surface=short * 2))[HEAD].facts
    assert name_of_head(describe_heads(Known(surface=short))[HEAD]).words == "Rests on [CLS]"
    (fact,) = describe_heads(Known(surface=[*short, *long]))[HEAD].facts
    assert fact.corrected_low < MOSTLY < sure.corrected_low


def test_a_name_that_is_chosen_on_some_texts_has_to_hold_on_others():
    rests = Known(surface=[surface(cls={HEAD: 0.8 + n / 1000}) for n in range(6)])
    looks_on = Known(surface=[surface(cls={HEAD: 0.3}, next={HEAD: 0.6 + n / 1000}) for n in range(6)])
    over = [describe_heads(replace(rests, others=others))[HEAD] for others in (rests, looks_on)]
    assert [name_of_head(each).words for each in over] == ["Rests on [CLS]", NO_NAME]
    assert over[1].facts, "the others show another habit, which was not chosen"


def test_a_head_that_finds_subjects_is_named_by_it_only_beside_what_other_words_give():
    texts = [text(place) for place in range(4 * LEAST_CASES)]
    found = describe_heads(Known(surface=[surface() for _ in texts], predictions=texts))[FINDER]
    assert [type(fact) for fact in found.facts] == [RelationFact]
    assert name_of_head(found).words == NO_NAME, "these texts have no attention to compare"
    (fact,) = found.facts
    carried = replace(found, facts=(replace(fact, control=CONTROL),))
    assert name_of_head(carried).words == "Subjects look at their verbs"


@given(st.one_of(st.sampled_from(sorted(_BY_RELATION)), st.text(max_size=30)), st.sampled_from(DIRECTIONS))
def test_no_name_has_more_than_five_words(relation, direction):
    words = named(replace(RELATION, relation=relation, direction=direction)).words
    assert 0 < len(words.split()) <= MOST_WORDS


@pytest.mark.parametrize("sight", ["around", "back", "across"])
@pytest.mark.parametrize("target", [*ON_TOKENS, "first"])
def test_each_target_has_a_name_where_it_can_be_seen(target, sight):
    words = named(replace(SHARE, target=target), sight=sight).words
    assert len(words.split()) <= MOST_WORDS
    at_offset = target in ("self", "previous", "next", "first")
    assert (words == NO_NAME) == (sight == "across" and at_offset)


def test_direction_is_who_looks():
    to_head, to_dependent = (named(replace(RELATION, relation="nsubj", direction=each)).words for each in DIRECTIONS)
    assert (to_head, to_dependent) == ("Subjects look at their verbs", "Verbs look at their subjects")
    for relation in ("a pair", "pair ", ""):
        assert named(replace(RELATION, relation=relation)).words == "Follows pairs that are marked"
    assert named(replace(RELATION, relation="xcomp")).words == "xcomp: heads look at dependents"
