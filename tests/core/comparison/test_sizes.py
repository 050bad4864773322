"""How large differences are, before whether they are significant, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from attention_sieve.core.comparison.differences import paired_tests
from attention_sieve.core.comparison.sizes import difference_sizes, is_large
from attention_sieve.core.errors import AnalysisError

ROLES = ("local", "delimiter")


def shifted(*shifts):
    """Of two roles in two layers of one head, each shifted by so much with hardly any noise."""
    rng = np.random.default_rng(0)
    a = rng.normal(2, 0.5, (100, 2, 2, 1))
    return paired_tests(a, a + np.reshape(shifts, (2, 2, 1)) + rng.normal(0, 0.01, a.shape), ROLES)


def test_a_checkpoint_rounded_to_eight_bits_differs_significantly_everywhere_and_by_nothing_large():
    found = difference_sizes(shifted(0.014, -0.01, 0.012, 0.01), 0.1)
    assert (found.n, found.n_large, found.n_tested, found.n_significant, found.n_both) == (4, 0, 4, 4, 0)
    assert (found.role, found.head) == ("local", (0, 0))
    assert found.sentence.startswith("Of 4 mean scores, 0 (0.0%) differ by 0.1 or more; the largest difference is +0.0")
    assert found.sentence.endswith("(L0 H0, local). 4 of 4 differ significantly, none of these by 0.1 or more")


def test_large_differences_come_first_and_the_least_can_be_set():
    tests = shifted(0.014, -0.5, 0.012, 0.2)
    found = difference_sizes(tests, 0.1)
    assert (found.n_large, found.n_both, found.head) == (2, 2, (1, 0))
    assert "Of 4 mean scores, 2 (50.0%) differ by 0.1 or more; the largest difference is -0.5" in found.sentence
    assert difference_sizes(tests, 0.3).n_large == 1
    assert difference_sizes(tests, 0.001).n_large == 4
    of_one = difference_sizes(tests, 0.1, ["delimiter"])
    assert (of_one.n, of_one.role, of_one.head) == (2, "delimiter", (1, 0))


def test_what_is_missing_or_the_same_is_said_and_a_least_difference_below_zero_is_refused():
    same = paired_tests(np.ones((3, 2, 2, 1)), np.ones((3, 2, 2, 1)), ROLES)
    assert difference_sizes(same, 0.1).sentence == "All 4 mean scores are the same"
    none = replace(same, difference=np.full((2, 2, 1), np.nan))
    assert difference_sizes(none, 0.1).sentence == "No role has scores under both"
    assert not is_large(none, 0.0).any()
    with pytest.raises(AnalysisError, match=r"The least difference is -1\.0\. Choose a number of 0 or more"):
        is_large(same, -1.0)
