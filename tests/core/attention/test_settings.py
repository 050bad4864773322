import numpy as np
import pytest

from attention_sieve.core.attention.settings import highest_head


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[0.1, 0.3], [0.2, 0.3], [0.0, 0.1]], (0, 1)),
        ([[np.nan, -2.0], [-3.0, np.nan], [np.nan, -1.0]], (2, 1)),
        ([[np.nan, -np.inf], [np.nan, -5.0], [np.nan, np.nan]], (1, 1)),
        ([[0, 3], [7, 1], [7, 2]], (1, 0)),
    ],
    ids=["the first of equals", "no value is the lowest", "even below minus infinity", "counts"],
)
def test_the_highest_head_is_the_first_of_those_with_the_highest_value(values, expected):
    assert highest_head(np.array(values)) == expected
