"""Charts that Plotly draws, in Chromium: what a click leads to, that nothing is left out, when its code is fetched."""

import re
from urllib.parse import urlencode
from xml.etree import ElementTree

from looks import expect_looks_right
from playwright.sync_api import expect
from steps import choose_by_keyboard, download, settle, steady, wait_for, wait_until_equal

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
DOTS = """
    (plot) => (plot._fullData ?? []).filter((trace) => trace.type === "scattergl")
        .reduce((sum, trace) => sum + trace._length, 0)
"""
TYPED = "type texts"
FEW = "The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."


def plots(page):
    return page.locator(".js-plotly-plot")


def expect_heads(page, mark):
    """The heads listed below the flow: as many as the mark has whose name is like this; returns their buttons."""
    box = page.get_by_role("combobox", name="Heads of", exact=True)
    expect(box).to_have_value(re.compile(rf"^{mark}: \d+ heads?$"))
    settle(page)
    heads = page.locator(".st-key-transition-head").get_by_role("radio", name=re.compile(r"^L\d+ H\d+$"))
    expect(heads).to_have_count(int(re.search(r"(\d+) heads?$", box.input_value())[1]))
    return heads


def point_at(page, plot, where):
    """Move the pointer to a mark of a chart until the tooltip is there."""

    def tooltip():
        page.mouse.move(*steady(page, where))
        return plot.locator(".hovertext").count()

    wait_for(page, tooltip, bool)


def test_bands_and_bars_list_their_heads_by_keys_and_by_clicks_which_lead_to_inspect_and_the_flow_looks_right(visit):
    # The reference against itself costs no pass, and its flow has bands like any other.
    link = {"with": "bundled", "compare details": wording.TRANSITIONS, "corpus": TYPED, "corpus_text": FEW}
    page = visit(f"/compare?{urlencode(link | {'head': '0-0', 'method': 'mean alone', 'tau': '1.5'})}")
    band = plots(page).locator(".sankey-link").first
    expect(band).to_be_attached()
    settle(page)
    expect(page.get_by_role("figure", name=re.compile("^Flow of 72 heads"))).to_be_visible()
    choose_by_keyboard(page.get_by_role("combobox", name="Heads of", exact=True))
    expect_heads(page, ".+ → .+")
    band.scroll_into_view_if_needed()
    point_at(page, plots(page), lambda: band.evaluate(SPOT))
    tooltip = plots(page).locator(".hovertext text").first.get_attribute("data-unformatted")
    page.mouse.click(*band.evaluate(SPOT))
    heads = expect_heads(page, re.escape(tooltip.split("<br>")[0]))
    head = heads.last.inner_text()
    heads.last.click()
    expect(page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {head}")).to_be_visible()
    plots(page).locator(".sankey-node .node-rect").first.click()
    expect_heads(page, ".+ under [ab]")
    svg = ElementTree.fromstring(download(page, "role flow"))
    texts = " ".join(svg.itertext())
    for text in ("From the roles under a", "(a) bundled", "no role", "compared minus reference"):
        assert text in texts
    expect_looks_right(page)


def test_every_single_score_is_drawn_once_the_reader_asks(visit, server):
    texts = "\n".join(f"Old dogs often chase {number} small cats." for number in range(240))
    page = visit("/roles")
    scripts = []
    page.on("response", lambda response: "PlotlyChart" in response.url and scripts.append(response.url))
    link = {"corpus": TYPED, "corpus_text": texts, "head": "2-2", "head details": "Scores"}
    page.goto(f"{server}/?{urlencode(link)}")
    switch = page.get_by_text(re.compile(r"Draw each of the [\d,]+ scores"))
    expect(switch).to_be_visible()
    settle(page)
    assert scripts == [], "Plotly's code waits until a figure of its own is opened"
    number = int(re.search(r"[\d,]+", switch.inner_text())[0].replace(",", ""))
    assert number > 2000
    switch.click()
    expect(plots(page).locator("canvas").first).to_be_visible()
    wait_until_equal(page, lambda: plots(page).evaluate(DOTS), number)
    assert len(scripts) == 1
    svg = download(page, "scores of L2 H2").decode()
    assert svg.count("<path") > number, "the file leaves nothing out either"
