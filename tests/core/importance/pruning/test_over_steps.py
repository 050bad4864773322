"""Pruning curves over the saved steps of a run: shares of each step's own score, and the command over a real run."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.checkpoints.saved_runs import find_run
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.metrics import label_score
from attention_sieve.core.importance.pruning.curves import RESAMPLES, curve, mean_curve, relative
from attention_sieve.core.importance.pruning.over_steps import (
    RELATIVE_COLUMNS,
    StepCurve,
    check_alike,
    check_beginning,
    saved_steps,
    step_curves_table,
)
from attention_sieve.core.importance.verdicts import Changes, changes, verdicts
from attention_sieve.core.running import Journal

pytestmark = pytest.mark.usefixtures("few_random_orders")
TEXTS = ["the cat ran", "who sat on the mat", "a dog", "she eats red apples", "two birds"]
RIGHT = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 1, 0]])
"""Whether each of five texts is classified rightly at each of four numbers of heads removed."""


def outcomes_of(right, times):
    """Accuracy, and logits of so many copies of the five texts, which are all of class 1."""
    right = np.tile(right, (times, 1))
    return label_score("accuracy", np.ones(len(right)), 2), np.stack([1.0 - right, right], axis=-1)


def planted(right=RIGHT, order="flap", draw=0, times=100):
    """A curve over so many copies of the five texts."""
    score, logits = outcomes_of(right, times)
    documents = [None] * len(logits)
    return curve((order, draw), np.arange(4), logits, score, documents, Draws(documents))


def test_a_curve_has_the_interval_of_its_changes_and_none_over_few_texts():
    found = planted()
    score, logits = outcomes_of(RIGHT, 100)
    tested = verdicts(changes(score, logits[:, 0], logits, [None] * len(logits)), RESAMPLES)
    assert found.low[1:] == pytest.approx(tested.low[1:])
    assert found.high[1:] == pytest.approx(tested.high[1:])
    assert (found.low[0], found.high[0]) == (0, 0)
    few = planted(times=3)
    assert np.isnan([few.low, few.high]).all()
    assert np.isfinite(few.drawn).all(), "how many heads can go is described for any two texts"


def test_a_relative_curve_divides_by_the_steps_own_score_with_all_heads_on():
    shares = relative(planted())
    assert shares.value == pytest.approx([1, 3 / 4, 3 / 4, 0])
    assert (shares.low[0], shares.high[0]) == (1, 1)
    # Fieller's interval of a ratio of two means, by another path: all shares that Student's t does not reject.
    full, pruned = np.tile(RIGHT, (100, 1))[:, :2].T
    candidates = np.linspace(0, 1.5, 1_501)
    p = ttest_1samp(pruned[:, None] - candidates * full[:, None], 0).pvalue
    fieller = candidates[p > 0.05]
    assert (shares.low[1], shares.high[1]) == pytest.approx((fieller.min(), fieller.max()), abs=0.04)


def test_there_is_no_share_of_a_score_of_zero_and_no_interval_over_few_texts():
    nothing = relative(planted(np.zeros((5, 4), int)))
    assert all(np.isnan(values).all() for values in (nothing.value, nothing.low, nothing.high))
    few = relative(planted(times=3))
    assert few.value[1] == pytest.approx(3 / 4)
    assert np.isnan(few.low).all()


def test_the_mean_of_random_curves_has_the_interval_of_their_mean():
    other = RIGHT[:, [0, 3, 1, 2]]
    mean = mean_curve([planted(order="random"), planted(other, "random", 1)])
    assert (mean.order, mean.draw) == ("random", 0)
    assert mean.score == pytest.approx([4 / 5, 3 / 10, 3 / 5, 3 / 10])
    assert mean.delta == pytest.approx(mean.score - 4 / 5)
    by_text = np.tile((RIGHT + other) / 2 - RIGHT[:, :1], (100, 1))
    tested = verdicts(Changes(delta=by_text.mean(axis=0), by_unit=by_text, differs=by_text != 0), RESAMPLES)
    assert mean.low[1:] == pytest.approx(tested.low[1:])
    assert mean.high[1:] == pytest.approx(tested.high[1:])


def test_the_table_has_a_row_a_step_of_training_and_of_the_curve():
    rows = step_curves_table([StepCurve(step=step, curve=planted()) for step in (0, 20)], 3)
    assert rows["step"].tolist() == [0] * 4 + [20] * 4
    assert rows["share"].tolist()[:4] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert rows["relative"].tolist()[4:] == pytest.approx([1, 3 / 4, 3 / 4, 0])
    assert list(rows.columns[-3:]) == list(RELATIVE_COLUMNS)


# A run of the fine-tuning machinery


@pytest.fixture(scope="module")
def run(folders, tmp_path_factory):
    """A run of a small BERT with two saved steps, and a table and a file of texts beside it."""
    folder = tmp_path_factory.mktemp("over steps")
    rows = [f"{text},{'yes' if len(text) % 2 else 'no'}" for text in TEXTS * 3]
    (folder / "labelled.csv").write_text("\n".join(["words,said", *rows]) + "\n")
    (folder / "texts.txt").write_text("\n".join(TEXTS))
    files = [f"--checkpoint={folders('bert')}", f"--data={folder / 'labelled.csv'}", f"--output={folder / 'run'}"]
    columns = ["--text-columns=words", "--label-column=said", "--device=cpu"]
    settings = ["--epochs=2", "--batch-size=5", "--learning-rate=0.01", "--held-out=0.4", "--save-steps=2"]
    assert main(["finetune", *files, *columns, *settings]) == 0
    return folder / "run"


LABELS = ("--metric", "labels", "--label-column", "said", "--text-columns", "words")


def curves_of(checkpoint, texts, output, *more):
    arguments = ["prune", "--checkpoint", checkpoint, "--texts", texts, "--output", output, "--dtype", "float64", *more]
    return main(list(map(str, arguments)))


def table_of(checkpoint, texts, output, *more):
    assert curves_of(checkpoint, texts, output, *more) == 0
    return pd.read_csv(output, keep_default_na=False, na_values="")


def test_the_curves_of_each_step_are_those_of_prune_for_its_checkpoint(run, tmp_path, capsys):
    texts, output, one_step = run.parent / "texts.txt", tmp_path / "curves.csv", tmp_path / "run"
    shutil.copytree(run, one_step, ignore=shutil.ignore_patterns("checkpoint-2"))
    whole = table_of(one_step, texts, output, "--over-steps")
    said = capsys.readouterr().out
    assert list(dict.fromkeys(whole["step"])) == [0, 4], "the checkpoint that the run began from comes first"
    for step, checkpoint in ((0, find_run(str(run)).progress.checkpoint), (4, one_step / "checkpoint-4")):
        rows = whole[whole["step"] == step].reset_index(drop=True)
        assert set(rows["fingerprint"]) == {find_checkpoint(str(checkpoint)).fingerprint}
        assert f"Step {step}, {checkpoint}" in said
    alone = table_of(checkpoint, texts, output)
    own = [name for name in alone.columns if name not in ("checkpoint", "fingerprint")]
    pd.testing.assert_frame_equal(rows[own], alone[own], atol=1e-6)
    assert capsys.readouterr().out in said, "heads that can go, as of that checkpoint"
    assert set(whole["checkpoint"]) == {"run"}
    assert set(whole.loc[whole["order"] == "random", "draw"]) == {0, 1}
    assert whole["relative"].isna().all(), "the text vector does not change with all heads on"


def test_a_score_of_labels_is_divided_and_a_beginning_without_a_classifier_is_left_out(run, tmp_path, capsys):
    texts = run.parent / "labelled.csv"
    whole = table_of(run, texts, tmp_path / "curves.csv", "--over-steps", *LABELS)
    said = capsys.readouterr()
    assert set(whole["step"]) == {2, 4}
    assert "Without step 0: " in said.err
    assert "do not have the same classes" in said.err
    for _, rows in whole.groupby("step"):
        full = rows.loc[rows["removed"] == 0, "score"].iloc[0]
        assert rows["relative"].to_numpy() == pytest.approx(rows["score"].to_numpy() / full)


def refused(capsys, *arguments):
    assert curves_of(*arguments, "--over-steps") == 2
    return capsys.readouterr().err


def test_a_folder_that_is_no_run_gets_a_sentence(run, folders, tmp_path, capsys):
    texts, output = run.parent / "texts.txt", tmp_path / "out.csv"
    assert f"{folders('bert')} is not a fine-tuning run" in refused(capsys, folders("bert"), texts, output)
    assert "bundled is not a fine-tuning run" in refused(capsys, "bundled", texts, output)
    assert "Leave out either --random-weights" in refused(capsys, run, texts, output, "--random-weights", "1")
    assert "or --orders" in refused(capsys, run, texts, output, "--orders", tmp_path / "orders.csv")
    assert not output.exists()


def test_a_run_in_progress_and_one_without_a_saved_step_get_a_sentence(run, tmp_path, capsys):
    texts, output, going = run.parent / "texts.txt", tmp_path / "out.csv", tmp_path / "going"
    journal = Journal(going, "bundled")
    assert "The run going is in progress" in refused(capsys, going, texts, output)
    journal.end("stopped")
    assert "No step of the run going is saved" in refused(capsys, going, texts, output)


def test_steps_with_other_heads_and_a_beginning_that_has_changed_are_not_set_beside_the_others(
    run, loaded, tmp_path, capsys
):
    changed = tmp_path / "run"
    shutil.copytree(run, changed)
    config = json.loads((changed / "checkpoint-2" / "config.json").read_text())
    (changed / "checkpoint-2" / "config.json").write_text(json.dumps(config | {"num_attention_heads": 4}))
    sentence = refused(capsys, changed, run.parent / "texts.txt", tmp_path / "out.csv")
    assert "checkpoint-2 has 2 layers x 4 heads, but " in sentence
    assert "checkpoint-4 has 2 layers x 3 heads" in sentence
    record = json.loads((changed / "training.json").read_text())
    (changed / "training.json").write_text(json.dumps(record | {"fingerprint": "another"}))
    check_beginning(find_run(str(run)), loaded("bert").files)
    with pytest.raises(AnalysisError, match="have changed since the run run started from it"):
        check_beginning(find_run(str(changed)), loaded("bert").files)


def test_a_run_among_the_checkpoints_is_found_by_its_name(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    shutil.copytree(run, tmp_path / "checkpoints" / "words")
    steps = saved_steps(find_run("words"))
    assert [(step.step, step.checkpoint) for step in steps] == [(2, "words/checkpoint-2"), (4, "words/checkpoint-4")]


def test_checkpoints_without_the_same_heads_are_not_alike(folders, loaded):
    from dataclasses import replace

    files = loaded("bert").files
    check_alike(files, files, "output")
    with pytest.raises(AnalysisError, match=r"without self: L0 H1, so curves over the share of heads"):
        check_alike(files, replace(files, removed=(("self", ((0, 1),)),)), "output")
