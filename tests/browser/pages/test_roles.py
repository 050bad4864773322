"""The page Roles, as a person meets it."""

import io
import json
import re
import zipfile
from collections import Counter
from xml.etree import ElementTree

import pandas as pd
import pytest
from playwright.sync_api import expect
from pyarrow import parquet
from steps import (
    arcs,
    bright,
    cell,
    cells,
    choose,
    chosen,
    download,
    expect_cells,
    expect_cells_other_than,
    settle,
    shifted,
    slider,
)

from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard.wording import DOWNLOAD_ALL, IN_WORDS

PNG = b"\x89PNG\r\n\x1a\n"
TEXT = "The old baker quietly"
"""The beginning of the text that a newcomer finds."""
BOTH = re.compile(r"^[^.]*: (?=[^.]*\bsyntactic\b)(?=[^.]*\bdelimiter\b)")
"""What a cell with these two roles says before its first full stop."""
CHARTS = {
    "Per layer": "Bars by layer",
    "p-values": "p-value",
    "Score distributions": "Violins by layer",
}


def test_nothing_jumps_chance_takes_the_grids_place_and_tau_alpha_and_the_correction_change_roles_and_p_values(visit):
    page = visit("/roles")
    expect(page.get_by_text("Over 128 texts at tau 3,")).to_be_visible()
    assert shifted(page) < 0.1
    expect_chance_beside_the_counts_and_its_grids_in_the_place_of_the_grid(page)
    expect(page.get_by_text("Over 128 texts at tau 10,")).to_be_visible()
    settle(page)
    expect_tau_alpha_and_the_correction_to_change_roles_and_p_values(page)


def expect_chance_beside_the_counts_and_its_grids_in_the_place_of_the_grid(page):
    control = page.get_by_role("grid", name=re.compile("^Control, shuffled words"))
    said = page.get_by_text("Control: roles with shuffled words.")
    page.get_by_text("What would chance give?").click()
    expect(page.get_by_text("Random weights: the same architecture before any training")).to_be_visible()
    expect(
        page.get_by_text("Of 4 syntactic heads, 1 does not score higher on related words than on pairs at the")
    ).to_be_visible()
    expect(cell(page, 1, 8)).to_have_attribute("aria-label", re.compile(r": syntactic \(positional\), delimiter,"))
    cell(page, 1, 8).hover()
    expect(page.locator("th").filter(has_text="syntactic (positional)").first).to_be_visible()
    page.mouse.move(0, 0)
    choose(page, "Grid of", "shuffled words")
    expect(said).to_be_visible()
    expect(control.get_by_role("gridcell", name=re.compile("^Layer 1, head 8: .*delimiter.* Scores"))).to_be_visible()
    slider(page, "tau").press("End")
    expect(control.get_by_role("gridcell", name=re.compile("^Layer 1, head 8: no role"))).to_be_visible()
    expect(page.get_by_text("Stop scoring")).to_have_count(0)  # set-up has computed the controls of the samples
    page.reload()
    expect(said).to_be_visible()
    page.get_by_role("button", name="Back to this checkpoint").click()
    expect(said).to_have_count(0)
    expect(cell(page, 1, 8)).to_be_visible()


def expect_tau_alpha_and_the_correction_to_change_roles_and_p_values(page):
    before = cells(page)
    slider(page, "tau").press("PageDown")
    expect_cells_other_than(page, before)
    value = slider(page, "tau").input_value()
    assert 3 < float(value) < 10
    expect(page.get_by_text(f"Over 128 texts at tau {float(value):g},")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"[?&]tau={re.escape(value)}"))
    before = cells(page)
    choose(page, "Correction", "Holm")
    expect_cells_other_than(page, before)
    before = cells(page)
    choose(page, "Correction", "none")
    expect_cells_other_than(page, before)
    slider(page, "alpha").press("ArrowRight")
    expect(page).to_have_url(re.compile("[?&]alpha=0.1"))


def test_the_share_above_chance_is_a_scale_of_its_own_that_a_link_restores(visit):
    page = visit("/roles?details=Score+distributions")
    before = cells(page)
    choose(page, "Scale", "share above chance")
    expect(page.get_by_text("Over 128 texts at tau 0.5 of the share above chance,")).to_be_visible()
    settle(page)
    expect_cells_other_than(page, before)
    expect(cell(page, 0, 2)).to_have_attribute("aria-label", re.compile(r"Shares: local 1\.00 of at most 1\.00 \(p"))
    expect(page.get_by_text("no letter: does this too little to count")).to_be_visible()
    expect_in_words(page, page.get_by_role("tabpanel", name="Score distributions"), "shares above chance from -")
    slider(page, "tau").press("ArrowLeft")
    expect(page.get_by_text("at tau 0.45 of the share above chance,")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]share[+ ]tau=0\.45|[?&]share%20tau=0\.45"))
    settle(page)
    shown = cells(page)
    there = visit(page.url)
    expect(there.get_by_text("at tau 0.45 of the share above chance,")).to_be_visible()
    expect_cells(there, shown)
    choose(page, "Scale", "times uniform attention")
    expect(page.get_by_text("Over 128 texts at tau 3,")).to_be_visible()
    expect_cells(page, before)


def test_heads_are_highlighted_and_inspected_and_figures_download_with_where_they_come_from(visit):
    page = visit("/roles")
    expect_regions_of_the_venn_diagram_and_rows_of_the_combinations_to_highlight_heads(page)
    cell(page, 2, 3).click()
    expect(page.get_by_role("link", name="Inspect L2 H3")).to_be_visible()
    page.mouse.move(0, 0)
    expect_overlaps_with_their_denominators(page)
    for tab, names in (
        ("Combinations", ["grid", "overlap"]),
        ("Per layer", ["roles per layer"]),
        ("p-values", ["p-values"]),
        ("Score distributions", ["score distributions"]),
    ):
        page.get_by_role("tab", name=tab).click()
        # The tab's own figure: before its run, those outside are there too, and a run makes downloads anew.
        panel = page.get_by_role("tabpanel", name=tab)
        expect(panel.get_by_role("button", name=f"SVG of {names[-1]}", exact=True)).to_be_visible()
        for name in names:
            expect_figure(page, name, "tau 3, alpha 0.05")
    page.get_by_role("link", name="Inspect L2 H3").click()
    expect(arcs(page, "L2 H3")).to_be_visible()
    expect(chosen(page)).to_have_text(["L2 H3"])
    page.get_by_role("tab", name="Scores", exact=True).click()
    for name, about in (("grid", TEXT), ("arcs", TEXT), ("scores of L2 H3", "tau 3, alpha 0.05")):
        expect_figure(page, name, about)


def expect_overlaps_with_their_denominators(page):
    page.get_by_role("tab", name="Overlaps").click()
    overlaps = pd.read_csv(io.BytesIO(download(page, "CSV of overlaps"))).set_index(["first", "second"])
    row = overlaps.loc[("syntactic", "delimiter")]
    assert row["heads with both"] == 4
    assert row["of second"] == pytest.approx(4 / 54)


def expect_regions_of_the_venn_diagram_and_rows_of_the_combinations_to_highlight_heads(page):
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


def expect_tabs_to_show_their_charts_and_say_in_words_what_they_show_also_of_a_role_a_layer_and_tau(page):
    for tab, words in CHARTS.items():
        page.get_by_role("tab", name=tab).click()
        panel = page.get_by_role("tabpanel", name=tab)
        expect(panel.locator("svg.marks, canvas.marks").first).to_be_visible()
        expect_in_words(page, panel, words)
    expect(page).to_have_url(re.compile("[?&]details=Score"))
    choose(page, "Role", "block")
    expect_in_words(page, panel, "block")
    choose(page, "Layer", "3")
    expect_in_words(page, panel, "layer 3")
    page.get_by_role("tab", name="Sensitivity").click()
    panel = page.get_by_role("tabpanel", name="Sensitivity")
    expect(panel.locator("svg.marks")).to_have_count(2)
    expect_in_words(page, panel, "Number of heads of 72 that hold each role, by tau (× uniform). At tau 2.5: local ")
    expect_in_words(page, panel, "by the number of texts: over 5 texts local ", chart=1)


def expect_in_words(page, panel, words, chart=0):
    panel.get_by_role("button", name=IN_WORDS).nth(chart).click()
    opened = page.get_by_test_id("stPopoverBody")
    expect(opened).to_contain_text(words)
    page.keyboard.press("Escape")
    expect(opened).to_have_count(0)


def pick(page, label, option):
    """Pick from a multiselect."""
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()
    page.keyboard.press("Escape")


def test_tabs_say_in_words_what_they_show_tables_download_filtered_too_and_with_where_they_come_from(visit):
    page = visit("/roles?details=Table&tau=2.5&correction=Holm")
    csv = pd.read_csv(io.BytesIO(download(page, "CSV of roles")))
    assert len(csv) == len(ROLES) * 72
    assert csv["checkpoint"].unique() == ["bundled"]
    assert csv["tau"].unique() == [2.5]
    (of_head,) = csv.loc[(csv["layer"] == 0) & (csv["head"] == 2), "mostly"].unique()
    assert of_head.startswith("Mostly looks at the previous token")
    file = io.BytesIO(download(page, "Parquet of roles"))
    facts = json.loads(parquet.read_schema(file).metadata[b"provenance"])
    assert facts["corpus texts"] == "128"
    assert facts["correction"] == "holm"
    assert facts["tau"] == "2.5"
    assert facts["program"].startswith("Attention Sieve ")
    assert len(pd.read_parquet(file)) == len(ROLES) * 72
    with page.expect_download() as waiting:
        page.get_by_role("button", name=DOWNLOAD_ALL, exact=True).press("Enter")
    with zipfile.ZipFile(waiting.value.path()) as packed:
        suffixes = Counter(name.rpartition(".")[2] for name in packed.namelist())
        assert suffixes == {"svg": 1, "png": 1, "csv": 1, "parquet": 1, "txt": 1, "bib": 1}
        assert "tau=2.5" in packed.read("README.txt").decode()
    expect_filters(page, csv)
    expect_tabs_to_show_their_charts_and_say_in_words_what_they_show_also_of_a_role_a_layer_and_tau(page)
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.get_by_role("button", name="CSV of roles")).to_be_hidden()
    box = page.get_by_role("grid", name=re.compile("^Roles of the heads")).bounding_box()
    main = page.get_by_test_id("stMain").bounding_box()
    assert main["height"] > page.viewport_size["height"], "paper has no window to scroll in"
    assert box["x"] + box["width"] <= main["x"] + main["width"]


def expect_filters(page, whole):
    """The table shows and downloads what the reader picks of the whole."""
    syntactic = whole[whole["holds"] & (whole["role"] == "syntactic")]
    table = page.get_by_test_id("stDataFrame").locator("table[role=grid]")
    expect(table).to_have_attribute("aria-rowcount", str(1 + len(ROLES) * 72))
    page.get_by_role("switch", name="Only roles that are held").press("Space")
    expect(table).not_to_have_attribute("aria-rowcount", str(1 + len(ROLES) * 72))
    pick(page, "Roles", "syntactic")
    expect(table).to_have_attribute("aria-rowcount", str(1 + len(syntactic)))
    pick(page, "Layers", "1")
    expect(table).to_have_attribute("aria-rowcount", str(1 + (syntactic["layer"] == 1).sum()))
    got = pd.read_csv(io.BytesIO(download(page, "CSV of roles")))
    assert set(got["role"]) == {"syntactic"}
    assert set(got["layer"]) == {1}
    assert got["holds"].all()


def expect_figure(page, name, about):
    svg = ElementTree.fromstring(download(page, f"SVG of {name}"))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    written = " ".join(svg.itertext())
    for fact in ("bundled", "2cd3a6a7380f", "Attention Sieve 0.1.0", about):
        assert fact in written
    png = download(page, f"PNG of {name}")
    assert png.startswith(PNG)
    assert len(png) > 5_000
