"""Charts that Plotly draws, in Chromium: what a click leads to, that nothing is left out, when its code is fetched."""

import re
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from looks import SIZES, expect_accessible, expect_fits, expect_looks_right
from playwright.sync_api import expect
from steps import choose_by_keyboard, download, settle, steady, wait_for, wait_until_equal

from attention_sieve.dashboard.views.compare import wording

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
LONE_HEAD = """
    (plot) => {
        const { glplot, dataScale } = plot._fullLayout.scene._scene;
        const { model, view, projection } = glplot.cameraParams;
        const times = (matrix, place) => [0, 1, 2, 3].map((row) =>
            place.reduce((sum, value, column) => sum + matrix[4 * column + row] * value, 0));
        const box = plot.querySelector(".gl-container canvas, canvas").getBoundingClientRect();
        const heads = plot._fullData.filter((trace) => trace.showlegend !== false || plot._fullData.length === 2)
            .flatMap((trace) => Array.from(trace.x, (x, at) => {
                const place = [x, trace.y[at], trace.z[at]].map((value, axis) => value * dataScale[axis]);
                const [right, up, , w] = times(projection, times(view, times(model, [...place, 1])));
                return {
                    name: trace.hovertext[at],
                    x: box.left + (box.width * (1 + right / w)) / 2,
                    y: box.top + (box.height * (1 - up / w)) / 2,
                };
            }));
        const room = (head) => Math.min(...heads.filter((other) => other !== head)
            .map((other) => Math.hypot(other.x - head.x, other.y - head.y)));
        return heads.reduce((best, head) => (room(head) > room(best) ? head : best));
    }
"""
"""Name of the head that stands farthest from all others on the screen, and where."""
CAMERA = "(plot) => Object.values(plot._fullLayout?.scene?._scene?.getCamera().eye ?? {})"
RINGED = "(plot) => plot._fullData?.at(-1).text[0]?.replace('<br>', '')"
DOTS = """
    (plot) => (plot._fullData ?? []).filter((trace) => trace.type === "scattergl")
        .reduce((sum, trace) => sum + trace._length, 0)
"""
TURNED = {"eye": {"x": -0.9, "y": 0.7, "z": 0.4}, "center": dict.fromkeys("xyz", 0), "up": {"x": 0, "y": 0, "z": 1}}
TYPED = "type texts"
FEW = "The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."


def plots(page):
    return page.locator(".js-plotly-plot")


def flow_page(visit, colours="light", size="wide"):
    """The reference against itself costs no pass, and its flow has bands like any other."""
    width, height = SIZES[size]
    link = {"with": "bundled", "compare details": wording.TRANSITIONS, "corpus": TYPED, "corpus_text": FEW}
    link |= {"head": "0-0", "method": "mean alone", "tau": "1.5"}
    page = visit(f"/compare?{urlencode(link)}", colours, width=width, height=height)
    expect(plots(page).locator(".sankey-link").first).to_be_attached()
    settle(page)
    return page


def space_page(visit):
    page = visit("/similar?similar+texts=16&similar+dimensions=3&head=2-2")
    expect(plots(page).nth(1).locator("canvas").first).to_be_visible()
    expect(page.get_by_test_id("stMain").get_by_role("link", name="Inspect L2 H2")).to_be_visible()
    settle(page)
    return page


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


def test_a_click_on_a_band_or_a_bar_lists_its_heads_which_lead_to_inspect(visit):
    page = flow_page(visit)
    band = plots(page).locator(".sankey-link").first
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
    expect_fits(page)
    expect_accessible(page)
    svg = ElementTree.fromstring(download(page, "SVG of role flow"))
    texts = " ".join(svg.itertext())
    assert all(
        text in texts for text in ("From the roles under a", "(a) bundled", "no role", "compared minus reference")
    )


def test_a_flow_can_be_read_and_used_without_seeing_it_and_on_a_phone_in_the_dark(visit):
    page = flow_page(visit, "dark", "narrow")
    expect(page.get_by_role("figure", name=re.compile("^Flow of 72 heads"))).to_be_visible()
    choose_by_keyboard(page.get_by_role("combobox", name="Heads of", exact=True))
    expect_heads(page, ".+ → .+")
    expect_fits(page)
    expect_accessible(page)


def test_a_click_in_space_chooses_the_head_leaves_the_view_as_it_was_turned_and_the_page_fit_and_accessible(visit):
    page = space_page(visit)
    plot = plots(page).first
    plot.scroll_into_view_if_needed()
    point_at(page, plot, lambda: list(plot.evaluate(LONE_HEAD).values())[1:])
    # What Plotly says when a drag ends. A drag by script is faster than a hand, which Plotly's camera does not take.
    plot.evaluate("(plot, camera) => plot.emit('plotly_relayout', {'scene.camera': camera})", TURNED)
    eye = pytest.approx(list(TURNED["eye"].values()), abs=1e-6)
    for each in (plot, plots(page).last):
        wait_for(page, lambda each=each: each.evaluate(CAMERA), lambda camera: camera == eye)
    expect(page).to_have_url(re.compile("camera=-0.9"))
    settle(page)
    head = steady(page, lambda: plot.evaluate(LONE_HEAD))
    page.mouse.move(0, 0)
    point_at(page, plot, lambda: (head["x"], head["y"]))
    expect(plot.locator(".hovertext")).to_contain_text(head["name"])
    # A mark in space is clicked when the next frame is drawn with the button down.
    plot.evaluate("(plot) => { window.clicked = new Promise((resolve) => plot.on('plotly_click', resolve)); }")
    page.mouse.down()
    page.evaluate("async () => { await window.clicked; }")
    page.mouse.up()
    expect(page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {head['name']}")).to_be_visible()
    settle(page)
    layer, number = head["name"][1:].split(" H")
    expect(page).to_have_url(re.compile(f"head={layer}-{number}"))
    for each in (plot, plots(page).last):
        wait_until_equal(page, lambda each=each: each.evaluate(RINGED), head["name"])
        wait_for(page, lambda each=each: each.evaluate(CAMERA), lambda camera: camera == eye)
    there = visit(page.url)
    wait_for(there, lambda: plots(there).last.evaluate(CAMERA), lambda camera: camera == eye)
    page.mouse.move(0, 0)
    expect_looks_right(page)


def test_every_single_score_is_drawn_once_the_reader_asks(visit):
    texts = "\n".join(f"Old dogs often chase {number} small cats." for number in range(240))
    page = visit("/roles")
    scripts = []
    page.on("response", lambda response: "PlotlyChart" in response.url and scripts.append(response.url))
    page.goto(
        page.url.split("/roles")[0]
        + "/?"
        + urlencode({"corpus": TYPED, "corpus_text": texts, "head": "2-2", "head details": "Scores"})
    )
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
    svg = download(page, "SVG of scores of L2 H2").decode()
    assert svg.count("<path") > number, "the file leaves nothing out either"
