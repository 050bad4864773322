"""The page Roles, as a person meets it."""

import re
import zipfile
from collections import Counter
from xml.etree import ElementTree

from playwright.sync_api import expect
from steps import (
    arcs,
    bright,
    cell,
    cells,
    chosen,
    download,
    expect_cells_other_than,
    settle,
    shifted,
    slider,
)

from attention_sieve.dashboard.wording import DOWNLOAD_ALL, IN_WORDS

BOTH = re.compile(r"^[^.]*: (?=[^.]*\bsyntactic\b)(?=[^.]*\bdelimiter\b)")
"""What a cell with these two roles says before its first full stop."""


def test_nothing_jumps_regions_highlight_heads_and_a_moved_tau_changes_the_grid_at_once(visit):
    page = visit("/roles")
    expect(page.get_by_text("Over 128 texts at tau 3:")).to_be_visible()
    assert shifted(page) < 0.1
    expect_regions_and_rows_of_the_combinations_to_highlight_heads(page)
    expect_a_tab_to_say_in_words_what_its_chart_shows(page)
    before = cells(page)
    slider(page, "tau").press("PageUp")
    expect_cells_other_than(page, before)
    value = slider(page, "tau").input_value()
    expect(page.get_by_text(f"Over 128 texts at tau {float(value):g}:")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"[?&]tau={re.escape(value)}"))


def expect_regions_and_rows_of_the_combinations_to_highlight_heads(page):
    expect(bright(page)).to_have_count(72)
    region = page.get_by_role("toolbar").get_by_role("button", name="syntactic and delimiter only: 4 heads")
    region.focus()
    region.press("Enter")
    expect(bright(page)).to_have_count(4)
    for number in range(4):
        expect(bright(page).nth(number)).to_have_attribute("aria-label", BOTH)
    expect(page.get_by_role("button", name="4 heads: syntactic and delimiter only")).to_have_attribute(
        "aria-pressed", "true"
    )
    region.press("Enter")
    expect(bright(page)).to_have_count(72)
    row = page.get_by_role("button", name="16 heads: no role")
    row.click()
    expect(bright(page)).to_have_count(16)
    row.click()
    expect(bright(page)).to_have_count(72)


def expect_a_tab_to_say_in_words_what_its_chart_shows(page):
    page.get_by_role("tab", name="Sensitivity").click()
    panel = page.get_by_role("tabpanel", name="Sensitivity")
    expect(panel.locator("svg.marks, canvas.marks").first).to_be_visible()
    panel.get_by_role("button", name=IN_WORDS).first.click()
    opened = page.get_by_test_id("stPopoverBody")
    expect(opened).to_contain_text("Number of heads of 72 that hold each role, by tau (× uniform). At tau 3: local ")
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)


def test_a_chosen_head_is_inspected_and_figures_download_with_where_they_come_from(visit):
    page = visit("/roles")
    cell(page, 2, 3).click()
    expect(page.get_by_role("link", name="Inspect L2 H3")).to_be_visible()
    expect_figure(page, "grid", "tau 3, alpha 0.05")
    page.get_by_role("link", name="Inspect L2 H3").click()
    expect(arcs(page, "L2 H3")).to_be_visible()
    expect(chosen(page)).to_have_text(["L2 H3"])
    expect_figure(page, "arcs", "The old baker quietly")


def expect_figure(page, name, about):
    svg = ElementTree.fromstring(download(page, name))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    written = " ".join(svg.itertext())
    for fact in ("bundled", "2cd3a6a7380f", "Attention Sieve 0.1.0", about):
        assert fact in written


def test_everything_downloads_at_once_and_paper_shows_the_page_without_its_controls(visit):
    page = visit("/roles?details=Table&tau=2.5")
    settle(page)
    address = page.url
    page.get_by_role("button", name=DOWNLOAD_ALL, exact=True).press("Enter")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save 8 figures and 3 tables", exact=True).click()
    assert page.url == address, "closed tabs leave nothing in the link"
    page.keyboard.press("Escape")
    with zipfile.ZipFile(waiting.value.path()) as packed:
        suffixes = Counter(name.rpartition(".")[2] for name in packed.namelist())
        assert suffixes == {
            "svg": 8,
            "png": 8,
            "pdf": 16,
            "csv": 3,
            "parquet": 3,
            "md": 1,
            "txt": 1,
            "bib": 1,
            "jsonl": 1,
        }
        readme = packed.read("README.txt").decode()
        assert "tau=2.5" in readme
        assert "command: attention-sieve roles --checkpoint bundled --texts texts.jsonl --tau=2.5 --too-long=" in readme
        assert len(packed.read("texts.jsonl").splitlines()) == 128
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.get_by_role("button", name="Download table of roles")).to_be_hidden()
    expect(page.get_by_role("button", name="Copy link")).to_be_hidden()
    box = page.get_by_role("grid", name=re.compile("^Roles of the heads")).bounding_box()
    main = page.get_by_test_id("stMain").bounding_box()
    assert main["height"] > page.viewport_size["height"], "paper has no window to scroll in"
    assert box["x"] + box["width"] <= main["x"] + main["width"]
