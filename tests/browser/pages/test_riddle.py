"""The riddle that a new visitor meets, by keyboard, and how it looks."""

from looks import expect_looks_right, lighten, resize
from playwright.sync_api import expect
from steps import PATIENCE, arcs, cell, grid_of, settle, shifted, wait_for

PROJECTOR = {"width": 853, "height": 480}
FOCUSED = """() => {
  let focused = document.activeElement;
  while (focused.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
  return focused.getAttribute("aria-label") ?? focused.textContent;
}"""
"""What has the keyboard's focus, by its name."""


def heading(page):
    return page.get_by_role("heading", level=2)


def expect_in_view(page, part):
    """Wait until something is on the screen from top to bottom."""
    height = page.viewport_size["height"]
    wait_for(page, part.bounding_box, lambda box: box and box["y"] >= 0 and box["y"] + box["height"] <= height)


def test_by_keyboard_the_grid_is_answered_and_escape_leads_to_the_tool(visit):
    page = visit("/", newcomer=True)
    seen = []
    wait_for(
        page,
        lambda: page.keyboard.press("Tab") or page.evaluate(FOCUSED),
        lambda now: seen.append(now) or "Layer 0, head 0:" in now,
    )
    assert seen[-2].startswith("Skip: straight to the tool"), "nothing stands between the way to skip and the grid"
    for key in ("ArrowDown", "ArrowDown", *["ArrowRight"] * 4):
        page.keyboard.press(key)
    assert page.evaluate(FOCUSED) == "Layer 2, head 4: Of the words, his looks most at brother, 64%."
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text("Found it: L2 H4.")
    expect(arcs(page, "L2 H4")).to_be_visible()
    settle(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("textbox", name="Your texts")).to_be_visible()
    expect(page.get_by_test_id("stHeader")).to_be_visible()


def test_question_and_answer_are_accessible_and_fit_also_on_a_projector(visit):
    page = visit("/", newcomer=True)
    assert shifted(page) < 0.1
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    expect_looks_right(page)
    lighten(page)
    page.set_viewport_size(PROJECTOR)
    for part in (grid_of(page), page.get_by_role("button", name="Skip: straight to the tool")):
        expect_in_view(page, part)
    cell(page, 5, 2).click()
    expect(heading(page)).to_have_text("Close: one more try.")
    expect_in_view(page, page.get_by_text("A hint: it is in layer 2."))
    settle(page)
    cell(page, 5, 2).click()
    expect(heading(page)).to_have_text("Close! The one is L2 H4.")
    for part in (grid_of(page), arcs(page).locator(".box"), page.get_by_text("from everywhere")):
        expect_in_view(page, part)
    resize(page, "wide")
    expect_looks_right(page)


FIELDS = "all => all.map((field) => Number(field.getAttribute('opacity')))"


def test_the_large_square_is_filled_with_the_head_that_the_pointer_is_on(visit):
    page = visit("/", newcomer=True)
    fields = page.locator("[data-field]")
    expect(fields).to_have_count(81)
    assert not any(fields.evaluate_all(FIELDS))
    cell(page, 2, 4).hover()
    filled = wait_for(page, lambda: fields.evaluate_all(FIELDS), any)
    his, brother = 4, 2
    assert filled[9 * his + brother] == max(filled[9 * his : 9 * his + 9]) == 0.8  # the root of 64%
    page.mouse.move(0, 0)
    wait_for(page, lambda: fields.evaluate_all(FIELDS), lambda now: not any(now))


def test_a_small_square_is_shown_large_while_a_finger_is_on_it(browser, server):
    page = browser.new_page(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.set_default_timeout(PATIENCE)
    page.goto(server)
    settle(page)
    lens, square = page.locator("canvas.lens"), cell(page, 2, 4)
    expect(square).to_be_visible()
    box = square.bounding_box()
    finger = page.context.new_cdp_session(page)
    point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    finger.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    expect(lens).to_be_visible()
    large = lens.bounding_box()
    assert large["width"] > 4 * box["width"]
    assert large["y"] + large["height"] <= box["y"] or large["y"] >= box["y"] + box["height"], "the finger covers it"
    assert lens.evaluate("each => each.getContext('2d').getImageData(0, 0, each.width, each.height).data.some(Boolean)")
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(lens).to_be_hidden()
    expect(heading(page)).to_have_text("Found it: L2 H4.")
    page.close()
