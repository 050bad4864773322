"""The list of runs: of every kind, whoever began them, with what can be done with each."""

import json
from threading import Event

import pytest
from reading import POLL_SECONDS, until

from attention_sieve.core.begun_runs import begun_runs, remember_run
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.running import PROGRESS, Journal, has_ended, read_progress
from attention_sieve.dashboard import public, run_list, runs, wording
from attention_sieve.dashboard.pages import PAGES
from attention_sieve.dashboard.run_kinds import KINDS
from attention_sieve.dashboard.web.session import BEGUN_BY


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "program"))
    yield tmp_path / "program"
    runs.end()
    runs._begun_by.clear()


def report_for_ever(journal):
    journal.plan(2)
    while True:
        journal.part("working")
        Event().wait(POLL_SECONDS)


def begun(folder, state, *command, message="", checkpoint="bundled", n_done=1):
    journal = Journal(folder, checkpoint)
    journal.plan(4)
    for _ in range(n_done):
        journal.done()
    journal.end(state, message)
    if command:
        remember_run(folder, command)


def test_every_kind_names_a_page_and_is_that_of_its_own_folders(folder):
    assert {kind.page for kind in KINDS.values()} <= {page.name for page in PAGES}
    for name, kind in KINDS.items():
        if kind.place:
            assert runs.kind_of(folder / kind.place.replace("*", "x")) is kind, name
    Journal(checkpoints_folder() / "toy")
    assert runs.kind_of(checkpoints_folder() / "toy") is KINDS["laboratory"]
    assert runs.kind_of(runs.folder_of("curves", 1)) is KINDS["curves"]
    assert runs.kind_of(folder.parent / "elsewhere") is None


def test_a_page_lists_each_run_and_what_can_be_done_with_it(app, small, folder, tmp_path):
    begun(checkpoints_folder() / "my-*run*", "stopped", "finetune", "--output=x")
    begun(tmp_path / "else" / "curves", "failed", "prune", message="There is **no** room.")
    begun(KINDS["erase"].folder(), "finished", n_done=4)
    KINDS["trials"].folder().mkdir()
    (KINDS["trials"].folder() / PROGRESS).write_text("no report\n")
    remember_run(tmp_path / "never begun", ("trials",))
    runs.begin_here(runs.folder_of("curves", 1), report_for_ever, "a checkpoint")
    at = app("surface", checkpoint=small("bert"))
    assert at.button("runs").label == "1 run on"
    at.button("runs").click().run()
    said = [one.value.replace("\\", "") for one in at.markdown]
    assert "**Fine-tuning** · my-*run*, of bundled" in said
    assert "**Pruning curves** · curves, of bundled" in said
    assert "Stopped after 1 of 4." in said
    assert "Failed after 1 of 4: There is **no** room." in said
    assert "Finished after 4 of 4." in said
    assert "**How many heads can go?**, of a checkpoint" in said
    assert any("cannot be read, so how far" in one for one in said)
    keys = [button.key for button in at.button]
    assert [key for key in keys if key.startswith("stop run ")] == [f"stop run {runs.folder_of('curves', 1)}"]
    goes_on = [key.rpartition("/")[2] for key in keys if key.startswith("go on run ")]
    assert sorted(goes_on) == ["curves", "my-*run*"]
    assert not any("never begun" in one for one in said)
    at.button(f"stop run {runs.folder_of('curves', 1)}").click().run()
    until(lambda: read_progress(runs.folder_of("curves", 1)).state == "stopped")


def test_a_page_without_runs_says_what_would_stand_there(app, small):
    at = app("surface", checkpoint=small("bert"))
    assert at.button("runs").label == wording.RUNS
    at.button("runs").click().run()
    assert wording.NO_RUNS in [one.value for one in at.markdown]


def test_continue_gives_the_command_again_in_its_working_folder(app, small, tmp_path, monkeypatch):
    calls = []
    begun(checkpoints_folder() / "mine", "stopped", "finetune", "--output=mine")
    monkeypatch.setattr(runs, "begin", lambda *given: calls.append(given))
    at = app("surface", checkpoint=small("bert"))
    at.button("runs").click().run()
    at.button(f"go on run {checkpoints_folder() / 'mine'}").click().run()
    assert [(folder.name, command) for folder, command, _ in calls] == [
        ("mine", ("finetune", "--output=mine", "--resume"))
    ]
    assert calls[0][2] == begun_runs()[0].working_folder


def test_one_training_at_a_time_goes_on(app, small, monkeypatch):
    begun(checkpoints_folder() / "mine", "stopped", "finetune", "--output=mine")
    Journal(checkpoints_folder() / "on", "bundled")  # of this process, which is on
    monkeypatch.setattr(runs, "begin", lambda *_: pytest.fail("two trainings at once"))
    at = app("surface", checkpoint=small("bert"))
    at.button("runs").click().run()
    at.button(f"go on run {checkpoints_folder() / 'mine'}").click().run()
    assert "on" in at.session_state[run_list.REFUSED]


def test_a_visitor_sees_own_runs_alone(monkeypatch):
    monkeypatch.setenv(public.PUBLIC, "1")
    begun(checkpoints_folder() / "mine", "stopped", "finetune")
    for visitor in ("one", "other"):
        BEGUN_BY.set(visitor)
        runs.begin_here(runs.folder_of("curves", visitor), report_for_ever)
    assert [run.folder for run in run_list.listed()] == [runs.folder_of("curves", "other")]
    BEGUN_BY.set(None)
    assert run_list.listed() == []


def test_the_list_forgets_what_is_gone_and_reads_no_damage(tmp_path, folder):
    (tmp_path / "run").mkdir()
    remember_run(tmp_path / "run", ("prune", "--rows=run"))
    (listed,) = begun_runs()
    assert (listed.folder, listed.command) == (tmp_path / "run", ("prune", "--rows=run"))
    (path,) = (folder / "run list").iterdir()
    path.write_text(json.dumps({"folder": 3}))
    assert begun_runs() == ()
    remember_run(tmp_path / "another", ("trials",))
    assert not path.exists()


def test_whether_a_run_has_ended_is_read_off_its_last_report(tmp_path):
    assert not has_ended(tmp_path)
    journal = Journal(tmp_path)
    assert not has_ended(tmp_path)
    journal.end("failed", "why " * 100)
    assert has_ended(tmp_path)
    Journal(tmp_path)
    assert not has_ended(tmp_path)
