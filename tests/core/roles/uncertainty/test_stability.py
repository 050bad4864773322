import numpy as np
import pytest
from scipy import stats

from attention_sieve.core.roles.hypotheses import RESAMPLES, Criterion, few_texts, resamples, role_tests, stability

ROLES = ("local", "block")
PLAIN = Criterion(correction="none")
NAN = float("nan")


def some_scores(n_texts=25):
    """Heads of means from 2 to 6; block does not apply to every third text."""
    means = np.linspace(2, 6, 2 * 2 * 3).reshape(2, 2, 3)
    scores = np.random.default_rng(3).gamma(9, means / 9, (n_texts, 2, 2, 3))
    scores[::3, 1] = NAN
    return scores, np.where(np.isnan(scores[..., 0]), NAN, 1.0)


def stability_of(scores, uniform, criterion, seed=0):
    return stability(role_tests(scores, ROLES, criterion, uniform), resamples(scores, uniform, seed))


def test_stability_is_the_share_of_resamples_whose_t_test_agrees():
    scores, uniform = some_scores()
    found = stability_of(scores, uniform, PLAIN, seed=5)
    random, agreed = np.random.default_rng(5), np.zeros(found.shape)
    holds = role_tests(scores, ROLES, PLAIN, uniform).holds
    for _ in range(RESAMPLES):
        drawn = scores[random.integers(len(scores), size=len(scores))]
        p = stats.ttest_1samp(drawn, 3, alternative="greater", nan_policy="omit").pvalue
        agreed += (np.asarray(p) < 0.05) == holds
    np.testing.assert_allclose(found, agreed / RESAMPLES)
    assert found.min() < 0.9


def test_without_texts_nothing_can_change():
    np.testing.assert_array_equal(stability_of(np.empty((0, 2, 2, 3)), np.empty((0, 2, 2)), PLAIN), 1)


@pytest.mark.parametrize(
    ("correction", "family", "alpha"),
    [("bh", "role", 0.05), ("bh", "all", 0.6), ("holm", "role", 0.6), ("holm", "all", 0.05), ("none", "role", 0.05)],
)
def test_stability_is_that_of_whole_tests_though_it_computes_only_the_p_values_that_matter(correction, family, alpha):
    scores, uniform = some_scores(12)
    scores[:, 0, 1, 2] = 4.0  # a constant score
    criterion = Criterion(tau=3.4, alpha=alpha, correction=correction, family=family)
    random, holds = np.random.default_rng(2), role_tests(scores, ROLES, criterion, uniform).holds
    drawn = random.integers(len(scores), size=(RESAMPLES, len(scores)))
    agreed = [role_tests(scores[rows], ROLES, criterion, uniform[rows]).holds == holds for rows in drawn]
    np.testing.assert_allclose(stability_of(scores, uniform, criterion, seed=2), np.mean(agreed, axis=0))


@pytest.mark.parametrize(("n_texts", "words"), [(3, "mostly noise"), (9, "mostly noise"), (10, "weak"), (19, "weak")])
def test_few_texts_are_said_to_be_few(n_texts, words):
    assert few_texts(n_texts).startswith(f"With so few texts ({n_texts}), a map of roles is {words}")
    assert few_texts(20) is None
