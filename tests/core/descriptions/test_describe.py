"""What a head mostly does, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from made_heads import FINDER, SHAPE, surface, text

from attention_sieve.core.descriptions.accuracies import RelationFact, RoleFact, ShareFact, SpreadFact
from attention_sieve.core.descriptions.describe import Known, describe_heads, is_mostly, with_roles
from attention_sieve.core.roles.roles import COARSE_ROLES
from attention_sieve.core.surface.per_text import SHARES

N_TEXTS = 80


def described(n_texts=N_TEXTS, **known):
    """The heads over texts that all have the same shares."""
    shares = known.pop("shares", {})
    entropy = known.pop("entropy", 0.5)
    return describe_heads(Known(surface=[surface(entropy=entropy, **shares) for _ in range(n_texts)], **known))


def test_what_gets_most_attention_comes_first_with_its_interval_and_even_share():
    texts = [surface(previous={(1, 2): share}, cls={(1, 2): 0.3}) for share in (0.69, 0.71)]
    first, second = describe_heads(Known(surface=texts))[1, 2].facts
    assert (first.target, first.share, first.even) == ("previous", pytest.approx(0.7), pytest.approx(0.1))
    # Two texts: 0.7 and 12.706 (t with 1 degree of freedom) times the standard error, 0.01.
    assert (first.low, first.high) == (pytest.approx(0.7 - 0.12706, abs=1e-4), pytest.approx(0.7 + 0.12706, abs=1e-4))
    assert (second.target, second.share) == ("cls", pytest.approx(0.3))


def test_a_head_does_mostly_what_it_does_with_the_whole_interval():
    of_texts = [surface(previous={(1, 2): share}) for share in (0.4, 0.7, 0.8)]
    (fact,) = describe_heads(Known(surface=of_texts))[1, 2].facts
    assert fact.share > 0.5 > fact.low
    assert not is_mostly(fact)
    assert is_mostly(replace(fact, low=0.51))
    assert is_mostly(replace(fact, low=np.nan)), "one text has no interval"


def causal(n_keys, own, before):
    """A text under a causal model, by the shares of one head."""
    of_text = surface(n_keys=n_keys, self={(1, 2): own}, previous={(1, 2): before})
    of_text.shares[SHARES.index("next")] = np.nan
    return replace(of_text, uniform_entropy=np.full(2, np.log(np.arange(1, n_keys + 1)).mean()))


@pytest.mark.parametrize(("share", "targets"), [(0.45, []), (0.6, ["self"])])
def test_what_evenly_spread_attention_gives_as_well_is_not_told(share, targets):
    # Of five tokens that see themselves and earlier ones, even attention gives itself (1 + 1/2 + ... + 1/5) / 5.
    found = describe_heads(Known(surface=[causal(5, share, 0.32) for _ in range(3)]))[1, 2]
    assert [fact.target for fact in found.facts] == targets, "and the previous token gets (1/2 + ... + 1/5) / 4"
    assert all(fact.even == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5) for fact in found.facts)
    assert found.sight == "back"
    short = [surface(n_keys=4, cls={(1, 2): 0.25}, sep={(1, 2): 0.4}) for _ in range(3)]
    short = [replace(text, key_words=("", "a", ".", "")) for text in short]
    (fact,) = describe_heads(Known(surface=short))[1, 2].facts
    assert (fact.target, fact.even) == ("sep", 0.25)


def test_a_share_is_told_as_it_is_in_shorter_or_in_longer_texts_whichever_is_less():
    """Of 12 short texts and 12 long ones, one head rests in the short ones more, another in the long ones."""
    texts = [
        surface(n_keys=n_keys, cls={(0, 0): by_first, (0, 1): 1 - by_first}, sep={(0, 2): 0.1})
        for n_keys, by_first in [(10, 0.7), (40, 0.3)] * 12
    ]
    found = describe_heads(Known(surface=texts))
    for head, even in (((0, 0), 1 / 40), ((0, 1), 1 / 10)):
        (fact,) = found[head].facts
        assert (fact.target, fact.share, fact.even) == ("cls", pytest.approx(0.3), pytest.approx(even))
    (whole,) = describe_heads(Known(surface=texts[:18]))[0, 0].facts
    assert whole.share == pytest.approx(0.5), "too few texts for halves"


def test_what_a_token_sees_is_told():
    assert described()[0, 0].sight == "around"
    across = replace(surface(), distance=np.full(SHAPE, np.nan))
    assert describe_heads(Known(surface=[across]))[0, 0].sight == "across"


def test_a_relation_comes_after_what_is_done_mostly_and_before_what_is_done_otherwise():
    shares = {"cls": {FINDER: 0.55}, "next": {FINDER: 0.25}}
    facts = described(shares=shares, predictions=[text(place) for place in range(N_TEXTS)])[FINDER].facts
    assert [type(fact) for fact in facts] == [ShareFact, RelationFact, ShareFact]
    assert [fact.target for fact in facts if isinstance(fact, ShareFact)] == ["cls", "next"]


def test_a_relation_that_a_fixed_distance_finds_as_well_is_not_told():
    found = described(predictions=[text(place) for place in range(N_TEXTS)])
    relations = {head for head, one in found.items() if any(isinstance(fact, RelationFact) for fact in one.facts)}
    assert relations == {FINDER}


def test_what_is_found_on_the_texts_is_told_with_the_numbers_of_others_if_it_is_so_there():
    other = Known(surface=[surface(cls={(0, 0): 0.6}, next={(0, 0): 0.3}, sep={(0, 1): 0.15}) for _ in range(3)])
    shares = {"cls": {(0, 0): 0.3}, "sep": {(0, 0): 0.4, (0, 1): 0.4}}
    found = described(shares=shares, others=other)
    assert [(fact.target, fact.share) for fact in found[0, 0].facts] == [("cls", pytest.approx(0.6))]
    assert found[0, 1].facts == ()
    assert (found[0, 0].n_texts, found[0, 0].n_others) == (N_TEXTS, 3)


def test_a_relation_is_told_with_a_margin_above_every_distance_alone():
    found = described(predictions=[text(place) for place in range(N_TEXTS)])[FINDER].facts[0]
    assert found.surplus > 0
    others = Known(surface=[surface()] * 40, predictions=[text(2 + 4 * place) for place in range(40)])
    assert described(predictions=[text(place) for place in range(N_TEXTS)], others=others)[FINDER].facts == ()


def test_roles_count_only_for_a_head_that_does_nothing_mostly():
    holds = np.zeros((4, *SHAPE), bool)
    holds[3, 0, :] = True
    found = with_roles(
        described(shares={"cls": {(0, 0): 0.9}, "sep": {(0, 1): 0.3}}, entropy=0.95), holds, COARSE_ROLES
    )
    assert [type(fact) for fact in found[0, 0].facts] == [ShareFact]
    assert [type(fact) for fact in found[0, 1].facts] == [ShareFact, RoleFact]
    assert found[0, 2].facts == (RoleFact(role="block"),)
    assert [type(fact) for fact in found[1, 2].facts] == [SpreadFact]


def test_even_attention_is_told_where_nothing_else_is_and_a_head_may_have_no_pattern():
    (fact,) = described(entropy=0.95)[0, 0].facts
    assert isinstance(fact, SpreadFact)
    assert fact.ratio == pytest.approx(0.95)
    assert described()[0, 0].facts == ()


@pytest.mark.parametrize(("has_cls", "targets"), [(True, []), (False, ["first"])])
def test_the_first_token_counts_where_no_token_stands_for_cls(has_cls, targets):
    every = np.full((N_TEXTS, *SHAPE), 0.8)
    cls = dict.fromkeys(np.ndindex(SHAPE), 0.01 if has_cls else np.nan)
    facts = described(shares={"cls": cls}, first_token=every)[0, 0].facts
    assert [fact.target for fact in facts] == targets
