import numpy as np
import pytest
from scipy import stats

from attention_sieve.core.statistics.means import signed_rank_p

NAN = float("nan")


def by_scipy(column):
    """SciPy's test of one column, as it is by default; NaN where nothing is left."""
    column = column[~np.isnan(column)]
    return stats.wilcoxon(column).pvalue if column.any() else NAN


def one_column(*differences):
    return signed_rank_p(np.array(differences, float)[:, None]).item()


def test_all_signs_alike_have_two_of_all_the_ways():
    assert one_column(1, 2, 3, 4, 5) == one_column(-5, -1, -2, -4, -3) == 2 / 2**5


def test_ranks_worked_by_hand():
    """Ranks 1, 2.5, 2.5 and 4, one of 2.5 negative: sums of 2.5 or less come about in 4 of 16 ways."""
    assert one_column(1, -2, 2, 3) == 2 * 4 / 16
    assert one_column(0, 1, -2, 2, 3, NAN) == 2 * 4 / 16


def test_columns_of_no_difference_have_no_p_value():
    found = signed_rank_p(np.array([[0, NAN, 1], [0, NAN, 0], [0, 0, 0.0]]))
    np.testing.assert_array_equal(found, [NAN, NAN, 1])
    assert np.isnan(signed_rank_p(np.empty((0, 2, 3)))).all()


def columns_of_every_kind(n_texts, seed=0):
    """Columns [text 5 3]: as they are, with ties, with zeros, with texts that take no part, and with all of these."""
    generator = np.random.default_rng(seed)
    columns = generator.normal(0.2, 1, (n_texts, 5, 3))
    columns[:, 1] = columns[:, 1].round(1)
    columns[:, 2][generator.random((n_texts, 3)) < 0.3] = 0
    columns[:, 3][generator.random((n_texts, 3)) < 0.3] = NAN
    columns[:, 4] = np.where(np.isnan(columns[:, 3]), NAN, columns[:, 1] * (columns[:, 2] != 0))
    return columns


@pytest.mark.parametrize("n_texts", [3, 8, 30, 50, 51, 90])
def test_each_column_equals_scipys_test_of_it_alone(n_texts):
    columns = columns_of_every_kind(n_texts)
    found = signed_rank_p(columns)
    assert found.shape == (5, 3)
    for cell in np.ndindex(5, 3):
        assert found[cell] == pytest.approx(by_scipy(columns[:, *cell]), rel=1e-9, nan_ok=True), cell


def test_thirteen_tied_differences_are_counted_and_fourteen_are_not():
    tied = np.array([1, 1, 2, -2, 3, 4, 5, 6, -7, 8, 9, 10, 11, 12.0])
    for n_texts, counted in ((13, True), (14, False)):
        some = tied[:n_texts]
        normal = stats.wilcoxon(some, method="asymptotic").pvalue
        assert one_column(*some) == pytest.approx(by_scipy(some))
        assert (one_column(*some) != pytest.approx(normal)) == counted
