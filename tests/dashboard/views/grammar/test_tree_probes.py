"""The section Probes and its figures."""

import pandas as pd
import pytest
from reading import once_ended, runs_here, until

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.tree_probes import run as probing
from attention_sieve.dashboard import runs
from attention_sieve.dashboard import wording as dashboard_wording
from attention_sieve.dashboard.views.grammar.tree_probes import wording

LINK = {"grammar section": "Probes"}


def test_the_best_offset_is_named_beside_right_branching():
    assert wording.offset_name(1, is_best=True) == "right-branching (also the best offset)"
    assert wording.offset_name(1, is_best=False) == "right-branching"
    assert wording.offset_name(-2, is_best=True) == "best fixed offset (-2)"
    assert wording.headline("A", 0.5, {1: 0.25}, None).endswith("correctly, compared with 25.0% by right-branching.")
    said = wording.headline("A", 0.5, {1: 0.25, -2: 0.3}, 0.1)
    assert said.endswith(
        "compared with 25.0% by right-branching, 30.0% by the best fixed offset (-2) and 10.0% with random weights."
    )


@pytest.fixture(autouse=True)
def _no_run_stays(store):
    yield
    runs.end()


PAGE_TEXTS = "\n".join(["The patient nurse gently washed it.", "A stray dog chased them.", "She sold his van."] * 5)


def section(app, **link):
    return app("grammar", corpus_text=PAGE_TEXTS, **LINK, **link)


def test_pressing_train_gives_scores_weights_and_a_curve_that_stay(app, small, monkeypatch):
    at = section(app, checkpoint=small("bert"), **{"probe epochs": "2"})
    assert any("to train on, 4 texts to test on. The trees are from spaCy." in one.value for one in at.markdown)
    assert any("too few for a good probe" in one.value for one in at.info)
    assert any("only 4 texts to test on" in one.value for one in at.info)
    at = once_ended(at.button("train").click().run())
    (table,) = [one.value for one in at.dataframe if "uas" in one.value]
    assert table["name"].tolist()[:4] == [
        "attention alone", "attention and words", "attention alone, random weights",
        "attention and words, random weights",
    ]  # fmt: skip
    assert table["name"].tolist()[4].startswith("right-branching")
    assert table["training"].tolist()[0] in ("0 of 2", "1 of 2", "2 of 2")
    assert at.selectbox("probe shown").value == wording.BEST
    best = table["name"][table["uas"][:2].argmax()]
    assert any(one.value.startswith(f"**{best.capitalize()}.** ") for one in at.markdown)
    with monkeypatch.context() as restarted:  # another program knows what lies in the folder alone
        restarted.setattr(runs, "_threads", {})
        at = section(app, checkpoint=small("bert"), **{"probe epochs": "2"})
    (again,) = [one.value for one in at.dataframe if "uas" in one.value]
    pd.testing.assert_frame_equal(again, table)
    at.selectbox("probe shown").set_value("attention alone, random weights").run()
    assert any(one.value.startswith("**Attention alone, random weights.** ") for one in at.markdown)
    assert "train" not in [button.key for button in at.button]


def test_words_beyond_a_cut_are_said_to_be_left_out(app, small):
    long_one = "The dog ran and " * 12 + "sat."
    at = app("grammar", corpus_text=f"{PAGE_TEXTS}\n{long_one}", checkpoint=small("bert"), **LINK)
    at.number_input("probe epochs").set_value(1)
    at.toggle("probe control").set_value(False)
    at = once_ended(at.button("train").click().run())
    at.segmented_control(key="long_texts").set_value("cut them").run()
    at = once_ended(at.button("train").click().run())
    assert any(one.value.endswith("words whose head is one of these.") for one in at.caption)


def test_a_reader_who_reloads_finds_the_training_stops_it_and_goes_on_with_what_is_missing(app, small):
    link = {"checkpoint": small("bert"), "probe epochs": "20000", "probe patience": "20000", "probe control": "false"}
    before = runs_here()
    section(app, **link).button("train").click().run()
    (folder,) = runs_here().keys() - before.keys()
    until(lambda: "epoch" in runs_here()[folder].message)
    at = section(app, **link)
    assert "train" not in [button.key for button in at.button]
    assert ("grammar section", "Probes") in runs.address_of(folder)
    at.button("stop tree probes").click().run()
    until(lambda: runs_here()[folder].state != "running")
    assert runs_here()[folder].state == "stopped"
    at = section(app, **link)
    assert wording.STOPPED in [one.value for one in at.info]
    assert any("uas" in one.value for one in at.dataframe)
    assert at.button("train").label == dashboard_wording.GO_ON
    at.button("train").click().run()
    assert runs_here()[folder].state == "running"


def test_why_a_training_failed_is_said_to_the_next_reader_too(app, small, monkeypatch):
    def refuse(*_):
        raise AnalysisError("There is no room.")

    monkeypatch.setattr(probing, "check_fits", refuse)
    link = {"checkpoint": small("bert"), "probe seed": "7"}
    once_ended(section(app, **link).button("train").click().run())
    at = section(app, **link)
    assert [one.value.replace("\\", "") for one in at.error] == ["There is no room."]
    assert at.button("train").label == wording.TRAIN


def test_nothing_picked_and_numbers_out_of_range_are_said(app, small):
    at = section(app, checkpoint=small("bert"))
    at.button_group("probes").set_value([]).run()
    assert wording.PICK in [one.value for one in at.info]
    at = section(app, checkpoint=small("bert"), **{"probe patience": "0"})
    assert any("at least 1 as its patience, got 0" in one.value.replace("\\", "") for one in at.error)
    at = section(app, checkpoint=small("bert"), **{"probe vectors": wording.FILE_VECTORS})
    assert wording.PICK_FILE in [one.value for one in at.info]


def test_across_there_is_nothing_to_probe(app, small):
    at = section(app, checkpoint=small("t5"), attention="cross-attention")
    assert any("dependency tree joins words of one" in one.value for one in at.info)
