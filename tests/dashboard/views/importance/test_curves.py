"""How many heads can go: curves that are stopped, gone on with and kept, and a checkpoint made without heads."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reading import button, charts, command_of, said, told
from streamlit.runtime.scriptrunner import StopException

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.importance.passes.speed import speeds
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.files.provenance import lines_of
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves import view, wording
from attention_sieve.dashboard.views.importance.curves.removal import NAME

TEXTS = "A cat sat.\nA dog ran.\nThe bird sang.\nShe eats apples."
N_ORDERS = 2 + 7 + 1
"""Ablation and its reverse; three gradients, wanda-sp, flap, confidence, relevance; random ones, which are one name."""
TAB = {"importance details": wording.TAB}

pytestmark = pytest.mark.usefixtures("few_random_orders")


@pytest.fixture
def opened(app, small):
    """opened(**link) -> the tab over four texts and a BERT of 2 layers and 3 heads."""

    def of(**link):
        return app("importance", **({"checkpoint": small("bert", "MaskedLM"), "corpus_text": TEXTS} | TAB | link))

    return of


def orders_of(at):
    """The orders that can be chosen; None where there is no curve."""
    box = [each for each in at.selectbox if each.label == wording.ORDER]
    return box[0].options if box else None


def begin(at):
    return at.button(key="begin curves").click().run()


def test_after_a_reload_the_page_says_that_the_work_stopped_and_goes_on_with_it(opened, monkeypatch):
    def reloaded(*_):
        raise StopException  # as Streamlit does when the browser leaves

    at = opened(off="0-1")
    assert wording.STOPPED not in told(at)
    monkeypatch.setattr(view, "collected", reloaded)
    begin(at)
    at = opened(off="0-1")
    assert wording.STOPPED in told(at)
    assert button(at, shared_wording.GO_ON).key == "begin curves"


def test_nothing_is_computed_before_the_reader_asks_and_then_every_order_is_drawn(opened, tmp_path, monkeypatch):
    replaced = {"replaced by": page_wording.MEAN}
    at = opened(**replaced)
    before = controls.inference().n_passed
    assert orders_of(at) is None
    assert any("forward passes of single texts" in each.value for each in at.markdown)
    begin(at)
    assert said(at) == []
    assert controls.inference().n_passed > before
    assert len(orders_of(at)) == N_ORDERS
    sentence = next(each.value for each in at.markdown if "can go in the order of ablation" in each.value)
    assert "of 6 heads" in sentence
    assert "95% interval" in sentence
    assert "at random" in sentence
    passed = controls.inference().n_passed
    again = opened(**{"allowed loss": "5%", "order": "flap"} | replaced)
    assert "can go in the order of flap" in next(each.value for each in again.markdown if "can go in" in each.value)
    assert controls.inference().n_passed == passed, "another visitor finds every curve in the store"
    monkeypatch.chdir(tmp_path)
    Path("texts.jsonl").write_bytes(lines_of(read_typed(TEXTS)))
    (words,) = command_of(again, "pruning curves")
    assert main(words) == 0
    drawn, written = charts(again)[0], pd.read_parquet("prune.parquet")
    drawn, written = (each[each["order"].isin(orders_of(again)[:-1])] for each in (drawn, written))
    np.testing.assert_allclose(drawn["score"].dropna(), written["score"], atol=1e-5)
    for by in (wording.BY_SIEVE, wording.BY_ARGMAX):
        at = opened(**{"functions kept": "true", "functions by": by})
        shown = [each.value for each in (*at.markdown, *at.info)]
        assert any("With 3 of 6 heads removed," in each or each == wording.NO_FUNCTION for each in shown)


def test_after_a_stop_and_after_a_restart_the_work_goes_on_and_computes_nothing_twice(opened, stopped):
    at, n_missing = stopped(opened, begin, view, 4)
    assert len(orders_of(at)) == 4, "what was finished is drawn"
    begin(at)
    assert len(orders_of(at)) == N_ORDERS
    assert controls.inference().n_passed == n_missing


def test_heads_that_stay_end_the_curve_and_too_few_texts_are_refused(opened):
    at = begin(opened(corpus_text=TEXTS, **{"heads that stay": "2"}))
    frame = next(each.value for each in at.dataframe if "heads that can go" in each.value)
    assert frame["heads that can go"].max() <= 2
    assert "at least 2 texts" in said(opened(corpus_text="A cat sat."))[0]


def test_heads_are_removed_from_the_page_under_a_name_that_fits_and_the_checkpoint_is_offered(opened, small, store):
    at = opened()
    begin(at) if orders_of(at) is None else None
    at.text_input(key=NAME).set_value("../up")
    button(at, wording.MAKE).click().run()
    assert len(said(at)) == 1
    assert not at.success
    at.text_input(key=NAME).set_value("smaller")
    at.selectbox(key="how many to remove").set_value("3 of 6 (50%)")
    button(at, wording.MAKE).click().run()
    assert said(at) == []
    assert "smaller" in at.selectbox(key="checkpoint").options
    files = find_checkpoint("smaller")
    assert len(files.removed_of("self")) == 3
    assert any("3 of 6 heads are gone" in each.value for each in at.success)
    button(at, wording.MAKE).click().run()
    assert said(at)[0].startswith("There is already a checkpoint smaller in")


def test_chosen_heads_are_zeroed_and_the_speed_is_measured_once_asked_for(opened, store, monkeypatch):
    monkeypatch.setattr("attention_sieve.core.importance.passes.speed.speeds", partial(speeds, seconds=0.0))
    at = opened(**{"heads to remove": wording.CHOSEN, "export": wording.ZEROED, "head": "0-1,1-2"})
    begin(at) if orders_of(at) is None else None
    at.text_input(key=NAME).set_value("zeroed")
    button(at, wording.MAKE).click().run()
    assert said(at) == []
    assert find_checkpoint("zeroed").removed_of("self") == (), "of the same shape"
    assert not [each for each in at.dataframe if "ratio" in each.value]
    at.button(key="speed zeroed").click().run()
    assert said(at) == []
    (measured,) = (each.value for each in at.dataframe if "ratio" in each.value)
    assert measured["batch_size"].tolist() == [1, 4, 16, 64]
    assert (measured["ratio"] > 0).all()
