"""The page Roles, as a person meets it."""

import io
import json
import re
from xml.etree import ElementTree

import pandas as pd
import pytest
from playwright.sync_api import expect
from pyarrow import parquet
from steps import arcs, bright, cell, cells, choose, chosen, download, expect_cells_other_than, slider

from core.roles import ROLES

PNG = b"\x89PNG\r\n\x1a\n"
CHARTS = {
    "Per layer": "Bars by layer",
    "p-values": "p-value",
    "Score distributions": "Scores",
}


def test_tau_moved_by_the_keyboard_changes_the_roles(visit):
    page = visit("/roles")
    expect(page.get_by_text("Over 128 texts at tau 3,")).to_be_visible()
    before = cells(page)
    slider(page, "tau").press("PageUp")
    expect_cells_other_than(page, before)
    value = slider(page, "tau").input_value()
    assert float(value) > 3
    expect(page.get_by_text(f"Over 128 texts at tau {float(value):g},")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"[?&]tau={re.escape(value)}"))


def test_alpha_and_the_correction_change_the_p_values(visit):
    page = visit("/roles")
    before = cells(page)
    choose(page, "Correction", "Holm")
    expect_cells_other_than(page, before)
    before = cells(page)
    choose(page, "Correction", "none")
    expect_cells_other_than(page, before)
    slider(page, "alpha").press("ArrowRight")
    expect(page).to_have_url(re.compile("[?&]alpha=0.1"))


def test_a_region_of_the_venn_diagram_highlights_its_heads(visit):
    page = visit("/roles")
    expect(bright(page)).to_have_count(72)
    region = page.get_by_role("toolbar").get_by_role("button", name="syntactic and delimiter only: 3 heads")
    region.focus()
    region.press("Enter")
    expect(bright(page)).to_have_count(3)
    for name in bright(page).evaluate_all("all => all.map((each) => each.ariaLabel)"):
        assert {"syntactic", "delimiter"} <= set(name.split(": ", 1)[1].split(".")[0].split(", "))
    expect(page.get_by_role("button", name="3 heads: syntactic and delimiter only")).to_have_attribute(
        "aria-pressed", "true"
    )
    region.press("Enter")
    expect(bright(page)).to_have_count(72)


def test_a_row_of_the_combinations_highlights_its_heads(visit):
    page = visit("/roles")
    row = page.get_by_role("button", name="16 heads: no role")
    row.click()
    expect(bright(page)).to_have_count(16)
    row.click()
    expect(bright(page)).to_have_count(72)


def test_a_head_chosen_here_is_inspected_there(visit):
    page = visit("/roles")
    cell(page, 2, 3).click()
    page.get_by_role("link", name="Inspect L2 H3").click()
    expect(arcs(page, "L2 H3")).to_be_visible()
    assert chosen(page) == ["L2 H3"]


def test_a_tab_shows_its_chart_and_says_in_words_what_it_shows(visit):
    page = visit("/roles")
    for tab, words in CHARTS.items():
        page.get_by_role("tab", name=tab).click()
        panel = page.get_by_role("tabpanel", name=tab)
        expect(panel.locator("svg.marks, canvas.marks").first).to_be_visible()
        expect(panel.locator("p").filter(has_text=words).first).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]details=Score"))


def test_score_distributions_are_shown_for_a_layer_and_a_role(visit):
    page = visit("/roles")
    page.get_by_role("tab", name="Score distributions").click()
    panel = page.get_by_role("tabpanel", name="Score distributions")
    choose(page, "Role", "block")
    expect(panel.locator("p").filter(has_text="block").first).to_be_visible()
    choose(page, "Layer", "3")
    expect(panel.locator("p").filter(has_text="layer 3").first).to_be_visible()


def test_the_table_is_filtered_by_role_layer_and_what_is_held(visit):
    page = visit("/roles")
    page.get_by_role("tab", name="Table").click()
    table = page.get_by_test_id("stDataFrame").locator("table[role=grid]")
    expect(table).to_have_attribute("aria-rowcount", str(1 + len(ROLES) * 72))
    page.get_by_role("switch", name="Only roles that are held").press("Space")
    expect(table).not_to_have_attribute("aria-rowcount", str(1 + len(ROLES) * 72))
    pick(page, "Roles", "syntactic")
    expect(table).to_have_attribute("aria-rowcount", "5")
    pick(page, "Layers", "1")
    expect(table).to_have_attribute("aria-rowcount", "3")
    got = pd.read_csv(io.BytesIO(download(page, "CSV of roles")))
    assert set(got["role"]) == {"syntactic"}
    assert set(got["layer"]) == {1}
    assert got["holds"].all()


def pick(page, label, option):
    """Pick from a multiselect."""
    page.get_by_role("combobox", name=label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()
    page.keyboard.press("Escape")


def test_overlaps_name_their_denominators(visit):
    page = visit("/roles?details=Overlaps")
    got = pd.read_csv(io.BytesIO(download(page, "CSV of overlaps")))
    row = got.set_index(["first", "second"]).loc[("syntactic", "delimiter")]
    assert row["heads with both"] == 4
    assert row["of second"] == pytest.approx(4 / 53)


def test_tables_download_as_csv_and_parquet_with_where_they_come_from(visit):
    page = visit("/roles?details=Table&tau=2.5&correction=Holm")
    csv = pd.read_csv(io.BytesIO(download(page, "CSV of roles")))
    assert len(csv) == len(ROLES) * 72
    assert csv["checkpoint"].unique() == ["bundled"]
    assert csv["tau"].unique() == [2.5]
    file = io.BytesIO(download(page, "Parquet of roles"))
    facts = json.loads(parquet.read_schema(file).metadata[b"provenance"])
    assert facts["corpus texts"] == "128"
    assert facts["correction"] == "holm"
    assert facts["tau"] == "2.5"
    assert facts["program"].startswith("Attention Sieve ")
    assert len(pd.read_parquet(file)) == len(ROLES) * 72


@pytest.mark.parametrize(
    ("path", "names", "about"),
    [
        ("/roles", ["grid", "overlap", "roles per layer"], "tau 3, alpha 0.05"),
        ("/roles?details=p-values", ["p-values"], "tau 3, alpha 0.05"),
        ("/roles?details=Score+distributions", ["score distributions"], "tau 3, alpha 0.05"),
        ("/", ["grid", "arcs"], "Why did the old baker"),
        ("/", ["scores of L0 H2"], "tau 3, alpha 0.05"),
    ],
)
def test_figures_download_as_svg_and_png_with_where_they_come_from(visit, path, names, about):
    page = visit(path)
    for name in names:
        svg = ElementTree.fromstring(download(page, f"SVG of {name}"))
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        written = " ".join(svg.itertext())
        for fact in ("bundled", "2cd3a6a7380f", "Attention Sieve 0.1.0", about):
            assert fact in written
        png = download(page, f"PNG of {name}")
        assert png.startswith(PNG)
        assert len(png) > 5_000
