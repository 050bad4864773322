"""The page Fine-tune without a browser, and the programs that it begins."""

import json
import os
import shutil
from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from reading import button, said, scores_in, sent, told

from attention_sieve.core.checkpoints.saved_runs import delete_run
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.movie_reviews import HELD_OUT_FILE, TRAINING_FILE
from attention_sieve.core.finetuning.settings import TrainingSettings, default_settings
from attention_sieve.core.running import Journal, Progress, Validation, ValidationResult
from attention_sieve.dashboard import runs, trainings
from attention_sieve.dashboard.views.finetune import wording as page_wording
from attention_sieve.dashboard.views.training import runs as training_runs
from attention_sieve.dashboard.views.training import wording
from attention_sieve.dashboard.views.training.folders import RunRequest, check_name, free_name, keep_data, made_here
from attention_sieve.dashboard.views.training.labelled import known_label, known_segments

POLLS, POLL_SECONDS = 1_200, 0.05
N_TEXTS = 40
HOSTILE = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) :material/home: $x$"
TABLE = "sentence,label\n" + "".join(
    f"the {'cat' if i % 2 else 'dog'} sat on mat {i},{'cats' if i % 2 else 'dogs'}\n" for i in range(N_TEXTS)
)
QUICK = TrainingSettings(epochs=1.0, batch_size=8, held_out=0.2)
LONG = replace(QUICK, epochs=900.0)


@pytest.fixture(autouse=True)
def _no_run_before(store):
    """As in a program that has begun no run; what a test began is ended."""
    runs.end()
    yield
    runs.end()


@pytest.fixture
def asked(small):
    """asked(name, settings) -> what a run of a small checkpoint is asked."""

    def of(name, settings=QUICK, **changed):
        data = keep_data("animals.csv", TABLE.encode())
        return replace(RunRequest(name, small("bert"), data, ("sentence",), "label", None, settings), **changed)

    return of


def until(run, happened):
    for _ in range(POLLS):
        if happened(trainings.look(run)):
            return trainings.look(run)
        Event().wait(POLL_SECONDS)
    pytest.fail(f"waited in vain: {trainings.look(run)}")


def ended(run):
    return until(run, lambda now: now.state != "running")


def made(name):
    return next(each for each in made_here() if each.name == name)


def upload(at, content=TABLE, name="animals.csv"):
    at.file_uploader(key="labelled").upload(name, content.encode() if isinstance(content, str) else content)
    return at.run()


# Names and data


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("movies.csv", "movies.csv"),
        ("../../etc/pass wd.TSV.gz", "pass-wd.tsv.gz"),
        ("..\\..\\x.tsv", "x.tsv"),
        ("..csv", "table.csv"),
        (f"{HOSTILE}.csv", "home-x.csv"),
        ("a" * 300 + ".csv", "a" * 40 + ".csv"),
    ],
)
def test_an_upload_is_kept_by_its_content_under_a_harmless_name(store, name, kept):
    path = keep_data(name, b"some\nbytes")
    assert path == store / "data" / "df9c1f636597" / kept
    assert path.read_bytes() == b"some\nbytes"
    assert keep_data(name, b"some\nbytes") == path
    assert keep_data(name, b"other bytes").parent != path.parent
    assert not [each for each in path.parent.iterdir() if each.name.startswith("tmp")]


def test_data_that_cannot_be_written_is_said(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "file"))
    with pytest.raises(AnalysisError, match=r"cannot be written to .*\(Not a directory\)"):
        keep_data("a.csv", b"x")


def test_a_free_name_is_proposed(store):
    for name in ("reviews", "reviews-2"):
        (store / "checkpoints" / name).mkdir(parents=True)
    assert free_name("reviews.csv.gz") == "reviews-3"
    assert free_name("other.tsv") == "other"
    assert free_name("bundled.csv") == "bundled-2"
    for each in (free_name("a/b c.csv"), free_name("-.csv"), free_name("é" * 200 + ".csv"), free_name("x" * 200)):
        check_name(each)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "has no name"),
        ("../up", '"../up" cannot be'),
        *((name, "cannot be") for name in (".hidden", "-option", "two words", "line\n", "é")),
        ("x" * 81, "81 characters and at most 80"),
        ("bundled", "already a checkpoint bundled"),
        ("taken", "already a checkpoint taken"),
    ],
)
def test_a_name_that_does_not_go_is_said(store, name, sentence):
    (store / "checkpoints" / "taken").mkdir(parents=True, exist_ok=True)
    with pytest.raises(AnalysisError, match=sentence):
        check_name(name)


def test_known_columns_are_found_in_any_case_and_a_pair_before_a_single():
    assert known_segments(("id", "Sentence1", "sentence2", "sentence")) == ("Sentence1", "sentence2")
    assert known_segments(("id", "Text")) == ("Text",)
    assert known_segments(("a", "b")) == ()
    assert known_label(("id", "Text", "LABEL"), ("Text",)) == 2
    assert known_label(("score", "text", "label"), ("text",)) == 2
    assert known_label(("liked", "text"), ("text",)) == 0
    assert known_label(("a", "b", "text"), ("text",)) is None
    assert known_label(("a", "b"), ()) is None


# Sentences


def test_progress_is_said_with_steps_time_and_figures():
    now = Progress(
        "running", 30, 120, 45.4, ((20, 0.7), (30, 0.6124)), (ValidationResult(20, 0.5, 0.75, None),), (20,), ""
    )
    assert wording.running(now) == "Step 30 of 120, about 45 s left"
    assert wording.running(replace(now, seconds_left=150.0)) == "Step 30 of 120, about 2 min left"
    assert wording.running(replace(now, steps=0, message="Loading the checkpoint.")) == "Loading the checkpoint."
    assert wording.measured(now) == "Loss 0.612 at step 30; validation accuracy 0.750 at step 20."
    assert page_wording.made_state(replace(now, held_out=(), saved=()), 2_000_000) == "Running: see above; 2 MB."
    assert "Step 20 is saved; Resume continues from it." in wording.stopped(now)
    assert "No step was saved; Resume starts from the beginning." in wording.left(replace(now, saved=()))
    regression = replace(now, held_out=(ValidationResult(20, 0.5, None, 0.25),))
    assert page_wording.made_state(replace(regression, state="stopped"), 12_300_000) == (
        "Stopped at step 30 of 120; validation correlation 0.250; 1 saved step; 12 MB."
    )


def of_30(n_right, **changes):
    """A finished run with 30 validation texts, 16 of them in one class."""
    now = Progress("finished", 51, 51, None, (), (ValidationResult(51, 0.5, n_right / 30, None),), (51,), "")
    return replace(now, validation=Validation(30, 16 / 30, None), **changes)


def test_a_result_stands_beside_chance_and_is_called_so():
    beside = "validation accuracy 0.533 (95% interval 0.361 to 0.698, 30 texts; the most frequent class alone: 0.533)"
    assert wording.finished(of_30(16), "~/here") == (
        f"Finished after 51 steps: {beside}, which is not significantly above chance. More epochs, more texts or a "
        "larger validation split may show whether it learned anything. It is in ~/here."
    )
    assert page_wording.made_state(of_30(16), 0) == (
        f"51 steps; {beside}, which is not significantly above chance; 1 saved step; 0 MB."
    )
    assert wording.finished(of_30(27), "~/here") == (
        "Finished after 51 steps: validation accuracy 0.900 (95% interval 0.744 to 0.965, 30 texts; the most frequent "
        "class alone: 0.533). It is in ~/here."
    )
    old = replace(of_30(16), validation=None)
    assert wording.finished(old, "~/here") == ("Finished after 51 steps: validation accuracy 0.533. It is in ~/here.")


def test_a_button_names_a_checkpoint_by_the_end_of_its_name():
    assert wording.compare_with("bundled") == "Compare with bundled"
    assert page_wording.start("google-bert/bert-base-uncased") == "Start from bert-base-uncased"
    assert page_wording.start(f"/some/folder/{'x' * 30}/") == f"Start from {'x' * 23}…"


# Programs


def test_a_run_whose_record_is_spoilt_is_listed_all_the_same(store):
    folder = store / "checkpoints" / "spoilt"
    Journal(folder, "bundled").end("finished")
    (folder / "training.json").write_text('{"task": "classes", "settings": {"epochs": -1}')
    spoilt = made("spoilt")
    assert (spoilt.task, spoilt.data_name, spoilt.n_texts, spoilt.request) == (None, None, None, None)
    assert spoilt.progress.state == "finished"


def test_a_program_that_breaks_is_said_with_its_last_words_and_one_that_cannot_begin_with_its_sentence(
    asked, monkeypatch, tmp_path
):
    monkeypatch.setattr(runs, "environment", lambda: {**os.environ, "PYTHONPATH": "/no/such/folder"})
    now = ended(training_runs.start(asked("broken")))
    assert now.state == "failed"
    assert "exit status 1" in now.message
    assert "No module named" in now.message
    monkeypatch.undo()
    lost = ended(training_runs.start(asked("lost", data=tmp_path / "lost.csv")))
    assert (lost.state, lost.message) == (
        "failed",
        f"{tmp_path}/lost.csv cannot be read (No such file or directory). Check the path.",
    )


def test_a_run_ends_with_this_program_before_it_has_written_anything(asked):
    run = training_runs.start(asked("early", LONG))
    runs.stop(trainings.folder(run))
    assert ended(run).state == "stopped"
    again = training_runs.start(asked("early", LONG))
    runs.end()
    assert trainings.running() is None
    assert trainings.look(again) is None
    assert not trainings.folder(again).exists()


# The page


def test_the_page_waits_for_a_table_previews_it_and_proposes_what_its_number_of_texts_asks_for(app):
    at = app("fine-tune")
    assert [each.value for each in at.title] == ["Fine-tune"]
    assert wording.WAIT in told(at)
    assert "stays on this machine" in told(at)
    assert button(at, "Start from bundled").disabled
    upload(at, name="../animals.csv")
    assert "40 texts, 2 classes: dogs (20), cats (20)." in told(at).replace("*", "")
    first = at.dataframe[0].value
    assert first.columns.tolist() == ["label", "text"]
    assert first.iloc[1].tolist() == ["cats", "the cat sat on mat 1"]
    assert at.text_input[0].value == "animals"
    assert not button(at, "Start from bundled").disabled
    few = default_settings(N_TEXTS)
    assert at.number_input(key="epochs").value == few.epochs > TrainingSettings().epochs
    assert at.number_input(key="batch_size").value == few.batch_size
    assert at.number_input(key="held_out").value == few.held_out
    at.number_input(key="epochs").set_value(2.0).run()
    assert at.number_input(key="epochs").value == 2
    asked = upload(app("fine-tune", epochs="2"))
    assert (asked.number_input(key="epochs").value, asked.number_input(key="batch_size").value) == (2, few.batch_size)


def test_sample_texts_are_one_click_away_and_so_is_the_way_back(app, store):
    (store / "downloads").mkdir()
    for name in (TRAINING_FILE, HELD_OUT_FILE):  # as they are once fetched
        (store / "downloads" / name).write_text(TABLE)
    at = app("fine-tune")
    button(at, wording.SAMPLE).click().run()
    assert "40 texts, 2 classes" in told(at).replace("*", "")
    assert wording.ABOUT_SAMPLE in told(at)
    assert at.text_input[0].value == "movie-reviews-training"
    assert not button(at, "Start from bundled").disabled
    button(at, wording.OWN).click().run()
    assert wording.WAIT in told(at)


def test_a_run_is_deleted_only_after_a_second_click_and_never_while_it_is_on(app, store):
    runs = store / "checkpoints"
    journal = Journal(runs / "old", "bundled")
    at = app("fine-tune")
    with pytest.raises(AnalysisError, match="old is being trained now, so it cannot be deleted"):
        delete_run("old")
    assert wording.delete("old") not in [each.label for each in at.button]
    journal.end("stopped")
    at = app("fine-tune")
    assert (runs / "old").is_dir()
    button(at, wording.delete("old")).click().run()
    assert not (runs / "old").exists()
    assert wording.delete("old") not in [each.label for each in at.button]


@pytest.mark.parametrize("name", ["", ".", "..", "../data", "no-run", "plain", "link", "/etc", "old/checkpoint-5"])
def test_only_the_folder_of_a_run_is_deleted(store, name):
    runs = store / "checkpoints"
    (runs / "plain").mkdir(parents=True, exist_ok=True)
    Journal(store / "elsewhere", "bundled").end("finished")
    if not (runs / "link").is_symlink():
        (runs / "link").symlink_to(store / "elsewhere")
    before = sorted(store.rglob("*"))
    with pytest.raises(AnalysisError, match="is not a run that was trained here"):
        delete_run(name)
    assert sorted(store.rglob("*")) == before


def test_pairs_and_values_are_recognised_and_the_reader_may_say_otherwise(app):
    table = "sentence1\tsentence2\tscore\n" + "".join(f"a {i}\tb {i}\t{i % 12}\n" for i in range(24))
    at = upload(app("fine-tune"), table, "pairs.tsv")
    assert "24 pairs of segments, values from 0 to 11, mean 5.5." in told(at).replace("*", "")
    assert at.dataframe[0].value.columns.tolist() == ["label", "text", "second segment"]
    at.selectbox(key="task").set_value("classes").run()
    assert "12 classes: 0 (2), 1 (2)" in told(at)
    assert "and 4 more" in told(at)


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (TABLE.replace("the cat sat on mat 3,", ","), "gap.csv", "Line 5: the text is empty."),
        (b"not gzip", "table.csv.gz", "cannot be unpacked"),
        (TABLE.replace("sentence,", '"text, long",'), "comma.csv", None),
    ],
)
def test_bad_data_is_said_before_anything_starts(app, content, name, sentence):
    at = upload(app("fine-tune"), content, name)
    if sentence is None:
        next(each for each in at.selectbox if each.label == wording.TEXT_COLUMN).set_value("text, long").run()
        sentence = 'The column "text, long" has a comma in its name.'
    assert sentence in said(at)[0]
    assert button(at, "Start").disabled


def test_a_taken_name_and_numbers_out_of_range_are_said(app, store):
    (store / "checkpoints" / "mine").mkdir(parents=True)
    at = upload(app("fine-tune", epochs="0", save_steps="7"))
    assert said(at) == ["The number of epochs is 0.0. Give a number above 0, up to 1,000."]
    assert button(at, "Start").disabled
    at.number_input(key="epochs").set_value(2.0).run()
    assert at.number_input(key="save_steps").value == 7
    assert not button(at, "Start").disabled
    at.text_input[0].set_value("mine").run()
    assert "There is already a checkpoint mine in" in said(at)[0]
    assert button(at, "Start").disabled


@pytest.mark.parametrize(("n_right", "is_above"), [(16, False), (27, True)])
def test_only_a_result_above_chance_is_a_success_and_wrong_texts_are_shown_as_text(app, store, n_right, is_above):
    journal = Journal(store / "checkpoints" / "ended", "bundled")
    journal.validation(of_30(n_right).validation)
    journal.plan(51)
    journal.held_out(of_30(n_right).held_out[0])
    wrong = {"segments": [HOSTILE], "label": "cats", "predicted": "<b>dogs</b>"}
    (journal.folder / "training.json").write_text(json.dumps({"result": {"wrong": [wrong]}}))
    journal.end("finished")
    at = app("fine-tune")
    (found,) = (each.value for each in at.markdown if "was fine-tuned from" in each.value)
    assert found.startswith("**ended** was fine-tuned from bundled for ")
    assert ("not significantly above chance" in found) == (not is_above)
    at.session_state["run watched"] = "ended"
    at.run()
    finished = [each for each in at.info if "Finished after" in each.value]
    assert (len(at.success), len(finished)) == (is_above, not is_above)
    tables = [each.value for each in at.dataframe if "predicted" in each.value]
    assert len(tables) == 2, "beside the run, and in the list"
    for table in tables:
        assert table.columns.tolist() == ["label", "predicted", "text"]
        assert table.values.tolist() == [["cats", "<b>dogs</b>", HOSTILE]]


def test_the_heads_of_the_last_run_are_those_of_the_step_on_the_slider(app, store, small):
    trained = small("bert", "SequenceClassification", num_labels=2, initializer_range=0.9)
    begun = {"checkpoint": str(small("bert")), "corpus_text": "The cat sat.\nA dog ran to me."}
    journal = Journal(store / "checkpoints" / "ended", begun["checkpoint"])
    journal.validation(of_30(27).validation)
    journal.plan(51)
    journal.held_out(of_30(27).held_out[0])
    shutil.copytree(trained, journal.folder / "checkpoint-51")
    journal.end("finished")
    at = app("fine-tune", **begun)
    for step, checkpoint in ((51, str(trained)), (0, begun["checkpoint"])):
        at.select_slider(key="trained until").set_value(step).run()
        expected = sent(app("roles", **begun | {"checkpoint": checkpoint}), "Roles of the heads")
        np.testing.assert_array_equal(scores_in(sent(at, "Heads of")), scores_in(expected))


def test_a_run_is_begun_seen_by_all_found_by_another_program_and_resumed_once_its_own_is_gone(
    app, asked, small, monkeypatch
):
    settings = {"epochs": "900", "batch_size": "8", "held_out": "0.2", "save_steps": "5"}
    at = upload(app("fine-tune", checkpoint=small("bert"), device="cpu", **settings))
    button(at, "Start from").click().run()
    assert not at.error
    run = trainings.running()
    assert (run, trainings.look(run).state) == ("animals", "running")
    with pytest.raises(AnalysisError, match="animals is being trained now, and only one"):
        training_runs.start(asked("second"))
    other = app("fine-tune")
    for each in (at, other):
        assert "animals is being trained now" in told(each)
        assert button(each, "Start from").disabled
        assert any(shown_button.label == "Stop" for shown_button in each.button)
    until(run, lambda now: now.step >= 6)
    program = runs._programs.pop(trainings.folder(run))  # as another program sees it
    assert trainings.running() == run
    with pytest.raises(AnalysisError, match="animals is being trained now"):
        training_runs.start(asked("second"))
    program.process.kill()
    program.process.wait()
    program.errors.close()
    assert ended(run).state == "left"
    assert trainings.running() is None
    left = made("animals")
    assert training_runs.can_resume(left)
    assert left.request == asked("animals", replace(LONG, save_steps=5), task="classes")
    assert left.data_name == "animals.csv"
    weights = trainings.folder(run) / "checkpoint-5" / "model.safetensors"
    assert left.n_bytes > weights.stat().st_size
    button(other.run(), wording.resume("animals")).click().run()
    again = trainings.running()
    assert (again, trainings.look(again).state) == ("animals", "running")
    assert not runs.is_stopping(trainings.folder(again))
