"""Similar heads: its figures, its page without a browser, and the card that may cost no pass."""

import numpy as np
import pytest
from drawn import drawn_texts, rows
from similarity_figures import FIGURES, LARGE_PLANE, N_HEADS, N_LAYERS, PATTERNS, PLANE, TREE, matrix

from attention_sieve.core.roles.roles import BY_NAME
from attention_sieve.core.similarity.layout import HeadPlane
from attention_sieve.core.surface.statistics import BEHAVIOURS
from attention_sieve.dashboard.figures.figure import CHOICE
from attention_sieve.dashboard.figures.similarity.dendrogram import MIXED
from attention_sieve.dashboard.figures.similarity.head_kinds import BEHAVIOUR_LOOKS, NO_KIND, HeadKinds, role_looks
from attention_sieve.dashboard.figures.similarity.plane import (
    FURTHER,
    MARK,
    NAME,
    heads_by_kind,
    heads_by_layer,
    line_ends,
    name_places,
    outermost,
)


def test_every_head_is_a_point_where_the_plane_has_it_and_of_its_kind():
    figure = FIGURES["by kind"]
    points = rows(figure, "head")
    assert len(points) == N_LAYERS * N_HEADS
    for point in points.itertuples():
        np.testing.assert_allclose([point.x, point.y], PLANE.places[point.layer, point.head])
        assert point._asdict().get("name") == f"L{point.layer} H{point.head}"
    of_kind = dict(zip(points["name"], points["kind of head"]))
    assert of_kind["L0 H0"] == NO_KIND
    assert of_kind["L1 H3"] == BEHAVIOUR_LOOKS[2].label
    assert f"{BEHAVIOUR_LOOKS[0].label} 3" in figure.description
    assert f"stress {PLANE.stress:.2f}" in figure.description


@pytest.mark.parametrize("name", ["by kind", "by layer"])
def test_chosen_heads_are_ringed_and_named_and_marks_choose(name):
    figure = FIGURES[name]
    assert set(rows(figure, "chosen")["name"]) == {"L2 H1", "L0 H3"}
    (choice,) = figure.spec["params"]
    assert (choice["name"], choice["select"]["fields"]) == (CHOICE, ["layer", "head"])
    assert choice["views"] == [figure.spec["layer"][0]["name"]], "the marks of the heads"


@pytest.mark.parametrize(("name", "field"), [("patterns by kind", "kind of head"), ("patterns by layer", "layer")])
def test_marks_are_the_patterns_of_heads_in_frames_that_choose_and_have_the_colour(name, field):
    figure = FIGURES[name]
    assert rows(figure, "head")["pattern"].tolist() == [mark for of_layer in PATTERNS for mark in of_layer]
    images, frames = figure.spec["layer"][:2]
    assert images["encoding"]["url"]["field"] == "pattern"
    assert frames["encoding"]["stroke"]["field"] == field
    assert figure.spec["params"][0]["views"] == [frames["name"]]


def test_many_heads_are_dots():
    figure = heads_by_layer(LARGE_PLANE, [], outermost(LARGE_PLANE), [["data:,"] * 32] * 32)
    assert "pattern" not in figure.data


def test_names_of_chosen_heads_lie_over_no_mark_in_a_crowd_and_stay_in_the_picture():
    marks = np.random.default_rng(1).uniform(-1, 1, size=(72, 2))
    marks[:12] /= 8
    half = np.full(2, 1.2 * np.abs(marks).max())
    pixels = [side / (2 * half[0]) for side in (380, 300)]
    chosen = [0, 1, 5, 40]
    names = name_places(marks, chosen, half, pixels)
    for scale in pixels:
        for place, name in enumerate(names):
            assert (np.abs(name) * scale + np.array(NAME) / 2 <= half * scale).all()
            apart = np.abs(marks - name) * scale - np.array(NAME) / 2
            assert (apart >= MARK / 2 - 1e-9).any(axis=1).all()
            others = np.abs(np.delete(names, place, axis=0) - name) * scale
            assert (others >= NAME).any(axis=1).all()
    alone = name_places(np.zeros((1, 2)), [0], np.ones(2), [200, 150])
    assert alone[0, 0] == 0 < alone[0, 1], "above its mark where there is room"
    np.testing.assert_allclose(line_ends(np.array([[0, 40.0]]), np.zeros((1, 2)), 1), [[0, 40 - NAME[1] / 2]])


def test_a_few_heads_far_out_do_not_crowd_the_others():
    places = np.random.default_rng(2).uniform(-1, 1, (6, 12, 2))
    places[0, :3] = [[0, 9], [-7, -1], [12, 12]]
    places[5, 11] = np.nan
    plane = HeadPlane(places=places, stress=0.1)
    outside = outermost(plane)
    assert np.argwhere(outside).tolist() == [[0, 0], [0, 1], [0, 2]]
    kinds = HeadKinds(title="behaviour", looks=BEHAVIOUR_LOOKS, of=np.full((6, 12), -1))
    for figure in (heads_by_kind(plane, kinds, [(0, 2)], outside), heads_by_layer(plane, [(0, 2)], outside)):
        heads = rows(figure, "head").set_index(["layer", "head"])
        assert len(heads) == 71
        np.testing.assert_allclose(heads.loc[(3, 4), ["shown_x", "shown_y"]].astype(float), places[3, 4])
        np.testing.assert_allclose(heads.loc[(0, 1), ["x", "y"]].astype(float), places[0, 1])
        drawn = heads[["shown_x", "shown_y"]].to_numpy()
        assert np.abs(drawn).max() < 1.2, "all are in a picture that is as wide as most of them are spread"
        arrows = rows(figure, "further").set_index(["layer", "head"])["angle"]
        middle = drawn[~outside.ravel()[:71]].min(axis=0) / 2 + drawn[~outside.ravel()[:71]].max(axis=0) / 2
        for head, angle in arrows.items():
            step = places[head] - middle
            np.testing.assert_allclose([np.sin(np.radians(angle)), np.cos(np.radians(angle))], step / np.hypot(*step))
            shown = heads.loc[head, ["shown_x", "shown_y"]].to_numpy(float) - middle
            np.testing.assert_allclose(shown / np.hypot(*shown), step / np.hypot(*step))
        assert FURTHER in drawn_texts(figure)
    unzoomed = heads_by_layer(plane, [], np.zeros_like(outside))
    assert not len(rows(unzoomed, "further"))


def test_heads_that_fill_the_plane_have_no_closer_view():
    assert not outermost(PLANE).any()
    spread = np.random.default_rng(3).uniform(-1, 1, (6, 12, 2))
    assert not outermost(HeadPlane(places=spread, stress=0.1)).any()
    assert not outermost(HeadPlane(places=np.zeros((2, 2, 2)), stress=np.nan)).any()


def test_both_planes_have_as_many_pixels_to_a_unit_on_both_axes():
    for name in ("by kind", "by layer"):
        scales = [FIGURES[name].spec["layer"][0]["encoding"][axis]["scale"] for axis in "xy"]
        halves = [scale["domain"][1]["expr"].split(" + ")[1].split(" * ")[0] for scale in scales]
        assert halves[0] == halves[1]
        assert "width / height" in scales[0]["domain"][0]["expr"]
        assert "height / width" in scales[1]["domain"][0]["expr"]


def test_looks_differ_in_colour_and_mark():
    for looks in (BEHAVIOUR_LOOKS, role_looks(tuple(BY_NAME))):
        assert len({look.shape for look in looks}) == len(looks)
    assert len({look.color for look in BEHAVIOUR_LOOKS}) == len(BEHAVIOUR_LOOKS)
    assert len(BEHAVIOUR_LOOKS) == len(BEHAVIOURS)


def test_the_tree_has_a_bracket_for_each_merge_and_a_name_for_each_head():
    figure = FIGURES["tree"]
    branches, leaves = rows(figure, "branch"), rows(figure, "leaf")
    assert len(branches) == 4 * (N_LAYERS * N_HEADS - 1)
    np.testing.assert_allclose(branches.groupby("merge")["distance"].max(), TREE.merges[:, 2])
    assert sorted(leaves["name"]) == sorted(f"L{at} H{of}" for at in range(N_LAYERS) for of in range(N_HEADS))
    assert leaves.sort_values("place")["place"].tolist() == list(range(N_LAYERS * N_HEADS))
    assert set(leaves.loc[leaves["chosen"], "name"]) == {"L2 H1", "L0 H3"}
    joined = TREE.merges[0, :2].astype(int)
    first = leaves[leaves["name"].isin([f"L{i // N_HEADS} H{i % N_HEADS}" for i in joined])]
    assert np.ptp(first["place"]) == 1, "what is joined first stands side by side"
    assert set(drawn_texts(figure)) >= set(leaves["name"])


def test_leaves_of_several_heads_name_one_and_say_how_many_more():
    figure = FIGURES["tree of many"]
    leaves = rows(figure, "leaf")
    assert len(leaves) == 5
    for leaf in leaves.itertuples():
        n_more = leaf.heads.count(",")
        assert leaf.name == leaf.heads.split(", ")[0] + (f" and {n_more} more" if n_more else "")
    assert MIXED.label in set(leaves["kind of head"])
    assert "12 heads the closest are drawn as one leaf; 5 leaves" in figure.description


def test_the_matrix_says_its_least_and_its_most():
    values = np.array([[0.25, 0.5, 0.75], [0.5, np.nan, 1.0], [0.75, 1.0, 0.125]])
    figure = matrix(values)
    assert len(figure.data) == 8
    assert "least 0.125 (L2, L2), most 1 (L1, L2)" in figure.description
    assert {"0.25", "0.13", "1.0"} <= set(drawn_texts(figure))
