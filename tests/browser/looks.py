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
SEEN = (
    ":is(svg.marks, canvas.marks, [data-testid=stVegaLiteChart], [role=grid], [role=toolbar], "
    "[data-testid=stDataFrame] canvas, [data-testid=stAlert], .stButton button)"
)
"""What shows that a page or a tab is drawn."""
SIZES = {"wide": (1440, 900), "tablet": (1024, 768), "narrow": (390, 844)}
SWEEPING = """
() => {
  const roots = [document, ...[...document.querySelectorAll("*")].map((each) => each.shadowRoot).filter(Boolean)];
  const ours = roots.flatMap((root) => [...root.styleSheets, ...root.adoptedStyleSheets])
    .filter((sheet) => !sheet.ownerNode?.dataset?.emotion && sheet.media.mediaText !== "not all");
  const selectors = (rules, within) => [...rules].flatMap((rule) => {
    if (rule.media?.mediaText === "print") return [];
    const selector = rule.selectorText ? `${within} ${rule.selectorText.replaceAll("&", "")}` : within;
    return [...(rule.selectorText ? [selector] : []), ...selectors(rule.cssRules ?? [], selector)];
  });
  const sweeps = (selector) => {
    let bare = selector;
    while (/\\([^()]*\\)/.test(bare)) bare = bare.replace(/\\([^()]*\\)/g, "");
    return bare.split(",").some((each) => {
      const parts = each.trim().split(/[\\s>~+]+/);
      return parts.slice(0, -1).some((part) => part.includes(":has")) && /^\\*?(::?[\\w-]+)*$/.test(parts.at(-1));
    });
  };
  return ours.flatMap((sheet) => selectors(sheet.cssRules, "")).filter(sweeps);
}
"""
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


def sweeping_rules(page):
    """Our rules for the screen that style any element below or beside one that has another, by their selectors.

    With one of them, Chromium computes the styles of all cells of a grid again after each change of a class.
    """
    return page.evaluate(SWEEPING)


def expect_accessible(page, part=None):
    """Wait until axe finds nothing wrong: what is being drawn anew is faded."""
    wait_until_equal(page, lambda: violations(page, part), [])


def expect_contrast(page, part=None):
    """Wait until all texts stand out from what is behind them."""
    wait_until_equal(page, lambda: violations(page, part, CONTRAST), [])


def expect_fits(page):
    """Wait until nothing overlaps or is cut."""
    wait_until_equal(page, lambda: wrongs(page), [])


def expect_looks_right(page, part=None):
    """The page (or a part) accessible, and all well laid out: wide and light, narrow and dark, and on a tablet."""
    expect_fits(page)
    expect_accessible(page, part)
    darken(page)
    resize(page, "narrow")
    expect_fits(page)
    expect_accessible(page, part)
    resize(page, "tablet")
    expect_fits(page)


def open_tab(page, tab):
    """Open one and wait until it is drawn."""
    page.get_by_role("tab", name=tab, exact=True).click()
    panel = page.get_by_role("tabpanel", name=tab, exact=True)
    expect(panel.locator(SEEN).locator("visible=true").first).to_be_visible()
    settle(page)


def expect_tabs_to_look_right(page, tabs):
    """As `expect_looks_right` with each tab open; on a tablet with the last one alone.

    Outside of the tabs' panels the page is looked at once a size; of panels in the dark, only the colours.
    """
    sizes = ["wide", "narrow"]
    for tab in tabs:
        open_tab(page, tab)
        for place, size in enumerate(sizes):
            if place:
                resize(page, size)
                darken(page) if size == "narrow" else lighten(page)
            expect_fits(page)
            if size == "wide" or tab == tabs[0]:
                expect_accessible(page, None if tab == tabs[0] else PANEL)
            else:
                expect_contrast(page, PANEL)
        sizes.reverse()  # the next opens in the size and the colours that the page has
    resize(page, "tablet")
    expect_fits(page)


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
    """Click until all that are seen are open: what is still being drawn can take a click away."""
    closed = part.locator("details:not([open]) > summary").locator("visible=true")

    def are_open():
        if closed.count() == 0:
            return True
        closed.first.click()
        return closed.count() == 0

    wait_for(part.page, are_open, bool)
