"""Similar heads: its figures, its page without a browser, and the card that may cost no pass."""

import json
from xml.etree import ElementTree

import altair
import numpy as np
import pytest
from reading import sent
from scipy.spatial.distance import pdist, squareform

from core.head_layout import HeadPlane, head_plane, head_tree
from core.roles import ROLES
from core.similar_heads import BEHAVIOURS
from dashboard import similar_wording as wording
from dashboard.figures.appearance import LESS, MORE
from dashboard.figures.dendrogram import MIXED, dendrogram
from dashboard.figures.export import figure_svg
from dashboard.figures.figure import MOST_MARKS
from dashboard.figures.head_dots import CHOICE
from dashboard.figures.head_kinds import BEHAVIOUR_LOOKS, NO_KIND, ROLE_LOOKS, HeadKinds
from dashboard.figures.head_map_mds import heads_by_kind, heads_by_layer
from dashboard.figures.head_matrix import distance_matrix
from dashboard.state import HEADS
from dashboard.views.similar_focus import HOW_FAR_KEY, N_TEXTS_KEY, compared_texts

N_LAYERS, N_HEADS = 3, 4


def distances_of(n_layers=N_LAYERS, n_heads=N_HEADS, seed=3):
    points = np.random.default_rng(seed).normal(size=(n_layers * n_heads, 3)) / 10
    return squareform(pdist(points)).reshape(n_layers, n_heads, n_layers, n_heads)


def kinds_of(n_layers=N_LAYERS, n_heads=N_HEADS):
    of = np.arange(n_layers * n_heads).reshape(n_layers, n_heads) % 4 - 1
    return HeadKinds(title="behaviour", looks=BEHAVIOUR_LOOKS, of=of)


DISTANCES, KINDS = distances_of(), kinds_of()
PLANE, TREE = head_plane(DISTANCES), head_tree(DISTANCES)
CHOSEN = [(2, 1), (0, 3)]
NAMES = [f"L{layer}" for layer in range(N_LAYERS)]


def matrix(values, names=NAMES):
    return distance_matrix(
        values, names, names, title="Distance", row_title="layer", column_title="other layer", unit="nats"
    )


def large(n_layers=32, n_heads=32):
    distances = distances_of(n_layers, n_heads)
    places = np.random.default_rng(0).normal(size=(n_layers, n_heads, 2))
    plane, kinds = HeadPlane(places=places, stress=0.3), kinds_of(n_layers, n_heads)
    return (
        heads_by_kind(plane, kinds, []),
        heads_by_layer(plane, []),
        dendrogram(head_tree(distances), kinds, [], "nats"),
    )


one_head_twice = head_tree(np.zeros((2, 1, 2, 1)))
FIGURES = {
    "by kind": heads_by_kind(PLANE, KINDS, CHOSEN),
    "by layer": heads_by_layer(PLANE, CHOSEN),
    "tree": dendrogram(TREE, KINDS, CHOSEN, "nats"),
    "matrix": matrix(DISTANCES.mean(axis=(1, 3))),
    "all alike": heads_by_layer(head_plane(np.zeros((2, 2, 2, 2))), []),
    "tree of two": dendrogram(one_head_twice, kinds_of(2, 1), [], "summed nats"),
    "tree of many": dendrogram(head_tree(DISTANCES, most_leaves=5), KINDS, CHOSEN, "nats"),
    "matrix of nothing": matrix(np.full((N_LAYERS, N_LAYERS), np.nan)),
    **dict(zip(("many by kind", "many by layer", "tree of 1,024"), large())),
}


def rows(figure, kind):
    return figure.data[figure.data["kind"] == kind]


def texts_of(figure):
    """Every text in the drawn figure; fails where it is no XML."""
    tree = ElementTree.fromstring(figure_svg(figure, title="A title", caption=[]))
    texts = tree.iter("{http://www.w3.org/2000/svg}text")
    return [line.text or "" for text in texts for line in (list(text) or [text])]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_valid_and_drawn_whole(name):
    figure = FIGURES[name]
    altair.Chart.from_dict({**figure.spec, "data": {"values": []}})
    assert figure.spec["title"]["text"] == texts_of(figure)[0] or "A title" in texts_of(figure)
    assert all(figure.description.count(part) == 0 for part in ("nan,", "None", "inf "))
    assert len(figure.data) < 2.2 * MOST_MARKS
    json.dumps(figure.spec)


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
    params = [param for one in figure.spec["layer"] for param in one.get("params", ())]
    assert [(param["name"], param["select"]["fields"]) for param in params] == [(CHOICE, ["layer", "head"])]


def test_both_planes_have_as_many_pixels_to_a_unit_on_both_axes():
    for name in ("by kind", "by layer"):
        scales = [FIGURES[name].spec["layer"][0]["encoding"][axis]["scale"] for axis in "xy"]
        halves = [scale["domainMax"]["expr"].split(" + ")[1].split(" * ")[0] for scale in scales]
        assert halves[0] == halves[1]
        assert "width / height" in scales[0]["domainMin"]["expr"]
        assert "height / width" in scales[1]["domainMin"]["expr"]


def test_layers_are_told_apart_by_number_and_colour():
    figure = FIGURES["by layer"]
    assert figure.spec["layer"][0]["encoding"]["color"]["scale"]["range"][::2] == [LESS, MORE]
    assert texts_of(figure).count("2") >= N_HEADS


def test_looks_differ_in_colour_and_mark():
    for looks in (BEHAVIOUR_LOOKS, ROLE_LOOKS):
        assert len({look.shape for look in looks}) == len(looks)
        assert len({look.color for look in looks}) == len(looks)
    assert len(BEHAVIOUR_LOOKS) == len(BEHAVIOURS)
    assert len(ROLE_LOOKS) == len(ROLES) + 1


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
    assert set(texts_of(figure)) >= set(leaves["name"])


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
    assert {"0.25", "0.13", "1.0"} <= set(texts_of(figure))


def test_the_page_compares_all_heads_and_says_what_it_found(app):
    at = app("similar")
    assert not at.exception
    assert not at.error
    said = next(each.value for each in at.markdown if "attend most alike" in each.value)
    assert "72 heads compared on 3 texts" in said
    assert "Heads of one layer are" in said
    shown = sent(at, "Distance of the heads")
    layer, head = shown["chosen"][0]
    assert shown["texts"][layer][head] == "0", "a head lies at no distance from itself"


def test_another_head_and_another_colour_cost_no_comparison(app, monkeypatch):
    at = app("similar")
    kept = sent(at, "Distance of the heads")["texts"]
    monkeypatch.setattr("core.head_distances.text_distances", None)
    at.session_state[HEADS] = [(3, 7)]
    at.run()
    now = sent(at, "Distance of the heads")
    assert now["label"].endswith("to L3 H7")
    assert now["texts"] != kept
    at.segmented_control(key="similar colour").set_value(wording.ROLE).run()
    assert not at.exception
    assert any("Heads by role" in each.value for each in at.markdown)
    assert app("similar", corpus_text="Texts that nobody has compared.").exception, "these would have to be"


def test_the_authors_sum_is_smoothed_and_in_other_units(app):
    at = app("similar")
    at.segmented_control(key=HOW_FAR_KEY).set_value(wording.AUTHORS).run()
    assert not at.exception
    assert "(summed nats)" in sent(at, "Distance of the heads")["title"]


@pytest.mark.parametrize("tab", [wording.TREE, wording.LAYERS, wording.PAIR, wording.TABLE])
def test_every_view_is_drawn(app, tab):
    at = app("similar", **{"similar details": tab})
    assert not at.exception
    assert not at.error


def test_the_card_of_a_head_takes_distances_from_the_store_and_computes_none(app):
    said = "Attending most like"
    link = {"corpus_text": "The card compares nothing.\nIt only looks into the store.\nA pass is too dear."}
    at = app(**link)
    assert not any(said in each.value for each in at.markdown)
    assert app("similar", **link).exception == []
    at = app(**link, head="2-5")
    found = next(each.value for each in at.markdown if said in each.value)
    assert "like L2 H5 (nats, mean over the rows of 3 texts, 0 = alike)" in found


def test_texts_are_taken_at_even_steps(monkeypatch):
    monkeypatch.setattr("dashboard.views.similar_focus.st.session_state", {N_TEXTS_KEY: "16"})
    texts = tuple(range(100))
    assert compared_texts(texts) == tuple(place * 100 // 16 for place in range(16))
    assert compared_texts(texts[:5]) == texts[:5]
    monkeypatch.setattr("dashboard.views.similar_focus.st.session_state", {N_TEXTS_KEY: wording.ALL_TEXTS})
    assert compared_texts(texts) == texts


def test_sentences_say_what_there_is_and_nothing_else():
    nan = float("nan")
    assert wording.summary(None, nan, nan, "nats", 1, 1) == "1 head compared on 1 text."
    said = wording.summary(("L0 H1", "L1 H0", 0.01234), 0.25, 0.125, "nats", 2, 12)
    assert "**L0 H1 and L1 H0** attend most alike (0.0123 nats)" in said
    assert "no closer to each other" in said
    assert "within 0.1 nats" in wording.groups_of([1, 1], 0.1, "nats")
    assert "falls into 2 groups of heads (the largest has 5); 1 head stands alone" in wording.groups_of(
        [5, 2, 1], 0.1, "nats"
    )


def shown_pairs(app):
    at = app("similar", **{"similar details": wording.TABLE})
    return next(each.value for each in at.dataframe if "other head" in each.value)


def test_the_table_names_each_pair_once_the_closest_first(app):
    table = shown_pairs(app)
    assert list(table) == ["head", "other head", *wording.COLUMNS]
    assert len(table) == len(set(zip(table["head"], table["other head"]))) == 72 * 71 // 2
    assert table["divergence"].is_monotonic_increasing
    same = table["head"].str.split().str[0] == table["other head"].str.split().str[0]
    assert (table["relative_a_b"].notna() == same).all()


def test_a_layer_against_itself_leaves_out_each_head_against_itself(app):
    table = shown_pairs(app)
    inside = table[table["head"].str.startswith("L5 ") & table["other head"].str.startswith("L5 ")]["divergence"]
    at = app("similar", head="5-3", **{"similar details": wording.PAIR})
    said = next(each.value for each in at.markdown if "layer 5 against layer 5" in each.value)
    assert f"{inside.mean():.3g} on average, least {inside.min():.3g} (" in said.replace("\\", "")
