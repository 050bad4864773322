import numpy as np
import pytest
from beartype.roar import BeartypeCallHintViolation
from call_checks import at_first_call
from jaxtyping import Float, TypeCheckError, jaxtyped

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.statistics.means import half_interval


def test_axes_of_one_name_must_be_of_one_size():
    with pytest.raises(TypeCheckError, match="cell"):
        half_interval(np.array([5, 5, 5]), np.zeros(2), 0.05)


def test_functions_without_arrays_are_checked_too():
    with pytest.raises(BeartypeCallHintViolation, match="head"):
        head_name(3, "7")


@jaxtyped(typechecker=at_first_call)
def shorter(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    return values[1:]


def test_a_result_has_the_axes_of_the_arguments():
    with pytest.raises(TypeCheckError, match="return value"):
        shorter(np.zeros(3))
