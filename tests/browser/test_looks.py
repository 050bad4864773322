"""How the pages look: accessible, and nothing overlaps or is cut, light and dark, wide and narrow."""

import pytest
from looks import LAYOUT, SIZES, open_expanders, violations, wrongs
from playwright.sync_api import expect
from steps import arcs, cell, cells, choose, name_checkpoint, settle

TABS = ("Per layer", "p-values", "Score distributions", "Overlaps", "Table")


def drawn(page):
    """Wait until the page has its charts and its fonts."""
    settle(page)
    assert cells(page)
    expect(page.locator("svg.marks, canvas.marks, [data-testid=stDataFrame] canvas").first).to_be_visible()
    page.wait_for_function("document.fonts.status === 'loaded'")


@pytest.mark.parametrize(("colours", "off"), [("light", ""), ("dark", "&off=0-2,1-4")])
def test_inspect_has_no_accessibility_violation(visit, colours, off):
    page = visit(f"/?text=One+text.%0AAnother+one.&sieve=local&head=1-4,0-2{off}", colours)
    drawn(page)
    open_expanders(page)
    cell(page, 2, 3).hover()
    arcs(page).get_by_role("radio", name="Matrix").check()
    expect(arcs(page).locator(".matrix canvas").first).to_be_visible()
    assert violations(page) == []
    name_checkpoint(page, "/nowhere")
    expect(page.get_by_role("alert")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_roles_has_no_accessibility_violation(visit, colours):
    page = visit("/roles", colours)
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
        drawn(page)
        assert violations(page) == []
    page.get_by_role("button", name="16 heads: no role").click()
    open_expanders(page)
    choose(page, "Texts for the test", "upload a file")
    expect(page.get_by_text("Upload a file of texts in the sidebar")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize(
    ("size", "colours"), [("wide", "light"), ("tablet", "light"), ("narrow", "light"), ("narrow", "dark")]
)
@pytest.mark.parametrize("path", ["/?sieve=local&head=1-4,0-2&off=0-2", "/roles"], ids=["inspect", "roles"])
def test_nothing_overlaps_or_is_cut(visit, path, size, colours):
    width, height = SIZES[size]
    page = visit(path, colours, width=width, height=height)
    drawn(page)
    assert wrongs(page) == []
    for tab in TABS[1:] if path == "/roles" and colours == "light" else ():
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
        drawn(page)
        assert wrongs(page) == []


def test_everything_opened_on_a_narrow_screen_still_fits(visit):
    for path in ("/?finer=true&head=1-4,0-2,3-3,5-11&text=Unbelievable+words", "/roles?roles+finer=true"):
        page = visit(path, width=390, height=844)
        drawn(page)
        open_expanders(page.get_by_test_id("stMain"))
        assert wrongs(page) == []


def test_a_long_text_and_cross_attention_are_accessible_and_fit_a_narrow_screen(visit, encoder_decoder):
    across = f"/?checkpoint={encoder_decoder}&attention=cross-attention&text=the+cat+sat+|||+a+dog&off=2-3&head=2-3"
    for path in (f"/?text={'word+' * 300}&off=1-3&head=2-1", across):
        page = visit(path, width=390, height=844)
        drawn(page)
        expect(page.get_by_role("heading", name="What changes without them")).to_be_visible()
        assert violations(page) == []
        assert wrongs(page) == []


def test_the_layout_check_finds_what_is_wrong(visit):
    page = visit("/")
    drawn(page)
    page.evaluate("""() => {
        const box = document.createElement("div");
        box.innerHTML = `<p style="width: 40px; overflow: hidden; white-space: nowrap">far too long a text</p>
            <button style="position: absolute; left: 400px; top: 20px">one</button>
            <button style="position: absolute; left: 410px; top: 25px">two</button>
            <p style="width: 3000px">wide</p>`;
        document.querySelector("[data-testid=stMainBlockContainer]").prepend(box);
    }""")
    found = " ".join(page.evaluate(LAYOUT))
    for what in ("cut: <p", "controls overlap", "texts overlap", "scrolls sideways"):
        assert what in found
