from dataclasses import replace

import numpy as np
import pytest
from drawn import rows
from gate_figures import CURVE, FIGURES, GATES, LOG_ALPHA, PENALTIES, POINTS

from attention_sieve.dashboard.figures.importance.gates import gate_scores


def test_a_penalty_lies_at_the_share_of_heads_that_it_removes_with_its_interval():
    runs = rows(FIGURES["gate scores"], "run")
    assert runs["share"].tolist() == pytest.approx([3 / 12, 8 / 12])
    assert runs["score"].tolist() == [0.78, 0.6]
    assert runs["low"].tolist() == pytest.approx([0.74, 0.52])
    assert runs["high"].tolist() == pytest.approx([0.81, 0.68])
    assert runs["left"].tolist() == ["9 of 12", "4 of 12"]
    assert "penalty 0.1: 67% removed, 0.6 (0.52 to 0.68)" in FIGURES["gate scores"].description


def test_an_order_of_pruning_and_the_range_of_random_ones_lie_at_their_shares():
    figure = FIGURES["gate scores beside pruning"]
    assert rows(figure, "order")[["share", "score"]].values.tolist() == [[0, 0.8], [0.5, 0.75], [1, 0.5]]
    assert rows(figure, "random")[["least", "mean", "most"]].iloc[1].tolist() == pytest.approx([0.6, 0.65, 0.7])
    assert "Removed in the order of flap: 0% 0.8, 50% 0.75, 100% 0.5." in figure.description
    assert "order of" not in FIGURES["gate scores"].description


def test_runs_over_few_texts_have_no_interval():
    none = np.full(3, np.nan)
    figure = gate_scores(replace(CURVE, low=none, high=none), PENALTIES, 12, "accuracy")
    assert rows(figure, "run")["interval"].tolist() == ["", ""]
    assert "penalty 0.1: 67% removed, 0.6." in figure.description
    assert "95% interval" not in str(figure.spec["title"])
    assert "95% interval" in str(FIGURES["gate scores"].spec["title"])


def test_runs_that_all_do_as_well_as_before_leave_the_axis_some_room():
    zero = np.zeros(3)
    flat = replace(CURVE, score=np.full(3, 0.5), delta=zero, low=zero, high=zero)
    (low, high) = gate_scores(flat, PENALTIES, 12, "accuracy").spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low < 0.5 < high


def test_stems_and_lines_of_densities_make_up_the_whole_distribution():
    figure = FIGURES["gate densities"]
    stems, lines = rows(figure, "stem"), rows(figure, "line")
    for place, name in enumerate(("L0 H0", "L0 H1", "L0 H2")):
        of_head = stems[stems["head"] == name].set_index("what")["height"]
        assert of_head["exactly 0"] == GATES.p_zero[0, place]
        assert of_head["exactly 1"] == GATES.p_one[0, place]
        between = np.trapezoid(lines[lines["head"] == name]["height"], POINTS)
        assert between + of_head.sum() == pytest.approx(1, abs=0.02)
    assert "L0 H0: 0 with probability 0.90" in figure.description
    assert len(LOG_ALPHA[0]) == 3
