"""What each head finds best, and which follow mentions, on predictions and choices made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from made_heads import BACK, FINDER, SHAPE, TURNED, surface, text
from made_stories import LUCKY, N_TEXTS, chosen, made
from scipy.stats import norm, ttest_1samp, ttest_rel
from scipy.stats import t as student

from attention_sieve.core.descriptions.accuracies import (
    LEAST_CASES,
    LEAST_MENTIONS,
    MARGIN,
    MOSTLY,
    MentionFact,
    ReadMentions,
    ShareFact,
    best_relations,
    followed_mentions,
    surpluses,
)
from attention_sieve.core.descriptions.describe import Known, describe_heads
from attention_sieve.core.statistics.means import wilson


@pytest.fixture(scope="module")
def facts():
    return best_relations([text(place) for place in range(4 * LEAST_CASES)])


def test_a_head_is_judged_on_the_other_half_against_the_offset_of_its_own_among_all_heads(facts):
    fact = facts[FINDER]
    assert (fact.relation, fact.direction) == ("nsubj", "dependent-to-head")
    assert (fact.n_cases, fact.accuracy, fact.offset, fact.baseline) == (2 * LEAST_CASES, 1.0, 1, 0.5)
    assert fact.low < 1 <= fact.high
    # On half of the unseen texts only the head is right; times 6 heads.
    differences = np.arange(2 * LEAST_CASES) % 2
    p = ttest_1samp(differences, 0, alternative="greater").pvalue
    assert fact.p_value == pytest.approx(6 * p)
    assert fact.where_wrong == 1
    above = ttest_1samp(differences, 0).confidence_interval(0.95).low - MARGIN
    # Wilson's lower end for as many right cases as texts, by Student's t.
    t = student.isf(0.025, LEAST_CASES - 1)
    assert fact.surplus == pytest.approx(min(above, LEAST_CASES / (LEAST_CASES + t**2) - MOSTLY))
    assert facts[TURNED].relation != "nsubj" or facts[TURNED].accuracy == 0, "it is right on unseen texts alone"


def test_a_head_that_looks_at_a_fixed_distance_has_no_surplus(facts):
    """It is always right about adverbs, as is the distance."""
    assert facts[BACK].surplus < 0


def test_a_relation_with_few_cases_in_one_half_judges_no_head():
    assert best_relations([text(place) for place in range(2 * LEAST_CASES - 1)]) == {}


def test_halves_are_of_documents_where_these_are_known():
    n_texts = 8 * LEAST_CASES
    found = best_relations([text(place, document=str(place // 4)) for place in range(n_texts)])
    assert found[FINDER].n_cases == n_texts / 2
    assert found[TURNED].accuracy == pytest.approx(0.5), "half of the texts of each document show what it finds"


def looking(place, *, everywhere):
    """The text at a place, in which FINDER looks at verbs from everywhere as from subjects, or gives them a quarter."""
    made = text(place)
    n_words = made.to_head.shape[-1]
    to_head, from_others = np.full((2, *made.to_head.shape), np.nan)
    noise = np.random.default_rng(place).normal(0, 0.02)
    to_head[(*FINDER, slice(0, n_words))] = 0.4 + noise
    from_others[(*FINDER, slice(0, n_words))] = 0.4 - noise if everywhere else 0.1 - noise
    return replace(made, to_head=to_head, from_others=from_others)


def test_a_head_that_looks_there_from_everywhere_is_marked():
    true, everywhere = (
        best_relations([looking(place, everywhere=how) for place in range(4 * LEAST_CASES)])[FINDER]
        for how in (False, True)
    )
    assert true.relation == everywhere.relation == "nsubj"
    assert true.accuracy == everywhere.accuracy == 1
    assert (true.control.to_right, true.control.from_others) == pytest.approx((0.4, 0.1), abs=0.02)
    assert (true.control.from_everywhere, everywhere.control.from_everywhere) == (False, True)
    assert true.control.p_value < 1e-6


def test_a_head_is_judged_on_other_texts_against_every_distance_on_either():
    chosen, others = [text(place) for place in range(2 * LEAST_CASES)], [text(2 + 4 * n) for n in range(LEAST_CASES)]
    fact = best_relations(chosen, others=others)[FINDER]
    assert (fact.n_cases, fact.accuracy, fact.on_others) == (LEAST_CASES, 1.0, True)
    # On the others a verb is always two words on, where half of those of the first texts are.
    assert (fact.baseline, fact.offset, fact.surplus) == (1.0, 2, -np.inf), "and no case tells the head from that"
    assert fact.p_value < 1e-4, "against one word on, which was best where it was chosen"
    # Chosen where subjects stand one or two words before, by turns: what it finds in all texts but no distance does.
    assert best_relations(others[:LEAST_CASES], others=chosen)[FINDER].surplus == -np.inf
    assert best_relations(chosen, others=chosen)[FINDER].surplus > 0


def test_a_head_is_told_from_a_distance_only_by_the_cases_in_which_this_is_wrong():
    """Of 300 cases in as many texts, the guess is right in 120, as are all heads. The first is right in 40% of the
    others, and so in 64% of all, 24 points more than the guess; the second in 80%."""
    guess, unit = np.arange(300) < 120, np.arange(300)
    right = np.stack([guess | (unit % 5 < share) for share in (2, 4)])
    looks_at_a_distance, follows = surpluses(right, guess, unit, 0.05)
    assert right.mean(axis=1).tolist() == [0.64, 0.88]
    low, _ = wilson(np.array([72, 144]), 180, 2 * norm.sf(student.isf(0.025, 179) * np.sqrt(180 / 179)))
    assert (looks_at_a_distance, follows) == pytest.approx(low - MOSTLY)
    assert looks_at_a_distance < 0 < follows
    few_above = np.stack([guess, guess | (unit % 10 == 9)])
    assert (surpluses(few_above, guess, unit, 0.05) < 0).all()
    assert surpluses(right, guess, np.zeros(300, int), 0.05).tolist() == [-np.inf] * 2, "one document"


def test_a_head_that_looks_a_fixed_way_and_else_at_random_is_seldom_said_to_follow_a_relation():
    """Heads of 72 that look one word on where their relation is there, and else at a drawn word: in 200 corpora of 128
    texts of two kinds, the distance is right in 40% of one kind and 60% of the other."""
    rng = np.random.default_rng(0)
    n_told = 0
    for _ in range(200):
        guess = rng.random(256) < np.repeat([0.4, 0.6], 128)
        right = guess | (rng.random((72, 256)) < 0.3)
        halves = [
            surpluses(right[:, half], guess[half], np.arange(128), 0.05) for half in (slice(128), slice(128, 256))
        ]
        n_told += int((np.minimum(*halves) > 0).any())
    assert n_told == 0


def test_a_head_is_judged_on_the_documents_on_which_it_was_not_chosen():
    facts = followed_mentions(made())
    assert set(facts) == {FINDER, LUCKY}, "the others are no better than the nearest mention where heads are chosen"
    found, lucky = facts[FINDER], facts[LUCKY]
    unseen = np.arange(1, N_TEXTS, 2)
    right, nearest = unseen % 10 != 9, unseen % 4 == 3
    assert (found.n_cases, found.n_documents, found.source) == (len(unseen), len(unseen), "stories")
    assert (found.accuracy, found.nearest, found.same_word) == pytest.approx((right.mean(), 0.5, 0.5))
    p = 6 * ttest_rel(right.astype(float), nearest.astype(float), alternative="greater").pvalue
    assert found.p_value == pytest.approx(p)
    assert found.low < found.accuracy < found.high
    assert (lucky.accuracy, lucky.p_value) == (0.5, 1)


def test_only_the_head_that_follows_mentions_is_said_to_after_what_it_does_mostly():
    of_texts = [surface(cls={FINDER: 0.6}, next={FINDER: 0.3}) for _ in range(5)]
    told = describe_heads(Known(surface=of_texts, mentions=made()))
    assert [type(fact) for fact in told[FINDER].facts] == [ShareFact, MentionFact, ShareFact]
    assert [head for head, of_head in told.items() if MentionFact in map(type, of_head.facts)] == [FINDER]


def test_heads_that_choose_at_random_are_not_said_to_follow_mentions():
    rng = np.random.default_rng(0)
    n_told, n_runs = 0, 20
    for _ in range(n_runs):
        choices = [chosen(place, {head: 2 * rng.integers(2) for head in np.ndindex(SHAPE)}) for place in range(N_TEXTS)]
        random = ReadMentions(name="", texts=made().texts, choices=choices)
        n_told += any(fact.p_value < 0.05 and fact.accuracy > 0.5 for fact in followed_mentions(random).values())
    assert n_told <= 0.05 * n_runs


@pytest.mark.parametrize(
    "few", [made(2 * LEAST_MENTIONS - 1), made(document=lambda _: "one")], ids=["few mentions", "one document"]
)
def test_too_few_mentions_or_documents_judge_no_head(few):
    assert followed_mentions(few) == {}
