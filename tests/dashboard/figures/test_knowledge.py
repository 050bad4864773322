"""The figures of the page Knowledge: what their marks say."""

import numpy as np
import pytest
from drawn import layers, rows
from knowledge_figures import BASELINES, FIGURES, FOUND, HEADS, HOLED, SCORES, SHAPE, SIMILARITY, TASKS

from attention_sieve.dashboard.figures.figure import drawable
from attention_sieve.dashboard.figures.knowledge.ranked import localisation_curves
from attention_sieve.dashboard.figures.knowledge.task_similarity import LONGEST
from attention_sieve.dashboard.figures.knowledge.words import (
    ACCURACY,
    CORRELATION,
    NAME_HEIGHT,
    Scores,
    score_ends,
    written,
)


def test_heads_in_order_are_all_that_are_there_the_best_first():
    drawn = rows(FIGURES["localisation"], "head")
    for number, scores in enumerate(SCORES):
        line = drawn[drawn["series"] == number]
        values = scores.heads[~np.isnan(scores.heads)]
        assert line["value"].tolist() == sorted(values, reverse=True)
        assert line["rank"].tolist() == list(range(1, len(values) + 1))
    best = drawn[(drawn["series"] == 0) & (drawn["rank"] == 1)]["name"].item()
    layer, head = np.unravel_index(np.nanargmax(HOLED), HOLED.shape)
    assert best == f"L{layer} H{head}"
    assert "bundled: 14 heads, the best" in FIGURES["localisation"].description


@pytest.mark.parametrize("figure", ["localisation", "by layer"])
def test_every_baseline_is_drawn_in_the_scale_of_the_heads_and_no_name_lies_on_another_or_on_a_line(figure):
    drawn = rows(FIGURES[figure], "baseline")
    assert drawn["label"].tolist() == ["majority: 50.0%", "bag of words: 99.0%", "length: 52.0%"]
    (domain,) = {tuple(layer["encoding"]["y"]["scale"]["domain"]) for layer in layers(FIGURES[figure].spec)}
    assert domain[1] >= 0.99
    assert np.diff(np.sort(drawn["height"])).min() >= NAME_HEIGHT * (domain[1] - domain[0]) - 1e-9
    labelled = [
        layer for layer in layers(FIGURES[figure].spec) if layer["encoding"].get("text", {}).get("field") == "label"
    ]
    assert [layer["encoding"]["x"] for layer in labelled] == [{"value": "width"}], "names stand beside the plot"


def test_heads_that_do_not_beat_every_baseline_are_pale_and_chosen_ones_are_named():
    beats = np.zeros(SHAPE, bool)
    beats[1, 3] = True
    scores = [Scores(label="bundled", heads=HEADS, beats=beats), SCORES[1]]
    figure = localisation_curves(scores, BASELINES, ACCURACY, [(1, 2)])
    drawn = rows(figure, "head")
    assert drawn[(drawn["series"] == 0) & ~drawn["pale"].astype(bool)]["name"].tolist() == ["L1 H3"]
    assert not drawn[drawn["series"] == 1]["pale"].any(), "what no test judges is no less than it seems"
    assert rows(figure, "chosen")["name"].tolist() == ["L1 H2"]


def test_violins_span_the_heads_of_their_layer_and_dots_stay_in_it():
    drawn = FIGURES["by layer"]
    violins = rows(drawn, "violin")
    for layer in range(3):
        for series, scores in enumerate(SCORES):
            violin = violins[(violins["layer"] == layer) & (violins["series"] == series)]
            assert violin["value"].min() == pytest.approx(np.nanmin(scores.heads[layer]))
            assert violin["value"].max() == pytest.approx(np.nanmax(scores.heads[layer]))
            np.testing.assert_allclose(violin["left"] + violin["right"], 2 * layer)
    dots = rows(drawn, "head")
    assert len(dots) == 14
    assert ((dots["at"] - dots["layer"]).abs() < 0.5).all()
    assert rows(drawn, "output")["value"].tolist() == [0.6, 0.7, 0.65]
    assert rows(drawn, "chosen")["name"].tolist() == ["L0 H2", "L1 H1"]
    assert rows(FIGURES["by layer of few heads"], "violin").empty
    assert rows(FIGURES["by layer of equal heads"], "violin").empty


def test_sorted_cells_fall_from_left_to_right():
    drawn = rows(FIGURES["sorted"], "cell")
    assert len(drawn) == 14
    for _, layer in drawn.groupby("layer"):
        ordered = layer.sort_values("place")
        assert ordered["value"].is_monotonic_decreasing
        assert ordered["place"].tolist() == list(range(len(layer)))
    assert rows(FIGURES["sorted"], "chosen")[["layer", "head"]].to_numpy().tolist() == [[1, 1]]


def test_the_matrix_of_tasks_holds_each_pair_once_beside_its_tree():
    drawn = rows(FIGURES["similarity"], "cell")
    place = {drawable(name, LONGEST): number for number, name in enumerate(TASKS)}
    pairs = {frozenset((place[row.task], place[row.other])): row.value for row in drawn.itertuples()}
    assert len(pairs) == 6
    for pair, value in pairs.items():
        one, other = pair
        assert value == SIMILARITY[one, other]
    assert rows(FIGURES["similarity"], "branch").groupby("merge").size().tolist() == [4, 4, 4]
    assert "highest between" in FIGURES["similarity"].description


def test_gains_show_last_layer_best_layer_and_the_best_heads():
    drawn = rows(FIGURES["gains"], "dot")
    tense = drawn[drawn["task"] == "tense"]
    assert tense["what"].tolist() == ["last layer", "layer 1", "best 5 heads"]
    assert tense["value"].tolist() == [0.5, 0.6, 0.55]
    assert (drawn["low"] < drawn["value"]).all()


def test_enough_heads_are_marked_where_the_validation_part_says_so():
    assert FOUND.enough == 2
    assert rows(FIGURES["number of heads"], "enough")[["n", "value"]].to_numpy().tolist() == [[2, 0.7]]
    assert rows(FIGURES["number of heads"], "step")["last"].tolist() == ["L0 H0", "L0 H1", "L0 H2", "L0 H3"]
    assert rows(FIGURES["number of heads"], "layer")["label"].tolist() == ["best layer: 68.0%"]


def test_what_is_not_computed_has_no_mark_and_steps_lie_at_their_numbers():
    assert len(rows(FIGURES["checkpoints"], "score")) == 5
    assert sorted(rows(FIGURES["saved steps"], "score")["at"].unique()) == [0, 10, 20]


def test_scores_of_steps_of_a_run_are_joined_by_lines_and_those_of_other_checkpoints_are_not():
    for name, joined in (("saved steps", True), ("checkpoints", False)):
        marks = [layer["mark"]["type"] for layer in layers(FIGURES[name].spec)]
        assert ("line" in marks, "point" in marks, "rule" in marks) == (joined, True, True)


def test_ends_hold_all_values_and_stay_in_range():
    assert score_ends([0.52, 0.58, np.nan]) == (0.5, 0.6)
    assert score_ends([-1.0, 1.0]) == (-1, 1)
    assert score_ends([]) == (0, 1)
    low, high = score_ends(HEADS.ravel())
    assert low < HEADS.min()
    assert high > HEADS.max()
    assert (written(0.654, ACCURACY), written(0.654, CORRELATION)) == ("65.4%", "0.65")
