"""How many heads can go over training: curves of a run's saved steps, stopped, gone on with, and as the command's."""

import numpy as np
import pandas as pd
import pytest
from reading import charts, command_of, once_ended, said, told

from attention_sieve.__main__ import main
from attention_sieve.core.running import Journal
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.files.provenance import lines_of
from attention_sieve.dashboard.views.importance.curves import over_training, wording

TEXTS = "A cat sat.\nA dog ran.\nThe bird sang.\nShe eats apples."
TABLE = "sentence,label\n" + "".join(f"the {'cat' if i % 2 else 'dog'} sat on mat {i},{i % 2}\n" for i in range(12))
TAB = {"importance details": wording.TAB, "over training": "true"}
RUN = "animals"

pytestmark = pytest.mark.usefixtures("few_random_orders")


@pytest.fixture(scope="module")
def run(small, store):
    """A run of a small BERT, without a classifier of its own, that saved two steps."""
    data = store / "animals.csv"
    data.write_text(TABLE)
    options = {
        "checkpoint": small("bert"),
        "data": data,
        "text-columns": "sentence",
        "label-column": "label",
        "output": store / "checkpoints" / RUN,
        "epochs": 2,
        "batch-size": 6,
        "learning-rate": 0.01,
        "held-out": 0.5,
        "save-steps": 1,
        "device": "cpu",
    }
    assert main(["finetune", *(f"--{name}={value}" for name, value in options.items())]) == 0
    return store / "checkpoints" / RUN


@pytest.fixture
def opened(app, run):
    """opened(**link) -> the tab over four texts and the run's finished checkpoint."""

    def of(**link):
        return app("importance", **({"checkpoint": RUN, "corpus_text": TEXTS} | TAB | link))

    return of


def begin(at):
    return at.button(key="begin step curves").click().run()


def test_curves_of_every_step_are_drawn_once_asked_for_and_are_those_of_the_command(opened, tmp_path, monkeypatch):
    at = opened()
    assert len(charts(at)) == 1  # the picture of the page
    assert "The curves of 3 steps take about" in told(at)
    before = controls.inference().n_passed
    at = once_ended(begin(at))
    assert said(at) == []
    assert controls.inference().n_passed > before
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.jsonl").write_bytes(lines_of(read_typed(TEXTS)))
    (words,) = command_of(at, "score over training")
    assert main(words) == 0
    passed = controls.inference().n_passed
    again = opened(**{"interval at": "1 of 6 (17%)", "allowed loss": "5%"})
    assert "can go in the order of gradient per token" in told(again)
    assert controls.inference().n_passed == passed, "another visitor finds every curve in the store"
    written, drawn = pd.read_parquet("prune.parquet"), next(each for each in charts(again) if "at" in each)
    by_command, by_page = written[written["order"] == over_training.START], drawn[drawn["kind"] == "point"]
    for column, name in (("at", "step"), ("removed", "removed"), ("value", "score")):
        np.testing.assert_allclose(by_page[column], by_command[name], atol=1e-5)
    assert wording.NO_SHARES in told(at), "the text vector does not change with all heads on"
    frame = next(each.value for each in at.dataframe if "step" in each.value)
    assert frame["step"].tolist() == [0, 1, 2]
    first, *_, last = frame["heads that can go"]
    assert f"**{first} of 6 heads**" in told(at)
    assert f"**{last} of 6 heads**" in told(at)


def test_after_a_stop_and_a_restart_the_work_goes_on_and_computes_nothing_twice(opened, stopped):
    at, n_missing = stopped(opened, begin, 2)
    assert "2 of 3 steps drawn from stored results" in told(at)
    at = once_ended(begin(at))
    assert "at step 2" in told(at)
    assert controls.inference().n_passed == n_missing


def test_a_checkpoint_of_no_run_is_told_which_ones_have_steps(app, opened, small):
    at = app("importance", checkpoint=small("bert", "MaskedLM"), corpus_text=TEXTS, **TAB)
    assert "a checkpoint that was fine-tuned here (animals)" in told(at)
    at = opened(checkpoint=small("bert"))
    assert wording.OVER_TRAINING in [each.label for each in at.toggle], "the run began from it"


def test_a_run_without_a_saved_step_gets_a_sentence_and_so_does_one_where_all_heads_stay(opened, store, small):
    Journal(store / "checkpoints" / "empty", small("bert", "MaskedLM")).end("stopped")
    assert "No step of the run empty is saved" in said(opened(checkpoint=small("bert", "MaskedLM")))[0]
    assert wording.ALL_STAY in told(opened(**{"heads that stay": "3"}))
