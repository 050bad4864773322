"""The section Probes and its figures."""

from dataclasses import replace

import pytest
from tree_probe_figures import TRAINING

from attention_sieve.core.tree_probes.run import ProbeKind, Stand
from attention_sieve.dashboard.views.grammar.tree_probes import wording
from attention_sieve.dashboard.views.grammar.tree_probes.section import _runs

WAIT = 60.0
LINK = {"grammar section": "Probes"}


def test_how_far_the_work_is_is_said_in_words():
    assert "another user" in wording.progress(Stand("waiting", 0.0), 30)
    assert wording.progress(Stand("passing", 0.256), 30) == "Reading texts: 26%"
    training = replace(TRAINING, done=20, epochs=TRAINING.epochs[:2])
    said = wording.progress(Stand("training", 0.1, ProbeKind(True, True), training), 30)
    assert said.startswith("Training attention and words, random weights: epoch 2 of at most 30, text 20 of 50; ")
    assert (
        wording.progress(Stand("training", 0.1, ProbeKind(True, True), TRAINING), 30)
        .split(": ")[1]
        .startswith("epoch 2")
    )


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
def no_runs():
    _runs.clear()
    yield
    _runs.clear()


def finished(app):
    """The app once what trains behind it has ended."""
    (run,) = _runs().values()
    run.wait(WAIT)
    assert not run.is_on
    return app.run()


PAGE_TEXTS = "\n".join(["The patient nurse gently washed it.", "A stray dog chased them.", "She sold his van."] * 5)


def section(app, **link):
    return app("grammar", corpus_text=PAGE_TEXTS, **LINK, **link)


def test_pressing_train_gives_scores_weights_and_a_curve(app, small):
    at = section(app, checkpoint=small("bert"), **{"probe epochs": "2"})
    assert any("to train on, 4 texts to test on. The trees are from spaCy." in one.value for one in at.markdown)
    assert any("too few for a good probe" in one.value for one in at.info)
    assert any("only 4 texts to test on" in one.value for one in at.info)
    at = finished(at.button("train").click().run())
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
    at.selectbox("probe shown").set_value("attention alone, random weights").run()
    assert any(one.value.startswith("**Attention alone, random weights.** ") for one in at.markdown)
    assert "train" not in [button.key for button in at.button]


def test_words_beyond_a_cut_are_said_to_be_left_out(app, small):
    long_one = "The dog ran and " * 12 + "sat."
    at = app("grammar", corpus_text=f"{PAGE_TEXTS}\n{long_one}", checkpoint=small("bert"), **LINK)
    at.number_input("probe epochs").set_value(1)
    at.toggle("probe control").set_value(False)
    at = finished(at.button("train").click().run())
    _runs.clear()
    at.segmented_control(key="long_texts").set_value("cut them").run()
    at = finished(at.button("train").click().run())
    assert any(one.value.endswith("words whose head is one of these.") for one in at.caption)


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
