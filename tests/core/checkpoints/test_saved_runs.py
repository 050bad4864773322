"""The progress of a run is read line by line, and nothing that somebody spoilt ends a page."""

import json
from pathlib import Path

import pytest

from attention_sieve.core.checkpoints.saved_runs import (
    PROGRESS,
    Progress,
    SavedRun,
    list_runs,
    read_progress,
    run_and_step,
    steps_of_one_run,
)

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


def test_one_spoilt_run_leaves_the_others_to_be_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    written(tmp_path / "checkpoints" / "good", START, END)
    written(tmp_path / "checkpoints" / "spoilt", *SPOILT)
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
