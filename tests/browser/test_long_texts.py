"""Texts of thousands of tokens: shown in a window that moves, and the page never stands still."""

import re

from playwright.sync_api import expect
from steps import LONG, arcs, cell, error, settle, slider, type_texts

CLAUSE = "the dog sat on the red mat and ran to a coffee house. "
TEXT = CLAUSE * 170
"""A little over 4,096 tokens of the long checkpoint."""
WINDOW = re.compile(r"Queries ([\d,]+) to ([\d,]+) of ([\d,]+), keys ([\d,]+) to")
STANDS_STILL = 2_000
"""Milliseconds of one task in a browser that draws without a graphics card, on a busy machine."""
MOST_BYTES = 1_500_000
"""Sent for one click."""
WATCH = """
    window.longest = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    }).observe({ type: "longtask", buffered: true });
"""


def window(page):
    """First query, one of all queries, first key."""
    found = WINDOW.search(arcs(page).inner_text())
    return tuple(int(found[group].replace(",", "")) for group in (1, 3, 4))


def maps(page):
    return page.get_by_role("application", name=re.compile("^Attention of .* in the whole text"))


def test_four_thousand_tokens_are_looked_at_without_standing_still(visit, long_checkpoint):
    page = visit(f"/?checkpoint={long_checkpoint}&text={CLAUSE}&head=1-3")
    sent = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sent.append(len(frame))))
    page.evaluate(WATCH)
    type_texts(page, TEXT)
    expect(arcs(page).get_by_text("Tokens 0 to 255 of 4,")).to_be_visible(timeout=LONG)
    before = [cell(page, 1, 3).get_attribute("aria-label"), page.url]
    map_of_head = maps(page).locator("canvas").first
    box = map_of_head.bounding_box()
    map_of_head.click(position={"x": box["width"] * 0.3, "y": box["height"] * 0.7})
    expect(arcs(page).get_by_text(WINDOW)).to_be_visible()
    clicked = window(page)
    assert 0 < clicked[2] < clicked[0] < clicked[1]
    maps(page).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(arcs(page).get_by_text(f"Queries {clicked[0]:,} ")).to_have_count(0)
    assert window(page)[0] > clicked[0]
    assert window(page)[2] == clicked[2]
    assert cell(page, 1, 3).get_attribute("aria-label") == before[0]
    cell(page, 2, 5).click()
    expect(arcs(page, "L2 H5")).to_be_visible()
    slider(page, "tau").press("PageUp")
    page.wait_for_url(lambda url: "tau=" in url)
    settle(page)
    assert page.evaluate("window.longest") < STANDS_STILL
    assert max(sent, default=0) < MOST_BYTES


def test_a_text_too_long_for_the_link_is_left_out_of_it_until_it_is_short_again(visit):
    page = visit("/?tau=2.5&head=0-2")
    said = page.get_by_text("These texts are too long for the link")
    type_texts(page, TEXT)
    expect(said).to_be_visible(timeout=LONG)
    expect(error(page)).to_contain_text("this checkpoint takes 512")
    page.wait_for_url(lambda url: "text=" not in url and "tau=2.5" in url)
    assert len(page.url) < 400
    type_texts(page, "the black cat")
    page.wait_for_url(lambda url: "text=the+black+cat" in url)
    expect(said).to_have_count(0)
    type_texts(page, TEXT)
    expect(said).to_be_visible(timeout=LONG)
    page.get_by_role("link", name="Roles").click()
    expect(page.get_by_role("heading", name="Roles", exact=True)).to_be_visible()
    page.get_by_role("link", name="Inspect", exact=True).click()
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(TEXT)
    expect(said).to_be_visible()
    page.wait_for_url(lambda url: "text=" not in url)


def test_the_window_is_in_the_link_and_stays_where_heads_are_switched_off(visit):
    page = visit(f"/?text={'word+' * 400}&window=100-50&head=1-3")
    expect(error(page)).to_have_count(0)
    assert window(page) == (100, 402, 50)
    maps(page).focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "window=146-146" in url)
    expect(arcs(page).get_by_text("Tokens 146 to 401 of 402")).to_be_visible()
    for switch, n_banners in (("Switch L1 H3 off", 1), ("Switch all on", 0)):
        page.get_by_role("button", name=switch, exact=True).click()
        expect(page.get_by_text("Switched off: ")).to_have_count(n_banners)
        settle(page)
        expect(page.get_by_text("Window: queries 146–401, keys 146–401.").first).to_be_visible()
        expect(arcs(page).get_by_text("Tokens 146 to 401 of 402")).to_be_visible()
