"""Whether a page is accessible, and whether anything on it overlaps or is cut."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

LAYOUT = (Path(__file__).parent / "layout.js").read_text("utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
SIZES = {"wide": (1440, 900), "tablet": (1024, 768), "narrow": (390, 844)}


def violations(page):
    """What axe finds wrong: rule, place and beginning of each node."""
    # Without resultTypes axe also describes every node that passes, which takes ten times as long.
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return [(each["id"], node["target"], node["html"][:200]) for each in found for node in each["nodes"]]


def wrongs(page):
    """What overlaps, is cut, or makes the page scroll sideways."""
    expect(page.locator(".katex-error")).to_have_count(0)
    page.wait_for_function("document.getAnimations().every((each) => each.playState !== 'running')")
    return page.evaluate(LAYOUT)


def open_expanders(part):
    closed = part.locator("details:not([open]) > summary")
    for left in range(closed.count(), 0, -1):
        closed.first.click()
        expect(closed).to_have_count(left - 1)
