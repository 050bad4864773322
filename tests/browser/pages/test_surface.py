"""The page Where heads look, as a person meets it."""

import io
import re
from urllib.parse import unquote_plus
from xml.etree import ElementTree

import pandas as pd
import pytest
from looks import expect_tabs_to_look_right, open_expanders
from playwright.sync_api import expect
from steps import arcs, choose, download, give_file, name_checkpoint, settle, wait_until_equal

from attention_sieve.dashboard.views.surface import wording as words

TABS = (words.SHARES, words.ENTROPY, words.CHOSEN, words.HEADS, words.FUNCTIONS, words.LAYERS, words.TABLE)
DRAWN = "svg.marks, [role=grid], [data-testid=stDataFrame] canvas"


def opened(visit, tab=words.SHARES, **link):
    """The page with a tab open and drawn."""
    asked = "".join(f"&{name}={value}" for name, value in link.items())
    page = visit(f"/surface?surface+details={tab.replace(' ', '+')}{asked}")
    drawn(page, tab)
    return page


def drawn(page, tab):
    """Wait until a tab has what it shows, and the page its fonts."""
    settle(page)
    panel = page.get_by_role("tabpanel", name=tab, exact=True)
    expect(panel).to_be_visible()
    expect(panel.locator(DRAWN).first).to_be_visible()


def open_tab(page, tab):
    page.get_by_role("tab", name=tab, exact=True).click()
    drawn(page, tab)


def dots(page):
    return page.locator("svg.marks").first.locator("path[aria-roledescription=point]")


def table_of(page):
    """All statistics, as the page's table gives them."""
    return pd.read_csv(io.BytesIO(download(page, "CSV of surface")))


def test_numbers_are_those_that_were_computed_figures_download_and_marks_and_links_choose_heads(visit):
    page = opened(visit, words.TABLE, head="3-3")
    expect(page.get_by_role("link", name="Inspect L3 H3")).to_be_visible()
    expect_table_headline_dots_and_cells_to_show_the_numbers_that_were_computed(page)
    expect_figures_with_where_they_come_from(page)
    expect_a_cell_of_the_function_grid_to_choose_its_head(page)
    open_tab(page, words.SHARES)
    dots(page).nth(17).click()
    expect(page.get_by_role("link", name="Inspect L1 H5")).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]head=1-5"))
    open_tab(page, words.ENTROPY)
    page.wait_for_url(lambda url: words.ENTROPY in unquote_plus(url))
    again = visit(page.url)
    drawn(again, words.ENTROPY)
    again.get_by_role("link", name="Inspect L1 H5").click()
    expect(arcs(again, "L1 H5")).to_be_visible()
    expect_a_frequency_list_of_ones_own_to_be_named(page)


def expect_table_headline_dots_and_cells_to_show_the_numbers_that_were_computed(page):
    table = table_of(page)
    rows = page.get_by_test_id("stDataFrame").locator("table[role=grid]")
    expect(rows).to_have_attribute("aria-rowcount", str(1 + len(words.STATISTICS) * 72))
    page.get_by_role("combobox", name=words.ONLY_LAYERS, exact=True).click()
    page.get_by_role("option", name="4", exact=True).click()
    page.keyboard.press("Escape")
    expect(rows).to_have_attribute("aria-rowcount", str(1 + len(words.STATISTICS) * 12))
    wait_until_equal(page, lambda: set(table_of(page)["layer"]), {4})
    assert table["texts"].max() == 128
    assert set(table["checkpoint"]) == {"bundled"}
    n_cls, n_sep = ((table[table["statistic"] == name]["mean"] > 0.5).sum() for name in ("cls", "sep"))
    expect(page.get_by_text(f"{n_cls} put over half of their attention on [CLS], {n_sep} on [SEP]")).to_be_visible()
    means = table.set_index(["statistic", "layer", "head"])["mean"]
    open_tab(page, words.SHARES)
    dot = dots(page).and_(page.locator("[aria-label*='head: L1 H11']")).first
    expect(dot).to_have_attribute("aria-label", re.compile(f"mean: {100 * means['cls', 1, 11]:.0f}%"))
    open_tab(page, words.HEADS)
    cell = page.get_by_role("grid").get_by_role("gridcell", name="Layer 0, head 5:")
    expect(cell).to_have_attribute("aria-label", re.compile(re.escape(f"{means['sep', 0, 5]:.2f}".removeprefix("0"))))
    choose(page, words.STATISTIC, words.STATISTICS["entropy"])
    expect(page.get_by_role("grid", name=re.compile(re.escape(words.STATISTICS["entropy"])))).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]statistic=entropy"))


def expect_figures_with_where_they_come_from(page):
    for tab, names in (
        (words.SHARES, ["shares, special tokens", "shares, neighbours"]),
        (words.HEADS, ["head grid"]),
        (words.FUNCTIONS, ["functions"]),
    ):
        open_tab(page, tab)
        for name in names:
            svg = ElementTree.fromstring(download(page, f"SVG of {name}"))
            written = " ".join(svg.itertext())
            for fact in ("bundled", "2cd3a6a7380f", "corpus texts 128", "word frequencies English"):
                assert fact in written
            assert download(page, f"PNG of {name}").startswith(b"\x89PNG")


def expect_a_cell_of_the_function_grid_to_choose_its_head(page):
    open_tab(page, words.FUNCTIONS)
    page.locator("svg.marks path[aria-label*='head: L1 H9;']").last.click()
    expect(page.get_by_role("link", name="Inspect L1 H9")).to_be_visible()
    settle(page)


def expect_a_frequency_list_of_ones_own_to_be_named(page):
    open_tab(page, words.FUNCTIONS)
    page.get_by_text(words.SETTINGS, exact=True).click()
    choose(page, words.FREQUENCIES, words.BY_FILE)
    expect(page.get_by_text(words.WAIT_LIST)).to_be_visible()
    give_file(page, "mine.txt", b"the\na\n<img src=x onerror=alert(1)>".replace(b" ", b"_"))
    expect(page.get_by_text("Frequencies: mine.txt (3 words)")).to_be_visible()


def test_gradients_are_computed_at_the_press_of_a_button(visit, masked_checkpoint):
    page = visit("/surface?surface+details=Layers")
    name_checkpoint(page, masked_checkpoint)
    page.get_by_role("button", name=words.COMPUTE).click()
    panel = page.get_by_role("tabpanel", name=words.LAYERS)
    expect(panel.locator("svg.marks")).to_have_count(2)
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


def test_every_tab_is_accessible_and_fits(visit):
    page = opened(visit, head="0-2,1-8")
    open_expanders(page.get_by_test_id("stMain"))
    expect_tabs_to_look_right(page, TABS, open_tab)
