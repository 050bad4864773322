"""Every score of a head, which Plotly draws: what it shows, by hand, and the twin that goes into files."""

import json

import numpy as np
import pytest
from drawn import Drawn, texts_of
from role_figures import one_head
from streamlit.elements.lib.streamlit_plotly_theme import GRAY_90

from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard.figures.figure import MOST_MARKS
from attention_sieve.dashboard.figures.roles.distributions import head_scores
from attention_sieve.dashboard.figures.roles.many_scores import THEME_INK, every_head_score
from attention_sieve.dashboard.figures.sheet import figure_svg

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


def test_each_figure_has_words_a_table_and_a_file(figure):
    assert figure.still.description.endswith(".")
    assert all(figure.still.description.count(part) == 0 for part in ("nan,", "None", "inf "))
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


def test_every_score_of_the_head_is_a_dot():
    many = FIGURES["many scores"]
    dots = [trace for trace in many.chart.data if trace.type == "scattergl"]
    of_head = SCORES[:, :, 1, 2]
    assert sum(len(trace.x) for trace in dots) == np.isfinite(of_head).sum() > MOST_MARKS
    for role, trace in zip(range(len(ROLES)), dots):
        there = of_head[:, role][~np.isnan(of_head[:, role])]
        np.testing.assert_array_equal(trace.customdata if len(there) else [], there)
        np.testing.assert_allclose(trace.x, np.log1p(there))
    assert many.still.description.endswith("Each of 2,995 scores is a dot.")
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
