import sys

import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintParamViolation, BeartypeCallHintReturnViolation
from jaxtyping import Float

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.statistics.means import half_interval


def test_axes_of_one_name_must_be_of_one_size():
    with pytest.raises(BeartypeCallHintParamViolation, match="cell"):
        half_interval(np.array([5, 5, 5]), np.zeros(2), 0.05)


def test_what_is_returned_has_the_axes_of_the_arguments_of_its_call():
    @jaxtyping.jaxtyped(typechecker=beartype)
    def after_the_first(values: Float[np.ndarray, " text"], n_left_out: int) -> Float[np.ndarray, " text"]:
        return values[n_left_out:]

    for n_texts in (2, 3):
        assert len(after_the_first(np.zeros(n_texts), 0)) == n_texts
    with pytest.raises(BeartypeCallHintReturnViolation, match="text"):
        after_the_first(np.zeros(3), 1)


def test_functions_without_arrays_are_checked_too():
    with pytest.raises(BeartypeCallHintParamViolation, match="head"):
        head_name(3, "7")


def test_a_function_within_another_is_checked_when_it_is_first_made():
    def made():
        @jaxtyping.jaxtyped(typechecker=beartype)
        def inner(number: int) -> int:
            return number

        return inner

    first, again = made(), made()
    with pytest.raises(BeartypeCallHintParamViolation, match="number"):
        first("7")
    assert again("7") == "7"


def test_what_a_checked_module_imports_is_read_as_it_was_compiled_before(tmp_path, monkeypatch):
    (tmp_path / "checked_here.py").write_text("import imported_there\ndef half(n: int) -> int:\n    return n // 2\n")
    (tmp_path / "imported_there.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    with jaxtyping.install_import_hook("checked_here", "beartype.beartype"):
        import checked_here
    with pytest.raises(BeartypeCallHintParamViolation, match="7"):
        checked_here.half("7")
    compiled = {path.name.split(".")[0]: "jaxtyping" in path.name for path in (tmp_path / "__pycache__").iterdir()}
    assert compiled == {"checked_here": True, "imported_there": False}
