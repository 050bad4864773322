"""The figures of the page Grammar: what they draw of known relations, and that names from files stay text."""

from collections import Counter
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from drawn import SVG, rows, texts_of
from hypothesis import given
from hypothesis import strategies as st
from relation_figures import FIGURES, FIRST, HALVES, HOSTILE, SECOND, some_rows, tree

from attention_sieve.core.texts.relations import ROOT
from attention_sieve.dashboard.figures.relations.bars import relation_bars
from attention_sieve.dashboard.figures.relations.distance_histogram import MOST, REACH, distance_histogram, distances
from attention_sieve.dashboard.figures.relations.parse_arcs import (
    CHECK,
    NOWHERE,
    OUTSIDE,
    parse_arcs_file,
    parse_arcs_svg,
    sentence,
    sentences,
)
from attention_sieve.dashboard.figures.sheet import figure_svg, svg_png


def test_distances_count_from_the_dependent_to_its_head():
    counts = distances([FIRST, SECOND])
    assert counts == {
        "nsubj": Counter({1: 2}),
        "det": Counter({3: 1, 1: 1}),
        "amod": Counter({2: 1, 1: 1}),
        "dobj": Counter({-4: 1}),
        "punct": Counter({-5: 1}),
    }


def test_bars_of_a_relation_add_up_to_one_and_stay_in_their_lane():
    for name in ("distances", "distances, many"):
        bars = rows(FIGURES[name], "bar")
        assert np.allclose(bars.groupby("relation")["share"].sum(), 1)
        assert (bars["top"] < bars["base"] + 1).all()
        unit = (bars["top"] - bars["base"]) / bars["share"]
        assert np.allclose(unit, unit.iloc[0])


def test_what_is_far_away_is_counted_at_the_ends():
    figure = distance_histogram({"far": Counter({-40: 5, -8: 1, 2: 3, 9: 1})}, ["far"])
    bars = rows(figure, "bar").set_index("distance")
    assert bars["cases"].to_dict() == {-REACH: 6, 2: 3, REACH: 1}
    assert bars.loc[-REACH, "words"] == f"{REACH} words or more before"
    assert bars.loc[2, "words"] == "2 words after"
    assert bars["often"].tolist() == ["most frequent", "others", "others"]
    assert rows(figure, "peak")["label"].tolist() == ["60%"]
    assert "far 60% 8 words or more before" in figure.description


def test_relations_stand_in_the_order_given_and_what_is_not_drawn_is_counted():
    names = rows(FIGURES["distances"], "name").sort_values("top", ascending=False)
    assert names["label"].tolist() == ["det, 2 cases", "nsubj, 2 cases", "amod, 2 cases"]
    assert "Not drawn: 2 relations." in FIGURES["distances, many"].description
    assert len(rows(FIGURES["distances, many"], "name")) == MOST


def test_bars_are_the_rows_of_the_table():
    figure = FIGURES["bars with control"]
    heads, table = rows(figure, "head"), some_rows()
    for name in ("relation", "held_out", "baseline", "held_out_low", "held_out_high", "p"):
        assert heads[name].tolist() == table[name].tolist()
    assert heads["label"].tolist() == ["L0 H1\ndep → head", "L1 H2\nor L0 H0", "L1 H0\nhead → dep"]
    assert rows(figure, "control")["random"].tolist() == [0.29, 0.61]
    assert heads["judged"].tolist()[0] == "40.0% (35.0% to 45.0%)"
    assert "above it for 0 of 2 relations ('all' left out)" in figure.description
    assert "det 90.0% with L1 H2 dep → head or L0 H0 head → dep against 95.0% at -2" in figure.description
    assert "90% intervals by text" in figure.description
    assert "the best heads of bundled (random weights, seed 0)" in figure.description
    assert rows(FIGURES["bars"], "control").empty


def test_a_relation_without_an_interval_has_a_bar_and_no_line():
    figure = relation_bars(some_rows(held_out_low=[0.35, np.nan, 0.36]), HALVES)
    assert rows(figure, "interval")["relation"].tolist() == ["all", "amod"]
    (line,) = [one for one in figure.spec["layer"] if one["transform"][0]["filter"] == "datum.kind == 'interval'"]
    assert [line["encoding"][end]["field"] for end in ("x", "x2")] == ["held_out_low", "held_out_high"]
    assert len(rows(figure, "head")) == 3


@pytest.mark.parametrize(
    ("documents", "unit"),
    [([None] * 3, "text"), ([9, 1, 7], "document")],
)
def test_a_relation_that_is_not_judged_is_no_share_and_intervals_say_their_units(documents, unit):
    nan = {name: [0.4, np.nan, 0.7] for name in ("held_out", "held_out_low", "held_out_high")}
    table = some_rows(documents=pd.array(documents, dtype="Int64"), **nan)
    both = (("dependent-to-head", 0, 1), ("head-to-dependent", 0, 1))
    figure = relation_bars(table, [both, (), HALVES[2]])
    assert f"95% intervals by {unit}, against the best fixed offset" in figure.description
    assert "above it for 1 of 1 relation ('all' left out)" in figure.description
    assert f"det needs 2 {unit}s against 95.0% at -2" in figure.description
    drawn = rows(figure, "head")[["label", "judged"]].values.tolist()
    assert drawn[0][0] == "L0 H1\nboth ways", "one head in both directions is named once"
    assert drawn[1] == [f"needs\n2 {unit}s", f"needs 2 {unit}s"]
    assert "nan" not in figure.description


@pytest.mark.parametrize("name", [name for name in FIGURES if name.endswith("none")])
def test_nothing_to_draw_is_a_sentence(name):
    figure = FIGURES[name]
    assert figure.description.startswith("No relation")
    assert any(text.startswith("No relation") for text in texts_of(figure_svg(figure, title="A title", caption=[])))


@pytest.mark.parametrize("name", ["bars, hostile", "distances, hostile"])
def test_names_of_relations_stay_text(name):
    drawn = " ".join(texts_of(figure_svg(FIGURES[name], title="t", caption=[])))
    assert HOSTILE[1] in drawn
    assert "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}" in drawn


def test_sentences_end_where_no_arc_leads_across():
    assert sentences(FIRST.heads) == [(0, 7)]
    two = np.array([1, ROOT, 1, 5, 5, ROOT])
    assert sentences(two) == [(0, 3), (3, 6)]
    crossing = np.array([2, 3, ROOT, ROOT])
    assert sentences(crossing) == [(0, 4)], "two trees that cross are drawn together"
    assert sentences(np.array([ROOT, ROOT])) == [(0, 1), (1, 2)]
    assert sentences(np.array([], int)) == []


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=12))
def test_sentences_are_a_partition_that_no_arc_leaves(heads):
    heads = np.array([head if head < len(heads) else ROOT for head in heads])
    found = sentences(heads)
    assert [word for start, stop in found for word in range(start, stop)] == list(range(len(heads)))
    for start, stop in found:
        inside = heads[start:stop]
        assert ((inside == ROOT) | ((inside >= start) & (inside < stop))).all()


TWO = tree([1, ROOT, 3, ROOT, 3, 3], ["det", "root", "nsubj", "root", "dobj", "punct"])
PREDICTED = np.array([1, 0, 3, 2, 5, -1])


def drawn(judged=(True,) * 6, attends="dependent-to-head", words=("a", "b", "c", "d", "e", "f"), is_paired=False):
    found = sentence(words, TWO, PREDICTED, np.array(judged), (2, 6), is_paired)
    return found, parse_arcs_svg(found, attends=attends, label="label")


def paths(svg, **look):
    found = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return [path for path in found if all(path.get(name.replace("_", "-")) == value for name, value in look.items())]


def test_a_sentence_counts_from_its_own_first_word():
    found, _ = drawn()
    assert found.words == ("c", "d", "e", "f")
    assert found.heads.tolist() == [1, ROOT, 1, 1]
    assert found.predicted.tolist() == [1, 0, 3, NOWHERE]
    assert found.right.tolist() == [True, False, False, False]
    assert found.relations == ("nsubj", "root", "dobj", "punct")


def test_right_guesses_are_marked_by_more_than_colour():
    _, svg = drawn()
    right, wrong = paths(svg, stroke_width="3"), paths(svg, stroke_dasharray="5 4")
    assert len(right) == 1
    assert len(wrong) == 2
    assert right[0].get("stroke") != wrong[0].get("stroke")
    assert texts_of(svg).count(CHECK) == 1
    assert {"nsubj", "dobj", "punct"} <= set(texts_of(svg))
    assert "root" not in texts_of(svg)
    _, svg = drawn(judged=(True, True, False, False, True, True))
    assert not paths(svg, stroke_width="3")
    assert len(paths(svg, stroke_dasharray="5 4")) == 1


def test_a_guess_outside_the_sentence_leaves_it():
    found = sentence(("a", "b", "c", "d", "e", "f"), TWO, np.array([1, 0, 0, 3, 3, 3]), np.ones(6, bool), (2, 6))
    svg = parse_arcs_svg(found, attends="dependent-to-head", label="label")
    assert texts_of(svg).count(OUTSIDE[-1]) == 1
    assert not found.right[0]


def ends_of(path):
    """Where an arc begins and ends, sideways."""
    numbers = path.get("d").replace("Q", " ").replace("H", " ").replace("M", "").split()
    return float(numbers[0]), float(numbers[-2])


def test_arrows_below_lead_from_the_word_that_attends():
    (forward,), (back,) = (
        [ends_of(path) for path in paths(drawn(attends=attends)[1], stroke_width="3")]
        for attends in ("dependent-to-head", "head-to-dependent")
    )
    assert forward[0] < forward[1], "c, before its head d, attends to it"
    assert back[0] > back[1]


def test_marked_pairs_lead_from_their_first_word_and_leave_no_root():
    tree_svg, paired = (drawn(is_paired=is_paired)[1] for is_paired in (False, True))
    towards, back = ([ends_of(path) for path in paths(svg, stroke_width="1.2")] for svg in (tree_svg, paired))
    assert [start > end for start, end in towards] == [True, False, False], "from d to c, e and f"
    assert [start > end for start, end in back] == [False, True, True]
    assert ("underline" in tree_svg, "underline" in paired) == (True, False)


def test_arcs_that_overlap_have_other_heights():
    heads = tree([4, 0, 0, 4, ROOT, 4, 4], ["a", "b", "c", "d", "root", "e", "f"])
    found = sentence("abcdefg", heads, heads.heads, np.zeros(7, bool), (0, 7))
    arcs = paths(parse_arcs_svg(found, attends="dependent-to-head", label="label"), fill="none")
    crests = {path.get("d").split("Q")[1].split()[1]: [] for path in arcs}
    for path in arcs:
        crests[path.get("d").split("Q")[1].split()[1]].append(sorted(ends_of(path)))
    assert len(crests) >= 2
    for at_one_height in crests.values():
        at_one_height.sort()
        assert all(first[1] <= second[0] for first, second in pairwise(at_one_height))


def test_words_of_the_text_stay_text():
    found, _ = drawn(words=("a", "b", *HOSTILE))
    svg = parse_arcs_file(found, attends="dependent-to-head", title=HOSTILE[0], reading="", caption=[HOSTILE[2]])
    assert "<img" not in svg
    assert "<script" not in svg
    found = texts_of(svg)
    assert HOSTILE[0] in found
    assert HOSTILE[2] in found
    assert "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}" in found


def test_a_file_is_on_white_and_a_page_takes_its_colours():
    found, page = drawn()
    file = parse_arcs_file(found, attends="dependent-to-head", title="A title", reading="How", caption=[])
    assert "currentColor" in page
    assert "#FFFFFF" not in page
    assert "currentColor" not in file
    assert svg_png(file, "A title", {})[:4] == b"\x89PNG"
