"""The riddle that a new visitor meets, by keyboard, and how it looks."""

from looks import expect_looks_right, lighten, resize
from playwright.sync_api import expect
from steps import arcs, cell, grid_of, settle, shifted, wait_for

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
    assert page.evaluate(FOCUSED) == "Layer 2, head 4: his looks most at brother, 64%."
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
    expect(heading(page)).to_have_text("Close! The one is L2 H4.")
    for part in (grid_of(page), arcs(page).locator(".box"), page.get_by_text("from everywhere")):
        expect_in_view(page, part)
    resize(page, "wide")
    expect_looks_right(page)
