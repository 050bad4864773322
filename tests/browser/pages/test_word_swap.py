"""Inspect: two sentences that differ in a word, by keyboard alone."""

import re

from playwright.sync_api import expect
from steps import arcs, settle, wait_for

from attention_sieve.dashboard.views.word_swap import wording
from attention_sieve.dashboard.views.word_swap.choice import EXAMPLES


def field(page, name):
    return page.get_by_role("textbox", name=name, exact=True)


def region(page, name):
    return page.get_by_role("region", name=re.compile(name))


PICTURES = ("in sentence a$", "in sentence b$", "^Difference of the attention of")


def pinned(page):
    """The words that are pinned in each picture."""
    return [
        region(page, name).get_by_role("option", selected=True).evaluate_all("all => all.map((each) => each.title)")
        for name in PICTURES
    ]


def test_a_word_is_changed_by_keyboard_and_a_pinned_word_is_pinned_in_all_pictures(visit):
    page = visit("/")
    page.get_by_role("button", name=wording.CHANGE).press("Enter")
    expect(field(page, wording.FIRST)).to_have_value(EXAMPLES[0].a)
    expect(field(page, wording.SECOND)).to_have_value(EXAMPLES[0].b)
    expect(page.get_by_text(wording.NOT_TESTED)).to_be_visible()
    settle(page)
    second = field(page, wording.SECOND)
    second.fill(EXAMPLES[0].a.replace("lake", "old lake"))
    second.press("Enter")
    expect(page.get_by_text(wording.no_partner(1))).to_be_visible()
    expect(page.get_by_text(wording.OUTPUT)).to_be_visible()
    settle(page)
    page.get_by_role("grid", name=re.compile("^Attention that moves")).locator("[tabindex='0']").focus()
    for key in ("Control+Home", *3 * ["ArrowDown"], *5 * ["ArrowRight"], "Enter"):
        page.keyboard.press(key)
    expect(region(page, "Attention of L3 H5 in sentence a")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^L3 H5 moves \d+% of its attention on average"))).to_be_visible()
    settle(page)
    word = region(page, PICTURES[0]).get_by_role("listbox", name="From: queries").get_by_role("option", name="fish")
    word.press("Enter")
    wait_for(page, lambda: pinned(page), lambda words: words == [["fish"]] * 3)
    expect(page).to_have_url(re.compile("head=3-5.*pin=from-4|pin=from-4.*head=3-5"))
    page.get_by_role("button", name=wording.BACK).press("Enter")
    expect(region(page, PICTURES[1])).to_be_hidden()
    expect(arcs(page, "L3 H5")).to_be_visible()
    expect(page).not_to_have_url(re.compile("swap="))
