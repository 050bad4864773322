"""The histogram of heads by the score without them."""

import numpy as np
import pytest
from drawn import rows
from importance_figures import SCORES, curve

from dashboard.figures.importance.curves import pruning_curves
from dashboard.figures.importance.histogram import BINS, score_histogram


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


def test_no_two_orders_look_alike():
    spec = pruning_curves([curve(f"order {number}") for number in range(14)], 6, "accuracy", "order 0").spec
    line, point = spec["layer"][-2]["encoding"], spec["layer"][-1]["encoding"]
    colours, dashes, marks = (
        channel["scale"]["range"] for channel in (line["color"], line["strokeDash"], point["shape"])
    )
    assert len({(colour, str(dash)) for colour, dash in zip(colours, dashes)}) == 14
    assert len(set(zip(colours, marks))) == 14
