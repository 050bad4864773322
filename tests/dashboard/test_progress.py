"""Long work on a page: what it returns."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.progress import Turns, let_leave


def refuse():
    raise AnalysisError("There is no connection.")


@pytest.mark.parametrize("result", [None, 0, "made"])
def test_long_work_returns_its_result_and_one_that_returns_none_has_not_failed(result):
    assert let_leave(lambda: result) is result


def test_long_work_raises_what_ended_it():
    with pytest.raises(AnalysisError, match="no connection"):
        let_leave(refuse)


def test_no_more_than_so_many_hold_a_turn_and_the_others_follow_in_their_order():
    turns, done, waits, order = Turns(2), Event(), Event(), []
    both = Barrier(3)

    def hold():
        with turns.turn(refuse):
            both.wait()
            done.wait()

    def wait_in_turn(name):
        def waiting(n_before):
            order.append((name, n_before))
            waits.set()

        with turns.turn(waiting):
            order.append(name)

    with ThreadPoolExecutor(3) as pool:
        first = [pool.submit(hold) for _ in range(2)]
        both.wait()
        third = pool.submit(wait_in_turn, "third")
        waits.wait()
        with pytest.raises(AnalysisError), turns.turn(lambda n_before: refuse()):
            pass
        done.set()
        for each in (*first, third):
            each.result()
    assert order[0] == ("third", 1)
    assert order[-1] == "third"
    wait_in_turn("last")
    assert order[-1] == "last", "who stopped waiting holds no turn"


@pytest.mark.parametrize("doing", ["Switching heads off", wording.SCORING])
def test_progress_speaks_of_no_texts_where_there_are_none(doing):
    said = wording.scoring(3, 9, None, 1, doing) + wording.STOP + wording.STOPPED
    assert said.startswith(f"{doing}: 3 of 9. 1 request of other users first.")
    assert ("texts" in said) == ("texts" in doing)
    assert "scor" not in said.removeprefix(doing)
