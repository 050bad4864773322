"""The tab on gates without a browser, the programs that it begins, and what it reads of their folders."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from reading import button, command_of, once_ended, said, sent, told, until

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.gates.settings import GateSettings, read_history
from attention_sieve.core.running import Journal, read_progress
from attention_sieve.dashboard import controls
from attention_sieve.dashboard import runs as all_runs
from attention_sieve.dashboard import wording as files_wording
from attention_sieve.dashboard.figures.importance.gates import gate_scores
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves import wording as curves_wording
from attention_sieve.dashboard.views.importance.gates import runs, view, wording
from attention_sieve.dashboard.views.importance.gates.runs import RECORD, PenaltySweep, all_sweeps, keep, sweeps_of
from attention_sieve.dashboard.views.importance.gates.view import penalties_of
from attention_sieve.dashboard.views.training.folders import keep_data

TABLE = "sentence,label\n" + "".join(f"the {'cat' if i % 2 else 'dog'} sat on mat {i},{i % 2}\n" for i in range(40))
TAB = {"metric": page_wording.LABELS, "importance details": wording.TITLE}
QUICK = GateSettings(epochs=6.0, batch_size=10, held_out=0.5, gate_rate=2.0)


@pytest.fixture(scope="module")
def classifier(small):
    return small("bert", "SequenceClassification")


@pytest.fixture(scope="module")
def sweep_of(classifier, store):
    """sweep_of(settings, penalties) -> what a sweep of a small classifier is asked."""

    def of(settings=QUICK, penalties=(0.1, 5.0)):
        files, data = find_checkpoint(classifier), keep_data("animals.csv", TABLE.encode())
        return PenaltySweep(files.name, files.fingerprint, data, ("sentence",), "label", "classes", settings, penalties)

    return of


@pytest.fixture(autouse=True)
def _no_program_stays():
    yield
    all_runs.end()


def train(sweep):
    keep(sweep)
    assert main(["gates", *runs.gate_options(sweep, str(sweep.data), str(sweep.folder))]) == 0


@pytest.fixture(scope="module")
def trained(sweep_of):
    """A sweep whose runs are finished."""
    train(sweep_of())
    return sweep_of()


def upload(at, content=TABLE):
    at.file_uploader(key="labelled").upload("animals.csv", content.encode())
    return at.run()


# What is asked


def test_penalties_are_read_in_order_and_each_once():
    assert penalties_of("0.05, 0.01,0.05,, 1e-3") == (0.001, 0.01, 0.05)
    for wrong, sentence in (
        ("some", "names no penalties"),
        ("", "names no penalties"),
        ("0.1 0.2", "names no penalties"),
        (",".join(map(str, range(13))), "These are 13 penalties"),
        ("101", "The penalty is 101.0. Give a number from 0 to 100."),
        ("nan", "The penalty is nan"),
    ):
        with pytest.raises(AnalysisError, match=sentence):
            penalties_of(wrong)


def test_a_sweep_is_found_again_by_checkpoint_and_table_and_takes_more_penalties(sweep_of):
    sweep = sweep_of(replace(QUICK, seed=5))
    more = replace(sweep, penalties=(0.3,))
    assert more.folder == sweep.folder
    assert replace(sweep, settings=replace(QUICK, seed=6)).folder != sweep.folder
    keep(sweep)
    files, sha256 = find_checkpoint(sweep.checkpoint), sweep.data.parent.name + "0"
    assert sweep in sweeps_of(files, sha256, ("sentence",), "label")
    assert not sweeps_of(files, sha256, ("other",), "label")
    assert runs.joined(more).penalties == (0.1, 0.3, 5.0)
    record = json.loads((sweep.folder / RECORD).read_text())
    (sweep.folder / RECORD).write_text(json.dumps(record | {"settings": {"epochs": -1}}))
    assert sweep not in all_sweeps(), "a spoilt record is left out"


def test_a_sweep_says_how_far_it_is(sweep_of):
    sweep = sweep_of(replace(QUICK, seed=7))
    keep(sweep)
    assert (runs.look(sweep).state, sweep.begun) == ("left", None)
    journal = Journal(sweep.folder)
    journal.plan(2)
    first, second = (Journal(sweep.run_folder(penalty)) for penalty in sweep.penalties)
    first.end("finished")
    journal.done()
    now = runs.look(sweep)
    assert (now.state, now.step, now.steps, sweep.finished) == ("running", 1, 2, (0.1,))
    all_runs.stop(sweep.folder)
    assert all_runs.is_stopping(sweep.folder)
    second.end("stopped")
    journal.end("stopped")
    assert (runs.look(sweep).state, sweep.begun.state) == ("stopped", "stopped")
    Journal(sweep.folder).end("failed", "No room.")
    assert (runs.look(sweep).state, runs.look(sweep).message) == ("failed", "No room.")
    second.end("finished")
    Journal(sweep.folder).end("finished")
    assert (runs.look(sweep).state, sweep.finished) == ("finished", sweep.penalties)
    assert runs.look(replace(sweep, penalties=(*sweep.penalties, 9.0))).state == "left", "a penalty has joined"


def test_a_sweep_of_an_earlier_version_without_a_journal_of_its_own_is_shown(sweep_of):
    sweep = sweep_of(replace(QUICK, seed=8))
    keep(sweep)
    first, second = (sweep.run_folder(penalty) for penalty in sweep.penalties)
    Journal(first).end("finished")
    assert runs.look(sweep).state == "left"
    Journal(second).end("stopped")
    assert runs.look(sweep).state == "stopped"
    Journal(second).end("finished")
    assert runs.look(sweep).state == "finished"


# The tab


def test_what_is_needed_is_said_and_so_is_what_is_wrong_with_it(app, classifier):
    at = app("importance", checkpoint=classifier, **{"importance details": wording.TITLE})
    assert wording.NEEDS_LABELS in told(at)
    at = upload(app("importance", checkpoint=classifier, **TAB), "sentence,label\n" + "one,same\n" * 6)
    assert 'All 6 texts have the label "same".' in said(at)[0]
    at = upload(app("importance", checkpoint=classifier, penalties="none", **TAB))
    assert '"none" names no penalties.' in said(at)[0]


def test_finished_runs_are_judged_on_the_texts_that_no_gate_saw_and_their_command_trains_them_again(
    app, classifier, trained, tmp_path, monkeypatch
):
    at = upload(app("importance", checkpoint=classifier, **TAB))
    assert not at.error
    found = next(each.value for each in at.markdown if each.value.startswith("Penalty 5 leaves"))
    last = read_history(trained.run_folder(5.0))
    assert "leaves **0 of 6 heads** open" in found
    table = next(each.value for each in at.dataframe if "share" in each.value)
    assert table["share"].tolist()[0] == 0
    assert table["share"].tolist()[-1] == 1
    by_run = [read_progress(trained.run_folder(penalty)).held_out[-1].accuracy for penalty in trained.penalties]
    np.testing.assert_allclose(table["score"][1:], by_run, err_msg="the run measured the same texts with these gates")
    picture = sent(at, "Gates of the heads of")
    assert picture["title"].endswith(f"penalty 5, step {last.steps[-1]:,}")
    assert {cell for row in picture["texts"] for cell in row} == {"0"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "animals.csv").write_text(TABLE, "utf-8")
    (words,) = command_of(at, "gates of heads")
    assert main(words) == 0
    written, gates = pd.read_csv("gates/gates.csv"), next(each.value for each in at.dataframe if "p_zero" in each.value)
    pd.testing.assert_frame_equal(written[written["penalty"] == 5].reset_index()[gates.columns], gates)
    at.session_state["download gates of heads"] = True
    at.select_slider(key=f"step {trained.folder.name} 5 {last.steps[-1]}").set_value(0).run()
    assert files_wording.NO_COMMAND in told(at), "of gates that go on"
    assert sent(at, "Gates of the heads of")["title"].endswith("step 0")
    assert any("Distribution of gates" in each.value for each in at.markdown)


@pytest.mark.usefixtures("few_random_orders", "trained")
def test_curves_of_pruning_stand_beside_the_gates_over_the_same_texts(app, classifier, monkeypatch):
    assert wording.NO_CURVES in told(upload(app("importance", checkpoint=classifier, **TAB)))
    curves = upload(app("importance", checkpoint=classifier, **TAB | {"importance details": curves_wording.TAB}))
    once_ended(curves.button(key="begin curves").click().run())
    figures, passed = [], controls.inference().n_passed
    monkeypatch.setattr(view, "gate_scores", lambda *values: figures.append(values) or gate_scores(*values))
    at = upload(app("importance", checkpoint=classifier, **TAB))
    assert at.selectbox(key="order beside gates").value == view.FIRST_BESIDE
    gates, *_, beside = figures[-1]
    assert [each.order for each in beside] == [view.FIRST_BESIDE, *["random"] * 2]
    for each in beside:  # with all heads, and with none: penalty 5 closes all
        np.testing.assert_allclose(each.score[[0, -1]], gates.score[[0, -1]])
    assert len(beside[0].score) == 7
    assert controls.inference().n_passed == passed


def test_weights_that_were_trained_too_are_asked_with_their_gates(app, classifier, sweep_of):
    sweep = sweep_of(replace(QUICK, with_weights=True, learning_rate=0.01), (0.1,))
    train(sweep)
    at = upload(app("importance", checkpoint=classifier, **TAB))
    table = next(each.value for each in at.dataframe if "share" in each.value)
    assert table["score"][1] == pytest.approx(read_progress(sweep.run_folder(0.1)).held_out[-1].accuracy)
    assert "The weights were trained along with the gates." in told(at)


def test_a_run_begun_on_the_page_is_watched_stopped_and_resumed(app, classifier):
    link = TAB | {"penalties": "0.1,0.2", "gates epochs": "900", "gates batch_size": "4"}
    at = upload(app("importance", checkpoint=classifier, **link))
    button(at, wording.start(2)).click().run()
    assert not at.error
    (sweep,) = [each for each in all_sweeps() if each.settings.epochs == 900]
    other = upload(app("importance", checkpoint=classifier, **link))
    assert button(other, wording.start(2)).disabled
    assert wording.ONE_AT_A_TIME in told(other)
    until(lambda: sweep.begun is not None and sweep.begun.step >= 1)
    assert sent(other.run(), "Gates of the heads of")["title"] == wording.P_OPEN
    button(other, "Stop").click().run()
    until(lambda: runs.look(sweep).state != "running")
    at.run()
    assert runs.look(sweep).state == "stopped"
    assert f"Training was stopped at step {sweep.begun.step:,}" in told(at)
    button(at, wording.RESUME).click().run()
    assert runs.running() == sweep
