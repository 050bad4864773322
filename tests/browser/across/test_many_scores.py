"""The chart that Plotly draws, in Chromium: that nothing is left out, and when its code is fetched."""

import re
from urllib.parse import urlencode

from playwright.sync_api import expect
from steps import download, settle, wait_until_equal

DOTS = """
    (plot) => (plot._fullData ?? []).filter((trace) => trace.type === "scattergl")
        .reduce((sum, trace) => sum + trace._length, 0)
"""
TYPED = "type texts"


def plots(page):
    return page.locator(".js-plotly-plot")


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
