"""The lessons, as a reader and a teacher meet them."""

import re

import pytest
from looks import darken, expect_accessible, expect_fits, expect_looks_right
from playwright.sync_api import expect
from steps import arcs, cell, chosen, grid_of, settle, tokens, type_texts, wait_for

from dashboard.views.inspect.stories import SENTENCE, VISITED
from dashboard.views.lessons.content import ENGLISH
from dashboard.views.lessons.plans import LESSONS, steps_of, words_of

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


MOST_PLACES = 150
"""To which Tab leads on a page, at most."""


def tab_to(page, element):
    """Go on by Tab alone until an element has the focus."""
    settle(page)
    focused = "(each) => each === document.activeElement || each.contains(document.activeElement?.shadowRoot?.host)"

    def is_there():
        page.keyboard.press("Tab")
        return element.evaluate(f"(each) => ({focused})(each) || each.getRootNode().activeElement === each")

    # A page has fewer places than that; a second round meets what was drawn during the first.
    wait_for(page, lambda: any(is_there() for _ in range(MOST_PLACES)), bool)


def enter_on(page, element):
    tab_to(page, element)
    page.keyboard.press("Enter")


def head_by_keyboard(page, head):
    """Go to a square of the grid by the arrow keys, and choose it."""
    first = grid_of(page).locator("[role=gridcell][tabindex='0']")
    tab_to(page, first)
    place = [int(part) for part in re.findall(r"\d+", first.get_attribute("aria-label"))[:2]]
    for axis, (less, more) in enumerate((("ArrowUp", "ArrowDown"), ("ArrowLeft", "ArrowRight"))):
        away = head[axis] - place[axis]
        for _ in range(abs(away)):
            page.keyboard.press(more if away > 0 else less)
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text(f"You have chosen L{head[0]} H{head[1]}.")


def word_by_keyboard(page, word):
    """Go down the right-hand column by the arrow keys, and pin a word."""
    column = tokens(page, "To: keys")
    tab_to(page, column.locator("xpath=self::*[@tabindex='0']"))
    page.keyboard.press("Home")
    for _ in range(column.all_inner_texts().index(word)):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("pin=to-"))


def number_by_keyboard(page, value):
    tab_to(page, page.get_by_label("Your guess"))
    page.keyboard.press("Control+a")
    page.keyboard.type(str(value))
    page.keyboard.press("Enter")


BY_KEYBOARD = {"word": word_by_keyboard, "head": head_by_keyboard, "number": number_by_keyboard}
WRONG = {1: "baker", 2: (5, 11), 3: (5, 11), 5: (0, 0), 6: 1}
"""A prediction that does not come true; of a number, one that no answer is near."""
ANSWERS = {"word": r"looks at (\w+) most", "head": r"\bL(\d+) H(\d+)\b", "number": r"(\d+) of \d+ heads|Layer (\d+)\."}
"""Where the text of a reveal names what would have been right."""


def answer_in(page, asks):
    """What the reveal says, behind the line about the guess."""
    said = panel(page).inner_text().partition("You said")[2].partition("\n")[2]
    groups = [group for group in re.search(ANSWERS[asks], said).groups() if group]
    numbers = tuple(int(group) for group in groups if group.isdigit())
    return groups[0] if asks == "word" else numbers if asks == "head" else numbers[0]


@pytest.mark.parametrize("lesson", [1, 2, 3, 5, 6])
def test_a_lesson_by_keyboard_alone(visit, lesson, small_checkpoint, planted_checkpoint):
    pair = f"&checkpoint={small_checkpoint}&with={planted_checkpoint}" if lesson == 6 else ""
    page = visit(f"/{'compare' if pair else ''}?lesson={lesson}&step=1{pair}")
    for place, step in enumerate(steps_of(lesson)[:-1]):
        at_step(page, place + 1)
        if step.asks:
            guess = 20 if step.asks == "number" and lesson != 6 else WRONG[lesson]
            for is_right in (False, True):
                BY_KEYBOARD[step.asks](page, guess)
                enter_on(page, page.get_by_role("button", name="That is my guess"))
                at_step(page, place + 2)
                expect(panel(page)).to_contain_text("You said")
                assert bool(re.search(r"You said .*: right\.", panel(page).inner_text())) is is_right
                guess = answer_in(page, step.asks)
                enter_on(page, panel(page).get_by_role("button", name="Back"))
                at_step(page, place + 1)
        enter_on(page, panel(page).get_by_role("button", name="Next"))
    at_step(page, len(steps_of(lesson)))
    question = words_of(lesson, ENGLISH).question
    tab_to(page, page.get_by_role("radio").first)
    for _ in range(question.right):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(panel(page)).to_contain_text("Right. " + question.afterwards)


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
    expect(panel(page)).to_contain_text("there are only 3")
    page.get_by_label("A sentence to add").fill(OWN)
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text("there are only 4")
    press(page, "Leave the lesson")
    expect(panel(page)).to_have_count(0)
    expect(page.get_by_text("Over 128 texts")).to_be_visible()


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
