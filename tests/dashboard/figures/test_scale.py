"""Figures of shares above chance: a straight axis that ends at 1, with the place of uniform attention at 0."""

import json

import comparison_figures
import numpy as np
import pytest
from drawn import layers, rows
from hypothesis import given
from hypothesis import strategies as st
from role_figures import FIGURES, SHARES, one_head, verdicts

from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard.figures.axes import round_ends
from attention_sieve.dashboard.figures.roles.densities import density, outline, places_of
from attention_sieve.dashboard.figures.roles.distributions import head_scores
from attention_sieve.dashboard.figures.roles.many_scores import every_head_score

ON_SHARES = FIGURES[", shares"]
CHANGES = comparison_figures.FULL


def score_axes(figure):
    """Axes of the chart whose title names the share."""
    axes = [
        layer["encoding"][channel] for layer in layers(figure.spec) for channel in "xy" if channel in layer["encoding"]
    ]
    return [axis for axis in axes if "share above chance" in axis.get("title", "")]


@pytest.mark.parametrize("name", ["evidence", "scores by layer", "scores by head", "one head", "score changes"])
def test_an_axis_of_shares_is_linear_and_ends_at_one(name):
    axes = score_axes(CHANGES["scatter of shares"] if name == "score changes" else ON_SHARES[name])
    assert axes
    for axis in axes:
        assert "type" not in axis["scale"]
        least, most = axis["scale"]["domain"]
        assert most == 1
        assert least <= 0, "shares may be below 0"


SPOKEN = {
    **dict.fromkeys(("scatter", "evidence", "scores by layer", "scores by head", "one head", "by tau"), ON_SHARES),
    **dict.fromkeys(("scatter of shares", "shift of shares", "shift of shares over steps"), CHANGES),
}


@pytest.mark.parametrize("name", SPOKEN)
def test_a_figure_of_shares_names_them_and_never_speaks_of_times_uniform(name):
    figure = SPOKEN[name][name]
    assert "× uniform" not in json.dumps(figure.spec, ensure_ascii=False)
    assert "share above chance" in json.dumps(figure.spec)
    assert "share above chance" in figure.description or SPOKEN[name] is ON_SHARES


def test_the_diagonal_of_negative_means_begins_below_zero():
    tests = comparison_figures.some_tests()
    tests.mean_a[0, 0, 0] = -0.5
    figure = comparison_figures.score_change_scatter(tests, ("local",), "share")
    assert rows(figure, "diagonal")["mean_a"].tolist()[0] == -0.5


def test_uniform_attention_stands_at_zero_and_tau_at_its_own():
    for name in ("scores by layer", "scores by head", "one head"):
        figure = ON_SHARES[name]
        assert rows(figure, "upper")["label"].tolist() == ["tau 0.5"]
        assert rows(figure, "lower")["label"].tolist() == ["uniform 0"]
        assert set(rows(figure, "uniform")["value"]) == {0.0}


def test_violins_hold_negative_shares_and_count_them_in_words():
    figure = ON_SHARES["scores by layer"]
    shape = rows(figure, "shape")["score"]
    assert SHARES[:, 0].min() <= shape.min() < 0
    assert shape.max() <= SHARES[:, 0].max()
    n_shares = np.isfinite(SHARES[:, 0]).sum()
    assert f"{n_shares} shares above chance from {SHARES[:, 0].min():.3g} to" in figure.description


def test_a_share_that_rounding_puts_above_one_is_drawn():
    values = np.float32([0.2, 0.9, 1.0000002])
    scores, reach = outline(values, "share")
    assert scores[-1] <= values.max()
    assert np.isfinite(reach).all()
    assert density(np.array([1 - 4e-6, 1, 1 + 4e-6]), "share") is not None


def test_many_shares_stand_where_they_are():
    tests = verdicts(SHARES, tau=0.5)
    uniform = np.zeros(len(ROLES))
    many = every_head_score(one_head(SHARES, tests, 1, 2, uniform, here={"local": 0.25}, scale="share"))
    few = head_scores(one_head(SHARES, tests, 1, 2, uniform, here={"local": 0.25}, scale="share"), every_text=True)
    np.testing.assert_array_equal(many.still.data["score"], few.data["score"])
    (here,) = (trace for trace in many.chart.data if trace.marker.symbol == "diamond" and len(trace.x))
    assert here.x[0] == 0.25
    (dots,) = (trace for trace in many.chart.data if trace.type == "scattergl" and trace.y[0] > len(ROLES) - 2)
    np.testing.assert_array_equal(dots.x, SHARES[:, 0, 1, 2])
    axis = many.chart.layout.xaxis
    assert axis.title.text == "share above chance"
    assert axis.range[1] >= 1
    assert axis.range[0] < SHARES[:, :, 1, 2][np.isfinite(SHARES[:, :, 1, 2])].min()
    assert list(axis.tickvals) == [float(tick) for tick in axis.ticktext]


def test_places_of_shares_are_the_shares():
    assert places_of([-0.5, 0, 1], "share").tolist() == [-0.5, 0, 1]
    np.testing.assert_allclose(places_of([-1, 0, 1], "score"), [-np.log(2), 0, np.log(2)])


def test_the_ends_of_an_axis_are_round():
    assert round_ends([0.13, np.nan, 0.69]) == (0, 0.7)
    assert round_ends([-1.5, 0.75]) == (-1.5, 1)
    assert round_ends([23, np.inf]) == (0, 25)
    assert round_ends([3e-4]) == (0, 3e-4)
    assert round_ends([]) == round_ends([0, 0]) == (0, 1)


@given(st.lists(st.floats(-1e6, 1e6).filter(lambda value: not 0 < abs(value) < 1e-6), min_size=1))
def test_an_axis_holds_zero_and_all_values_with_little_room_beside_them(values):
    low, high = round_ends(values)
    least, most = min(0, *values, 0), max(0, *values, 0)
    assert low <= least + 1e-9 * abs(least)
    assert high >= most - 1e-9 * abs(most)
    assert least == most or high - low <= 1.5 * (most - least)
