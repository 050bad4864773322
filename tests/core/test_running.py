"""What a run reports, how it is read while it is written, and how it is stopped."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from full_disk import files_up_to

from attention_sieve.core import running
from attention_sieve.core.checkpoints.saved_runs import list_runs
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.json_values import json_lines
from attention_sieve.core.pauses import pause
from attention_sieve.core.running import (
    PROGRESS,
    STOP,
    FailedPiece,
    Journal,
    Stopped,
    Validation,
    ValidationResult,
    ask_to_stop,
    carried_out,
    read_progress,
)

ROOT = Path(__file__).parents[2]
START = {"event": "start", "step": 0, "steps": 9, "pid": 1, "created": 1.0, "message": "", "checkpoint": "bundled"}
LOSS = {"event": "loss", "step": 3, "loss": 0.5, "seconds_left": 2.0}
HELD_OUT = {"event": "held out", "step": 3, "loss": 0.4, "accuracy": 0.9, "correlation": None}
END = {"event": "end", "state": "finished", "message": ""}


def written(folder, *lines):
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / PROGRESS).write_text("".join(f"{text}\n" for text in texts))
    return folder


SPOILT = [
    "null",
    "{}",
    "[" * 100_000,
    '{"event": 3}',
    '{"event": "loss"}',
    '{"event": "loss", "step": "three", "loss": 1}',
    '{"event": "loss", "step": ' + "9" * 5_000 + ', "loss": 1}',
    '{"event": "loss", "step": 1e400, "loss": 1}',
    '{"event": "loss", "step": 4, "loss": null}',
    '{"event": "held out", "step": 4}',
    '{"event": "validation", "n_texts": 4, "majority": 0.5}',
    '{"event": "validation", "n_texts": 4, "majority": "half", "mean_loss": null}',
    '{"event": "note", "note": [1]}',
    '{"event": "end", "state": "nowhere"}',
    '{"event": "start", "step": 0, "pid": "x"}',
]


@pytest.mark.parametrize("line", SPOILT, ids=lambda line: line[:40])
def test_a_spoilt_line_is_left_out_wherever_it_stands(line, tmp_path):
    for place in range(4):
        lines = [START, LOSS, HELD_OUT, END]
        lines.insert(place, line)
        progress = read_progress(written(tmp_path / str(place), *lines))
        assert progress is not None
        assert (progress.state, progress.losses, len(progress.held_out)) == ("finished", ((3, 0.5),), 1)
        assert progress.validation is None
    assert read_progress(written(tmp_path / "alone", line)) is None


def test_what_a_run_may_add_and_a_loss_that_is_no_number_are_read(tmp_path):
    lines = [START, LOSS | {"loss": float("nan"), "more": {"a": 1}}, {"event": "resumed", "by": "somebody"}]
    progress = read_progress(written(tmp_path, *lines))
    assert progress.state == "left"
    assert len(progress.losses) == 1


def saved(folder, *steps):
    for step in steps:
        (folder / f"checkpoint-{step}").mkdir(parents=True)
        (folder / f"checkpoint-{step}" / "config.json").write_text("{}")


def test_progress_tells_what_was_reported(tmp_path):
    assert read_progress(tmp_path / "run") is None
    assert list_runs(tmp_path / "run") == ()
    journal = Journal(tmp_path / "run", "bundled", message="Loading the checkpoint.")
    progress = read_progress(journal.folder)
    assert (progress.state, progress.step, progress.steps) == ("running", 0, 0)
    assert (progress.message, progress.checkpoint) == ("Loading the checkpoint.", "bundled")
    journal.note("2 of 9 texts were cut.")
    journal.validation(Validation(3, None, 0.25))
    journal.plan(20)
    journal.held_out(ValidationResult(2, 0.6, 0.75, None))
    journal.loss(2, 0.5)
    journal.loss(4, 0.25)
    saved(journal.folder, 10, 4)
    progress = read_progress(journal.folder)
    assert (progress.step, progress.steps, progress.message) == (4, 20, "")
    assert progress.losses == ((2, 0.5), (4, 0.25))
    assert progress.held_out == (ValidationResult(2, 0.6, 0.75, None),)
    assert progress.seconds_left >= 0
    assert progress.saved == (4, 10)
    assert progress.notes == ("2 of 9 texts were cut.",)
    assert progress.validation == Validation(3, None, 0.25)
    journal.end("finished")
    progress = read_progress(journal.folder)
    assert (progress.state, progress.seconds_left) == ("finished", None)


def test_a_line_that_is_being_written_is_no_error(tmp_path):
    journal = Journal(tmp_path, "bundled")
    journal.plan(20)
    journal.loss(1, 0.5)
    path = tmp_path / "progress.jsonl"
    whole = path.read_bytes()
    for n_bytes in range(len(whole) + 1):
        path.write_bytes(whole[:n_bytes])
        progress = read_progress(tmp_path)
        assert progress is None or progress.state == "running"
    assert progress.losses == ((1, 0.5),)


def test_a_run_that_goes_on_after_a_torn_line_is_read_whole(tmp_path):
    Journal(tmp_path, "bundled").plan(20)
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"event": "loss", "st')
    Journal(tmp_path, "bundled", 7).plan(20)
    assert read_progress(tmp_path).step == 7


def test_going_on_forgets_what_came_after_the_saved_step(tmp_path):
    journal = Journal(tmp_path, "bundled")
    journal.plan(9)
    for step in (2, 4, 6):
        journal.held_out(ValidationResult(step, 0.1 * step, None, 0.5))
        journal.loss(step, 1.0 / step)
    journal.end("failed", "The disk is full.")
    assert read_progress(tmp_path).message == "The disk is full."
    Journal(tmp_path, "bundled", 4)
    progress = read_progress(tmp_path)
    assert (progress.state, progress.step, progress.message) == ("running", 4, "")
    assert [step for step, _ in progress.losses] == [2, 4]
    assert [measured.step for measured in progress.held_out] == [2, 4]


def test_a_run_whose_process_is_gone_is_left(tmp_path):
    code = "from pathlib import Path; from attention_sieve.core.finetuning.journal import Journal\n"
    code += f"Journal(Path({str(tmp_path)!r}), 'x')"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert read_progress(tmp_path).state == "left"  # ended, and its parent has not looked yet
    assert process.wait() == 0
    assert read_progress(tmp_path).state == "left"


def test_a_process_that_got_the_same_number_later_is_another(tmp_path):
    Journal(tmp_path, "x")
    path = tmp_path / "progress.jsonl"
    line = json.loads(path.read_text())
    path.write_text(json.dumps(line | {"created": line["created"] - 60}) + "\n")
    assert read_progress(tmp_path).state == "left"


def test_only_a_run_in_progress_is_asked_to_stop(tmp_path):
    journal = Journal(tmp_path / "run", "x")
    assert not journal.stop_asked()
    ask_to_stop(journal.folder)
    assert journal.stop_asked()
    journal.end("stopped")
    assert not journal.stop_asked()
    journal.end("stopped")
    for folder in (journal.folder, tmp_path / "absent"):
        with pytest.raises(AnalysisError, match="No run is in progress"):
            ask_to_stop(folder)
    again = Journal(tmp_path / "run", "x")
    ask_to_stop(again.folder)
    assert not Journal(tmp_path / "run", "x").stop_asked(), "an old wish does not stop the next run"


def test_a_folder_that_cannot_be_written_to_is_named_when_a_run_is_to_stop(tmp_path):
    journal = Journal(tmp_path, "x")
    (tmp_path / "stop").symlink_to(tmp_path / "no" / "folder")
    with pytest.raises(AnalysisError, match=r"cannot be stopped \(No such file or directory\)\. Check"):
        ask_to_stop(journal.folder)


def test_a_report_without_room_is_left_out_whole(tmp_path):
    journal = Journal(tmp_path, "x")
    journal.plan(9)
    size = (tmp_path / "progress.jsonl").stat().st_size
    with (
        files_up_to(size + 10),
        pytest.raises(AnalysisError, match=r"Nothing can be saved in .*Free some space on the disk"),
    ):
        journal.loss(1, 0.5)
    assert (tmp_path / "progress.jsonl").stat().st_size == size
    journal.loss(2, 0.25)
    assert read_progress(tmp_path).losses == ((2, 0.25),)


def test_an_error_reaches_the_reader_where_there_is_no_room_to_note_it(tmp_path):
    def broken_off():
        with Journal(tmp_path, "x"):
            until_read.enter_context(files_up_to(0))
            raise AnalysisError("The memory is too small.")

    with ExitStack() as until_read, pytest.raises(AnalysisError, match="The memory is too small"):
        broken_off()
    assert read_progress(tmp_path).state == "running"


def test_the_time_left_is_estimated_by_the_sizes_of_pieces(tmp_path):
    outer = time.monotonic()
    journal = Journal(tmp_path)
    journal.plan(3, 100 + 900 + 500)
    inner = time.monotonic()
    sum(range(10**6))
    inner = time.monotonic() - inner
    journal.done(100)
    outer = time.monotonic() - outer
    rounding = 0.05
    assert 14 * inner - rounding <= journal.progress.seconds_left <= 14 * outer + rounding
    journal.done(900, was_kept=True)
    assert journal.progress.seconds_left >= 5 * inner - rounding
    journal.done(500)
    assert journal.progress.seconds_left == 0


def test_pieces_are_counted_with_how_far_the_present_one_is_and_which_failed(tmp_path):
    with Journal(tmp_path) as journal:
        journal.plan(3)
        journal.piece("first")
        journal.part("Reading", 5, 20)
        found = read_progress(tmp_path)
        assert (found.piece, found.message, found.n_done, found.n_all, found.step) == ("first", "Reading", 5, 20, 0)
        journal.part("Reading", 6, 20)
        assert read_progress(tmp_path).n_done == 5, "a report of the same work comes twice a second at most"
        journal.failed("first", "No token.")
        journal.failed("first", "Once more.")
        journal.done()
        journal.piece("second")
        found = read_progress(tmp_path)
        assert (found.piece, found.message, found.n_all, found.share) == ("second", "", 0, 1 / 3)
        assert found.failed == (FailedPiece("first", "No token."),)
    assert journal.progress == read_progress(tmp_path)


def test_a_run_that_is_asked_to_stop_or_breaks_says_so_itself(tmp_path, capsys):
    with carried_out(Journal(tmp_path)) as journal:
        journal.plan(4)
        journal.done()
        ask_to_stop(tmp_path)
        journal.check()
        pytest.fail("it did not stop")
    assert read_progress(tmp_path).state == "stopped"
    assert capsys.readouterr().err == "Stopped after 1 of 4.\n"
    assert not (tmp_path / STOP).exists()
    with pytest.raises(KeyboardInterrupt, match=r"after 1 of 4\. Go on\."), carried_out(journal, "Go on."):
        raise KeyboardInterrupt
    with carried_out(Journal(tmp_path)):
        ask_to_stop(tmp_path)
        pause()
        pytest.fail("it did not stop at a pause")
    assert read_progress(tmp_path).state == "stopped"
    with carried_out(Journal(tmp_path), at_pauses=False) as journal:
        ask_to_stop(tmp_path)
        pause()
        journal.end("stopped")
    assert read_progress(tmp_path).state == "stopped", "it said so itself"
    with carried_out(Journal(tmp_path)):
        pause()
    assert read_progress(tmp_path).state == "finished"
    with pytest.raises(ZeroDivisionError), Journal(tmp_path):
        1 / 0  # noqa: B018
    found = read_progress(tmp_path)
    assert (found.state, found.message) == ("failed", "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("work", [carried_out, lambda journal: journal.beginning()], ids=["work", "beginning"])
def test_a_stop_that_a_library_takes_for_an_error_of_its_own_is_a_stop(work, tmp_path):
    def load():
        try:
            raise Stopped
        except Exception as error:
            raise ImportError("Could not import the model.") from error

    with suppress(Stopped), Journal(tmp_path) as journal, work(journal):
        try:
            load()
        except ImportError:
            raise AnalysisError("The checkpoint cannot be loaded.") from None
    assert read_progress(tmp_path).state == "stopped"
    with pytest.raises(AnalysisError, match="no stop"), Journal(tmp_path) as journal, work(journal):
        raise AnalysisError("This is no stop.")
    assert read_progress(tmp_path).state == "failed"


def test_reports_are_read_once_for_each_change(tmp_path, monkeypatch):
    reads = []

    def noted(path):
        reads.append(path)
        return json_lines(path)

    monkeypatch.setattr(running, "json_lines", noted)
    with Journal(tmp_path) as journal:
        journal.plan(3)
        assert [read_progress(tmp_path).step for _ in range(3)] == [0, 0, 0]
        before = len(reads)
        for step in (1, 2):
            journal.done()
            assert [read_progress(tmp_path).step for _ in range(3)] == 3 * [step]
    assert len(reads) == before + 2


def test_a_run_without_a_folder_knows_how_far_it_is():
    journal = Journal(None)
    journal.plan(2)
    journal.done()
    journal.check()
    assert (journal.progress.step, journal.progress.steps, journal.progress.state) == (1, 2, "running")
