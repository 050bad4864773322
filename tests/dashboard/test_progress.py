"""Long work on a page: what it returns."""

import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.progress import let_leave


def refuse():
    raise AnalysisError("There is no connection.")


@pytest.mark.parametrize("result", [None, 0, "made"])
def test_long_work_returns_its_result_and_one_that_returns_none_has_not_failed(result):
    assert let_leave(lambda: result) is result


def test_long_work_raises_what_ended_it():
    with pytest.raises(AnalysisError, match="no connection"):
        let_leave(refuse)
