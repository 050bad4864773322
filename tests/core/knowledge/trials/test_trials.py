"""Trials: plain values to one row each, stage by stage, with nothing computed twice."""

import gc
import json
import signal
import sys
import time
from dataclasses import fields, replace
from threading import Thread

import numpy as np
import pandas as pd
import pytest
import torch
from probing_files import write_task
from small_checkpoints import N_HEADS, N_LAYERS
from torch.nn.modules.module import register_module_forward_pre_hook

from attention_sieve.__main__ import _entry, main
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.reconstruction import Reconstruction, gain
from attention_sieve.core.knowledge.report import Selectivity, TaskReport
from attention_sieve.core.knowledge.trials import run as running
from attention_sieve.core.knowledge.trials.command import read_trials, stages_of
from attention_sieve.core.knowledge.trials.result import STAGES, read_result
from attention_sieve.core.knowledge.trials.run import DOING, Trials, run_table
from attention_sieve.core.knowledge.trials.trial import Trial, lines_of, name_of, row_path, task_sha256, trial_of
from attention_sieve.core.running import STOP, Journal, ask_to_stop, read_progress


@pytest.fixture(autouse=True)
def own_store(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))


@pytest.fixture
def trial(folders, tmp_path):
    data = write_task(tmp_path, "length", lambda words: "long" if len(words) > 5 else "short")
    return Trial(checkpoint=str(folders("bert")), data=str(data), pooling="mean")


@pytest.fixture
def rows(tmp_path):
    return tmp_path / "rows"


@pytest.fixture
def trials(rows):
    return Trials(rows)


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def expect_equal(one, other):
    for field in fields(one):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            np.testing.assert_allclose(left, right, rtol=1e-6)
        elif field.name != "baselines":
            assert left == right


def test_a_row_that_any_program_reads_gives_back_what_was_found_without_computing_it_again(trial, trials, rows):
    result, was_kept = trials.run(trial)
    kept = read_result(only_file(rows))
    assert not was_kept
    assert kept.trial == trial
    assert kept.stages == STAGES
    assert kept.classes == ("long", "short")
    assert (kept.pooling, kept.kind, kept.fingerprint) == ("mean", "self", result.fingerprint)
    for name, kind in (("report", TaskReport), ("selectivity", Selectivity), ("together", Reconstruction)):
        assert isinstance(getattr(kept, name), kind)
        expect_equal(getattr(kept, name), getattr(result, name))
    for one, other in zip(kept.report.baselines, result.report.baselines, strict=True):
        expect_equal(one, other)
    np.testing.assert_allclose(kept.bits, result.bits)
    assert kept.together.n_heads.tolist() == [1, 2, 3, 4, 6]  # of two layers of three heads
    (row,) = pd.read_parquet(only_file(rows)).to_dict("records")
    head = result.report.best_head
    assert row["task"] == "length"
    assert row["best_head"] == f"L{result.report.layer[head]} H{result.report.head[head]}"
    assert row["best_head_accuracy"] == result.report.accuracy[head]
    assert row["gain"] == gain(result.together, result.report, N_HEADS).percent
    assert len(row["place_accuracy"]) == N_LAYERS * N_HEADS + N_LAYERS
    hook = register_module_forward_pre_hook(lambda module, _: pytest.fail(f"{type(module)} is computed"))
    try:
        assert Trials(rows).run(trial)[1]
    finally:
        hook.remove()


def test_a_later_stage_is_added_to_the_row(trial, trials, rows, monkeypatch):
    first, _ = trials.run(trial, ("heads",))
    assert (first.stages, first.bits, first.together) == (("heads",), None, None)
    monkeypatch.setattr(running, "task_report", None)  # what is there is not computed again
    later, was_kept = Trials(rows).run(trial, ("together",))
    assert not was_kept
    assert later.stages == ("heads", "together")
    expect_equal(later.report, first.report)
    assert only_file(rows)


def test_a_renamed_file_is_the_same_trial_and_other_settings_are_another(trial, rows, tmp_path):
    def path_of(**change):
        changed = replace(trial, **change)
        return row_path(rows, changed, changed.files(), task_sha256(changed.task()), "float32")

    renamed = tmp_path / "renamed.txt"
    renamed.write_bytes((tmp_path / "length.txt").read_bytes())
    assert path_of(data=str(renamed)) == path_of()
    assert len({path_of(), path_of(pooling="last"), path_of(seed=1), path_of(random_weights=0)}) == 4


def test_a_damaged_row_is_computed_anew(trial, trials, rows):
    trials.run(trial, ("heads",))
    path = only_file(rows)
    path.write_bytes(path.read_bytes()[:-20])
    assert read_result(path) is None
    assert not trials.run(trial, ("heads",))[1]
    assert read_result(path) is not None


def test_a_stop_keeps_what_is_finished_and_going_on_computes_the_rest(trial, trials, rows, tmp_path):
    folder, other = tmp_path / "journal", replace(trial, seed=1)
    journal = Journal(folder)
    begun = journal.piece

    def begin(name):
        begun(name)
        if journal.step == 1:
            ask_to_stop(folder)

    journal.piece = begin
    assert [result.trial for result in run_table([trial, other], trials, ("heads",), journal)] == [trial]
    stopped = read_progress(folder)
    assert (stopped.state, stopped.step, stopped.steps) == ("stopped", 1, 2)
    assert len(run_table([trial, other], trials, ("heads",), Journal(folder))) == 2
    assert read_progress(folder).state == "finished"
    assert len(list(rows.iterdir())) == 2


def test_a_stop_ends_within_a_stage_and_loses_only_that_one(trial, trials, rows, tmp_path):
    folder, n_steps, before = tmp_path / "journal", [], torch.get_num_threads()
    journal = Journal(folder)
    checked = journal.check

    def check():
        n_steps.append(journal.step)
        if n_steps.count(1) == 5 and journal.progress.message == DOING["together"]:
            (folder / STOP).touch()  # while the probes of the second stage are fitted
        checked()

    journal.check = check
    trials.run(trial, ("heads",))
    torch.set_num_threads(2)
    try:
        (result,) = run_table([trial], trials, ("heads", "together"), journal)
    finally:
        torch.set_num_threads(before)
    assert result.stages == read_result(only_file(rows)).stages == ("heads",)
    progress = read_progress(folder)
    assert (progress.state, progress.step) == ("stopped", 1)
    assert n_steps.count(1) < 5 + 2 * 2


def test_the_command_runs_a_table_and_says_what_the_commands_for_one_checkpoint_say(trial, tmp_path, rows, capsys):
    table = tmp_path / "trials.csv"
    table.write_text(f"checkpoint,data,pooling,seed\n{trial.checkpoint},{trial.data},mean,\n")
    assert main(["trials", "--table", str(table), "--output", str(rows), "--stages", "heads,together"]) == 0
    said = [line.removeprefix(f"{name_of(trial)}: ") for line in capsys.readouterr().out.splitlines()]
    alone = ["--checkpoint", trial.checkpoint, "--data", trial.data, "--pooling", "mean", "--device", "cpu"]
    for command in ("knowledge", "reconstruct"):
        assert main([command, *alone, "--output", str(tmp_path / "found.csv")]) == 0
    assert said == [line.removeprefix("length: ") for line in capsys.readouterr().out.splitlines()]
    assert len(said) == 2
    assert read_result(only_file(rows)).trial == trial


@pytest.fixture
def as_a_program():
    """Signals and garbage collection are this process's own again at the end; Ctrl+C works in the background, too."""
    signals, thresholds = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}, gc.get_threshold()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for each, handler in signals.items():
        signal.signal(each, handler)
    gc.set_threshold(*thresholds)


# It may come between the opening of a file and its context.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("as_a_program")
def test_ctrl_c_says_what_is_done_and_the_same_command_goes_on(trial, tmp_path, rows, monkeypatch, capsys):
    table, journal = tmp_path / "trials.csv", tmp_path / "journal"
    lines = [f"{trial.checkpoint},{trial.data},{seed}" for seed in range(40)]
    table.write_text("\n".join(["checkpoint,data,seed", *lines]))
    options = ["--table", str(table), "--output", str(rows), "--stages", "heads", "--journal", str(journal)]
    monkeypatch.setattr(sys, "argv", ["attention_sieve", "trials", *options])

    def interrupt_once_a_stage_is_done():
        while getattr(read_progress(journal), "step", 0) == 0:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    Thread(target=interrupt_once_a_stage_is_done, daemon=True).start()
    assert _entry() == 130
    progress = read_progress(journal)
    assert capsys.readouterr().err == (
        f"Stopped after {progress.step} of 40 stages of trials; run the same command again to continue.\n"
    )
    assert progress.state == "stopped"
    assert 0 < progress.step <= len(list(rows.glob("*.parquet"))) < 40


def test_values_of_a_trial_are_a_trial_again(trial):
    given = replace(trial, random_weights=3, is_regression=False, text_columns="a,b")
    (line,) = lines_of([given])
    assert read_trials(".jsonl", line.encode()) == (given,)
    assert trial_of({name: str(value) for name, value in json.loads(line).items()}) == given


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "Line 1 is no JSON"),
        ("[1]", "Line 1 is no JSON object"),
        ("checkpoint\nbundled\n", "Trial 1: A trial needs a data"),
        ("checkpoint,data,colour\na,b,c\n", "no column 'colour'"),
        ("checkpoint,data,pooling\na,b,c\n", "There is no pooling 'c'"),
        ("checkpoint,data,seed\na,b,-1\n", "seed is '-1'. Write a whole number"),
        ("checkpoint,data,is_regression\na,b,perhaps\n", "is_regression is 'perhaps'"),
        ("checkpoint,data,too_long\na,b,c\n", "There is no too_long 'c'. Choose from error, skip, truncate"),
        ("", "The table has no trial"),
    ],
)
def test_a_table_that_cannot_be_read_is_said(content, said):
    with pytest.raises(AnalysisError, match=said):
        read_trials(".jsonl" if content.startswith(("{", "[")) else ".csv", content.encode())


def test_equal_trials_are_run_once_and_stages_in_their_order():
    assert len(read_trials(".csv", b"checkpoint,data\na,b\na,b\n")) == 1
    assert stages_of("together, heads") == ("heads", "together")


def test_one_trial_that_cannot_be_run_is_said_and_does_not_end_the_others(trial, tmp_path, rows, capsys):
    table, journal = tmp_path / "trials.jsonl", tmp_path / "journal"
    lines = [{"checkpoint": trial.checkpoint, "data": data} for data in (str(tmp_path / "lost.txt"), trial.data)]
    table.write_text("\n".join(map(json.dumps, lines)))
    options = ["--table", str(table), "--output", str(rows), "--stages", "heads", "--journal", str(journal)]
    assert main(["trials", *options]) == 2
    said = capsys.readouterr()
    assert "length, " in said.out
    assert "lost.txt cannot be read" in said.err
    progress = read_progress(journal)
    assert (progress.state, progress.step, progress.steps) == ("finished", 2, 2)
    assert [failed.piece.split(",")[0] for failed in progress.failed] == ["lost"]
