"""Long work that is watched, stopped, and keeps what it has finished."""

from threading import Event

from attention_sieve.cache.serving.run import Run
from attention_sieve.core.errors import AnalysisError

WAIT = 60.0


RESULTS = ("what is finished",)


def test_a_run_goes_on_behind_and_keeps_what_it_finds():
    go_on = Event()

    def work(tell, keep):
        tell(0.25)
        keep(RESULTS)
        go_on.wait(WAIT)

    run = Run(work, 0.0, name="test")
    assert run.is_on
    go_on.set()
    run.wait(WAIT)
    assert not run.is_on
    assert run.watch() == 0.25
    assert run.results is RESULTS
    assert not run.is_stopped


def test_a_run_ends_when_it_is_stopped_or_nobody_looks():
    go_on = Event()

    def work(tell, keep):
        go_on.wait(WAIT)
        tell(0.5)
        keep(RESULTS)

    stopped = Run(work, 0.0, name="test")
    stopped.stop()
    assert stopped.is_stopping
    left = Run(work, 0.0, name="test", patience=0.0)
    go_on.set()
    for run in (stopped, left):
        run.wait(WAIT)
        assert (run.is_on, run.is_stopped, run.results, run.error) == (False, True, None, None)


def test_what_goes_wrong_in_a_run_is_kept_for_its_reader():
    def work(tell, keep):
        raise AnalysisError("Too little.")

    run = Run(work, 0.0, name="test")
    run.wait(WAIT)
    assert str(run.error) == "Too little."
    assert not run.is_stopped
