"""Work of this program as a run: watched, stopped, found again, and ended when nobody looks."""

import time
from dataclasses import replace
from functools import partial
from threading import Event

import pytest
from reading import POLL_SECONDS, POLLS, until

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.running import Journal, Progress, read_progress
from attention_sieve.dashboard import runs, wording
from attention_sieve.dashboard.web.session import BEGUN_BY, visitor


@pytest.fixture(autouse=True)
def _no_thread_stays():
    yield
    runs.end()


def ended(folder):
    """The run's progress once it is not on any more, without looking at it meanwhile."""
    until(lambda: read_progress(folder).state != "running")
    return read_progress(folder)


def test_work_is_a_run_that_every_reader_finds_by_its_folder_and_begins_once(tmp_path):
    began, go_on = [], Event()

    def work(journal):
        began.append(journal)
        journal.plan(2)
        journal.piece("first")
        journal.done()
        go_on.wait(POLLS * POLL_SECONDS)

    for _ in range(2):
        runs.begin_here(tmp_path, work)
    until(lambda: runs.look(tmp_path).step == 1)
    assert (runs.look(tmp_path).state, runs.look(tmp_path).piece) == ("running", "first")
    go_on.set()
    assert ended(tmp_path).state == "finished"
    assert len(began) == 1
    runs.begin_here(tmp_path, work)
    assert ended(tmp_path).state == "finished"
    assert len(began) == 2


def report_for_ever(journal):
    journal.plan(1)
    while True:
        journal.part("working")
        Event().wait(POLL_SECONDS)


def test_work_that_is_asked_to_stop_ends_at_its_next_report(tmp_path):
    runs.begin_here(tmp_path, report_for_ever)
    runs.stop(tmp_path)
    assert ended(tmp_path).state == "stopped"
    assert not runs.is_stopping(tmp_path)


def test_work_ends_when_nobody_has_looked_at_it_for_long(tmp_path, monkeypatch):
    runs.begin_here(tmp_path, report_for_ever)
    assert runs.look(tmp_path).state == "running"
    monkeypatch.setattr(runs, "UNWATCHED_SECONDS", 0.0)
    assert ended(tmp_path).state == "stopped"


def test_the_end_of_the_program_stops_its_work(tmp_path):
    runs.begin_here(tmp_path, report_for_ever)
    runs.end()
    assert read_progress(tmp_path).state == "stopped"


@pytest.mark.parametrize(
    ("error", "said"), [(AnalysisError("Too little."), "Too little."), (ValueError("no"), "ValueError: no")]
)
def test_why_work_failed_is_kept_for_its_readers(error, said, tmp_path):
    def fail(journal):
        raise error

    runs.begin_here(tmp_path, fail)
    assert (ended(tmp_path).state, ended(tmp_path).message) == ("failed", said)


def test_work_whose_thread_could_not_report_its_end_goes_on_later(tmp_path):
    runs.begin_here(tmp_path, lambda journal: None)
    ended(tmp_path)
    Journal(tmp_path)  # a report of this process, by no thread of it
    assert runs.look(tmp_path).state == "left"


def test_work_counts_for_the_visitor_who_began_it(tmp_path):
    counted = []
    token = BEGUN_BY.set("a session")
    try:
        runs.begin_here(tmp_path, lambda journal: counted.append(visitor()))
    finally:
        BEGUN_BY.reset(token)
    ended(tmp_path)
    assert counted == ["a session"]
    assert visitor() is None


def test_a_visitor_of_a_public_server_has_one_run_at_a_time_and_what_is_left_of_it_goes(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    monkeypatch.setenv("ATTENTION_SIEVE_PUBLIC", "1")
    first, second = (runs.folder_of(kind, 1) for kind in ("first", "second"))
    runs.begin_here(first, report_for_ever)
    with pytest.raises(AnalysisError, match="Wait until it is, or stop it"):
        runs.begin_here(second, report_for_ever)
    runs.begin_here(first, report_for_ever)
    runs.forget_ended(time.time() + 9)
    assert first.exists(), "it is on"
    runs.stop(first)
    assert ended(first).state == "stopped"
    runs.forget_ended(time.time() - 60)
    assert first.exists()
    runs.forget_ended(time.time() + 9)
    assert not first.exists()


def test_a_folder_is_named_by_everything_that_its_run_depends_on(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    of = partial(runs.folder_of, "curves")
    assert of("a", 1) == of("a", 1)
    assert len({of("a", 1), of("a", 2), of("a", "1"), runs.folder_of("probes", "a", 1)}) == 4
    assert of("a").parent == tmp_path / "runs"


def test_a_running_run_says_what_it_does():
    progress = Progress(
        "running", 3, 8, piece="tense, bundled", message="Reading vectors", n_done=5, n_all=90, seconds_left=200.0
    )
    expected = "Step 4 of 8: tense, bundled: reading vectors, text 5 of 90. About 3 min left."
    assert wording.running(progress) == expected
    assert wording.running(replace(progress, message=""), "Probe") == "Probe 4 of 8: tense, bundled. About 3 min left."
    assert wording.running(Progress("running", message="reading", n_done=1, n_all=2)) == "Reading, text 1 of 2."
    assert wording.running(Progress("running")) == "Starting …"
