import gzip
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attention_sieve.core.checkpoints.find import find_checkpoint, local_folder
from attention_sieve.core.checkpoints.saved_runs import list_runs
from attention_sieve.core.errors import AnalysisError, CheckpointError, TextError
from attention_sieve.core.finetuning.data import (
    MAX_CLASSES,
    TrainingData,
    column_names,
    held_out_texts,
    read_training_data,
)
from attention_sieve.core.finetuning.journal import Plan, open_run, record_result
from attention_sieve.core.finetuning.settings import (
    LEAST_HELD_OUT,
    LEAST_STEPS,
    MOST_HELD_OUT,
    TrainingSettings,
    default_settings,
)
from attention_sieve.core.running import (
    Journal,
    read_progress,
    saved_checkpoints,
)
from attention_sieve.core.texts.text import MAX_BYTES, Text

SETTINGS = TrainingSettings(seed=3)
PLAN = Plan("bundled", "print", "a.csv", "bytes", None, ("text",), "label", "classes", ("no", "yes"), SETTINGS)


def table(*labels, texts=None):
    texts = texts or [f"text {number}" for number in range(len(labels))]
    return "\n".join(["text,label", *(f"{text},{label}" for text, label in zip(texts, labels))]).encode()


def read(content, name="reviews.csv", columns=("text",), label="label", task=None):
    return read_training_data(name, content, columns, label, task=task)


def data_of(labels, task="classes"):
    classes = tuple(f"class {number}" for number in range(int(max(labels)) + 1)) if task == "classes" else ()
    texts = tuple(Text((f"text {number}",)) for number in range(len(labels)))
    return TrainingData("a.csv", "", texts, task, tuple(map(float, labels)), classes, ("text",), "label")


# Labelled texts


def test_classes_are_the_files_own_names_in_order():
    data = read(table("sad", "glad", "sad", "glad", "glad"))
    assert data.task == "classes"
    assert data.classes == ("glad", "sad")
    assert data.labels == (1, 0, 1, 0, 0)
    assert data.texts[1] == Text(("text 1",))
    assert (data.text_columns, data.label_column) == (("text",), "label")


def test_classes_that_are_numbers_are_ordered_by_value():
    assert read(table("10", "9", "-1", "10", "9", "-1")).classes == ("-1", "9", "10")


def test_eleven_different_numbers_are_values_and_ten_are_classes_unless_a_task_is_given():
    ten = [*range(10), *range(10)]
    assert read(table(*ten)).task == "classes"
    values = read(table(*ten, 1.5))
    assert (values.task, values.classes) == ("regression", ())
    assert values.labels == (*ten, 1.5)
    assert read(table("1", "2", "1", "2"), task="regression").labels == (1, 2, 1, 2)
    assert read(table(*range(11), *range(11)), task="classes").classes[10] == "10"


def test_pairs_come_from_two_columns():
    content = b"b\ta\tsame\n" + b'one "\ttwo\tyes\n' * 2 + b"three\tfour\tno\n" * 2
    data = read(content, "pairs.tsv", ("a", "b"), "same")
    assert data.texts[0] == Text(("two", 'one "'))
    assert data.labels == (1, 1, 0, 0)


def test_a_packed_table_reads_like_a_plain_one():
    content = table("a", "b", "a", "b")
    packed = read(gzip.compress(content), "reviews.CSV.gz")
    assert replace(packed, name="reviews.csv", sha256=read(content).sha256) == read(content)
    assert packed.sha256 != read(content).sha256


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The file is empty"),
        (b"text,mood\na,b\n", 'no column "label".*"text", "mood"'),
        (b"text,label,label\na,b,c\n", '2 columns named "label"'),
        (table("a", "b"), "Labelled texts: 2. At least 4"),
        (table("a", "", " ", "b"), "Lines 3, 4: the label is empty"),
        (table("a", "b", "a", "b", texts=["x", "y", " ", "z"]), "Line 4: the text is empty"),
        (table("a", "a", "a", "a"), 'All 4 texts have the label "a"'),
        (table("a", "a", "a", "b"), 'Line 5: the class "b" has this text alone'),
        (table("a", "b", "x" * 101, "b"), "Line 4: the label has 101 characters"),
        (table(*range(11), "inf"), 'Line 13: the label "inf" is not a finite number'),
        (table(*(f"c{number}" for number in range(MAX_CLASSES + 1))), "1,001 classes and at most 1,000"),
        (b"text,label\na,b\n\xff,b\n", "Line 3 is not UTF-8"),
        (b"text,label\n" + b"a" * MAX_BYTES, "20,000,011 bytes and at most 20,000,000"),
    ],
)
def test_bad_data_is_told_with_its_line(content, message):
    with pytest.raises(TextError, match=message):
        read(content)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (("1", "2", "1_0", "4"), 'Line 4: the label "1_0" is not a number'),
        (("2", "2", "2.0", "2"), "All 4 labels are 2"),
        (("1", "2", "-Infinity", "4"), "Line 4.*not a finite number"),
    ],
)
def test_a_bad_label_of_a_regression_is_told_with_its_line(labels, message):
    with pytest.raises(TextError, match=message):
        read(table(*labels), task="regression")


def test_what_is_no_table_or_no_column_is_told():
    with pytest.raises(TextError, match=r"reviews\.txt.*not a table"):
        read(b"a", "reviews.txt")
    with pytest.raises(TextError, match="text and label at once"):
        read(table("a", "b"), label="text")
    with pytest.raises(TextError, match="cannot be unpacked"):
        read(gzip.compress(table("a", "b", "a", "b"))[:-9], "a.csv.gz")


def test_the_columns_are_told_before_one_is_picked():
    assert column_names("a.csv", b"text, label\n") == ("text", "label")
    assert column_names("a.TSV.gz", gzip.compress(b"text, a\tlabel")) == ("text, a", "label")
    with pytest.raises(TextError, match="The file is empty"):
        column_names("a.csv", b" \n")
    with pytest.raises(TextError, match="is not a table"):
        column_names("a.xlsx", b"PK")


def test_a_packed_file_that_would_fill_the_memory_is_refused():
    with pytest.raises(TextError, match="20,000,001 bytes and at most"):
        read(gzip.compress(b"text,label\n" + b"a" * (2 * MAX_BYTES), 1), "a.csv.gz")


@example([2, 2, 2, 2, 2, 30], 0.3, 0)
@given(
    st.lists(st.integers(2, 30), min_size=2, max_size=6),
    st.floats(0.01, 0.99),
    st.integers(0, 1000),
)
def test_every_class_is_held_out_in_proportion_and_keeps_a_text(sizes, share, seed):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    held_out = held_out_texts(data_of(labels.tolist()), share, seed)
    counts = np.bincount(labels[held_out], minlength=len(sizes))
    assert held_out.sum() >= 1
    assert (counts < sizes).all()
    assert (np.abs(counts - share * np.array(sizes)) <= 1).all()
    np.testing.assert_array_equal(held_out, held_out_texts(data_of(labels.tolist()), share, seed))


def test_values_are_held_out_by_chance():
    values = data_of([0.5 * number for number in range(100)], "regression")
    first, second = (held_out_texts(values, 0.2, seed) for seed in (0, 1))
    assert first.sum() == second.sum() == 20
    assert (first != second).any()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"epochs": 0.0}, "number of epochs is 0"),
        ({"learning_rate": float("inf")}, "learning rate is inf"),
        ({"batch_size": 0}, "batch size is 0"),
        ({"max_length": 3}, "maximum length is 3"),
        ({"seed": -1}, "seed is -1"),
        ({"save_steps": 0}, "between two checkpoints is 0"),
        ({"held_out": 1.0}, "validation split is 1"),
    ],
)
def test_a_setting_out_of_range_is_told(asked, message):
    with pytest.raises(AnalysisError, match=message):
        TrainingSettings(**asked)


@given(st.integers(4, 100_000))
def test_a_run_on_few_texts_makes_the_steps_that_learning_takes_and_can_be_told_from_chance(n_texts):
    settings = default_settings(n_texts)
    n_held_out = settings.held_out * n_texts
    assert settings.epochs * (n_texts - n_held_out) / settings.batch_size >= LEAST_STEPS - 1e-6
    assert settings.epochs >= TrainingSettings().epochs
    assert n_held_out >= 0.95 * LEAST_HELD_OUT or settings.held_out == MOST_HELD_OUT


def test_the_settings_of_many_texts_are_the_usual_ones():
    for n_texts in (1_000, 2_000, 100_000):
        assert default_settings(n_texts) == TrainingSettings()


# How far a run is


def saved(folder, *steps):
    for step in steps:
        (folder / f"checkpoint-{step}").mkdir(parents=True)
        (folder / f"checkpoint-{step}" / "config.json").write_text("{}")


def test_runs_are_listed_with_their_checkpoints_in_order(tmp_path):
    for name in ("b", "a"):
        Journal(tmp_path / name, "bundled")
    saved(tmp_path / "a", 100, 20)
    (tmp_path / "a" / "checkpoint-30").mkdir()
    (tmp_path / "a" / "checkpoint-x").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "file").touch()
    first, second = list_runs(tmp_path)
    assert (first.name, second.name) == ("a", "b")
    assert first.checkpoints == ("a/checkpoint-20", "a/checkpoint-100")
    assert saved_checkpoints(first.folder) == (tmp_path / "a" / "checkpoint-20", tmp_path / "a" / "checkpoint-100")
    Journal(tmp_path / "b", "bundled").end("finished")
    assert list_runs(tmp_path)[1].checkpoints == ("b",)


# Beginning and going on


def test_a_run_begins_only_where_nothing_else_is(tmp_path):
    (tmp_path / "letters.txt").touch()
    for folder in (tmp_path, tmp_path / "letters.txt"):
        with pytest.raises(AnalysisError, match="something other than a run"):
            open_run(folder, PLAN, resume=False)
    with pytest.raises(AnalysisError, match=r"no run in .* to resume"):
        open_run(tmp_path / "absent", PLAN, resume=True)
    assert not (tmp_path / "absent").exists()
    (tmp_path / "empty").mkdir()
    open_run(tmp_path / "empty", PLAN, resume=False)
    found = json.loads((tmp_path / "empty" / "training.json").read_text())
    assert found["settings"]["seed"] == 3
    assert found["versions"]["python"].startswith("3.")


def test_a_run_in_progress_or_finished_is_left_alone(tmp_path):
    journal = open_run(tmp_path, PLAN, resume=False)
    for resume in (False, True):
        with pytest.raises(AnalysisError, match="is in progress"):
            open_run(tmp_path, PLAN, resume=resume)
    journal.end("finished")
    for resume in (False, True):
        with pytest.raises(AnalysisError, match="finished with step 0"):
            open_run(tmp_path, PLAN, resume=resume)


def test_a_run_goes_on_from_its_last_saved_step_when_asked_to(tmp_path):
    open_run(tmp_path, PLAN, resume=False).end("stopped")
    assert open_run(tmp_path, PLAN, resume=True).step == 0
    Journal(tmp_path, "x").end("stopped")
    saved(tmp_path, 9, 10)
    with pytest.raises(AnalysisError, match=r"has saved step 10\. Add --resume to continue"):
        open_run(tmp_path, PLAN, resume=False)
    record_result(tmp_path, accuracy=0.5)
    assert open_run(tmp_path, replace(PLAN, checkpoint="./same", data="copy.csv"), resume=True).step == 10
    assert json.loads((tmp_path / "training.json").read_text())["result"] == {"accuracy": 0.5}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fingerprint": "other"}, "the checkpoint's files: 'print', now 'other'"),
        ({"data_sha256": "other"}, "the data: 'bytes'"),
        ({"held_out_sha256": "other"}, "the texts held out"),
        ({"text_columns": ("a", "b")}, "the text columns"),
        ({"label_column": "mood"}, "the label column"),
        ({"task": "regression"}, "the task"),
        ({"settings": replace(SETTINGS, learning_rate=1e-3)}, "learning_rate 5e-05 and cannot continue with 0.001"),
        ({"settings": replace(SETTINGS, save_steps=5)}, "save_steps None"),
    ],
)
def test_a_run_does_not_go_on_with_something_else(tmp_path, changed, message):
    open_run(tmp_path, PLAN, resume=False).end("stopped")
    saved(tmp_path, 5)
    with pytest.raises(AnalysisError, match=message):
        open_run(tmp_path, replace(PLAN, **changed), resume=True)
    assert read_progress(tmp_path).state == "stopped"


def test_a_broken_record_is_told(tmp_path):
    open_run(tmp_path, PLAN, resume=False).end("stopped")
    saved(tmp_path, 5)
    (tmp_path / "training.json").write_text('{"fing')
    with pytest.raises(AnalysisError, match=r"training\.json cannot be read"):
        open_run(tmp_path, PLAN, resume=True)


def test_a_checkpoint_made_here_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "checkpoints" / "reviews"
    saved(run, 40)
    assert local_folder("reviews/checkpoint-40") == run / "checkpoint-40"
    assert local_folder("reviews") is None
    assert local_folder("reviews/checkpoint-41") is None
    assert local_folder("\0") is None
    (run / "config.json").touch()
    assert local_folder("reviews") == run
    here = tmp_path / "reviews"
    here.mkdir()
    (here / "config.json").touch()
    assert local_folder("reviews") == here


@pytest.mark.parametrize(
    ("steps", "name", "message"),
    [
        ((250, 63), "reviews/checkpoint-40", "reviews has no checkpoint-40; its saved steps are 63, 250. Name one, "),
        ((63, 250), "reviews", "reviews is not finished; its saved steps are 63, 250. Name one, as reviews/"),
        ((63,), "reviews", "reviews is not finished; its saved step is 63. Name one, as reviews/checkpoint-63."),
        ((), "reviews", "reviews is not finished, and none of its steps is saved. Continue the run first."),
        ((), "reviews/checkpoint-1", "reviews has no checkpoint-1, and none of its steps is saved."),
    ],
)
def test_a_run_made_here_says_which_steps_it_has(tmp_path, monkeypatch, steps, name, message):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run = Journal(tmp_path / "checkpoints" / "reviews", "bundled").folder
    saved(run, *steps)
    with pytest.raises(CheckpointError, match=f"^{re.escape(message)}"):
        find_checkpoint(name)
    assert local_folder("reviews/of-somebody") is None
    assert local_folder("reviews-2/checkpoint-1") is None
