"""Runs of training are listed and named, and nothing that somebody spoilt ends a page."""

from pathlib import Path

import pytest

from attention_sieve.core.checkpoints.saved_runs import SavedRun, list_runs, run_and_step, steps_of_one_run
from attention_sieve.core.running import PROGRESS, Journal, Progress


def test_one_spoilt_run_leaves_the_others_to_be_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    Journal(tmp_path / "checkpoints" / "good", "bundled").end("finished")
    spoilt = tmp_path / "checkpoints" / "spoilt"
    spoilt.mkdir()
    (spoilt / PROGRESS).write_text('null\n{}\n{"event": "start", "step": 0, "pid": "x"}\n')
    folder = tmp_path / "checkpoints" / "no text"
    folder.mkdir()
    (folder / PROGRESS).write_bytes(b"\xff\xfe\x00")
    (tmp_path / "checkpoints" / "good" / f"checkpoint-{'9' * 30}").mkdir()
    assert [run.name for run in list_runs()] == ["good"]
    assert list_runs()[0].progress.saved == ()


def run(name, checkpoint, state="finished"):
    progress = Progress(state, 10, 20, None, (), (), (5, 10), "", checkpoint=checkpoint)
    return SavedRun(name, Path(name), progress)


RUNS = (run("run", "bundled"), run("other", "bundled"), run("stopped", "bundled", "stopped"), run("second", "run"))


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["bundled", "run/checkpoint-5", "run/checkpoint-10"], [0, 5, 10]),
        (["run/checkpoint-2", "run/checkpoint-5"], [2, 5]),
        (["bundled", "run/checkpoint-5", "run"], [0, 5, 10]),
        (["bundled", "other"], [0, 10]),
        (["run", "second/checkpoint-5", "second"], [0, 5, 10]),
        (["bundled", "run/checkpoint-10", "run/checkpoint-5"], None),
        (["bundled", "run/checkpoint-5", "other/checkpoint-10"], None),
        (["bundled", "run/checkpoint-10", "run"], None),
        (["bundled", "run/checkpoint-5", "run/checkpoint-5"], None),
        (["bundled", "stopped"], None),
        (["another", "run/checkpoint-5", "run/checkpoint-10"], None),
        (["bundled", "unknown/checkpoint-5", "unknown/checkpoint-10"], None),
        (["bundled"], None),
        ([], None),
    ],
)
def test_checkpoints_are_steps_of_one_run_where_they_follow_each_other_in_it(names, steps):
    assert steps_of_one_run(names, RUNS) == steps


def test_the_name_of_a_step_names_its_run():
    assert run_and_step("movie-reviews/checkpoint-94") == ("movie-reviews", 94)
    assert run_and_step("/a/folder/checkpoint-5") == ("/a/folder", 5)
    for name in ("movie-reviews", "google-bert/bert-base-uncased", "checkpoint-5", "run/checkpoint-x"):
        assert run_and_step(name) == (name, None)
