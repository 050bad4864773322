"""Both engines run the same work and give the same outcomes."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from engine_work import begin, begin_not

from attention_sieve.core.engines.local import run_local
from attention_sieve.core.engines.on_ray import OWN_RAY, RUNTIME_ENV, run_on_ray
from attention_sieve.core.engines.work import MOST_TRIES, tried_twice
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.pauses import pausing
from attention_sieve.core.running import Journal, Stopped, ask_to_stop

ROOT = Path(__file__).parents[3]
HELPERS = ROOT / "tests" / "helpers"


def summed(outcomes):
    return sorted((each.index, each.result, each.why, each.n_tries) for each in outcomes)


@pytest.fixture(scope="module")
def ray():
    """One Ray for all tests of this file: it takes seconds to start."""
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _system_config=OWN_RAY,
        runtime_env={**RUNTIME_ENV, "working_dir": str(HELPERS)},  # so that no actor imports from the clone
    )
    yield ray
    ray.shutdown()


@pytest.mark.parametrize("n_workers", [1, 2])
def test_every_piece_has_its_outcome(tmp_path, n_workers):
    found = summed(run_local(partial(begin, str(tmp_path)), [3, "bad", 5], n_workers=n_workers))
    assert found == [(0, 9, "", 1), (1, None, "bad is no number.", 1), (2, 25, "", 1)]


def test_a_piece_whose_process_ends_is_begun_again(tmp_path):
    found = summed(run_local(partial(begin, str(tmp_path)), [2, "once", "always"], n_workers=2))
    assert found[0] == (0, 4, "", 1)
    assert found[1] == (1, "done", "", 2)
    assert found[2][1] is None
    assert found[2][3] == MOST_TRIES
    assert "memory runs out" in found[2][2]


def test_each_process_has_a_gpu_of_its_own_also_in_the_place_of_one_that_ended(tmp_path):
    work = partial(begin, str(tmp_path))
    for pieces in (["gpu", "gpu"], ["always", "gpu", "gpu"]):
        found = [each.result for each in run_local(work, pieces, n_workers=2, gpus=(4, 7))]
        assert {gpu for gpu in found if gpu is not None} <= {"4", "7"}
        assert len(found) == len(pieces)
    assert {each.result for each in run_local(work, ["gpu", "gpu"], n_workers=2, gpus=(4, 7))} == {"4", "7"}


def test_what_a_pause_raises_ends_all_processes(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    opened, numbers = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK), []

    def stop_once_both_wait():
        with suppress(BlockingIOError):
            numbers.extend(os.read(opened, 100).split())
        if len(numbers) == 2:
            raise Stopped

    with pytest.raises(Stopped), pausing(stop_once_both_wait):
        list(run_local(partial(begin, str(tmp_path)), ["wait", "wait"], n_workers=2))
    assert os.read(opened, 1) == b"", "the end of the file: nobody holds it open any more"


def test_a_process_that_cannot_begin_ends_the_run():
    with pytest.raises(AnalysisError, match="cannot begin"):
        list(run_local(begin_not, [1], n_workers=2))


def test_a_piece_that_fails_is_done_once_more_after_the_others_unless_the_run_is_to_stop(tmp_path):
    tried = []

    def do(piece):
        tried.append(piece)
        if piece == "never" or tried == ["late"]:
            raise AnalysisError(f"Try {tried.count(piece)} of {piece}.")
        return piece.upper()

    journal = Journal(tmp_path)
    found = tried_twice(run_local, lambda: do, ["late", "good", "never"], journal, "piece {}".format)
    assert [(piece, outcome.result, outcome.why) for piece, outcome in found] == [
        ("good", "GOOD", ""),
        ("late", "LATE", ""),
        ("never", None, "Try 2 of never."),
    ]
    assert tried == ["late", "good", "never", "late", "never"]
    assert journal.progress.piece == "piece never"
    ask_to_stop(tmp_path)
    with pytest.raises(Stopped):
        next(tried_twice(run_local, lambda: do, ["never"], journal, str))


def test_ray_gives_the_same_outcomes_and_sends_the_package_without_the_pages_and_the_store(ray, tmp_path):
    from attention_sieve.core.engines.on_ray import outcomes_of

    pieces = ["package", "bad", "once", "always"]
    package, *found = summed(outcomes_of(ray, partial(begin, str(tmp_path)), pieces, n_workers=2))
    _, (folder, rooms), _, _ = package
    assert not folder.is_relative_to(ROOT)
    assert rooms == {"core"}
    assert found[:2] == [(1, None, "bad is no number.", 1), (2, "done", "", 2)]
    assert found[2][1] is None
    assert found[2][3] == MOST_TRIES


def test_an_address_where_no_ray_is_is_a_sentence():
    with pytest.raises(AnalysisError, match=r"No Ray cluster answers at 127.0.0.1:9"):
        list(run_on_ray(begin_not, [1], n_workers=1, address="127.0.0.1:9"))


def test_ray_that_is_not_installed_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AnalysisError, match="make ray"):
        list(run_on_ray(begin_not, [1], n_workers=1))


@pytest.mark.parametrize(("sent", "said"), [(signal.SIGKILL, ""), (signal.SIGINT, "KeyboardInterrupt\n")])
def test_processes_end_with_the_one_that_started_them_and_say_nothing(tmp_path, sent, said):
    script = textwrap.dedent(f"""
        import signal, sys
        sys.path[:0] = [{str(ROOT)!r}, {str(HELPERS)!r}]
        from functools import partial
        from attention_sieve.core.engines.local import run_local
        from engine_work import begin
        if __name__ == "__main__":
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                list(run_local(partial(begin, {str(tmp_path)!r}), ["wait", "wait"], n_workers=2))
            except KeyboardInterrupt as interrupt:
                sys.exit(type(interrupt).__name__)
    """)
    (tmp_path / "script.py").write_text(script)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, str(tmp_path / "script.py")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as driver:
        with fifo.open() as opened:  # both processes say their numbers, then wait
            numbers = {int(opened.readline()) for _ in range(2)}
            # Ctrl+C reaches the processes too, as from a terminal.
            os.kill(driver.pid, sent) if sent == signal.SIGKILL else os.killpg(driver.pid, sent)
            driver.wait()
            assert opened.read() == ""  # the end of the file: nobody holds it open any more
        assert driver.stderr.read() == said
    assert driver.pid not in numbers
