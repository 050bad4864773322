"""The flow of heads between roles, in Chromium: what a click on a band or a bar leads to."""

import re
from urllib.parse import urlencode
from xml.etree import ElementTree

from looks import expect_looks_right
from playwright.sync_api import expect
from steps import choose_by_keyboard, download, settle, steady, wait_for

from attention_sieve.dashboard.views.comparison import wording

SPOT = """
    (path) => {
        const toScreen = path.getScreenCTM();
        const length = path.getTotalLength();
        for (let step = 1; step < 400; step++) {
            const edge = path.getPointAtLength((length * step) / 400);
            for (const aside of [2, -2]) {
                const point = new DOMPoint(edge.x, edge.y + aside).matrixTransform(toScreen);
                if (document.elementFromPoint(point.x, point.y) === path) return [point.x, point.y];
            }
        }
        return null;
    }
"""
"""Where on the screen a band lies above all others."""
TYPED = "type texts"
FEW = "The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."


def expect_heads(page, mark):
    """The heads listed below the flow: as many as the mark has whose name is like this; returns their buttons."""
    box = page.get_by_role("combobox", name="Heads of", exact=True)
    expect(box).to_have_value(re.compile(rf"^{mark}: \d+ heads?$"))
    settle(page)
    heads = page.locator(".st-key-transition-head").get_by_role("radio", name=re.compile(r"^L\d+ H\d+$"))
    expect(heads).to_have_count(int(re.search(r"(\d+) heads?$", box.input_value())[1]))
    return heads


def point_at(page, where):
    """Move the pointer to a mark until its tooltip is there; returns the name of its roles."""
    tooltip = page.locator("#vg-tooltip-element.visible tr", has=page.get_by_text("roles", exact=True))

    def n_tooltips():
        page.mouse.move(*steady(page, where))
        return tooltip.count()

    wait_for(page, n_tooltips, bool)
    return tooltip.locator("td").last.inner_text()


def test_bands_and_bars_list_their_heads_by_keys_and_by_clicks_which_lead_to_inspect_and_the_flow_looks_right(visit):
    # The reference against itself costs no pass, and its flow has bands like any other.
    link = {"with": "bundled", "compare details": wording.TRANSITIONS, "corpus": TYPED, "corpus_text": FEW}
    page = visit(f"/compare?{urlencode(link | {'head': '0-0', 'method': 'mean alone', 'tau': '1.5'})}")
    flow = page.get_by_test_id("stVegaLiteChart").locator("svg.marks").first
    band = flow.locator(".mark-area path").first
    expect(band).to_be_attached()
    settle(page)
    expect(page.get_by_role("button", name=re.compile("^Show data: Flow of 72 heads"))).to_be_attached()
    choose_by_keyboard(page.get_by_role("combobox", name="Heads of", exact=True))
    expect_heads(page, ".+ → .+")
    band.scroll_into_view_if_needed()
    roles = point_at(page, lambda: band.evaluate(SPOT))
    page.mouse.click(*band.evaluate(SPOT))
    heads = expect_heads(page, re.escape(roles))
    head = heads.last.inner_text()
    heads.last.click()
    expect(page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {head}")).to_be_visible()
    flow.locator(".mark-rect path").first.click()
    expect_heads(page, ".+ under [ab]")
    svg = ElementTree.fromstring(download(page, "role flow"))
    texts = " ".join(svg.itertext())
    for text in ("From the roles under a", "(a) bundled", "no role", "compared minus reference"):
        assert text in texts
    expect_looks_right(page)
