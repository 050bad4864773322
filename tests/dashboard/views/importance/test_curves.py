"""How many heads can go: curves that are stopped, gone on with and kept, and a checkpoint made without heads."""

from functools import partial
from pathlib import Path
from threading import Event

import numpy as np
import pandas as pd
import pytest
from reading import button, charts, command_of, once_ended, runs_here, said, told, until

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.passes.speed import speeds
from attention_sieve.core.running import Journal
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard import controls
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.files.provenance import lines_of
from attention_sieve.dashboard.run_kinds import KEEPING
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.curves import wording
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


def test_a_reader_who_reloads_finds_the_run_and_stops_it_and_it_goes_on(opened, monkeypatch):
    go_on, done = Event(), Journal.done

    def wait_once(journal, *size, **was_kept):
        done(journal, *size, **was_kept)
        if journal.step == 3:
            go_on.wait(60)

    monkeypatch.setattr(Journal, "done", wait_once)
    begin(opened(off="0-1"))
    until(lambda: any(progress.step == 3 for progress in runs_here().values()))
    at = opened(off="0-1")
    assert 3 <= len(orders_of(at)) < N_ORDERS, "what is finished is drawn while the run goes on"
    assert "begin curves" not in [each.key for each in at.button]
    at.button(key="stop curves").click().run()
    assert KEEPING in told(at)
    go_on.set()
    at = once_ended(at)
    assert wording.STOPPED in told(at)
    assert button(at, shared_wording.GO_ON).key == "begin curves"
    assert len(orders_of(once_ended(begin(at)))) == N_ORDERS


def test_measures_that_a_checkpoint_does_not_allow_are_left_out_and_why_is_known_after_a_restart(
    opened, restarted, monkeypatch
):
    def refused(*_):
        raise AnalysisError("This checkpoint has no relevance.")

    monkeypatch.setattr("attention_sieve.core.importance.analysis.relevance_question", refused)
    restarted("refused")
    for _ in range(2):
        at = opened()
        at = once_ended(begin(at)) if orders_of(at) is None else at
        assert len(orders_of(at)) == N_ORDERS - 1
        assert wording.refused(["This checkpoint has no relevance."]) in told(at).replace("\\", "")
        assert "begin curves" not in [each.key for each in at.button]
        restarted("refused")
    assert controls.inference().n_passed == 0


def test_why_a_run_failed_is_said_to_the_next_reader_too(opened, monkeypatch):
    def fail(*_):
        raise AnalysisError("There is no room.")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "plan", fail)
        begin(opened(off="0-2"))
        until(lambda: any(progress.state == "failed" for progress in runs_here().values()))
    at = opened(off="0-2")
    assert [each.replace("\\", "") for each in said(at)] == ["There is no room."]
    assert len(orders_of(once_ended(begin(at)))) == N_ORDERS


def test_nothing_is_computed_before_the_reader_asks_and_then_every_order_is_drawn(opened, tmp_path, monkeypatch):
    replaced = {"replaced by": page_wording.MEAN}
    at = opened(**replaced)
    before = controls.inference().n_passed
    assert orders_of(at) is None
    assert any("forward passes of single texts" in each.value for each in at.markdown)
    once_ended(begin(at))
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
    drawn, written = next(each for each in charts(again) if "order" in each), pd.read_parquet("prune.parquet")
    drawn, written = (each[each["order"].isin(orders_of(again)[:-1])] for each in (drawn, written))
    np.testing.assert_allclose(drawn["score"].dropna(), written["score"], atol=1e-5)
    for by in (wording.BY_SIEVE, wording.BY_ARGMAX):
        at = opened(**{"functions kept": "true", "functions by": by})
        shown = [each.value for each in (*at.markdown, *at.info)]
        assert any("With 3 of 6 heads removed," in each or each == wording.NO_FUNCTION for each in shown)


def test_after_a_stop_and_after_a_restart_the_work_goes_on_and_computes_nothing_twice(opened, stopped):
    at, n_missing = stopped(opened, begin, 4)
    assert 4 <= len(orders_of(at)) < N_ORDERS, "what was finished is drawn"
    assert len(orders_of(once_ended(begin(at)))) == N_ORDERS
    assert controls.inference().n_passed == n_missing


def test_heads_that_stay_end_the_curve_and_too_few_texts_are_refused(opened):
    at = once_ended(begin(opened(corpus_text=TEXTS, **{"heads that stay": "2"})))
    frame = next(each.value for each in at.dataframe if "heads that can go" in each.value)
    assert frame["heads that can go"].max() <= 2
    assert "at least 2 texts" in said(opened(corpus_text="A cat sat."))[0]


def test_heads_are_removed_from_the_page_under_a_name_that_fits_and_the_checkpoint_is_offered(opened, small, store):
    at = opened()
    once_ended(begin(at)) if orders_of(at) is None else None
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
    once_ended(begin(at)) if orders_of(at) is None else None
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
