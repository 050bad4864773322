"""The figures of the page Importance: what their marks say."""

import numpy as np
from drawn import rows
from importance_comparison_figures import AGREEMENTS, FIGURES, HOLED, OTHERS, SHAPE, WORDS

from attention_sieve.core.statistics.by_role import compare_by_role
from attention_sieve.dashboard.figures.head_map import HeadMap, head_map_svg
from attention_sieve.dashboard.figures.head_scatter import head_scatter
from attention_sieve.dashboard.figures.role_superiority import role_superiority


def test_measures_stand_in_the_order_of_their_correlation():
    drawn = rows(FIGURES["agreement"], "measure")
    assert drawn["measure"].tolist() == ["flap", "wanda-sp", "confidence"]
    assert drawn["spearman"].tolist() == [0.9, 0.4, -0.2]
    assert rows(FIGURES["agreement"], "interval")["measure"].tolist() == ["flap", "confidence"]
    assert "flap 0.90 (0.80 to 1.00); wanda-sp 0.40; confidence -0.20" in FIGURES["agreement"].description
    by_layer = rows(FIGURES["agreement by layer"], "layer")
    assert by_layer["spearman"].tolist() == AGREEMENTS[0].spearman[1:].tolist()


def test_a_scatter_has_a_dot_for_each_head_with_both_numbers_and_rings_the_chosen():
    figure = head_scatter(HOLED, OTHERS, WORDS, [(2, 3)], (9.0, 0.1, "all heads on"))
    dots = rows(figure, "head")
    assert len(dots) == HOLED.size - 1
    first = dots[dots["name"] == "L2 H3"].iloc[0]
    assert (first["x"], first["y"]) == (HOLED[2, 3], OTHERS[2, 3])
    assert rows(figure, "chosen")["name"].tolist() == rows(figure, "name")["name"].tolist() == ["L2 H3"]
    ends = figure.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert ends[0] < np.nanmin(HOLED) < 9 < ends[1], "the star is in the picture too"


def test_of_two_chosen_heads_that_lie_close_together_the_one_that_was_chosen_last_is_named():
    close = HOLED.copy()
    close[1, 1], close[2, 3] = 4.0, 4.01
    figure = head_scatter(close, np.zeros_like(close), WORDS, [(1, 1), (2, 3)])
    assert set(rows(figure, "chosen")["name"]) == {"L1 H1", "L2 H3"}
    assert rows(figure, "name")["name"].tolist() == ["L2 H3"]


def test_a_role_shows_the_share_of_pairs_in_which_it_is_ahead():
    holds = np.zeros((2, *SHAPE), bool)
    holds[0].flat[[11]] = True
    importance = np.arange(12.0).reshape(SHAPE)
    figure = role_superiority(compare_by_role(importance, holds, ["local", "block"]))
    drawn = rows(figure, "all")
    assert drawn[["role", "with", "without", "superiority"]].to_numpy().tolist() == [["local", 1, 11, 1.0]]
    assert "local 100%" in figure.description


def test_a_map_writes_letters_in_place_of_its_numbers():
    values = np.array([[0.5, 0.25, np.nan], [1, 0, 0.75]])
    cells = [["LD", "", ""], ["", "S", ""]]
    drawn = head_map_svg(HeadMap(title="t", label="l", values=values, bound=1.0, cells=cells))
    assert ">LD<" in drawn
    assert ">S<" in drawn
    assert ">0.5<" not in drawn
