"""Maps of heads and differences of attention in Chromium: chosen, pointed at and read together."""

import inspect
import re
from pathlib import Path
from textwrap import dedent
from xml.etree import ElementTree

import numpy as np
import pytest
from looks import darken, expect_accessible, expect_fits, lighten, resize
from playwright.sync_api import expect
from steps import expect_drawn, settle, unfolded, wait_for, wait_until_equal

from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, Side, Signs, arcs_svg, top_share

CUT_NUMBERS = """
    () => [...document.querySelectorAll("*")].filter((each) => each.shadowRoot)
        .flatMap((host) => [...host.shadowRoot.querySelectorAll(".number")])
        .filter((each) => {
            const range = document.createRange();
            range.selectNodeContents(each);
            return range.getBoundingClientRect().width >= each.parentElement.getBoundingClientRect().width;
        })
        .map((each) => each.textContent)
"""
"""Numbers that are wider than their cells."""
DRAWN_IN_TEN_FRAMES = """
    async () => {
        const { clearRect } = CanvasRenderingContext2D.prototype;
        let drawn = 0;
        CanvasRenderingContext2D.prototype.clearRect = function (...box) {
            drawn += 1;
            clearRect.apply(this, box);
        };
        for (let frame = 0; frame < 10; frame++) await new Promise(requestAnimationFrame);
        CanvasRenderingContext2D.prototype.clearRect = clearRect;
        return drawn;
    }
"""
PATIENCE_OF_A_VIEW = "() => new Promise((resolve) => setTimeout(resolve, 400))"
"""A view lets go of a token 300 ms after the pointer has left it; a timer that is set later ends later."""
PIXELS = """
    (canvas) => {
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let [red, blue] = [0, 0];
        for (let at = 0; at < data.length; at += 4) {
            if (data[at + 3] < 40) continue;
            if (data[at] > data[at + 2] + 60) red += 1;
            if (data[at + 2] > data[at] + 60) blue += 1;
        }
        return [red, blue];
    }
"""


def maps():
    """Two head maps and two role grids that share one choice; the link says how large they are."""
    import numpy as np
    import streamlit as st

    from attention_sieve.dashboard.components.grid import role_grid
    from attention_sieve.dashboard.components.head_map import head_map
    from attention_sieve.dashboard.components.source import Selection
    from attention_sieve.dashboard.figures.head_map import HeadMap
    from attention_sieve.dashboard.figures.roles.grid import RoleGrid

    def take(heads):
        st.session_state["heads"] = heads
        st.session_state["told"] = st.session_state.get("told", 0) + 1

    layers, heads = (int(size) for size in st.query_params.get("shape", "3x4").split("x"))
    values = np.linspace(-2.5, 2.5, layers * heads).reshape(layers, heads)
    values[0, 1] = np.nan
    marked = np.abs(values) > 2
    hostile = "<img src=x onerror=alert(1)>"
    st.session_state["runs"] = st.session_state.get("runs", 0) + 1
    start = tuple(int(place) for place in st.query_params.get("start", "0-0").split("-"))
    chosen = st.session_state.setdefault("heads", [start])
    change = HeadMap(
        values=values,
        bound=2.0,
        signed=True,
        marked=marked,
        mark="differs significantly",
        details=[("difference", values), (hostile, [[hostile] * heads] * layers)],
        label="Change of local",
        title="local, b − a",
        low_label="lower in b",
        high_label="higher in b",
    )
    head_map(change, Selection("change", chosen, tuple(chosen), take))
    shared = int(st.query_params.get("shared", 1))
    size = HeadMap(values=np.abs(values), bound=3.0, label="Divergence", title="nats", n_shared=shared)
    head_map(size, Selection("size", chosen, tuple(chosen), take))
    scores = np.abs(values)[None]
    for name in ("a", "b"):
        grid = RoleGrid(
            roles=["local"], scores=scores, holds=scores > 1, tau=3.0, label=f"Roles {name}", n_shared=shared
        )
        role_grid(grid, Selection(name, chosen, tuple(chosen), take))
    st.text(f"{st.session_state['runs']} runs, told {st.session_state.get('told', 0)} times")


def differences():
    """The same head in two checkpoints, and the difference; the link says how long, how sharp and how joined."""
    from dataclasses import replace

    import streamlit as st
    from test_comparison_views import attention_of, sharp_and_thin, side_of

    from attention_sieve.dashboard.components.arcs import attention_arcs
    from attention_sieve.dashboard.components.arcs.look import ArcSettings, ArcStyle, Group, Overlay
    from attention_sieve.dashboard.components.source import Selection
    from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, Signs

    n_tokens = int(st.query_params.get("tokens", 7))
    a, b = sharp_and_thin() if st.query_params.get("sharp") else attention_of(n_tokens)
    if st.query_params.get("equal"):
        b = a
    style = ArcStyle(group=None if st.query_params.get("alone") else Group("L3 H7"), height=400)
    side = side_of(a.shape[-1])
    in_a = AttentionMaps(queries=side, keys=side, attention=a, heads=[(3, 7)], label="Attention in a")
    overlay = Overlay(chosen=("local", abs(a[0]) < 2)) if st.query_params.get("sieve") else None
    attention_arcs(in_a, Selection("arcs a", ArcSettings()), style)
    if not st.query_params.get("late") or st.toggle("Compare"):
        in_b = replace(in_a, attention=b, label="Attention in b")
        attention_arcs(in_b, Selection("arcs b", ArcSettings()), style)
    signs = Signs("more attention in b", "less attention in b")
    difference = replace(in_a, attention=b - a, signs=signs, label="Difference, b minus a")
    attention_arcs(difference, Selection("arcs d", ArcSettings()), style, overlay=overlay)


def side_of(n_tokens):
    """[CLS], a word of two pieces, other words, [SEP]."""
    tokens = ["[CLS]", "grand", "##mother", *(f"w{number}" for number in range(n_tokens - 4)), "[SEP]"]
    special = np.isin(np.arange(n_tokens), [0, n_tokens - 1])
    words = np.where(special, -1, np.maximum(np.arange(n_tokens) - 2, 0))
    return Side(tokens=tokens, special=special, segments=np.where(special, -1, 0), words=words)


def attention_of(n_tokens):
    """One head's attention in two checkpoints."""
    return np.random.default_rng(3).dirichlet(np.full(n_tokens, 0.5), size=(2, 1, n_tokens))


def sharp_and_thin():
    """One head's attention to a long text: in a on few keys, in b on so many that half of it is too much to draw."""
    random = np.random.default_rng(4)
    return [random.dirichlet(np.full(LONG, spread), size=(1, LONG)) for spread in (0.01, 0.1)]


LONG = 442
ROW = 22
"""Pixels."""


@pytest.fixture(scope="module")
def server(served, tmp_path_factory):
    """Address of a page with the maps, and at ?view=arcs of one with the differences."""
    folder = tmp_path_factory.mktemp("views")
    sources = "\n\n".join(dedent(inspect.getsource(page)) for page in (maps, differences))
    choose = 'import sys\n\nimport streamlit as st\n\nst.set_page_config(layout="wide")\n'
    choose += f"sys.path += {[str(path) for path in Path(__file__).parents[:2]]}\n\n\n"
    view = '\n\n(differences if st.query_params.get("view") == "arcs" else maps)()\n'
    script = folder / "views.py"
    script.write_text(choose + sources + view, "utf-8")
    with served(folder, script) as running:
        yield running.address


# Maps of heads


def grid(page, name):
    return page.get_by_role("grid", name=name, exact=True)


def cell_of(page, name, layer, head):
    return grid(page, name).get_by_role("gridcell", name=f"Layer {layer}, head {head}:")


def expect_chosen_everywhere(page, heads):
    for name in ("Change of local", "Divergence", "Roles a", "Roles b"):
        chosen = grid(page, name).locator("[aria-selected=true]")
        expect(chosen).to_have_count(len(heads))
        for number, (layer, head) in enumerate(sorted(heads)):
            expect(chosen.nth(number)).to_have_accessible_name(re.compile(f"^Layer {layer}, head {head}:"))


def test_cells_say_their_numbers_a_head_chosen_in_one_view_is_chosen_in_all_by_one_run_and_maps_look_right(visit):
    page = visit("/")
    expect_a_cell_to_say_its_number_and_its_details_as_text(page)
    expect_one_choice_by_one_run(page)
    darken(page)
    expect_maps_to_look_right(page)
    lighten(page)
    resize(page, "narrow")
    expect_maps_to_look_right(page)


def test_heads_that_share_keys_and_values_are_bracketed_and_chosen_together_on_request(visit):
    page = visit("/?shared=2")
    brackets = grid(page, "Roles a").locator(".bracket")
    expect(brackets).to_have_count(2)
    spans = [brackets.nth(place).bounding_box() for place in range(2)]
    cells = [cell_of(page, "Roles a", 0, head).bounding_box() for head in range(4)]
    for span, first, last in zip(spans, cells[::2], cells[1::2]):
        assert abs(span["x"] - first["x"]) < 1
        assert abs(span["x"] + span["width"] - last["x"] - last["width"]) < 1
    cell_of(page, "Divergence", 1, 2).click()
    expect_chosen_everywhere(page, [(1, 2)])
    view = page.locator(".wrap").filter(has=grid(page, "Roles a"))
    view.get_by_role("button", name="Choose whole groups").click()
    cell_of(page, "Roles a", 1, 2).click()
    expect_chosen_everywhere(page, [(1, 2), (1, 3)])
    cell_of(page, "Roles a", 2, 1).click(modifiers=["Shift"])
    expect_chosen_everywhere(page, [(1, 2), (1, 3), (2, 0), (2, 1)])
    cell_of(page, "Roles a", 1, 3).click(modifiers=["Shift"])
    expect_chosen_everywhere(page, [(2, 0), (2, 1)])
    expect(cell_of(page, "Roles a", 2, 1)).to_have_accessible_name(re.compile(r"Shares keys and values with H0\.$"))
    expect(grid(page, "Change of local").locator(".bracket")).to_have_count(0)
    expect_maps_to_look_right(page)


def expect_maps_to_look_right(page):
    page.mouse.move(0, 0)
    expect(page.locator(".tip:popover-open")).to_have_count(0)
    expect(grid(page, "Roles b")).to_be_visible()
    settle(page)
    expect_fits(page)
    expect_accessible(page)


def expect_one_choice_by_one_run(page):
    expect_chosen_everywhere(page, [(0, 0)])
    cell_of(page, "Change of local", 2, 3).click()
    expect_chosen_everywhere(page, [(2, 3)])
    expect(page.get_by_text("2 runs, told 1 times", exact=True)).to_be_visible()
    cell_of(page, "Roles b", 1, 0).click()
    expect_chosen_everywhere(page, [(1, 0)])
    cell_of(page, "Divergence", 0, 2).click(modifiers=["Shift"])
    expect_chosen_everywhere(page, [(1, 0), (0, 2)])
    expect(page.get_by_text("4 runs, told 3 times", exact=True)).to_be_visible()
    # The keyboard goes on from where the reader is, not from the first chosen head.
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+Enter")
    expect_chosen_everywhere(page, [(1, 0), (0, 2), (0, 3)])
    page.keyboard.press("Escape")  # Enter has closed the tooltip
    expect_chosen_everywhere(page, [(1, 0)])
    expect(page.get_by_text("6 runs, told 5 times", exact=True)).to_be_visible()


def expect_a_cell_to_say_its_number_and_its_details_as_text(page):
    cell = cell_of(page, "Change of local", 2, 3)
    expect(cell).to_have_text("+2.5")
    details = "difference: 2.5. <img src=x onerror=alert(1)>: <img src=x onerror=alert(1)>."
    expect(cell).to_have_accessible_name(f"Layer 2, head 3: +2.5, differs significantly. {details}")
    expect(cell_of(page, "Change of local", 0, 1)).to_have_accessible_name(
        re.compile("^Layer 0, head 1: not applicable")
    )
    cell.hover()
    tip = page.locator(".tip:popover-open")
    expect(tip).to_have_count(1)
    expect(tip.get_by_text("differs significantly")).to_be_visible()
    expect(tip.locator("td")).to_have_text(["2.5", "<img src=x onerror=alert(1)>"])
    expect(page.locator("img")).to_have_count(0)
    legend = page.locator(".legend").first
    for words in ("local, b − a", "lower in b ≤ −2", "≥ +2 higher in b", "differs significantly", "not applicable"):
        expect(legend.get_by_text(words, exact=True)).to_be_visible()


def test_numbers_of_large_checkpoints_fit_their_cells_and_the_chosen_head_is_in_sight_on_a_phone(visit):
    page = visit("/?shape=8x32", height=844)
    expect_large_maps_to_fit(page)
    resize(page, "narrow")
    expect_large_maps_to_fit(page)
    page = visit("/?shape=24x16&start=20-3", width=390, height=844)
    expect(cell_of(page, "Change of local", 20, 3)).to_be_in_viewport()
    expect(cell_of(page, "Change of local", 0, 3)).not_to_be_in_viewport()
    expect_large_maps_to_fit(page)


def expect_large_maps_to_fit(page):
    expect(grid(page, "Roles b")).to_be_visible()
    width = page.viewport_size["width"]
    wait_for(page, lambda: page.evaluate("document.scrollingElement.scrollWidth"), lambda drawn: drawn <= width)
    wait_until_equal(page, lambda: page.evaluate(CUT_NUMBERS), [])


# Differences of attention


def view_of(page, name):
    return page.get_by_role("region", name=name, exact=True)


VIEWS = ("Attention in a", "Attention in b", "Difference, b minus a")


def token(page, view, label, side="From: queries"):
    return view_of(page, view).get_by_role("listbox", name=side).get_by_role("option").filter(has_text=label)


def expect_numbers_beside(page, view, values, side="To: keys"):
    """Wait until these stand beside the rows; nothing beside one whose value is too small."""
    rows = view_of(page, view).get_by_role("listbox", name=side).get_by_role("option")
    read = "rows => rows.map((row) => row.querySelector('.number')?.textContent ?? '')"
    wait_until_equal(page, lambda: rows.evaluate_all(read), [signed_text(value) for value in values])


def signed_text(value):
    return "" if abs(value) <= 0.005 else f"{value:+.2f}".replace("-", "−")


def test_a_difference_says_draws_and_colours_what_the_numbers_are_and_its_group_moves_together(visit):
    page = visit("/?view=arcs", height=600)
    expect_rows_that_come_into_view_without_scrolling_to_be_drawn(page)
    expect_links_to_be_drawn_anew_when_a_higher_window_makes_the_rows_higher(page)
    expect_more_and_less_beside_the_other_side_of_a_token_pointed_at(page)
    expect_as_many_differences_as_the_file_draws(page)
    expect_more_to_be_red_and_less_blue_in_arcs_and_matrix(page)
    expect_slider_and_switches_to_move(page, in_group=True)


def expect_rows_that_come_into_view_without_scrolling_to_be_drawn(page):
    token(page, VIEWS[0], "w1").click()
    numbers = view_of(page, VIEWS[0]).locator(".number")
    wait_for(page, numbers.count, lambda count: count > 1)
    expected = numbers.all_inner_texts()
    above = page.get_by_test_id("stMainBlockContainer")
    above.evaluate("each => (each.style.paddingTop = '3000px')")
    page.set_viewport_size({"width": 1300, "height": 600})  # draws anew what is in view
    expect(numbers).to_have_count(1)
    above.evaluate("each => (each.style.paddingTop = '')")
    wait_until_equal(page, numbers.all_inner_texts, expected)
    page.keyboard.press("Escape")


def expect_more_and_less_beside_the_other_side_of_a_token_pointed_at(page):
    a, b = attention_of(7)
    token(page, VIEWS[2], "w1").hover()
    expect(view_of(page, VIEWS[2]).get_by_text(re.compile("^From “.w1.” to “"))).to_be_visible()
    expect_numbers_beside(page, VIEWS[2], (b - a)[0, 4])
    token(page, VIEWS[2], "w1", "To: keys").hover()
    expect(view_of(page, VIEWS[2]).get_by_text(re.compile("^To “.w1.” from “"))).to_be_visible()
    expect_numbers_beside(page, VIEWS[2], (b - a)[0, :, 4], "From: queries")
    page.mouse.move(0, 0)
    assert any(signed_text(value).startswith("−") for value in (b - a)[0, :, 4])


def expect_links_to_be_drawn_anew_when_a_higher_window_makes_the_rows_higher(page):
    base, tokens = (view_of(page, VIEWS[0]).locator(part) for part in ("canvas.base", ".tokens.from"))
    height = "each => each.getBoundingClientRect().height"
    expect_drawn(base)
    low = base.evaluate(height)
    page.set_viewport_size({"width": 1440, "height": 900})
    wait_for(page, lambda: base.evaluate(height), lambda now: now > low)
    assert base.evaluate(height) == pytest.approx(tokens.evaluate(height), abs=2)


def expect_as_many_differences_as_the_file_draws(page):
    a, b = attention_of(7)
    share = 0.5
    for steps in (0, 4, 6):
        for _ in range(steps):
            slider(page, VIEWS[2]).press("ArrowRight")
        share = round(share + 0.05 * steps, 2)
        side = side_of(7)
        maps = AttentionMaps(queries=side, keys=side, attention=b - a, heads=[(3, 7)], signs=Signs(), label="")
        svg = arcs_svg(maps, share=share, title="T", caption=[])
        n_paths = len(list(ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}path")))
        expect(view_of(page, VIEWS[2]).locator(".summary")).to_have_text(re.compile(f"^{n_paths} links shown"))
    slider(page, VIEWS[2]).fill("0.5")


def pixels(page, view):
    """How many are red, and how many blue."""
    return view_of(page, view).locator("canvas.base").evaluate(PIXELS)


def expect_more_to_be_red_and_less_blue_in_arcs_and_matrix(page):
    difference = view_of(page, VIEWS[2])
    for words in ("+ more attention in b", "− less attention in b"):
        expect(difference.get_by_text(words)).to_be_visible()
    wait_for(page, lambda: pixels(page, VIEWS[2]), lambda red_blue: min(red_blue) > 100)
    wait_for(page, lambda: pixels(page, VIEWS[0]), lambda red_blue: red_blue[0] == 0 < red_blue[1])
    difference.get_by_role("radio", name="Matrix").check()
    a, b = attention_of(7)
    # Red against blue in the middle of each cell of 24 pixels; the cells end one pixel before the canvas does.
    middles = """(canvas) => {
        const context = canvas.getContext("2d");
        const room = canvas.width - 7 * 24 - 1;
        const middle = (place) => room + place * 24 + 12;
        return Array.from({ length: 49 }, (_, at) => {
            const [red, , blue] = context.getImageData(middle(at % 7), middle(Math.floor(at / 7)), 1, 1).data;
            return red - blue;
        });
    }"""
    clear = np.abs(b - a).ravel() > 0.02
    assert clear.sum() > 30
    matrix = difference.locator(".matrix canvas")
    expect_drawn(matrix)
    wait_for(
        page,
        lambda: matrix.evaluate(middles),
        lambda drawn: (np.sign(drawn) == np.sign(b - a).ravel())[clear].all(),
    )
    matrix.focus()
    page.keyboard.press("ArrowRight")
    expect(difference.locator(".summary")).to_have_text(
        re.compile(f"^L3 H7: “.\\[CLS\\].” to “.\\[CLS\\].” {re.escape(signed_text((b - a)[0, 0, 0]))}$")
    )
    difference.get_by_role("radio", name="Arcs").check()


def test_equal_checkpoints_have_no_difference_to_draw(visit):
    page = visit("/?view=arcs&equal=yes")
    expect(view_of(page, VIEWS[2]).get_by_text("No weight differs by more than 0.005.")).to_be_visible()
    wait_until_equal(page, lambda: pixels(page, VIEWS[2]), [0, 0])
    token(page, VIEWS[2], "w1").hover()
    expect(view_of(page, VIEWS[2]).get_by_text("no weight differs by more than 0.005.")).to_be_visible()


def test_both_checkpoints_and_their_difference_point_pin_and_scroll_together(visit):
    page = visit("/?view=arcs&tokens=40", height=1800)
    for pointed, label in zip(VIEWS, ("w1", "w3", "w5")):
        token(page, pointed, re.compile(f"^{label}$")).hover()
        for view in VIEWS:
            expect(view_of(page, view).locator(".token.current .label")).to_have_text(label)
        page.evaluate(PATIENCE_OF_A_VIEW)  # the view that the pointer left lets go of nothing
        expect(page.locator(".token.current .label")).to_have_text([label] * len(VIEWS))
    token(page, VIEWS[2], re.compile("^w2$")).click()
    for view in VIEWS:
        expect(view_of(page, view).get_by_role("option", selected=True)).to_have_text(re.compile("^w2"))
    page.keyboard.press("Escape")
    for view in VIEWS:
        expect(view_of(page, view).get_by_role("option", selected=True)).to_have_count(0)
    for scrolled, top in ((VIEWS[2], 300), (VIEWS[0], 120), (VIEWS[1], 450)):
        view_of(page, scrolled).locator(".box").evaluate("(box, top) => box.scrollTo(0, top)", top)
        for view in VIEWS:
            box = view_of(page, view).locator(".box")
            page.wait_for_function("([box, top]) => box.scrollTop === top", arg=[box.element_handle(), top])
    expect_a_view_that_was_just_scrolled_by_another_to_lead_at_once(page)


def expect_a_view_that_was_just_scrolled_by_another_to_lead_at_once(page):
    boxes = [view_of(page, view).locator(".box").element_handle() for view in VIEWS]
    boxes[0].evaluate("(box) => box.scrollTo(0, 0)")
    page.wait_for_function("(boxes) => boxes.every((box) => box.scrollTop === 0)", arg=boxes)
    page.evaluate(
        """([first, second]) => {
            first.addEventListener("scroll", () => second.scrollTo(0, 450), { once: true });
            first.scrollTo(0, 300);
        }""",
        boxes[:2],
    )
    page.wait_for_function("(boxes) => boxes.every((box) => box.scrollTop === 450)", arg=boxes, timeout=20_000)


def slider(page, view):
    return unfolded(view_of(page, view)).get_by_role("slider")


ALL = re.compile(r"^([\d,]+) links shown\.")
CUT = re.compile(
    r"^Of ([\d,]+) links, those in the top (\d+)% of each query’s (?:attention|difference) are drawn: ([\d,]+)"
)


def summary(page, view, words):
    """The counts in the line below a view, once it says these words."""
    line = view_of(page, view).locator(".summary")
    counts = words.match(wait_for(page, line.text_content, words.match)).groups()
    return [int(count.replace(",", "")) for count in counts]


def shares_drawn(page):
    """Of each view, in percent."""
    return {summary(page, view, CUT)[1] for view in VIEWS}


def expect_cut_alike(page, maps, is_expected):
    """Wait until all views draw one such share, and of each as many links as its map has in that share."""
    (share,) = wait_for(page, lambda: shares_drawn(page), lambda shares: len(shares) == 1 and is_expected(*shares))
    for view, weights in maps.items():
        total, _, drawn = summary(page, view, CUT)
        # The page sends weights in steps and rounds the share that it says.
        low, high = (top_share(weights, (share + aside) / 100).sum() for aside in (-1, 1))
        assert low <= drawn <= high < total, view


def test_links_of_a_long_text_are_drawn_where_they_can_be_seen_in_the_share_that_the_thinner_checkpoint_can(visit):
    alone = visit("/?view=arcs&sharp=yes&alone=yes")
    expect_links_of_a_long_text_where_they_can_be_seen(alone)
    (n_alone,) = summary(alone, VIEWS[0], ALL)
    total, share, _ = summary(alone, VIEWS[1], CUT)
    assert share < 50
    a, b = sharp_and_thin()
    shares = np.abs(b - a) / np.abs(b - a).sum(axis=-1, keepdims=True)
    maps = dict(zip(VIEWS, (a, b, shares)))
    page = visit("/?view=arcs&sharp=yes")
    expect_cut_alike(page, maps, lambda drawn: drawn == share)
    assert summary(page, VIEWS[0], CUT)[0] == n_alone
    assert summary(page, VIEWS[1], CUT)[0] == total
    # A share that both can draw is drawn in full; one that none can is lowered for all.
    slider(page, VIEWS[0]).fill("0.2")
    for view in VIEWS:
        summary(page, view, ALL)
    slider(page, VIEWS[2]).fill("1")
    expect_cut_alike(page, maps, lambda drawn: 20 < drawn <= share)
    # Nobody answers the others' answers.
    wait_until_equal(page, lambda: page.evaluate(DRAWN_IN_TEN_FRAMES), 0)


def expect_links_of_a_long_text_where_they_can_be_seen(page):
    base = view_of(page, VIEWS[0]).locator("canvas.base")
    box = view_of(page, VIEWS[0]).locator(".box")

    def expect_rows(first, last):
        """Wait until links are drawn from one row to another, and on less than half of all rows."""
        drawn = wait_for(
            page,
            lambda: base.evaluate("canvas => [canvas.offsetTop, canvas.offsetTop + canvas.offsetHeight]"),
            lambda drawn: drawn[0] <= first * ROW and last * ROW <= drawn[1],
        )
        assert drawn[1] - drawn[0] < LONG * ROW / 2
        expect_drawn(base)

    expect_rows(0, 16)
    for row in (200, LONG - 16):
        box.evaluate("(box, top) => box.scrollTo(0, top)", row * ROW)
        expect_rows(row, row + 16)


def test_a_checkpoint_that_comes_later_joins_and_one_that_goes_frees_the_rest(visit):
    page = visit("/?view=arcs&sharp=yes&late=yes", height=1800)
    unfolded(view_of(page, VIEWS[0])).get_by_role("radio", name="Hidden").check()
    slider(page, VIEWS[0]).fill("0.3")
    summary(page, VIEWS[0], ALL)
    token(page, VIEWS[0], re.compile("^w2$")).click()
    compare = page.get_by_test_id("stCheckbox").filter(has_text="Compare")
    compare.click()
    expect(slider(page, VIEWS[1])).to_have_value("0.3")
    expect(unfolded(view_of(page, VIEWS[1])).get_by_role("radio", name="Hidden")).to_be_checked()
    for view in VIEWS:
        expect(view_of(page, view).get_by_role("option", selected=True)).to_have_text(re.compile("^w2"))
    view_of(page, VIEWS[1]).get_by_role("button", name="Unpin").click()
    wait_for(page, lambda: shares_drawn(page), lambda shares: len(shares) == 1)
    compare.click()
    expect(view_of(page, VIEWS[1])).to_have_count(0)
    summary(page, VIEWS[0], ALL)


def test_slider_and_switches_of_a_view_in_no_group_move_nothing_else(visit):
    expect_slider_and_switches_to_move(visit("/?view=arcs&alone=yes"), in_group=False)


def expect_slider_and_switches_to_move(page, in_group):
    """Those of all views in a group, or only the ones that are used."""
    token(page, VIEWS[1], "w1").click()
    for moved, share in zip(VIEWS, ("0.2", "0.85", "1")):
        before = [slider(page, view).input_value() for view in VIEWS]
        slider(page, moved).fill(share)
        for view, value in zip(VIEWS, before):
            expected = share if in_group or view == moved else value
            expect(slider(page, view)).to_have_value(expected)
            expect(view_of(page, view).locator(".share output")).to_have_text(f"{float(expected):.0%}")
    for chosen, name in zip(VIEWS, ("Hidden", "Words", "Matrix")):
        unfolded(view_of(page, chosen)).get_by_role("radio", name=name).check()
        for view in VIEWS:
            radio = unfolded(view_of(page, view)).get_by_role("radio", name=name)
            expect(radio).to_be_checked(checked=in_group or view == chosen)
    expect(page.locator(".matrix canvas")).to_have_count(3 if in_group else 1)
    for view in VIEWS:
        expect(unfolded(view_of(page, view)).get_by_role("radio", name="Shown")).to_be_checked(
            checked=not in_group and view != VIEWS[0]
        )
    view_of(page, VIEWS[2]).get_by_role("radio", name="Arcs").check()
    for view in VIEWS if in_group else VIEWS[1:2]:
        expect(view_of(page, view).get_by_role("option", selected=True)).to_have_text(re.compile("^w1"))


def test_differences_fit_and_are_accessible(visit):
    page = visit("/?view=arcs&sieve=yes", height=844)
    darken(page)
    expect_differences_to_look_right(page)
    lighten(page)
    resize(page, "narrow")
    expect_differences_to_look_right(page)


def expect_differences_to_look_right(page):
    """With a token that is pointed at."""

    def pointed_at():
        token(page, VIEWS[2], "w1").hover()
        return view_of(page, VIEWS[2]).locator(".token.current").count()

    wait_for(page, pointed_at, lambda n: n == 1)  # other colours draw the tokens anew under a pointer that rests
    settle(page)
    expect_fits(page)
    expect_accessible(page)
