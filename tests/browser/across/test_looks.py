"""How the pages look: accessible, and nothing overlaps or is cut, light and dark, wide and narrow."""

from looks import (
    LAYOUT,
    darken,
    expect_accessible,
    expect_contrast,
    expect_fits,
    expect_tabs_to_look_right,
    lighten,
    open_expanders,
    resize,
)
from playwright.sync_api import expect
from steps import arcs, cell, choose, grid_of, name_checkpoint, settle, wait_for

TABS = ("Per layer", "p-values", "Score distributions", "Sensitivity", "Overlaps", "Table")


def drawn(page):
    """Wait until the page has its grid, and its arcs, its charts or its tables."""
    settle(page)
    expect(grid_of(page).get_by_role("gridcell").first).to_be_visible()
    seen = ".view .drawing, svg.marks, canvas.marks, [data-testid=stDataFrame] canvas"
    expect(page.locator(seen).first).to_be_visible()


def open_tab(page, tab):
    page.get_by_role("tab", name=tab).click()
    expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
    drawn(page)


def test_inspect_is_accessible_and_fits(visit):
    shown = "sieve=local&head=1-4,0-2&off=0-2,1-4&finer=true&head+details=Roles"
    page = visit(f"/?text=One+text.%0AUnbelievable+words.&{shown}")
    drawn(page)
    expect_fits(page)
    open_expanders(page.locator("body"))
    cell(page, 2, 3).hover()
    arcs(page).get_by_role("radio", name="Matrix").check()
    expect(arcs(page).locator(".matrix canvas").first).to_be_visible()
    expect_accessible(page)
    darken(page)
    expect_contrast(page)
    page.mouse.move(0, 0)
    resize(page, "narrow")
    expect_fits(page)
    arcs(page).get_by_role("radio", name="Arcs").check()
    resize(page, "tablet")
    expect_fits(page)
    name_checkpoint(page, "/nowhere")
    expect(page.get_by_role("alert")).to_be_visible()
    settle(page)
    expect_contrast(page)
    lighten(page)
    expect_accessible(page)


def test_roles_is_accessible_and_fits(visit):
    page = visit("/roles?roles+finer=true&details=Per+layer")
    drawn(page)
    expect_tabs_to_look_right(page, TABS, open_tab)
    page.get_by_role("tab", name="Combinations").click()
    page.get_by_role("button", name="16 heads: no role").click()
    expect_accessible(page)
    open_expanders(page.get_by_test_id("stMain"))
    resize(page, "narrow")
    expect_fits(page)
    choose(page, "Corpus", "upload a file")
    expect(page.get_by_text("Upload a file of texts in the sidebar")).to_be_visible()
    settle(page)
    expect_accessible(page)


def test_a_long_text_and_cross_attention_are_accessible_and_fit_a_narrow_screen(visit, encoder_decoder):
    across = f"/?checkpoint={encoder_decoder}&attention=cross-attention&text=the+cat+sat+|||+a+dog&off=2-3&head=2-3"
    for path in (f"/?text={'word+' * 300}&off=1-3&head=2-1", across):
        page = visit(path, width=390, height=844)
        drawn(page)
        expect(page.get_by_role("heading", name="What changes without it")).to_be_visible()
        expect_fits(page)
        expect_accessible(page)


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
    wrongs = ("cut: <p", "controls overlap", "texts overlap", "scrolls sideways")
    wait_for(page, lambda: " ".join(page.evaluate(LAYOUT)), lambda said: all(wrong in said for wrong in wrongs))
