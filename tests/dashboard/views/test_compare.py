"""The page Compare without a browser: what it computes once, what it says, and what it sends to its views."""

import re
from pathlib import Path

import numpy as np
import pytest
from reading import sent

from core.checkpoints.saved_runs import Progress, SavedRun
from dashboard import controls
from dashboard import wording as shared_wording
from dashboard.views.compare import wording
from dashboard.views.compare.flow import HEAD as HEAD_OF
from dashboard.views.compare.flow import TRANSITION, _take_mark
from dashboard.views.compare.page import steps_of

SHORT = "The old cat sat.\nShe drank hot coffee.\nA bird sang softly.\nHe sold red apples."


@pytest.fixture
def pair(small):
    """Two small checkpoints of one shape; the second one is a classifier."""
    return str(small("bert")), str(small("bert", "SequenceClassification", num_labels=2, initializer_range=0.9))


@pytest.fixture
def compare(app, pair):
    def opened(**link):
        a, b = pair
        return app("compare", **({"checkpoint": a, "with": b, "corpus_text": SHORT, "text": "The cat sat."} | link))

    return opened


def summary(at):
    return next(each.value for each in at.markdown if "changed a role" in each.value)


def test_the_page_says_what_changed_and_sends_it_to_every_view(compare):
    at = compare()
    assert not at.exception
    assert not at.error
    assert re.match(
        r"Over \d texts \(tokens: median [\d.]+, \d+ to \d+\): \*\*\d of 6 heads\*\* changed a role at tau 3",
        summary(at),
    )
    assert sent(at, "Roles gained, kept and lost")["compared"]
    for label in ("(a) Roles of the heads", "(b) Roles of the heads", "local, b − a", "Jensen-Shannon divergence"):
        assert sent(at, label)
    difference = sent(at, "Difference of the attention")
    assert difference["signed"]
    assert sent(at, "Attention of")["group"] == difference["group"] == "compare"


def test_moving_tau_or_the_correction_runs_no_model(compare):
    at = compare()
    before, first = controls.inference().n_passed, sent(at, "Roles gained, kept and lost")
    at.slider(key="tau").set_value(1.0).run()
    at.selectbox(key="method").set_value("mean alone").run()
    at.selectbox(key="correction").set_value("none").run()
    assert not at.exception
    assert sent(at, "Roles gained, kept and lost")["states"] != first["states"]
    assert "at tau 1;" in summary(at)
    assert controls.inference().n_passed == before


def test_the_reference_against_itself_differs_in_nothing(compare, pair):
    at = compare(**{"with": pair[0]})
    assert "): **0 of 6 heads** changed" in summary(at)
    assert re.search(r"\*\*0\*\* of \d+ scores \(one for each head and role\) differ significantly", summary(at))
    assert wording.SAME in [each.value for each in at.info]


def test_a_head_chosen_in_one_view_is_pushed_to_the_others(compare):
    at = compare(head="1-2")
    assert sent(at, "Attention of")["label"].startswith("Attention of L1 H2 in ")
    at.session_state["compare a"] = {"chosen": {"rev": 0, "value": [[0, 1]]}}
    at.session_state["head"] = [(0, 1)]
    at.run()
    assert sent(at, "Roles gained, kept and lost")["chosen"] == [[0, 1]]
    assert sent(at, "Difference of the attention")["label"].startswith("Difference of the attention of L0 H1")


def test_heads_switched_off_elsewhere_are_on_here(compare):
    at = compare(off="1-2")
    assert wording.ALL_ON in [each.value for each in at.info]
    assert summary(at) == summary(compare())


def test_a_checkpoint_that_is_not_there_gets_a_sentence(compare):
    at = compare(**{"with": "/nowhere/at/all"})
    assert [each.value for each in at.error if "There is no folder" in each.value]
    assert not at.exception


def test_no_text_asks_for_texts(compare):
    at = compare(corpus_text="")
    assert shared_wording.WAIT_TYPED in [each.value for each in at.info]


def test_each_says_what_it_predicts(compare):
    at = compare()
    said = [each.value for each in at.markdown]
    assert f"**{wording.PREDICTIONS}**" in said
    assert any(each.endswith(f": {wording.NO_CLASSES}") for each in said)
    table = next(each.value for each in at.dataframe if "class" in each.value.columns)
    assert table["probability"].sum() == pytest.approx(1)
    assert len(table) == 2


def run(name, checkpoint):
    progress = Progress("finished", 10, 10, None, (), (), (5, 10), "", checkpoint=checkpoint)
    return SavedRun(name, Path(name), progress)


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["run/checkpoint-5", "run/checkpoint-10"], [5, 10]),
        (["run/checkpoint-10", "run/checkpoint-5"], None),
        (["run/checkpoint-5", "other/checkpoint-10"], None),
        (["run/checkpoint-5", "run"], None),
        (["run/checkpoint-5", "run/checkpoint-5"], None),
    ],
)
def test_steps_of_one_run_in_order_are_a_training_run_of_the_checkpoint_that_it_began_at(names, steps):
    runs = [run("run", "bundled"), run("other", "bundled")]
    assert steps_of(names, "bundled", runs) == steps
    assert steps_of(names, "another", runs) is None


def test_several_checkpoints_are_held_against_each_other_on_the_texts_that_all_can_read(compare, small, pair):
    short = small("bert", max_position_embeddings=14)
    few = "The cat.\nShe ate.\nA dog."
    typed = few + "\nThe old cat sat on the old mat and drank."
    at = compare(**{"with": [pair[1], short], "corpus_text": typed, "focus": pair[1]})
    assert not at.exception
    alone = compare(**{"with": pair[1], "corpus_text": typed})
    both = sent(at, "(b) Roles of the heads")
    assert both["label"].endswith(pair[1])
    assert both["scores"] != sent(alone, "(b) Roles of the heads")["scores"]
    assert both["scores"] == sent(compare(**{"with": pair[1], "corpus_text": few}), "(b) Roles of the heads")["scores"]
    assert any("Longer than some checkpoints can read" in each.value and "text 4" in each.value for each in at.warning)


def test_maps_of_all_checkpoints_share_one_scale(compare, small, pair):
    other = small("bert", initializer_range=1.6)
    ends = set()
    for focus in (pair[1], other):
        at = compare(**{"with": [pair[1], other], "focus": focus})
        assert sent(at, "local, b − a")["label"].startswith(f"local, b − a of {focus}")
        ends.add(next(each.value for each in at.markdown if "One colour scale" in each.value))
    assert len(ends) == 1


def test_the_roles_of_both_are_shown_where_only_one_has_delimiters(compare, small):
    at = compare(checkpoint=str(small("gpt2")))
    letters = [role["letter"] for role in sent(at, "(a) Roles of the heads")["roles"]]
    shown = {letters[place] for place in sent(at, "(a) Roles of the heads")["shown"]}
    assert {"D", "F"} <= shown


@pytest.mark.parametrize(
    ("overall", "p", "expected"),
    [
        (0.5, 0.04, "**delimiter:sep** rose by 0.5 on average over all heads and 7 texts, p = 0.040."),
        (-2.0, 1e-9, "**delimiter:sep** fell by 2 on average over all heads and 7 texts, p < 0.001."),
        (0.0, np.nan, "**delimiter:sep** does not move on any text."),
        (np.nan, np.nan, "**delimiter:sep** is not applicable to these texts."),
    ],
)
def test_the_shift_in_words(overall, p, expected):
    assert wording.shift("delimiter:sep", overall, p, 7) == expected


def test_where_the_changed_heads_are_in_words():
    assert (
        wording.summary(12, 72, "tau 3", (4, 5, 9))
        == "**12 of 72 heads** changed a role at tau 3; layers 4–5 hold 9 of them."
    )
    assert (
        wording.summary(2, 72, "tau 2.5", (1, 1, 2))
        == "**2 of 72 heads** changed a role at tau 2.5; layer 1 holds 2 of them."
    )
    assert wording.summary(0, 72, "tau 3", None) == "**0 of 72 heads** changed a role at tau 3."


def transitions_page(compare, **link):
    at = compare(**{"compare details": "Transitions", "tau": "1", "method": "mean alone"} | link)
    assert not at.exception
    return at


def test_a_transition_lists_its_heads_and_a_head_leads_to_its_arcs_and_to_inspect(compare):
    at = transitions_page(compare)
    (table,) = (each.value for each in at.dataframe if "which" in each.value)
    options = at.selectbox(key=TRANSITION).options
    assert [f"{before} → {after}" for before, after in zip(table["before"], table["after"])] == [
        option.split(":")[0].replace(" + ", ", ") for option in options[: len(table)]
    ]
    assert HEAD_OF not in [each.key for each in at.button_group]
    at.selectbox(key=TRANSITION).set_value(options[0].split(":")[0]).run()
    heads = at.button_group(key=HEAD_OF)
    assert ", ".join(heads.options) == table["which"][0]
    heads.set_value(heads.options[0]).run()
    assert not at.exception
    assert sent(at, "Attention of")["label"].startswith(f"Attention of {heads.options[0]} in ")


def test_what_a_click_sends_is_taken_only_where_it_names_a_mark(monkeypatch):
    session = {}
    monkeypatch.setattr("dashboard.views.compare.flow.st.session_state", session)
    marks = {"local → no role": ((0, 1),)}
    for nothing in (None, 3, ["local → no role"], "local → gone", {"mark": 1}):
        _take_mark(marks, nothing, None)
    assert session == {}
    _take_mark(marks, "local → no role", None)
    assert session == {TRANSITION: "local → no role"}


def test_a_transition_that_another_tau_does_not_have_is_forgotten(compare):
    at = transitions_page(compare)
    name = at.selectbox(key=TRANSITION).options[0].split(":")[0]
    at.selectbox(key=TRANSITION).set_value(name).run()
    tau = at.slider(key="tau")
    tau.set_value(tau.max).run()
    assert not at.exception
    assert not any(option.startswith(f"{name}:") for option in at.selectbox(key=TRANSITION).options)
    assert at.selectbox(key=TRANSITION).value is None


def test_under_the_share_every_view_says_so_and_runs_no_model(compare):
    at = compare()
    before, first = controls.inference().n_passed, sent(at, "local, b − a")
    at.selectbox(key="scale").set_value("share above chance").run()
    assert controls.inference().n_passed == before
    assert "changed a role at tau 0.5 of the share above chance" in summary(at)
    assert "shares above chance (one for each head and role) differ" in summary(at)
    assert {sent(at, f"({side}) Roles of the heads")["noun"] for side in "ab"} == {"share"}
    assert sent(at, "local, b − a")["details"] != first["details"]
    assert any("Mean share above chance, b − a: above 0" in each.value for each in at.markdown)
    for tab in ("Per layer", "Transitions", "All scores", "Table"):
        assert not compare(scale="share above chance", **{"compare details": tab}).exception
