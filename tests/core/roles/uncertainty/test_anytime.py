import numpy as np
import pytest
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import LEAST_GAIN, Criterion, role_tests, untested
from attention_sieve.core.roles.hypotheses import tests_of as only
from attention_sieve.core.roles.measures import RoleScores
from attention_sieve.core.roles.uncertainty.anytime import (
    as_odds,
    holds_by_evidence,
    needed_evidence,
    role_evidence,
)
from attention_sieve.core.statistics.evidence import STAKES, evidence_path, log_evidence

ROLES = ("local", "block")
NAN = float("nan")


def some_scores(n_texts=40, seed=0):
    """The first layer's heads score about 2 tau, the others half of it."""
    means = np.array([6.0, 1.5])[:, None] * np.ones((2, 2, 3))
    return np.random.default_rng(seed).gamma(9, means / 9, (n_texts, 2, 2, 3))


def test_two_texts_worked_by_hand():
    scores = np.array([6.0, 4.5]).reshape(2, 1, 1, 1)
    found = role_evidence(scores, Criterion(rule="paper"), np.ones((2, 1, 1))).item()
    assert np.exp(found) == pytest.approx(np.mean([(1 + stake) * (1 + stake / 2) for stake in STAKES]))


def test_a_role_needs_evidence_against_uniform_attention_too():
    scores = some_scores()
    uniform = np.where(np.arange(2) == 1, 5.8, 1.0)[None, :, None].repeat(40, axis=0).repeat(2, axis=2)
    paper, role = (role_evidence(scores, Criterion(rule=rule), uniform) for rule in ("paper", "role"))
    np.testing.assert_allclose(role[0], paper[0])
    against_uniform = log_evidence(scores[:, 1], (1 + LEAST_GAIN) * uniform[:, 1, :, None])
    np.testing.assert_allclose(role[1], np.minimum(paper[1], against_uniform))
    holds = holds_by_evidence(role, Criterion())
    assert holds[0, 0].all()
    assert not holds[1].any()
    assert not holds[:, 1].any()


def test_texts_to_which_a_role_does_not_apply_place_no_bet():
    scores, uniform = some_scores(), np.ones((40, 2, 2))
    fewer = scores.copy()
    fewer[::2, 1] = NAN
    uniform[::2, 1] = NAN
    found = role_evidence(fewer, Criterion(), uniform)
    np.testing.assert_allclose(found[1], role_evidence(scores[1::2], Criterion(), np.ones((20, 2, 2)))[1])
    fewer[:, 1] = NAN
    assert np.isnan(role_evidence(fewer, Criterion(), np.where(np.isnan(fewer[..., 0]), NAN, 1.0))[1]).all()


def test_texts_that_are_added_until_a_role_appears_give_it_by_evidence_in_at_most_alpha_of_cases():
    """The t-test, asked again after each text, gives it to many more heads whose true mean is tau."""
    random = np.random.default_rng(2)
    scores = random.gamma(9, 3 / 9, (60, 1, 20, 30))
    uniform = np.ones((60, 1, 20))
    ever = {"evidence": np.zeros((20, 30), bool), "test": np.zeros((20, 30), bool)}
    plain = Criterion(correction="none")
    for n_texts in range(3, 61, 3):
        evidence = role_evidence(scores[:n_texts], plain, uniform[:n_texts])
        ever["evidence"] |= evidence[0] >= np.log(20)
        ever["test"] |= role_tests(scores[:n_texts], ("local",), plain, uniform[:n_texts]).holds[0]
    assert ever["evidence"].mean() < 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5
    assert ever["test"].mean() > 0.1


def test_a_path_ends_with_the_evidence_and_has_that_of_the_first_texts_before():
    scores, uniform = some_scores(n_texts=5), np.full((5, 2, 2), 2.9)
    path = role_evidence(scores, Criterion(), uniform, evidence_path)
    for n_texts in (1, 3, 5):
        now = role_evidence(scores[:n_texts], Criterion(), uniform[:n_texts])
        np.testing.assert_allclose(path[n_texts - 1], now)


EVIDENCE = np.log([[[31, 48.0, 0.1]], [[400, 1, NAN]]])
"""Of 2 roles and 3 heads of one layer."""


@pytest.mark.parametrize("family", ["role", "all"])
@pytest.mark.parametrize("correction", ["bh", "holm", "none"])
def test_one_over_the_evidence_is_corrected_as_p_values_are(correction, family):
    settings = Criterion(correction=correction, family=family)
    expected = np.zeros(EVIDENCE.shape, bool)
    for of_family in (slice(0, 1), slice(1, 2)) if family == "role" else (slice(None),):
        there = ~np.isnan(EVIDENCE[of_family])
        p = np.minimum(1, np.exp(-EVIDENCE[of_family][there]))
        corrected = {
            "bh": false_discovery_control,
            "holm": lambda p: multipletests(p, method="holm")[1],
            "none": lambda p: p,
        }[correction](p)
        expected[of_family][there] = corrected < settings.alpha
    np.testing.assert_array_equal(holds_by_evidence(EVIDENCE, settings), expected)
    least, most = needed_evidence(EVIDENCE, settings)
    assert np.exp(least) == pytest.approx(20)
    assert np.exp(most) == pytest.approx(20 * {"none": 1}.get(correction, {"role": 3, "all": 5}[family]))
    assert not expected[least > EVIDENCE].any()
    assert expected[most <= EVIDENCE].all()


def test_by_evidence_heads_have_roles_and_means_but_no_p_values_and_no_intervals():
    scores = some_scores(n_texts=20)
    bets = RoleScores(roles=ROLES, scores=scores, uniform=np.ones((20, 2, 2)), greatest=np.full((20, 2, 2), 9.0))
    found = role_finding(bets.subset(np.array([0, 2, 5])), Criterion(), bets).tests
    np.testing.assert_allclose(found.mean, scores[[0, 2, 5]].mean(axis=0))
    np.testing.assert_allclose(found.std, scores[[0, 2, 5]].std(axis=0, ddof=1))
    np.testing.assert_allclose(found.evidence, role_evidence(scores, Criterion(), bets.uniform))
    np.testing.assert_array_equal(found.holds, holds_by_evidence(found.evidence, Criterion()))
    assert found.holds[0, 0].any()
    for name in ("t", "p", "p_uniform", "p_role", "p_adjusted", "low", "high"):
        assert np.isnan(getattr(found, name)).all()
    one = bets.subset(np.array([0]))
    assert untested(role_finding(one, Criterion()).tests)
    assert untested(role_finding(one, Criterion(), one).tests) == {}
    block = only(found, ("block",))
    np.testing.assert_array_equal(block.evidence, found.evidence[1:])


def test_odds_fit_a_file():
    np.testing.assert_allclose(as_odds(np.log([34.0, 0.5])), [34, 0.5])
    assert np.isfinite(as_odds(np.array([1e9]))).all()
