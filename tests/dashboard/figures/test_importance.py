"""The figures of the page Importance: the histogram of heads, pruning curves, and these over the steps of a run."""

import numpy as np
import pytest
from drawn import rows
from hypothesis import given
from hypothesis import strategies as st
from importance_figures import COUNTS, REFERENCES, SCORES, STEPS, curve

from attention_sieve.core.importance.pruning.curves import relative
from attention_sieve.core.importance.pruning.over_steps import StepCurve
from attention_sieve.dashboard.figures.axes import apart
from attention_sieve.dashboard.figures.importance.curves import pruning_curves
from attention_sieve.dashboard.figures.importance.histogram import BINS, score_histogram
from attention_sieve.dashboard.figures.importance.over_steps import HEIGHT, LINE, relative_score, score_over_steps
from attention_sieve.dashboard.figures.importance.references import damage_beside


def test_every_head_is_in_one_bar_which_holds_its_score():
    figure = score_histogram(SCORES, 0.9, "accuracy")
    bars = rows(figure, "bar")
    assert bars["heads"].sum() == 5  # the sixth was removed
    for layer, head in np.argwhere(~np.isnan(SCORES)):
        holding = bars[bars["names"].str.contains(f"L{layer} H{head}")]
        assert len(holding) == 1
        assert holding["left"].item() <= SCORES[layer, head] <= holding["right"].item()
    assert rows(figure, "full")["score"].tolist() == [0.9]
    assert "5 heads by accuracy without them: 0.2 to 0.91, median 0.9. With all heads on: 0.9." in figure.description


def test_equal_scores_stand_in_one_bar_and_many_heads_are_counted_rather_than_named():
    figure = score_histogram(np.full((6, 12), 0.5), 0.5, "accuracy")
    bars = rows(figure, "bar")
    assert bars["heads"].tolist() == [72]
    assert bars["names"].item().endswith("and 60 more")


def test_the_score_of_all_heads_lies_within_the_axis():
    figure = score_histogram(SCORES, 2.0, "loss")
    assert rows(figure, "bar")["right"].max() <= 2.0
    widths = rows(figure, "bar")["right"] - rows(figure, "bar")["left"]
    assert widths.to_numpy() == pytest.approx((2.0 - 0.2) / BINS)


def test_a_head_stands_beside_its_references_on_one_axis_from_zero():
    figure = damage_beside(REFERENCES, "L0 H1", "loss of accuracy")
    labels = rows(figure, "label")
    assert dict(zip(labels["off"], labels["label"])) == {
        "the median head": "0.002",
        "L0 H1": "-0.01",
        "all of layer 0": "0.2",
    }
    low, high = figure.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low <= -0.01 < 0.2 <= high
    assert damage_beside({"L0 H1": 0.1}, "L0 H1", "loss").spec["layer"][0]["encoding"]["x"]["scale"]["domain"][0] == 0


def test_no_two_orders_look_alike():
    spec = pruning_curves([curve(f"order {number}") for number in range(14)], 6, "accuracy", "order 0").spec
    line, point = spec["layer"][-2]["encoding"], spec["layer"][-1]["encoding"]
    colours, dashes, marks = (
        channel["scale"]["range"] for channel in (line["color"], line["strokeDash"], point["shape"])
    )
    assert len({(colour, str(dash)) for colour, dash in zip(colours, dashes)}) == 14
    assert len(set(zip(colours, marks))) == 14


@pytest.mark.parametrize("known", [True, False])
def test_only_curves_with_an_interval_explain_one(known):
    one = curve("flap", known=known)
    steps = [StepCurve(step=7, curve=one)]
    figures = (
        pruning_curves([one], 6, "accuracy", "flap"),
        score_over_steps(steps, 6, "accuracy", 3),
        relative_score(steps, 6),
    )
    for figure in figures:
        assert ("95% interval" in str(figure.spec["title"])) == known


def test_a_score_over_steps_has_a_point_for_every_step_and_number_of_heads_removed():
    figure = score_over_steps(STEPS, 6, "accuracy", 3)
    points = rows(figure, "point")
    assert len(points) == len(STEPS) * len(COUNTS)
    for each in STEPS:
        own = points[points["at"] == each.step]
        assert own["removed"].tolist() == COUNTS.tolist()
        assert own["value"].tolist() == each.curve.score.tolist()
    bars = rows(figure, "interval")
    assert bars["at"].tolist() == [0, 20, 40]
    assert set(bars["removed"]) == {3}, "the interval of the share that is chosen"
    assert bars["low"].tolist() == pytest.approx([each.curve.score[0] + each.curve.low[3] for each in STEPS])
    assert rows(figure, "name")["label"].tolist() == ["100%", "50%", "33%", "17%", "0%"]
    first, last = (f"{each.curve.score[3]:.3g} with 50% removed" for each in (STEPS[0], STEPS[-1]))
    assert f"At step 0: 0.9 with all heads on, {first} (" in figure.description
    assert f"At step 40: 0.9 with all heads on, {last} (" in figure.description


def test_a_relative_score_is_a_share_of_that_of_the_same_step_with_a_line_for_each():
    figure = relative_score(STEPS, 6)
    points = rows(figure, "point")
    assert (points.loc[points["removed"] == 0, "value"] == 1).all()
    for each in STEPS:
        assert points.loc[points["at"] == each.step, "value"].tolist() == pytest.approx(
            (each.curve.score / each.curve.score[0]).tolist()
        )
    assert rows(figure, "name")["label"].tolist() == ["step 0", "step 20", "step 40"]
    bars = rows(figure, "interval")
    assert set(bars["at"]) == {40}, "the intervals of the last step"
    ratio = relative(STEPS[-1].curve)
    np.testing.assert_allclose(bars["high"], ratio.high[~np.isnan(ratio.high)])
    assert f"With 33% removed at step 40: {100 * ratio.value[2]:.0f}% (" in figure.description


@given(st.lists(st.floats(0, 1), min_size=1, max_size=11))
def test_names_of_lines_keep_their_order_and_a_line_of_text_between_them(values):
    least = LINE / HEIGHT
    heights = apart(np.array(values), (0, 1), least)
    ordered = heights[np.argsort(values, kind="stable")]
    assert (np.diff(ordered) >= least - 1e-9).all()
    assert ordered[0] >= -1e-9
    assert ordered[-1] <= 1 + 1e-9
    if (np.diff(np.sort(values)) >= least).all():
        assert heights.tolist() == values, "names that have room stand at their lines"
