import numpy as np
import pytest
from jaxtyping import TypeCheckError

from attention_sieve.core.answering import array_to_text
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.statistics.means import half_interval


def test_axes_of_one_name_must_be_of_one_size():
    with pytest.raises(TypeCheckError, match="cell"):
        half_interval(np.array([5, 5, 5]), np.zeros(2), 0.05)


def test_functions_without_arrays_are_checked_too():
    with pytest.raises(TypeCheckError, match="head"):
        head_name(3, "7")


def test_arrays_of_answers_are_checked():
    with pytest.raises(TypeCheckError, match="array"):
        array_to_text(np.zeros(3))
