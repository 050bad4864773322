"""The page Surface, as a person meets it."""

import io
import re
from xml.etree import ElementTree

import pandas as pd
import pytest
from looks import SIZES, open_expanders, violations, wrongs
from playwright.sync_api import expect
from steps import LONG, arcs, choose, download, give_file, name_checkpoint, settle

from dashboard import surface_wording as words

TABS = (words.SHARES, words.ENTROPY, words.HEADS, words.FUNCTIONS, words.LAYERS, words.TABLE)
DRAWN = "svg.marks, [role=grid], [data-testid=stDataFrame] canvas"


def opened(visit, tab=words.SHARES, colours="light", size="wide", **link):
    """The page with a tab open and drawn."""
    width, height = SIZES[size]
    asked = "".join(f"&{name}={value}" for name, value in link.items())
    page = visit(f"/surface?surface+details={tab.replace(' ', '+')}{asked}", colours, width=width, height=height)
    drawn(page, tab)
    return page


def drawn(page, tab):
    """Wait until a tab has what it shows, and the page its fonts."""
    settle(page)
    panel = page.get_by_role("tabpanel", name=tab, exact=True)
    expect(panel).to_be_visible(timeout=LONG)
    expect(panel.locator(DRAWN).first).to_be_visible(timeout=LONG)
    page.wait_for_function("document.fonts.status === 'loaded'")


def dots(page):
    return page.locator("svg.marks").first.locator("path[aria-roledescription=point]")


def table_of(page):
    """All statistics, as the page's table gives them."""
    return pd.read_csv(io.BytesIO(download(page, "CSV of surface")))


def test_the_headline_says_what_the_table_holds(visit):
    page = opened(visit, words.TABLE)
    table = table_of(page)
    assert table["texts"].max() == 128
    assert set(table["checkpoint"]) == {"bundled"}
    n_cls, n_sep = ((table[table["statistic"] == name]["mean"] > 0.5).sum() for name in ("cls", "sep"))
    expect(page.get_by_text(f"{n_cls} put over half of their attention on [CLS], {n_sep} on [SEP]")).to_be_visible()


def test_a_dot_and_a_cell_show_the_number_that_was_computed(visit):
    page = opened(visit, words.TABLE)
    table = table_of(page).set_index(["statistic", "layer", "head"])["mean"]
    page.get_by_role("tab", name=words.SHARES).click()
    drawn(page, words.SHARES)
    said = dots(page).filter(has=page.locator("xpath=self::*[contains(@aria-label, 'head: L1 H11')]"))
    label = said.first.get_attribute("aria-label")
    assert f"mean: {100 * table['cls', 1, 11]:.0f}%" in label
    page.get_by_role("tab", name=words.HEADS).click()
    drawn(page, words.HEADS)
    cell = page.get_by_role("grid").get_by_role("gridcell", name="Layer 0, head 5:")
    assert f"{table['sep', 0, 5]:.2f}".removeprefix("0") in cell.get_attribute("aria-label")
    choose(page, words.STATISTIC, words.STATISTICS["entropy"])
    expect(page.get_by_role("grid", name=re.compile(re.escape(words.STATISTICS["entropy"])))).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]statistic=entropy"))


def test_a_clicked_dot_chooses_its_head_and_the_link_restores_it(visit):
    page = opened(visit)
    dots(page).nth(17).click()
    expect(page.get_by_role("link", name="Inspect L1 H5")).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]head=1-5"))
    page.get_by_role("tab", name=words.ENTROPY).click()
    drawn(page, words.ENTROPY)
    again = visit(page.url)
    drawn(again, words.ENTROPY)
    again.get_by_role("link", name="Inspect L1 H5").click()
    expect(arcs(again, "L1 H5")).to_be_visible()


def test_a_cell_of_the_function_grid_chooses_its_head(visit):
    page = opened(visit, words.FUNCTIONS, head="3-3")
    expect(page.get_by_role("link", name="Inspect L3 H3")).to_be_visible()
    page.locator("svg.marks path[aria-label*='head: L1 H9;']").last.click()
    expect(page.get_by_role("link", name="Inspect L1 H9")).to_be_visible()


def test_the_table_is_filtered_and_downloads(visit):
    page = opened(visit, words.TABLE)
    table = page.get_by_test_id("stDataFrame").locator("table[role=grid]")
    expect(table).to_have_attribute("aria-rowcount", str(1 + len(words.STATISTICS) * 72))
    page.get_by_role("combobox", name=words.ONLY_LAYERS, exact=True).click()
    page.get_by_role("option", name="4", exact=True).click()
    page.keyboard.press("Escape")
    expect(table).to_have_attribute("aria-rowcount", str(1 + len(words.STATISTICS) * 12))
    assert set(table_of(page)["layer"]) == {4}


@pytest.mark.parametrize(
    ("tab", "names"),
    [
        (words.SHARES, ["shares, special tokens", "shares, neighbours"]),
        (words.HEADS, ["head grid"]),
        (words.FUNCTIONS, ["functions"]),
    ],
)
def test_figures_download_with_where_they_come_from(visit, tab, names):
    page = opened(visit, tab)
    for name in names:
        svg = ElementTree.fromstring(download(page, f"SVG of {name}"))
        written = " ".join(svg.itertext())
        for fact in ("bundled", "2cd3a6a7380f", "corpus texts 128", "word frequencies English"):
            assert fact in written
        assert download(page, f"PNG of {name}").startswith(b"\x89PNG")


def test_gradients_are_computed_at_the_press_of_a_button(visit, masked_checkpoint):
    page = visit("/surface?surface+details=Layers")
    name_checkpoint(page, masked_checkpoint)
    page.get_by_role("button", name=words.COMPUTE).click()
    panel = page.get_by_role("tabpanel", name=words.LAYERS)
    expect(panel.locator("svg.marks")).to_have_count(2, timeout=LONG)
    expect(panel.get_by_text(re.compile(r"Over \d+ texts with [\d,]+ masked tokens"))).to_be_visible()


@pytest.fixture(scope="module")
def masked_checkpoint(tmp_path_factory):
    """Folder of a small random BERT with a masked-language-model head that takes the samples' lengths."""
    import torch
    import transformers
    from small_checkpoints import TOKENIZERS, config

    folder, tokenizer = tmp_path_factory.mktemp("checkpoint") / "masked", TOKENIZERS["bert"]()
    torch.manual_seed(0)
    changed = config("bert", len(tokenizer), max_position_embeddings=256)
    transformers.AutoModelForMaskedLM.from_config(changed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_frequency_list_of_ones_own_is_named(visit):
    page = opened(visit, words.FUNCTIONS)
    choose(page, words.FREQUENCIES, words.BY_FILE)
    expect(page.get_by_text(words.WAIT_LIST)).to_be_visible()
    give_file(page, "mine.txt", b"the\na\n<img src=x onerror=alert(1)>".replace(b" ", b"_"))
    expect(page.get_by_text("Frequencies: mine.txt (3 words)")).to_be_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_no_tab_has_an_accessibility_violation(visit, colours):
    page = opened(visit, colours=colours)
    open_expanders(page.get_by_test_id("stMain"))
    for tab in TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        drawn(page, tab)
        assert violations(page) == []


@pytest.mark.parametrize(
    ("size", "colours"), [("wide", "light"), ("tablet", "light"), ("narrow", "light"), ("narrow", "dark")]
)
def test_nothing_overlaps_or_is_cut(visit, size, colours):
    page = opened(visit, size=size, colours=colours, head="0-2,1-8")
    open_expanders(page.get_by_test_id("stMain"))
    for tab in TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        drawn(page, tab)
        assert wrongs(page) == []
