"""Which heads follow mentions, on choices made by hand."""

import numpy as np
import pytest
from made_heads import FINDER, SHAPE, surface
from made_stories import LUCKY, N_TEXTS, chosen, made
from scipy.stats import ttest_rel

from attention_sieve.core.descriptions.accuracies import LEAST_MENTIONS, ReadMentions, followed_mentions
from attention_sieve.core.descriptions.describe import Known, describe_heads
from attention_sieve.core.descriptions.facts import MentionFact, ShareFact


def test_a_head_is_judged_on_the_documents_on_which_it_was_not_chosen():
    facts = followed_mentions(made())
    assert set(facts) == {FINDER, LUCKY}, "the others are no better than the nearest mention where heads are chosen"
    found, lucky = facts[FINDER], facts[LUCKY]
    unseen = np.arange(1, N_TEXTS, 2)
    right, nearest = unseen % 10 != 9, unseen % 4 == 3
    assert (found.n_cases, found.n_documents, found.of) == (len(unseen), len(unseen), "stories")
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
    n_told, n_runs = 0, 40
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
