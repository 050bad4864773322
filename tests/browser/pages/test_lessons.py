"""The lessons, as a reader and a teacher meet them."""

import re

import pytest
from looks import darken, expect_accessible, expect_fits, expect_looks_right
from playwright.sync_api import expect
from steps import arcs, cell, chosen, grid_of, settle, tokens, type_texts, wait_for

from dashboard.views.inspect.stories import SENTENCE, VISITED
from dashboard.views.lessons.content import ENGLISH
from dashboard.views.lessons.plans import LESSONS, words_of

OWN = "The tired girl reads a long book."
PROJECTED = [(1280, 720), (853, 480)]


def panel(page):
    return page.locator(".st-key-lesson")


def at_step(page, step):
    expect(panel(page)).to_contain_text(re.compile(rf"Step {step} of \d"))
    settle(page)


def press(page, name):
    settle(page)
    page.get_by_role("button", name=re.compile(f"^{name}|{name}$")).click()


def guess(page):
    press(page, "That is my guess")


def number(page, value):
    settle(page)
    field = page.get_by_label("Your guess")
    field.fill(str(value))
    field.press("Enter")
    settle(page)


def pin(page, word):
    """Click a word of the right-hand column, and wait until the address says so."""
    token = tokens(page, "To: keys").filter(has_text=word)
    token.click()
    place = re.search(r", (\d+) of", token.get_attribute("aria-label"))
    expect(page).to_have_url(re.compile(rf"pin=to-{int(place[1]) - 1}\b"))
    settle(page)


def test_lesson_1_by_mouse_wrong_then_right(visit):
    page = visit("/?lesson=1")
    at_step(page, 1)
    expect(arcs(page, "L0 H2")).to_be_visible()
    press(page, "Next")
    at_step(page, 2)
    guess(page)
    expect(panel(page)).to_contain_text("Click a word in the right-hand column first.")
    pin(page, "baker")
    guess(page)
    at_step(page, 3)
    expect(panel(page)).to_contain_text(re.compile(r"You said baker \(\d+%\)\."))
    expect(arcs(page, "L1 H7")).to_be_visible()
    press(page, "Back")
    at_step(page, 2)
    pin(page, "shop")
    guess(page)
    expect(panel(page)).to_contain_text(re.compile(r"You said shop \(\d+%\): right\."))
    for step in (4, 5, 6):
        press(page, "Next")
        at_step(page, step)
    question = words_of(1, ENGLISH).question
    page.get_by_text(question.options[1]).click()
    expect(panel(page)).to_contain_text("Not quite.")
    page.get_by_text(question.options[question.right]).click()
    expect(panel(page)).to_contain_text("Right. " + question.afterwards)
    press(page, "Next lesson")
    expect(panel(page)).to_contain_text("Lesson 2 of 6")


def tab_to(page, element):
    """Go on by Tab alone until an element has the focus."""
    settle(page)
    focused = "(each) => each === document.activeElement || each.contains(document.activeElement?.shadowRoot?.host)"

    def there():
        page.keyboard.press("Tab")
        return element.evaluate(focused) or element.evaluate("(each) => each.getRootNode().activeElement === each")

    wait_for(page, there, bool)


def test_lesson_2_by_keyboard_alone(visit):
    page = visit("/?lesson=2&step=1")
    at_step(page, 1)
    for (layer, head), said in (((1, 1), r"You said L1 H1 \(\d+%\)\."), ((0, 2), r"You said L0 H2 \(\d+%\): right\.")):
        first = grid_of(page).locator("[role=gridcell][tabindex='0']")
        tab_to(page, first)
        place = [int(part) for part in re.findall(r"\d+", first.get_attribute("aria-label"))[:2]]
        for axis, (less, more) in enumerate((("ArrowUp", "ArrowDown"), ("ArrowLeft", "ArrowRight"))):
            away = (layer, head)[axis] - place[axis]
            for _ in range(abs(away)):
                page.keyboard.press(more if away > 0 else less)
        page.keyboard.press("Enter")
        expect(panel(page)).to_contain_text(f"You have chosen L{layer} H{head}.")
        tab_to(page, page.get_by_role("button", name="That is my guess"))
        page.keyboard.press("Enter")
        at_step(page, 2)
        expect(panel(page)).to_contain_text(re.compile(said))
        if head != 2:
            tab_to(page, panel(page).get_by_role("button", name="Back"))
            page.keyboard.press("Enter")
            at_step(page, 1)
    tab_to(page, panel(page).get_by_role("button", name="Next"))
    page.keyboard.press("Enter")
    at_step(page, 3)
    tab_to(page, page.get_by_label("Your guess"))
    page.keyboard.press("Control+a")
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    settle(page)
    tab_to(page, page.get_by_role("button", name="That is my guess"))
    page.keyboard.press("Enter")
    at_step(page, 4)
    expect(panel(page)).to_contain_text("You said 0.")


def test_lesson_3_takes_the_readers_own_sentence(visit):
    page = visit("/?lesson=3&step=1")
    at_step(page, 1)
    cell(page, 1, 7).click()
    expect(panel(page)).to_contain_text("You have chosen L1 H7.")
    guess(page)
    expect(panel(page)).to_contain_text(": right.")
    press(page, "Next")
    at_step(page, 3)
    type_texts(page, OWN)
    expect(panel(page)).to_contain_text(re.compile(r"reads → book.* L1 H7 gives \d+%", re.DOTALL))


def test_lesson_4_adds_texts_and_counts_again(visit):
    page = visit("/?lesson=4&step=2")
    at_step(page, 2)
    number(page, 0)
    guess(page)
    at_step(page, 3)
    expect(panel(page)).to_contain_text("You said 0: right.")
    press(page, "Next")
    at_step(page, 4)
    expect(panel(page)).to_contain_text("Over 3 texts")


def test_lesson_5_ranks_the_guess(visit):
    page = visit("/?lesson=5&step=1")
    at_step(page, 1)
    cell(page, 0, 0).click()
    expect(panel(page)).to_contain_text("You have chosen L0 H0.")
    guess(page)
    at_step(page, 2)
    expect(panel(page)).to_contain_text(re.compile(r"You said L0 H0 \(\d+ of 72 from the top\)"))
    best = re.search(r"It is L(\d+) H(\d+)", panel(page).inner_text())
    press(page, "Back")
    at_step(page, 1)
    cell(page, int(best[1]), int(best[2])).click()
    expect(panel(page)).to_contain_text(f"You have chosen L{best[1]} H{best[2]}.")
    guess(page)
    expect(panel(page)).to_contain_text("(1 of 72 from the top): right.")


def test_lesson_6_says_that_it_needs_a_second_checkpoint_and_names_the_layer_with_one(visit, small_checkpoint):
    page = visit("/?lesson=6")
    expect(panel(page)).to_contain_text("This lesson needs a second checkpoint")
    page = visit(f"/compare?lesson=6&step=2&checkpoint={small_checkpoint}&with={small_checkpoint}")
    expect(panel(page)).to_contain_text(re.compile("In which layer|needs a second checkpoint"))


def test_leaving_a_lesson_leaves_the_page_as_it_was(visit, server):
    page = visit_as_newcomer(visit, server)
    type_texts(page, OWN)
    cell(page, 3, 4).click()
    expect(chosen(page)).to_have_text(["L3 H4"])
    settle(page)
    page.get_by_role("button", name="Lesson: what is a head?").click()
    at_step(page, 1)
    box = page.get_by_role("textbox", name="Your texts")
    expect(box).to_have_value(SENTENCE)
    press(page, "Next")
    at_step(page, 2)
    press(page, "Leave the lesson")
    expect(panel(page)).to_have_count(0)
    expect(box).to_have_value(OWN)
    expect(chosen(page)).to_have_text(["L3 H4"])


def test_a_reload_keeps_the_step_and_the_guess_is_asked_again(visit):
    page = visit("/?lesson=2&step=1")
    at_step(page, 1)
    press(page, "Next")
    at_step(page, 2)
    page.reload()
    at_step(page, 2)
    expect(panel(page)).to_contain_text("You have not guessed.")


def visit_as_newcomer(visit, server):
    page = visit("/")
    page.goto(f"{server}/_stcore/health")
    page.context.clear_cookies(name=VISITED)
    page.goto(server)
    settle(page)
    return page


def test_who_has_been_here_is_not_offered_the_lesson_again(visit, server):
    page = visit_as_newcomer(visit, server)
    offer = page.get_by_role("button", name="Lesson: what is a head?")
    offer.click()
    at_step(page, 1)
    press(page, "Leave the lesson")
    expect(offer).to_be_visible()
    page.goto(server)
    settle(page)
    expect(page.get_by_role("link", name="Before and after training")).to_be_visible()
    expect(offer).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), PROJECTED)
def test_presented_grid_and_arcs_stand_side_by_side(visit, width, height):
    page = visit("/?lesson=1&step=3&present=1", width=width, height=height)
    at_step(page, 3)
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    grid, lines = grid_of(page).bounding_box(), arcs(page).bounding_box()
    assert grid["x"] + grid["width"] <= lines["x"]
    assert grid["y"] < height
    assert lines["y"] < height
    expect_fits(page)
    expect_accessible(page)
    darken(page)
    expect_accessible(page)
    page.keyboard.press("PageDown")
    at_step(page, 4)
    page.keyboard.press("PageUp")
    at_step(page, 3)
    label = tokens(page).nth(3).locator(".label")
    before = label.bounding_box()["height"]
    label.hover()
    wait_for(page, lambda: label.bounding_box()["height"], lambda now: now > 1.2 * before)
    press(page, "End presenting")
    expect(page.get_by_test_id("stHeader")).to_be_visible()
    at_step(page, 3)


@pytest.mark.parametrize("address", ["/lessons", "/?lesson=2&step=4", "/roles?lesson=4&step=1"])
def test_lessons_look_right(visit, address):
    page = visit(address)
    if "step" in address:
        at_step(page, int(address[-1]))
    expect_looks_right(page)


def test_a_class_sees_what_it_guessed(visit):
    page = visit("/lessons")
    press(page, "Make a class code")
    link = page.get_by_test_id("stCode").inner_text().strip()
    assert re.search(r"/\?lesson=1&step=1&class=[A-Z0-9]{6}$", link)
    pupil = visit(link.replace("lesson=1&step=1", "lesson=2&step=3"))
    at_step(pupil, 3)
    expect(panel(pupil)).to_contain_text("0 have guessed so far.")
    number(pupil, 7)
    guess(pupil)
    at_step(pupil, 4)
    expect(panel(pupil)).to_contain_text("7: 1")
    wrong = visit("/?lesson=2&step=3&class=ZZZZZZ")
    expect(wrong.get_by_text("There is no class")).to_be_visible()


@pytest.mark.parametrize("lesson", range(1, len(LESSONS) + 1))
def test_a_sheet_is_one_page_of_a4(visit, browser, tmp_path, lesson):
    page = visit("/lessons")
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Sheet to print").nth(lesson - 1).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    paper = browser.new_page()
    paper.goto(path.as_uri())
    printed = paper.pdf(prefer_css_page_size=True)
    paper.close()
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == 1
