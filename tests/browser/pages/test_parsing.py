"""The page Grammar, as a person meets it: relations that heads find, with the parser's trees and with gold."""

import io
import re

import numpy as np
import pandas as pd
from looks import expect_tabs_to_look_right
from playwright.sync_api import expect
from steps import choose, download, settle, upload, wait_for, wait_until_alike

from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.texts.relations import parser_name
from attention_sieve.dashboard.samples import read_sample

TABS = ("Every relation", "Distances", "Argmax and sieve")
HOSTILE = "<img/src=x/onerror=alert(1)>"
CONLLU = "".join(
    f"1\tThe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\t{noun}\t_\t_\t_\t_\t3\tnsubj\t_\t_\n3\tran\t_\t_\t_\t_\t0\troot\t_\t_\n"
    f"4\thome\t_\t_\t_\t_\t3\t{HOSTILE}\t_\t_\n\n"
    for noun in ("dog", "cat", "horse", HOSTILE)
)
HEADER, ROW = 36, 36
"""Heights in the table, in pixels."""


def opened(visit, path="/parsing"):
    page = visit(path)
    expect(page.get_by_text("Best find: ")).to_be_visible()
    drawn(page)
    return page


def drawn(page):
    """Wait until everything is there, also what follows below."""
    settle(page)
    expect(arcs(page).locator("svg")).to_be_visible()


def arcs(page):
    return page.get_by_role("region", name=re.compile("^L[0-9]+ H[0-9]+, .* on a sentence$"))


def grid(page, relation):
    return page.get_by_role("grid", name=re.compile(f"^{relation}, .*: accuracy − baseline"))


def shown(page):
    """Relation, head and sentence that are looked at."""
    names = ("Relation", "Sentence")
    boxes = [page.get_by_role("combobox", name=name, exact=True).input_value() for name in names]
    return [*boxes, arcs(page).get_attribute("aria-label"), arcs(page).text_content()]


def of_samples():
    finding = find(RELATION_ANALYSIS, load_checkpoint(find_checkpoint(BUNDLED)), read_sample("both"))
    return {one.relation: one for one in finding.accuracies}


def test_numbers_are_those_that_core_computes_any_head_is_drawn_a_link_restores_it_and_an_uploaded_tree_is_gold(visit):
    page = opened(visit)
    expect_the_numbers_that_core_computes(page)
    expect_a_row_of_the_table_to_choose_its_relation_and_best_head_and_any_head_to_be_drawn(page)
    expect_a_link_to_restore_the_screen(visit, page)
    open_tab(page, "Every relation")
    expect_an_uploaded_tree_to_be_gold_and_its_names_to_stay_text(page)


def expect_the_numbers_that_core_computes(page):
    expect(page.get_by_text("whose parses contain errors, for 128 texts.")).to_be_visible()
    table = pd.read_csv(io.BytesIO(download(page, "CSV of relations")))
    expected = of_samples()
    assert table["relation"].tolist() == list(expected)
    for row in table.itertuples():
        one = expected[row.relation]
        way, layer, head = one.best
        assert (row.cases, row.layer, row.head, row.direction) == (one.n_cases, layer, head, way)
        numbers = (row.held_out, row.held_out_low, row.held_out_high, row.accuracy, row.baseline, row.p)
        best = one.accuracy[DIRECTIONS.index(way), layer, head]
        wanted = (one.best_accuracy, one.best_low, one.best_high, best, one.baseline.share, one.p_value)
        np.testing.assert_allclose(numbers, wanted, rtol=1e-9)
    assert set(table["relations"]) == {parser_name()}
    assert set(table["read at clitic"]) == {"no"}
    nsubj = expected["nsubj"]
    points = 100 * (nsubj.accuracy[0, 1, 4] - nsubj.baseline.share)
    choose(page, "Relation", "nsubj")
    expect(grid(page, "nsubj").get_by_role("gridcell", name="Layer 1, head 4:")).to_contain_text(f"{points:+.0f}")


def expect_a_row_of_the_table_to_choose_its_relation_and_best_head_and_any_head_to_be_drawn(page):
    table = pd.read_csv(io.BytesIO(download(page, "CSV of relations")))
    for place in (2, 1):
        frame = page.get_by_test_id("stDataFrame").first
        frame.scroll_into_view_if_needed()
        frame.click(position={"x": 16, "y": HEADER + ROW * place + ROW / 2})
        row = table.iloc[place]
        expect(page.get_by_role("combobox", name="Relation", exact=True)).to_have_value(row["relation"])
        expect(arcs(page)).to_have_attribute("aria-label", re.compile(f"^L{row['layer']} H{row['head']}, "))
        expect(grid(page, row["relation"])).to_be_visible()
        settle(page)
    before = arcs(page).text_content()
    grid(page, row["relation"]).get_by_role("gridcell", name="Layer 0, head 2:").click()
    expect(arcs(page)).to_have_attribute("aria-label", re.compile("^L0 H2, "))
    expect(page.get_by_text(re.compile("right in this sentence"))).to_be_visible()
    wait_for(page, arcs(page).text_content, lambda now: now != before or "✓" not in before)


def expect_an_uploaded_tree_to_be_gold_and_its_names_to_stay_text(page):
    upload(page, "gold.conllu", CONLLU)
    expect(page.get_by_text("Relations: gold, from the file, for 4 texts.")).to_be_visible()
    drawn(page)
    table = pd.read_csv(io.BytesIO(download(page, "CSV of relations")))
    assert dict(zip(table["relation"], table["cases"], strict=True)) == {"all": 12, "det": 4, "nsubj": 4, HOSTILE: 4}
    assert set(table["relations"]) == {"from the file"}
    choose(page, "Relation", HOSTILE)
    expect(arcs(page)).to_contain_text(HOSTILE)
    expect(page.locator("img[src=x]")).to_have_count(0)


def expect_a_link_to_restore_the_screen(visit, page):
    choose(page, "Relation", "det")
    expect(page).to_have_url(re.compile("[?&]relation=det"))
    # The address changes at once. Only when the relation is drawn has its best direction been chosen, which a click
    # before that would lose to.
    expect(grid(page, "det")).to_be_visible()
    page.get_by_role("radio", name="head → dep").click()
    expect(page).to_have_url(re.compile("[?&]way=head"))
    grid(page, "det").get_by_role("gridcell", name="Layer 2, head 0:").click()
    expect(arcs(page)).to_have_attribute("aria-label", re.compile("^L2 H0, head → dep"))
    # The list holds only the options in view, and those that fit what is typed.
    page.get_by_role("combobox", name="Sentence", exact=True).fill("1.1: Who")
    page.get_by_role("option", name="1.1: Who repaired the broken clock?", exact=True).click()
    expect(arcs(page)).to_contain_text("repaired")
    page.get_by_role("tab", name="Argmax and sieve").click()
    expect(page.get_by_text("by both and")).to_be_visible()
    page.wait_for_url(re.compile("[?&]relation.details="))
    there = opened(visit, page.url)
    expect(there.get_by_text("by both and")).to_be_visible()
    expect(arcs(there)).to_have_attribute("aria-label", re.compile("^L2 H0, head → dep"))
    wait_until_alike(page, there, shown)


def test_the_page_is_accessible_and_fits(visit):
    page = opened(visit, "/parsing?random=true")
    for part in ("Settings of this section", "How it is computed", "What the paper found"):
        page.get_by_text(part, exact=True).click()
    expect_tabs_to_look_right(page, TABS, open_tab)


def open_tab(page, tab):
    page.get_by_role("tab", name=tab).click()
    expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
    drawn(page)
