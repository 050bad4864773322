"""Whether a page is accessible, and whether anything on it overlaps or is cut."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from steps import settle, wait_for, wait_until_equal

AXE = Axe().axe_script
LAYOUT = (Path(__file__).parent / "layout.js").read_text("utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
CONTRAST = ["color-contrast"]
"""The only one that depends on colours."""
PANEL = "[role=tabpanel]"
"""Of an open tab: where a page differs only there, axe need not look at the rest of it again."""
SIZES = {"wide": (1440, 900), "tablet": (1024, 768), "narrow": (390, 844)}
BACKGROUND = "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"


def violations(page, part=None, rules=RULES):
    """What axe finds wrong on the page, or in a part of it: rule, place and beginning of each node."""
    # Without resultTypes axe also describes every node that passes, which takes ten times as long. With preload it
    # reads all style sheets and media again, a fifth of its time, for a rule not among these and for one on sound.
    options = {"runOnly": rules, "resultTypes": ["violations"], "preload": False}
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found = page.evaluate("([part, options]) => axe.run(part ?? document, options)", [part, options])["violations"]
    return [(each["id"], node["target"], node["html"][:200]) for each in found for node in each["nodes"]]


def wrongs(page):
    """What overlaps, is cut, or makes the page scroll sideways."""
    expect(page.locator(".katex-error")).to_have_count(0)
    page.wait_for_function("document.getAnimations().every((each) => each.playState !== 'running')")
    return page.evaluate(LAYOUT)


def expect_accessible(page, part=None):
    """Wait until axe finds nothing wrong: what is being drawn anew is faded."""
    wait_until_equal(page, lambda: violations(page, part), [])


def expect_contrast(page, part=None):
    """Wait until all texts stand out from what is behind them."""
    wait_until_equal(page, lambda: violations(page, part, CONTRAST), [])


def expect_fits(page):
    """Wait until nothing overlaps or is cut."""
    wait_until_equal(page, lambda: wrongs(page), [])


def expect_looks_right(page):
    """Accessible and well laid out: wide and light, narrow and dark, and on a tablet."""
    expect_fits(page)
    expect_accessible(page)
    darken(page)
    resize(page, "narrow")
    expect_fits(page)
    expect_accessible(page)
    resize(page, "tablet")
    expect_fits(page)


def expect_tabs_to_look_right(page, tabs, open_tab):
    """As `expect_looks_right` with each tab open; outside of the tabs' panels the page is looked at once a size."""
    for tab in tabs:
        open_tab(page, tab)
        expect_fits(page)
        expect_accessible(page, None if tab == tabs[-1] else PANEL)
    darken(page)
    sizes = ["narrow", "tablet"]
    for tab in reversed(tabs):  # the last is open already
        open_tab(page, tab)
        for size in sizes:
            resize(page, size)
            expect_fits(page)
            if size == "narrow":
                expect_accessible(page, None if tab == tabs[-1] else PANEL)
        sizes.reverse()  # the next opens in the size that the page has


def darken(page):
    """Turn the system's colours dark, which the page follows: what it shows keeps its place."""
    _turn(page, "dark")


def lighten(page):
    """Turn the system's colours light again."""
    _turn(page, "light")


def _turn(page, colours):
    before = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme=colours)
    wait_for(page, lambda: page.evaluate(BACKGROUND), lambda now: now != before)
    settle(page)


def resize(page, size):
    """Give the page the room of a named size."""
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    settle(page)


def open_expanders(part):
    """Click until all are open: what is still being drawn can take a click away."""
    closed = part.locator("details:not([open]) > summary")

    def are_open():
        if closed.count() == 0:
            return True
        closed.first.click()
        return closed.count() == 0

    wait_for(part.page, are_open, bool)
