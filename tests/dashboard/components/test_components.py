"""The grid, the Venn diagram and the overview: their Python faces, the data they send, and files for download."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import vl_convert
from colours import contrast
from drawn import SVG, texts_of
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from reading import data_of, numbers
from streamlit.testing.v1 import AppTest

from attention_sieve.core.attention.settings import Window
from attention_sieve.core.roles.roles import BY_NAME, COARSE_ROLES, FINE_ROLES, ROLES
from attention_sieve.dashboard.components.choosing import chosen_heads
from attention_sieve.dashboard.components.overview import Overview, attention_overview, chosen_window
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.components.venn import selected_combination
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LOOKS, TARGETS, WORD_COLORS
from attention_sieve.dashboard.figures.figure import SHARED
from attention_sieve.dashboard.figures.head_map import ABOVE, LEFT, HeadMap, head_map_svg
from attention_sieve.dashboard.figures.roles.combinations import Overlaps, code, exact_name
from attention_sieve.dashboard.figures.roles.grid import RoleGrid, grid_svg
from attention_sieve.dashboard.figures.roles.venn_svg import GEOMETRY, venn_svg

COMPONENTS = Path(__file__).parents[3] / "dashboard" / "components"
HOSTILE = '<img src=x onerror=alert(1)> & "quotes" </script> \x00'
COUNTS = {
    frozenset(): 3,
    frozenset({"local"}): 5,
    frozenset({"delimiter"}): 5,
    frozenset({"block", "local"}): 2,
    frozenset(COARSE_ROLES): 1,
}


def grid_page() -> None:
    """All roles, two layers, three heads; session state says what differs between runs."""
    import numpy as np
    import streamlit as st

    from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
    from attention_sieve.dashboard.components.grid import role_grid
    from attention_sieve.dashboard.components.source import Selection
    from attention_sieve.dashboard.figures.roles.grid import RoleGrid

    if st.session_state.get("elsewhere"):
        return
    layers, heads = st.session_state.get("shape", (2, 3))
    scores = np.arange(len(ROLES) * layers * heads, dtype=float).reshape(len(ROLES), layers, heads)
    scores[3, 0] = np.nan
    grid = RoleGrid(
        roles=ROLES,
        shown=COARSE_ROLES,
        scores=scores,
        holds=scores > 20,
        tau=3.0,
        filled="Filled: holds.",
        label=st.session_state.get("label", "Roles"),
        off=st.session_state.get("off", ()),
        highlight=st.session_state.get("highlight"),
        stability=st.session_state.get("stability"),
        p_values=st.session_state.get("p_values"),
        held_before=st.session_state.get("held_before"),
    )
    st.session_state["result"] = role_grid(grid, Selection("grid", [(0, 2)], st.session_state.get("reset")))


def venn_page() -> None:
    """Four coarse roles, or all."""
    import streamlit as st

    from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
    from attention_sieve.dashboard.components.source import Selection
    from attention_sieve.dashboard.components.venn import role_venn
    from attention_sieve.dashboard.figures.roles.combinations import Overlaps

    counts = {
        frozenset[str](): 3,
        frozenset({"local"}): 5,
        frozenset({"delimiter"}): 5,
        frozenset({"block", "local"}): 2,
        frozenset(COARSE_ROLES): 1,
    }
    roles = ROLES if st.session_state.get("all") else COARSE_ROLES
    caption = st.session_state.get("caption", "Exact combinations")
    overlaps = Overlaps(roles=roles, combinations=counts)
    st.session_state["result"] = role_venn(overlaps, Selection("venn", None), "Overlap", caption)


def run(page: Any, **state: Any) -> AppTest:
    app = AppTest.from_function(page)
    for name, value in state.items():
        app.session_state[name] = value
    app.run()
    assert not app.exception
    return app


def payload(app: AppTest) -> str:
    (component,) = app.get("bidi_component")
    return component.proto.json


def sent(app: AppTest) -> dict[str, Any]:
    return data_of(payload(app))


# Looks


def test_every_role_has_a_look_with_its_own_letter_which_is_readable_on_its_own_colour() -> None:
    assert list(LOOKS) == list(BY_NAME)
    for each in ("letter", "shape"):
        assert len({getattr(look, each) for look in LOOKS.values()}) == len(LOOKS), each
    # [CLS] and the first token are one target.
    assert len({look.color for name, look in LOOKS.items() if name != "sink"}) == len(LOOKS) - 1
    assert len({color for _, color in TARGETS.values()}) == len(TARGETS) == 8
    assert LOOKS["sink"].color == LOOKS["delimiter:cls"].color == TARGETS["first"][1]
    assert all(contrast(look.color, look.ink) >= 4.5 for look in LOOKS.values())


@pytest.mark.parametrize("color", [*HEAD_COLORS, *WORD_COLORS])
@pytest.mark.parametrize("background", ["#FFFFFF", "#181715"])
def test_colours_of_heads_and_words_stand_out_on_light_and_dark(color: str, background: str) -> None:
    assert contrast(color, background) >= 3


# The grid


def test_the_grid_starts_from_the_heads_python_names_and_data_stay_the_same_when_only_the_choice_changes() -> None:
    app = run(grid_page)
    before = payload(app)
    assert app.session_state["result"] == [(0, 2)]
    assert sent(app)["chosen"] == [[0, 2]]
    app.session_state["grid"] = {"chosen": [[1, 1], [0, 0]]}
    app.run()
    assert app.session_state["result"] == [(1, 1), (0, 0)]
    assert payload(app) == before


def test_a_new_reset_token_or_a_grid_that_comes_back_takes_the_choice_back_to_pythons() -> None:
    app = run(grid_page)
    app.session_state["grid"] = {"chosen": [[1, 1]]}
    app.run()
    first = sent(app)["rev"]
    app.session_state["reset"] = "again"
    app.run()
    assert app.session_state["result"] == [(0, 2)]
    assert sent(app)["rev"] == first + 1
    app.session_state["grid"] = {"chosen": [[1, 1]]}
    for elsewhere in (True, False):
        app.session_state["elsewhere"] = elsewhere
        app.run()
    assert app.session_state["result"] == [(0, 2)]
    assert sent(app)["rev"] == first + 2


def test_heads_that_a_smaller_checkpoint_lacks_are_left_out() -> None:
    app = run(grid_page, shape=(6, 7))
    app.session_state["grid"] = {"chosen": [[5, 6], [1, 2], [0, 3]]}
    app.session_state["shape"] = (2, 3)
    app.run()
    assert not app.exception
    assert app.session_state["result"] == [(1, 2)]


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"chosen": "12"},
        {"chosen": {"rev": 0}},
        {"chosen": {"rev": [0], "value": [[0, 0]]}},
        {"chosen": [[True, 1], [0.0, 1], ["0", 1], [0], [0, 1, 2], None, [-1, 0], [2, 0], [0, 3]]},
    ],
)
def test_anything_that_is_no_head_is_not_chosen(state: object) -> None:
    assert chosen_heads(state, layers=2, heads=3) == []


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=4)))
def test_whatever_the_browser_sends_the_choice_stays_inside_the_grid(value: object) -> None:
    chosen = chosen_heads({"chosen": value}, layers=2, heads=3)
    assert len(set(chosen)) == len(chosen)
    assert all(layer in range(2) and head in range(3) for layer, head in chosen)


def test_scores_of_all_roles_travel_in_the_order_role_layer_head_with_nan_kept_even_when_four_are_shown() -> None:
    data = sent(run(grid_page))
    scores = numbers(data["scores"], "<f4").reshape(len(ROLES), 2, 3)
    assert scores[4, 1, 2] == 4 * 6 + 1 * 3 + 2
    assert np.isnan(scores[3, 0]).all()
    assert not np.isnan(scores[3, 1]).any()
    states = numbers(data["states"], "u1").reshape(len(ROLES), 2, 3)
    assert not states[3, 0].any()
    assert states[4].all()
    assert [each["letter"] for each in data["roles"]] == [LOOKS[role].letter for role in ROLES]
    assert data["shown"] == [0, 1, 2, 3]


def test_marked_heads_travel_and_of_highlighted_ones_none_differs_from_empty() -> None:
    plain, empty = sent(run(grid_page)), sent(run(grid_page, highlight=[]))
    assert (plain["off"], plain["highlight"], empty["highlight"]) == ([], None, [])
    marked = sent(run(grid_page, off=[(1, 2), (0, 1)], highlight=[(1, 1), (0, 2)]))
    assert (marked["off"], marked["highlight"]) == ([[0, 1], [1, 2]], [[0, 2], [1, 1]])


def test_a_grid_of_1024_heads_and_ten_roles_stays_below_160_kilobytes() -> None:
    numbers = np.random.default_rng(0).random((len(ROLES), 32, 32))
    assert len(payload(run(grid_page, shape=(32, 32), p_values=numbers, stability=numbers))) < 160_000


def test_an_earlier_checkpoint_makes_gained_kept_and_lost() -> None:
    before = np.zeros((len(ROLES), 2, 3), dtype=bool)
    before[2:4] = True
    data = sent(run(grid_page, held_before=before))
    assert data["compared"]
    states = numbers(data["states"], "u1").reshape(before.shape)
    assert [states[0, 0, 0], states[4, 0, 0], states[2, 0, 0], states[3, 1, 0]] == [0, 1, 2, 3]


def test_how_often_labels_stay_travels_and_the_legend_says_what_is_faint() -> None:
    assert sent(run(grid_page))["stays"] is None
    stability = np.linspace(0.4, 1, 11 * 6).reshape(11, 2, 3)
    data = sent(run(grid_page, stability=stability))
    np.testing.assert_allclose(numbers(data["stays"], "u1") / data["resamples"], stability.ravel(), atol=0.0026)
    assert data["faint"] == "faint: stays in fewer than 95% of resamples"
    assert data["certain"] == 0.95


def test_the_file_of_a_grid_draws_labels_that_may_change_faint_and_says_so() -> None:
    holds, stability = np.array([[[True, True, False]]]), np.array([[[1, 0.9, 0.5]]])
    grid = RoleGrid(roles=["local"], scores=np.ones((1, 1, 3)), holds=holds, tau=3.0, label="A", stability=stability)
    svg = ET.fromstring(grid_svg(grid))
    assert len(svg.findall(".//{*}g[@class='faint']")) == 1, "a label that is not there has no letter"
    assert "Faint: stays in fewer than 95% of resamples" in " ".join(svg.itertext())
    assert "Faint" not in "".join(ET.fromstring(grid_svg(replace(grid, stability=None))).itertext())


def test_the_file_of_a_grid_says_of_each_head_what_it_mostly_does() -> None:
    sentences = [["Rests on <b>.", "Looks back."]]
    grid = RoleGrid(roles=["local"], scores=np.ones((1, 1, 2)), holds=np.ones((1, 1, 2), bool), tau=3.0, label="A")
    svg = ET.fromstring(grid_svg(replace(grid, sentences=sentences)))
    assert [each.text for each in svg.findall(".//{*}g/{*}title")] == ["L0 H0: Rests on <b>.", "L0 H1: Looks back."]


def test_hostile_text_travels_as_data() -> None:
    assert sent(run(grid_page, label=HOSTILE))["label"] == HOSTILE
    assert sent(run(venn_page, caption=HOSTILE))["caption"] == HOSTILE


@pytest.mark.parametrize("script", sorted(COMPONENTS.rglob("*.js")), ids=lambda path: path.name)
def test_scripts_write_text_and_never_markup(script: Path) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", script.read_text("utf-8"))


# Combinations


def test_combinations_are_ordered_by_heads_then_roles() -> None:
    assert [(each.roles, each.heads) for each in Overlaps(roles=COARSE_ROLES, combinations=COUNTS).rows] == [
        (("local",), 5),
        (("delimiter",), 5),
        ((), 3),
        (("local", "block"), 2),
        (COARSE_ROLES, 1),
    ]


def test_combinations_are_named_exactly() -> None:
    assert exact_name(()) == "no role"
    assert exact_name(("local",)) == "local only"
    assert exact_name(("local", "delimiter")) == "local and delimiter only"
    assert exact_name(("local", "delimiter", "block")) == "local, delimiter and block only"


# The Venn diagram


@pytest.mark.parametrize("n_roles", [2, 3, 4])
def test_there_is_a_region_for_each_combination(n_roles: int) -> None:
    geometry = GEOMETRY[str(n_roles)]
    assert sorted(region["code"] for region in geometry["regions"]) == list(range(1, 2**n_roles))
    assert len(geometry["ellipses"]) == len(geometry["labels"]) == n_roles


@pytest.mark.parametrize("n_roles", [2, 3, 4])
def test_each_number_stands_inside_exactly_its_outlines_and_inside_its_region(n_roles: int) -> None:
    outlines = [corners(path) for path in GEOMETRY[str(n_roles)]["ellipses"]]
    for region in GEOMETRY[str(n_roles)]["regions"]:
        inside = [_inside(outline, region["x"], region["y"]) for outline in outlines]
        assert sum(1 << bit for bit, within in enumerate(inside) if within) == region["code"]
        assert _inside(corners(region["path"]), region["x"], region["y"])


@pytest.mark.parametrize("n_roles", [2, 3])
def test_the_regions_of_circles_fill_them_without_overlaps(n_roles: int) -> None:
    geometry = GEOMETRY[str(n_roles)]
    for bit, circle in enumerate(geometry["ellipses"]):
        parts = [corners(region["path"]) for region in geometry["regions"] if region["code"] >> bit & 1]
        assert sum(map(area, parts)) == pytest.approx(area(corners(circle)), rel=2e-3)


def corners(path: str) -> np.ndarray:
    return np.array(re.findall(r"([\d.]+),([\d.]+)", path), dtype=float)


def area(outline: np.ndarray) -> float:
    (x, y), (next_x, next_y) = outline.T, np.roll(outline, -1, axis=0).T
    return float(abs((x * next_y - next_x * y).sum()) / 2)


def _inside(outline: np.ndarray, x: float, y: float) -> bool:
    """Whether a ray to the right of the point crosses the outline an odd number of times."""
    (x1, y1), (x2, y2) = outline.T, np.roll(outline, -1, axis=0).T
    crosses = (y1 > y) != (y2 > y)
    slope = np.where(crosses, (x2 - x1) / np.where(y2 == y1, 1, y2 - y1), 0)
    return bool(np.sum(crosses & (x < x1 + slope * (y - y1))) % 2)


def test_regions_and_no_role_sum_to_all_heads() -> None:
    data = sent(run(venn_page))
    assert sum(row["heads"] for row in data["rows"]) == data["heads"] == 16
    assert {row["code"]: row["heads"] for row in data["rows"]} == {0: 3, 1: 5, 4: 5, 9: 2, 15: 1}
    assert data["totals"] == [8, 1, 6, 3]
    assert "local and block only: 2 heads" in [row["label"] for row in data["rows"]]


def test_data_stays_the_same_when_only_the_region_changes() -> None:
    app = run(venn_page)
    before = payload(app)
    assert app.session_state["result"] is None
    app.session_state["venn"] = {"region": ["block", "local"]}
    app.run()
    assert app.session_state["result"] == ("local", "block")
    assert payload(app) == before


@pytest.mark.parametrize("region", [None, ["syntactic:nsubj"], "local", 3, [["local"]], {"local": 1}])
def test_heads_without_a_role_are_a_selection_and_neither_nothing_nor_a_region_of_other_roles_is(
    region: object,
) -> None:
    assert selected_combination({"region": []}, COARSE_ROLES) == ()
    assert selected_combination(None, COARSE_ROLES) is None
    assert selected_combination({"region": region}, COARSE_ROLES) is None


def test_more_than_four_roles_are_shown_as_a_table_alone() -> None:
    data = sent(run(venn_page, all=True))
    assert data["geometry"] is None
    assert len(data["looks"]) == len(ROLES)
    assert code(ROLES, ("block", "local")) in [row["code"] for row in data["rows"]]


# The overview


def overview_arguments(**changes: Any) -> dict[str, Any]:
    """Two heads, 7 queries in blocks of 3, 10 keys in blocks of 4: uniform attention, then the last key alone."""
    attention = np.full((2, 3, 3), 1 / 10)
    attention[1] = [0, 0, 1 / 2]
    given = {"attention": attention, "heads": [(0, 1), (2, 3)], "tokens": (7, 10), "block": (3, 4), "label": "Maps"}
    return {**given, "window": Window((2, 5), (5, 9)), **changes}


def overview_page() -> None:
    import streamlit as st

    from attention_sieve.dashboard.components.overview import Overview, attention_overview
    from attention_sieve.dashboard.components.source import Selection

    def note(window: object) -> None:
        st.session_state["told"] = window

    given = dict(st.session_state["arguments"])
    selection = Selection("overview", given.pop("window"), st.session_state.get("reset"), note)
    st.session_state["result"] = attention_overview(Overview(**given), selection)


def ratios(data: dict[str, Any]) -> np.ndarray:
    """Times uniform attention, as the browser reads it; NaN where no query sees a key."""
    steps = numbers(data["ratios"], "<u2").astype(float).reshape(len(data["heads"]), 3, -1)
    return np.where(steps == 65535, np.nan, np.where(steps == 0, 0, 2 ** (steps / 1800 - 16)))


def test_cells_travel_as_multiples_of_uniform_attention() -> None:
    found = ratios(sent(run(overview_page, arguments=overview_arguments())))
    assert found[0] == pytest.approx(np.ones((3, 3)), rel=1e-3)
    assert found[1] == pytest.approx(np.tile([0, 0, 5], (3, 1)), rel=1e-3)


def test_uniform_attention_of_a_causal_text_is_one_wherever_a_key_is_seen() -> None:
    weights = np.tril(np.ones((7, 7))) / np.arange(1, 8)[:, None]
    cells = [[[weights[q : q + 3, k : k + 2].mean() for k in range(0, 7, 2)] for q in range(0, 7, 3)]]
    given = overview_arguments(
        attention=np.array(cells),
        heads=[(0, 1)],
        tokens=(7, 7),
        block=(3, 2),
        causal=True,
        window=Window((0, 2), (0, 2)),
    )
    one, unseen = 1, np.nan
    expected = [[one, one, unseen, unseen], [one, one, one, unseen], [one, one, one, one]]
    assert ratios(sent(run(overview_page, arguments=given)))[0] == pytest.approx(np.array(expected), 1e-3, nan_ok=True)


@given(st.floats(2**-15, 2**19))
def test_a_ratio_is_sent_right_to_a_thousandth(ratio: float) -> None:
    from attention_sieve.dashboard.components.overview import _coded

    step = _coded(np.array([[[ratio / 8]]]), np.array([[1 / 8]])).item()
    assert 2 ** (step / 1800 - 16) == pytest.approx(ratio, rel=1e-3)


def test_a_moved_window_sends_the_maps_only_once() -> None:
    app = run(overview_page, arguments=overview_arguments())
    before = payload(app)
    assert app.session_state["result"] == Window((2, 5), (5, 9))
    app.session_state["overview"] = {"start": [1, 0]}
    app.run()
    assert app.session_state["result"] == Window((1, 4), (0, 4))
    assert payload(app) == before
    app.session_state["reset"] = "another text"
    app.run()
    assert app.session_state["result"] == Window((2, 5), (5, 9))


@pytest.mark.parametrize(
    ("state", "start"),
    [
        (None, (2, 5)),
        ({"start": "12"}, (2, 5)),
        ({"start": [True, 1]}, (2, 5)),
        ({"start": [0.5, 1]}, (2, 5)),
        ({"start": [1]}, (2, 5)),
        ({"start": [-3, 99]}, (0, 6)),
    ],
)
def test_a_window_from_the_browser_lies_inside_the_text(state: object, start: tuple[int, int]) -> None:
    assert chosen_window(state, Window((2, 5), (5, 9)), 7, 10) == Window(
        (start[0], start[0] + 3), (start[1], start[1] + 4)
    )
    larger = Window((5, 261), (5, 261))
    assert chosen_window(None, larger, 7, 10) == Window((0, 7), (0, 10)), "is the text"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": [(0, 0)] * 13}, "1 to 12 heads, got 13"),
        ({"block": (0, 4)}, r"at least 1, got \(7, 10\) tokens in blocks of \(0, 4\)"),
        ({"tokens": (129, 10), "block": (1, 4)}, "at most 128 x 128 cells, got 129 x 3"),
        ({"tokens": (7, 13)}, r"in blocks of 3 x 4 need attention of shape \(2, 3, 4\), got \(2, 3, 3\)"),
        ({"attention": np.full((2, 3, 3), np.nan)}, "negative or missing weights"),
        ({"attention": np.full((2, 3, 3), 1 / 3)}, r"one is off by 2\.33. Give the mean weight of each cell"),
        ({"causal": True}, "attends to no later token, but these maps do"),
        ({"window": Window((3, 3), (0, 4))}, "tokens on both sides, got those from 3 to 2"),
    ],
)
def test_maps_that_do_not_fit_are_named(changes: dict[str, Any], message: str) -> None:
    given = overview_arguments(**changes)
    selection = Selection("overview", given.pop("window"))
    with pytest.raises(ValueError, match=message):
        attention_overview(Overview(**given), selection)


def test_twelve_maps_of_128_by_128_cells_stay_below_600_kilobytes() -> None:
    attention = np.random.default_rng(0).dirichlet(np.ones(128), size=(12, 128)) / 32
    given = overview_arguments(
        attention=attention, heads=[(0, head) for head in range(12)], tokens=(4096, 4096), block=(32, 32)
    )
    assert len(payload(run(overview_page, arguments=given))) < 600_000


# Files for download


def _grid_file(caption: str = "caption", off: Any = ()) -> str:
    scores = np.linspace(0, 6, len(ROLES) * 2 * 3).reshape(len(ROLES), 2, 3)
    scores[3, 0] = np.nan
    grid = RoleGrid(label=f"Roles {caption}", scores=scores, holds=scores > 3, tau=3.0, shown=FINE_ROLES, off=off)
    return grid_svg(grid, caption=[caption], chosen=[(1, 2)])


def _venn_file(caption: str = "caption") -> str:
    return venn_svg(Overlaps(roles=COARSE_ROLES, combinations=COUNTS), title=f"Overlap {caption}", caption=[caption])


@pytest.mark.parametrize("write", [_grid_file, _venn_file])
def test_files_escape_hostile_text(write: Any) -> None:
    assert HOSTILE.replace("\x00", "\ufffd") in texts_of(write(HOSTILE))
    assert not list(ET.fromstring(write(HOSTILE)).iter(f"{SVG}img"))


@pytest.mark.parametrize("write", [_grid_file, _venn_file])
def test_files_are_drawn_with_their_text(write: Any) -> None:
    def drawn(svg: str) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(vl_convert.svg_to_png(svg))).convert("L"))

    # Dots of one colour differ only when letters are drawn.
    with_text, without = drawn(write()), drawn(re.sub(r"<text.*?</text>", "", write()))
    assert with_text.shape == without.shape
    assert (with_text != without).sum() > 500


def test_heads_that_share_keys_and_values_are_bracketed_in_files() -> None:
    scores = np.zeros((1, 2, 6))
    grid = RoleGrid(roles=["local"], scores=scores, holds=scores > 1, tau=3.0, label="Grid")
    head_map = HeadMap(title="", label="Map", values=scores[0], bound=1)
    for alone, grouped in (
        (grid_svg(grid), grid_svg(replace(grid, n_shared=3))),
        (head_map_svg(head_map), head_map_svg(replace(head_map, n_shared=3))),
    ):
        assert set(texts_of(grouped)) - set(texts_of(alone)) == {SHARED}
        paths = [len(list(ET.fromstring(each).iter(f"{SVG}path"))) for each in (alone, grouped)]
        assert paths == [0, 2 + 1], "one a group, one in the legend"


def test_a_file_may_have_a_column_for_each_layer() -> None:
    scores = np.zeros((1, 5, 4))
    down = RoleGrid(roles=["local"], scores=scores, holds=scores > 1, tau=3.0, label="Grid", n_shared=2)

    def places(grid: RoleGrid) -> np.ndarray:
        groups = ET.fromstring(grid_svg(grid)).iter(f"{SVG}g")
        moves = [group.get("transform", "") for group in groups if group.get("clip-path")]
        return np.array([re.findall(r"[\d.]+", move) for move in moves], float).reshape(5, 4, 2)

    across = replace(down, layers_across=True)
    corner = [LEFT, ABOVE]
    np.testing.assert_array_equal(places(across) - corner, (places(down) - corner)[..., ::-1])
    said = texts_of(grid_svg(across))
    assert said.index("Head") < said.index("Layer"), "heads down, layers across"


def test_the_file_strikes_through_the_heads_that_are_off() -> None:
    def lines(off: Any) -> list[ET.Element]:
        groups = ET.fromstring(_grid_file(off=off)).iter(f"{SVG}g")
        cells = [group for group in groups if group.get("clip-path")]
        return [list(cell.iter(f"{SVG}line")) for cell in cells]

    assert not any(lines(()))
    assert [place for place, struck in enumerate(lines([(0, 1), (1, 2)])) if struck] == [1, 5]


def test_the_venn_file_counts_what_the_page_counts() -> None:
    assert {"no role: 3 of 16", "local 8"} <= set(texts_of(_venn_file()))


def test_a_file_of_all_roles_shows_combinations_alone() -> None:
    svg = venn_svg(Overlaps(roles=ROLES, combinations=COUNTS), title="All", caption=[])
    assert not list(ET.fromstring(svg).iter(f"{SVG}path"))
    assert "block 3" in texts_of(svg)
