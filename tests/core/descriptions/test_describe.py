"""What a head mostly does, by hand."""

import numpy as np
import pytest
from made_heads import FINDER, SHAPE, surface, text

from core.descriptions.describe import Known, describe_heads, with_roles
from core.descriptions.facts import RelationFact, RoleFact, ShareFact, SpreadFact

N_TEXTS = 80


def described(n_texts=N_TEXTS, **known):
    """The heads over texts that all have the same shares."""
    shares = known.pop("shares", {})
    entropy = known.pop("entropy", 0.5)
    return describe_heads(Known(surface=[surface(entropy=entropy, **shares) for _ in range(n_texts)], **known))


def test_what_gets_most_attention_comes_first_with_its_interval_and_even_share():
    texts = [surface(previous={(1, 2): share}, cls={(1, 2): 0.3}) for share in (0.5, 0.7)]
    first, second = describe_heads(Known(surface=texts))[1, 2].facts
    assert (first.target, first.share, first.even) == ("previous", pytest.approx(0.6), pytest.approx(0.1))
    # Two texts: 0.6 and 12.706 (t with 1 degree of freedom) times the standard error, 0.1.
    assert (first.low, first.high) == (pytest.approx(0.6 - 1.2706, abs=1e-3), pytest.approx(0.6 + 1.2706, abs=1e-3))
    assert (second.target, second.share) == ("cls", pytest.approx(0.3))


def test_a_relation_comes_after_what_is_done_mostly_and_before_what_is_done_otherwise():
    shares = {"cls": {FINDER: 0.55}, "next": {FINDER: 0.25}}
    facts = described(shares=shares, predictions=[text(place) for place in range(N_TEXTS)])[FINDER].facts
    assert [type(fact) for fact in facts] == [ShareFact, RelationFact, ShareFact]
    assert [fact.target for fact in facts if isinstance(fact, ShareFact)] == ["cls", "next"]


def test_a_relation_that_a_fixed_distance_finds_as_well_is_not_told():
    found = described(predictions=[text(place) for place in range(N_TEXTS)])
    relations = {head for head, one in found.items() if any(isinstance(fact, RelationFact) for fact in one.facts)}
    assert relations == {FINDER}


def test_roles_count_only_for_a_head_that_does_nothing_mostly():
    holds = np.zeros((4, *SHAPE), bool)
    holds[3, 0, :] = True
    found = with_roles(described(shares={"cls": {(0, 0): 0.9}, "sep": {(0, 1): 0.3}}, entropy=0.95), holds)
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


def test_a_single_text_has_no_interval():
    (fact,) = described(n_texts=1, shares={"next": {(0, 0): 0.6}})[0, 0].facts
    assert np.isnan([fact.low, fact.high]).all()
