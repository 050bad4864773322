import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.laboratory.sequences import VOCABULARY, is_copied, sequences
from attention_sieve.core.laboratory.settings import DRAWN, FIXED, LENGTH, LaboratorySettings


def period_of(ids):
    """The least distance at which everything after the first token repeats."""
    rest = ids[1:]
    return next(n for n in range(1, len(rest) + 1) if (rest[n:] == rest[:-n]).all())


@given(st.integers(0, 1000), st.sampled_from(["drawn", "fixed"]))
def test_every_sequence_begins_and_then_repeats_different_tokens(seed, periods):
    made = sequences(5, periods, np.random.default_rng(seed))
    assert made.shape == (5, LENGTH)
    for ids in made:
        period = period_of(ids)
        assert ids[0] == 0
        assert (ids[1:] >= 2).all()
        assert (ids < len(VOCABULARY)).all()
        assert len(set(ids[1 : period + 1])) == period
        assert period == FIXED if periods == "fixed" else DRAWN[0] <= period <= DRAWN[1]


def test_drawn_periods_take_every_value_of_their_range_equally_often():
    counts = np.bincount([period_of(ids) for ids in sequences(4_200, "drawn", np.random.default_rng(1))])
    expected = 4_200 / (DRAWN[1] - DRAWN[0] + 1)
    assert np.flatnonzero(counts).tolist() == list(range(DRAWN[0], DRAWN[1] + 1))
    assert abs(counts[DRAWN[0] :] - expected).max() < 5 * expected**0.5


def test_a_copied_token_followed_an_earlier_copy_of_the_token_before_it():
    ids = [0, 7, 8, 9, 7, 8, 5, 8, 9]
    assert is_copied(ids).tolist() == [False, False, False, False, False, True, False, False, True]
    assert is_copied([3]).tolist() == [False]
    assert is_copied([]).tolist() == []


def test_only_the_first_token_of_the_second_copy_of_a_sequence_cannot_be_known():
    (ids,) = sequences(1, "fixed", np.random.default_rng(0))
    assert np.flatnonzero(~is_copied(ids)).tolist() == list(range(FIXED + 2))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"steps": 1}, "steps is 1. Choose a whole number from 2 to 5,000."),
        ({"save_steps": 0}, "save-steps is 0. Choose a whole number from 1 to 5,000."),
        ({"seed": -1}, "seed is -1. Choose a whole number from 0 to 4,294,967,295."),
    ],
)
def test_a_setting_out_of_range_is_refused(given, sentence):
    with pytest.raises(AnalysisError) as error:
        LaboratorySettings(**given)
    assert str(error.value) == sentence
