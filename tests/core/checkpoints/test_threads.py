import threading
from contextvars import ContextVar

import pytest
import torch

from attention_sieve.core.checkpoints.threads import each_on_one_thread


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_parts_are_computed_side_by_side_by_one_thread_each_and_kept_in_their_order():
    both_are_on = threading.Barrier(2)

    def compute(part):
        both_are_on.wait(timeout=60)
        return part, torch.get_num_threads()

    assert each_on_one_thread(compute, [3, 1]) == [(3, 1), (1, 1)]
    assert torch.get_num_threads() == 2
    assert _threads_of_a_new_one() == 2


@pytest.mark.usefixtures("two_threads")
def test_one_part_is_computed_by_all_threads():
    assert each_on_one_thread(lambda part: (part, torch.get_num_threads()), ["all"]) == [("all", 2)]


@pytest.mark.usefixtures("two_threads")
def test_each_part_sees_the_context_of_the_caller():
    variable = ContextVar("variable", default="unset")
    variable.set("set")
    assert each_on_one_thread(lambda part: (part, variable.get()), [1, 2, 3]) == [(1, "set"), (2, "set"), (3, "set")]


@pytest.mark.usefixtures("two_threads")
def test_an_error_of_a_part_is_raised_and_the_number_of_threads_stays():
    with pytest.raises(ZeroDivisionError):
        each_on_one_thread(lambda part: 1 // part, [1, 0, 2])
    assert _threads_of_a_new_one() == 2


def _threads_of_a_new_one():
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]
