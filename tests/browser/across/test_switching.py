"""Heads that a person switches off."""

import re

from playwright.sync_api import expect
from steps import (
    arcs,
    cell,
    cells,
    expect_cells_other_than,
    grid_of,
    settle,
    wait_until_equal,
)

OFF = re.compile(r"^Layer \d+, head \d+: switched off, ")


def off(page):
    """The heads whose cells say that they are off; None unless these are struck through."""
    said = [re.findall(r"\d+", name)[:2] for name in cells(page) if OFF.match(name)]
    struck = page.get_by_role("grid").locator(".cell.off")
    lines = struck.evaluate_all("all => all.map((each) => getComputedStyle(each, '::after').backgroundImage)")
    if len(lines) != len(said) or not all(line.startswith("linear-gradient") for line in lines):
        return None
    return [f"L{layer} H{head}" for layer, head in said]


def expect_off(page, *heads):
    """Wait until these heads say that they are off, and are struck through."""
    wait_until_equal(page, lambda: off(page), list(heads))


def test_chosen_heads_are_switched_off_and_struck_through(visit):
    page = visit("/?patterns=false&corpus=type+texts&corpus_text=A+dog+ran.")  # the sample texts would all pass again
    expect_off(page)
    cell(page, 0, 2).click()
    cell(page, 1, 4).click(modifiers=["Shift"])
    expect(arcs(page, "L0 H2", "L1 H4")).to_be_visible()
    before = cells(page)
    grid = grid_of(page).element_handle()
    page.get_by_role("button", name="Switch L0 H2, L1 H4 off").click()
    expect(page.get_by_text("Switched off: L0 H2, L1 H4.")).to_be_visible()
    expect_cells_other_than(page, before)
    expect_off(page, "L0 H2", "L1 H4")
    expect(page.get_by_text("against all heads on:")).to_be_visible()
    settle(page)
    assert grid.evaluate("grid => grid.isConnected"), "The grid was drawn anew."
    cell(page, 0, 2).hover()
    expect(page.locator(".tip .title").first).to_have_text("Layer 0, head 2, switched off: local")
    expect(page).to_have_url(re.compile("off=0-2"))
