"""Figures that Plotly draws: what they show, by hand, and the twins that go into files."""

import json

import numpy as np
import pytest
from drawn import Drawn, texts_of
from role_figures import one_head
from streamlit.elements.lib.streamlit_plotly_theme import GRAY_90

from attention_sieve.core.comparison.transitions import Transition, transitions
from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.comparison.flow import NOTHING, SEVERAL, heads_by_mark, role_flow
from attention_sieve.dashboard.figures.figure import GREY, MOST_MARKS
from attention_sieve.dashboard.figures.plotly_figure import THEME_INK, escaped, translucent
from attention_sieve.dashboard.figures.roles.distributions import head_scores
from attention_sieve.dashboard.figures.roles.many_scores import every_head_score
from attention_sieve.dashboard.figures.sheet import figure_svg

HOSTILE = "<a href='javascript:alert(1)'>x</a>\x00&%{x}"
NAMES = ("before", "after")

NONE, LOCAL, BOTH = frozenset(), frozenset({"local"}), frozenset({"local", "delimiter"})
BETWEEN = (
    Transition(LOCAL, NONE, ((0, 2), (1, 0))),
    Transition(NONE, BOTH, ((1, 2),)),
    Transition(NONE, NONE, ((0, 0), (0, 1))),
    Transition(LOCAL, LOCAL, ((1, 1),)),
)

N_TEXTS = 300


def some_scores(n_texts=N_TEXTS):
    random = np.random.default_rng(7)
    scores = random.gamma(4, 0.7, (n_texts, len(ROLES), 2, 3))
    scores[:5, ROLES.index("syntactic")] = np.nan
    scores[:, ROLES.index("block")] = np.nan
    return scores


SCORES = some_scores()
UNIFORM = np.where(np.array(ROLES) == "block", 3.25, 1.0)
TESTS = role_tests(SCORES, ROLES, Criterion(correction="none"), 1.0)
NO_SCORES = np.full_like(SCORES, np.nan)

FIGURES = Drawn(
    {
        "flow": lambda: role_flow(BETWEEN, NAMES),
        "flow of nothing": lambda: role_flow((), NAMES),
        "flow of hostile names": lambda: role_flow(BETWEEN, (HOSTILE, HOSTILE)),
        "many scores": lambda: every_head_score(one_head(SCORES, TESTS, 1, 2, UNIFORM, here={"local": 2.5})),
        "no scores": lambda: every_head_score(
            one_head(NO_SCORES, role_tests(NO_SCORES, ROLES, Criterion(), 1.0), 0, 0, UNIFORM)
        ),
    }
)


@pytest.fixture(params=FIGURES)
def figure(request):
    return FIGURES[request.param]


def texts_in(figure):
    return texts_of(figure_svg(figure.still, title="A title", caption=["checkpoint: bundled"]))


def trace_of(figure, kind):
    return next(trace for trace in figure.chart.data if trace.type == kind)


def test_each_figure_has_words_a_table_and_a_file(figure):
    assert figure.description.endswith(".")
    assert figure.description == figure.still.description
    assert all(figure.description.count(part) == 0 for part in ("nan,", "None", "inf "))
    assert {"A title", "checkpoint: bundled"} <= set(texts_in(figure))
    assert "NaN" not in figure.chart.to_json(), "a browser reads no such JSON"


def test_no_text_or_line_has_a_colour_that_one_theme_swallows(figure):
    spec = json.loads(figure.chart.to_json())
    del spec["layout"]["template"]
    assert not {"black", "#000", "#000000"} & set(_strings(spec))


def _strings(part):
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _strings(inner)


def test_the_ink_is_the_one_that_streamlit_replaces_by_the_readers_theme():
    assert THEME_INK == GRAY_90


def test_the_flow_is_as_wide_as_its_transitions_have_heads():
    flow = trace_of(FIGURES["flow"], "sankey")
    nodes, links = list(flow.node.label), flow.link
    ends = [(nodes[a], nodes[b], heads) for a, b, heads in zip(links.source, links.target, links.value)]
    assert ends == [
        ("local", "no role", 2),
        ("no role", "local + delimiter", 1),
        ("no role", "no role", 2),
        ("local", "local", 1),
    ]
    assert sum(links.value) == 6
    assert nodes == ["local", "no role", "local", "local + delimiter", "no role"]
    assert list(flow.node.color) == [LOOKS["local"].color, GREY, LOOKS["local"].color, SEVERAL, GREY]
    assert links.label[0] == "2 heads: L0 H2, L1 H0"
    assert (links.color[0], links.color[3]) == tuple(translucent(LOOKS["local"].color, each) for each in (0.6, 0.25))
    assert FIGURES["flow"].description == (
        "Flow of 6 heads from the roles they hold under a to those they hold under b. "
        "3 change: local → no role 2; no role → local + delimiter 1."
    )


def test_every_mark_of_the_flow_sends_a_name_that_lists_its_heads():
    marks, flow = heads_by_mark(BETWEEN), trace_of(FIGURES["flow"], "sankey")
    assert {*flow.link.customdata, *flow.node.customdata} == set(marks)
    assert marks["local → no role"] == ((0, 2), (1, 0))
    assert marks["local under a"] == ((0, 2), (1, 0), (1, 1))
    assert marks["no role under b"] == ((0, 0), (0, 1), (0, 2), (1, 0))
    assert list(marks)[:4] == ["local → no role", "no role → local + delimiter", "no role → no role", "local → local"]


def test_a_flow_of_many_roles_holds_every_head_once_on_each_side():
    random = np.random.default_rng(1)
    before = random.random((len(ROLES), 5, 7)) < 0.3
    after = before ^ (random.random(before.shape) < 0.2)
    between = transitions(before, after, ROLES, COARSE_ROLES)
    flow = trace_of(role_flow(between, NAMES), "sankey")
    assert sum(flow.link.value) == 35
    marks = heads_by_mark(between)
    for side in ("a", "b"):
        heads = [head for name, some in marks.items() if name.endswith(f"under {side}") for head in some]
        assert sorted(heads) == [(layer, head) for layer in range(5) for head in range(7)]


def test_bars_and_bands_of_the_file_stand_where_those_of_the_page_do():
    drawn, flow = FIGURES["flow"].still.data, trace_of(FIGURES["flow"], "sankey")
    height = FIGURES["flow"].still.spec["height"]
    bars = drawn[drawn["kind"].isin(("bar a", "bar b"))]
    np.testing.assert_allclose(bars["middle"] / height, flow.node.y)
    bands = drawn[drawn["kind"] == "band"]
    thickness = (bands["bottom"] - bands["top"]).groupby(bands["band"], sort=False).agg(["min", "max"])
    per_head = bars["bottom"].sub(bars["top"]).sum() / 12  # six heads on each side
    np.testing.assert_allclose(thickness["min"], per_head * np.array([2, 1, 2, 1]))
    np.testing.assert_allclose(thickness["max"], thickness["min"])
    left = bands[bands["x"] == 0].sort_values("top")
    assert left["band"].tolist() == [
        "local → local",
        "local → no role",
        "no role → local + delimiter",
        "no role → no role",
    ]


def test_a_flow_without_heads_and_one_without_changes_say_so():
    empty = FIGURES["flow of nothing"]
    assert empty.description == NOTHING
    assert NOTHING in texts_in(empty)
    assert NOTHING in [note.text for note in empty.chart.layout.annotations]
    assert heads_by_mark(()) == {}
    assert role_flow(BETWEEN[2:], NAMES).description.endswith("No head changes its roles.")


def test_hostile_names_stay_text():
    figure = FIGURES["flow of hostile names"]
    headings = [note.text for note in figure.chart.layout.annotations]
    assert all("<" not in heading and "\x00" not in heading for heading in headings)
    assert headings[0].endswith("x&lt;/a&gt;\N{REPLACEMENT CHARACTER}&amp;%{x}")
    assert any(text.startswith("(a) ") and "</a>" in text for text in texts_in(figure))
    assert escaped("a < b & c") == "a &lt; b &amp; c"


def test_every_score_of_the_head_is_a_dot():
    many = FIGURES["many scores"]
    dots = [trace for trace in many.chart.data if trace.type == "scattergl"]
    of_head = SCORES[:, :, 1, 2]
    assert sum(len(trace.x) for trace in dots) == np.isfinite(of_head).sum() > MOST_MARKS
    for role, trace in zip(range(len(ROLES)), dots):
        there = of_head[:, role][~np.isnan(of_head[:, role])]
        np.testing.assert_array_equal(trace.customdata if len(there) else [], there)
        np.testing.assert_allclose(trace.x, np.log1p(there))
    assert many.description.endswith("Each of 2,995 scores is a dot.")
    assert (many.still.data["kind"] == "dot").sum() == 2995
    assert list(many.data["text"]) == list(range(1, N_TEXTS + 1))
    np.testing.assert_array_equal(many.data["local"], of_head[:, 0])


def test_many_scores_have_the_shapes_means_intervals_and_lines_of_few():
    many = FIGURES["many scores"]
    few = head_scores(one_head(SCORES, TESTS, 1, 2, UNIFORM, here={"local": 2.5}))
    assert (few.data["kind"] == "dot").sum() == 0
    rest = many.still.data[many.still.data["kind"] != "dot"]
    for column in ("score", "mean", "low", "high", "value", "top"):
        np.testing.assert_array_equal(rest[column], few.data[column])
    means = [trace for trace in many.chart.data if trace.type == "scatter" and trace.marker.symbol == "circle"]
    found = [float(np.expm1(trace.x[0])) for trace in means if len(trace.x)]
    np.testing.assert_allclose(found, [mean for mean in TESTS.mean[:, 1, 2] if not np.isnan(mean)])
    (here,) = (trace for trace in many.chart.data if trace.marker.symbol == "diamond" and len(trace.x))
    assert np.expm1(here.x[0]) == pytest.approx(2.5)
    lines = {float(np.expm1(shape.x0)) for shape in many.chart.layout.shapes}
    assert sorted(lines) == pytest.approx([1, 3, 3.25])
    assert "applies to no text" in [note.text for note in many.chart.layout.annotations]


def test_an_interval_that_reaches_below_zero_is_drawn_whole():
    scores = some_scores(3)
    scores[:, 0, 0, 0] = 0.1, 0.2, 9.0
    tests = role_tests(scores, ROLES, Criterion(correction="none"), 1.0)
    assert tests.low[0, 0, 0] < -1
    chart = every_head_score(one_head(scores, tests, 0, 0, UNIFORM)).chart
    low, high = next(trace for trace in chart.data if trace.mode == "lines" and trace.fill is None).x
    np.testing.assert_allclose([-np.expm1(-low), np.expm1(high)], [tests.low[0, 0, 0], tests.high[0, 0, 0]])
    assert chart.layout.xaxis.range[0] < low
