import numpy as np
import pytest

from core.roles.anytime import holds_by_evidence, role_evidence
from core.roles.hypotheses import LEAST_GAIN, Criterion, role_tests
from core.statistics.evidence import STAKES, log_evidence

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
