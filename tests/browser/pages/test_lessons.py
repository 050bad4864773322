"""The lessons, as a reader and a teacher meet them."""

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from looks import darken, expect_accessible, expect_fits, resize
from playwright.sync_api import expect
from steps import (
    arcs,
    cell,
    choose,
    chosen,
    downloaded,
    grid_of,
    links,
    settle,
    shifted,
    steady,
    tokens,
    type_texts,
    wait_for,
)
from tuned import save_tuned

from attention_sieve.dashboard.languages import ENGLISH, languages, say
from attention_sieve.dashboard.views.lessons.desk import teacher_notes
from attention_sieve.dashboard.views.lessons.plans import BIRTH, LESSONS, steps_of, words_of
from attention_sieve.dashboard.views.text import wording as stories
from attention_sieve.dashboard.views.text.stories import SENTENCE

README = Path(__file__).parents[3] / "dashboard" / "README.md"
OWN = "The tired girl reads a long book."
REVIEW = "The plot is thin, but the ending is lovely."
PANEL = ".st-key-lesson"
PICTURES = "[data-testid=stGrid]:has(.st-key-arcs-difference)"
PROJECTED = [{"width": 1280, "height": 720}, {"width": 853, "height": 480}]


def panel(page):
    return page.locator(PANEL)


def at_step(page, step):
    expect(panel(page)).to_contain_text(re.compile(rf"Step {step} of \d"))
    settle(page)


def press(page, name):
    settle(page)
    page.get_by_role("button", name=re.compile(f"^{name}|{name}$")).click()


def guess(page):
    settle(page)
    panel(page).get_by_role("button", name="That is my guess").click()


def word_by_mouse(page, word):
    """Click a word of the right-hand column, and wait until the address says so."""
    token = tokens(page, "To: keys").filter(has_text=word)
    token.click()
    place = re.search(r", (\d+) of", token.get_attribute("aria-label"))
    expect(page).to_have_url(re.compile(rf"pin=to-{int(place[1]) - 1}\b"))
    settle(page)


def focus(page, element):
    """Give the focus to something that Tab reaches."""
    settle(page)
    assert element.evaluate("each => each.tabIndex") >= 0
    element.focus()


def head_by_keyboard(page, head):
    """Go to a square of the grid by the arrow keys, choose it, and say that it is the guess."""
    first = grid_of(page).locator("[role=gridcell][tabindex='0']")
    focus(page, first)
    place = [int(part) for part in re.findall(r"\d+", first.get_attribute("aria-label"))[:2]]
    for axis, (less, more) in enumerate((("ArrowUp", "ArrowDown"), ("ArrowLeft", "ArrowRight"))):
        away = head[axis] - place[axis]
        for _ in range(abs(away)):
            page.keyboard.press(more if away > 0 else less)
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text(f"You have chosen L{head[0]} H{head[1]}.")
    focus(page, panel(page).get_by_role("button", name="That is my guess"))
    page.keyboard.press("Enter")


def word_by_keyboard(page, word):
    """Go down the right-hand column by the arrow keys, and pin a word, which is the guess."""
    column = tokens(page, "To: keys")
    focus(page, column.locator("xpath=self::*[@tabindex='0']"))
    page.keyboard.press("Home")
    for _ in range(column.all_inner_texts().index(word)):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")


def number_by_keyboard(page, value):
    focus(page, page.get_by_label("Your guess"))
    page.keyboard.press("Control+a")
    page.keyboard.type(str(value))
    page.keyboard.press("Enter")


BY_KEYBOARD = {"word": word_by_keyboard, "head": head_by_keyboard, "number": number_by_keyboard}
WRONG = {1: "baker", 2: (1, 8), 3: "heavy", 4: 50, 5: 20, 6: 1, 7: (0, 0)}
"""A prediction that does not come true; of a number, one that no answer is near."""


def wrong_at(lesson, step):
    return {"rest": 20, "without": 10}.get(step.name) or WRONG[lesson]


def own_text(page, text):
    """Type over the text on screen; Enter takes it, and lets go of the box."""
    focus(page, page.get_by_role("textbox", name="Your texts"))
    page.keyboard.press("Control+a")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def own_sentence(page):
    own_text(page, OWN)
    expect(panel(page)).to_contain_text(re.compile(r"reads → book.* L1 H7 gives \d+%", re.DOTALL))
    expect(arcs(page)).to_be_visible()
    settle(page)
    expect(arcs(page).locator("[aria-selected=true]")).to_have_count(0)
    expect_accessible(page, ".st-key-arcs")  # words of which none is pinned are large enough targets


def own_ranking(page):
    first = page.locator(".st-key-lesson-ranking li").first
    before = first.inner_text()
    own_text(page, "The dog chased a ball.")
    expect(first).not_to_have_text(before)


def bottom(box):
    return box["y"] + box["height"]


def added_sentences(page):
    """A prepared sentence and one of the reader's own, added to the three of the lesson."""
    expect(panel(page)).to_contain_text("there are only 3")
    page.keyboard.press("2")
    expect(panel(page)).to_contain_text("there are only 4")
    added, label = (panel(page).get_by_text(words) for words in ("Added: A tall waiter", "A sentence of your own"))
    wait_for(page, lambda: [each.bounding_box() for each in (added, label)], lambda of: bottom(of[0]) <= of[1]["y"])
    focus(page, page.get_by_label("A sentence of your own"))
    page.keyboard.type(OWN)
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text("there are only 5")


EXTRAS = {(3, "own"): own_sentence, (4, "try"): added_sentences, (5, "try"): own_ranking}
"""What a step lets the reader do besides, by lesson and step."""


def expect_no_lines(page, asks):
    """While a word is asked for no line is drawn, and while a head is asked for no head is."""
    if asks == "word":
        blank = "canvas => !canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
        wait_for(page, lambda: links(page).evaluate(blank), bool)
        expect(arcs(page).locator(".number")).to_have_count(0)
    elif asks == "head":
        expect(arcs(page)).to_have_count(0)


ONWARD = ("PageDown", "ArrowRight", "Space")


def expect_judged(page, place):
    at_step(page, place + 1)
    expect(panel(page)).to_contain_text("You said")
    expect(panel(page)).not_to_contain_text(re.compile(r"You said .*: right\."))


@pytest.fixture(scope="session")
def tuned_checkpoint(tmp_path_factory):
    """Folder of a checkpoint to compare the bundled one with."""
    return save_tuned(tmp_path_factory.mktemp("checkpoint") / "tuned")


@pytest.mark.parametrize("lesson", range(1, BIRTH + 1))
def test_a_lesson_in_present_by_the_keys_of_a_remote_control(visit, request, lesson, tuned_checkpoint):
    """Each prediction wrong, with a sentence of one's own where a lesson takes one; those of the first by mouse."""
    pair = f"&with={tuned_checkpoint}" if lesson == 6 else ""
    if lesson == BIRTH:
        request.getfixturevalue("learnt_model")
    address = {6: "compare", BIRTH: "laboratory"}.get(lesson, "")
    page = visit(f"/{address}?lesson={lesson}&step=1&present=1{pair}", **PROJECTED[1])
    at_step(page, 1)
    assert shifted(page) <= 0.1
    if lesson == 1:  # all words of the longest text are in view
        expect_whole(page, grid_of(page), arcs(page, "L0 H2").locator(".columns"))
    for place, step in enumerate(steps_of(lesson)[:-1], start=1):
        at_step(page, place)
        if (lesson, step.name) in EXTRAS:
            EXTRAS[lesson, step.name](page)
            expect(page.locator("textarea:focus, input:focus")).to_have_count(0)
        if step.asks:
            expect_accessible(page, PANEL)
            expect_no_lines(page, step.asks)
            if lesson == 1:  # how a head and a number are guessed by mouse, the test of a class shows
                word_by_mouse(page, wrong_at(lesson, step))
                guess(page)
            else:
                BY_KEYBOARD[step.asks](page, wrong_at(lesson, step))
            expect_judged(page, place)
        else:
            # Arrows and Space keep their meaning for the focus, which is still on the word that was guessed.
            on_word = lesson > 1 and place > 1 and steps_of(lesson)[place - 2].asks == "word"
            page.keyboard.press("PageDown" if on_word else ONWARD[place % len(ONWARD)])
    at_step(page, len(steps_of(lesson)))
    question = words_of(lesson, ENGLISH).question
    if lesson == 1:
        wrong, right = (question.right + 1) % len(question.options), question.right
        page.get_by_text(question.options[wrong]).click()
        expect(panel(page)).to_contain_text("Not quite.")
        page.get_by_text(question.options[right]).click()
    else:
        focus(page, page.get_by_role("radio").first)
        for _ in range(question.right):
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Space")
    expect(panel(page)).to_contain_text("Right. " + question.afterwards)
    page.keyboard.press("PageDown")
    if lesson < BIRTH:  # the sixth is offered once there is a pair
        expect(panel(page)).to_contain_text(f"Lesson {lesson + 1 if lesson < 5 else BIRTH} of {BIRTH}")
        at_step(page, 1)
    expect_no_error(page)


def expect_no_error(page):
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_text("This app has encountered an error")).to_have_count(0)


def expect_page_down_and_page_up_to_lead_on_and_back_wherever_the_focus_is(page):
    """In present, from the first step of the second lesson on."""
    first_word, end = tokens(page, "To: keys").first, page.get_by_role("button", name="End presenting")
    square = grid_of(page).locator("[role=gridcell][tabindex='0']")
    box, own_guess = page.get_by_role("textbox", name="Your texts"), page.get_by_label("Your guess")
    for step, elements in enumerate(((box, square), (first_word, end), (own_guess,)), start=1):
        for element in elements:
            at_step(page, step)
            element.focus()
            page.keyboard.press("PageDown")
            if step == 3:  # that without a guess, asked once
                expect(panel(page)).to_contain_text("You have not guessed yet.")
                settle(page)
                page.keyboard.press("PageDown")
            at_step(page, step + 1)
            page.keyboard.press("PageUp")
        at_step(page, step)
        page.keyboard.press("PageDown")


def test_the_focus_is_seen_on_the_page_that_scrolls_and_on_a_link_to_another(visit):
    page = visit("/roles?lesson=4&step=2&present=1", **PROJECTED[1])
    at_step(page, 2)
    for element in (page.get_by_test_id("stMain"), page.get_by_role("link", name=re.compile("^Inspect|Inspect L"))):
        element.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        expect(element).to_be_focused()
        expect(element).to_have_css("outline-style", "solid")


DEMO = re.findall(r"http://localhost:8501(/\?lesson=\d&step=[2-9][^)\s]*present=1)", README.read_text("utf-8"))
"""Those that do not lead to a first step, which the test of each lesson opens."""


@pytest.mark.parametrize("link", DEMO)
def test_a_link_of_the_demo_moves_little_while_it_opens_and_page_down_leads_on(visit, link, tuned_checkpoint):
    page = visit(link + f"&with={tuned_checkpoint}" * ("lesson=6" in link), **PROJECTED[1])
    step = int(re.search(r"step=(\d)", link)[1])
    at_step(page, step)
    assert shifted(page) <= 0.1
    page.keyboard.press("PageDown")
    if steps_of(int(re.search(r"lesson=(\d)", link)[1]))[step - 1].asks:
        expect(panel(page)).to_contain_text("You have not guessed yet.")
        settle(page)
        page.keyboard.press("PageDown")
    at_step(page, step + 1)
    expect_no_error(page)


def test_leaving_a_lesson_leaves_the_page_as_it_was_and_the_next_visit_does_not_offer_it(visit, server):
    page = visit("/", newcomer=True)
    press(page, "Skip: straight to the tool")
    expect(page.get_by_role("button", name="Skip: straight to the tool")).to_have_count(0)
    type_texts(page, OWN)
    cell(page, 3, 4).click()
    expect(chosen(page)).to_have_text(["L3 H4"])
    settle(page)
    page.get_by_role("tab", name="Roles").click()
    expect(page).to_have_url(re.compile("Roles"))
    settle(page)
    examples, offer = (page.get_by_role("button", name=name) for name in ("Examples", "Lesson: what is a head?"))
    examples.click()
    offer.click()
    at_step(page, 1)
    box = page.get_by_role("textbox", name="Your texts")
    expect(box).to_have_value(SENTENCE)
    press(page, "Leave the lesson")
    expect(panel(page)).to_have_count(0)
    expect(box).to_have_value(OWN)
    expect(chosen(page)).to_have_text(["L3 H4"])
    expect(page.get_by_role("tab", name="Roles")).to_have_attribute("aria-selected", "true")
    settle(page)
    examples.click()
    expect(offer).to_be_visible()
    page.goto(server)
    settle(page)
    examples.click()
    expect(page.get_by_text(stories.STORIES)).to_be_visible()
    expect(offer).to_have_count(0)


def expect_whole(page, *views):
    """Wait until these are on the screen from top to bottom, side by side."""
    height = page.viewport_size["height"]

    def boxes():
        return [view.bounding_box() for view in views]

    wait_for(page, boxes, lambda all_of: all(box["y"] >= 0 and bottom(box) <= height for box in all_of))
    assert all(one["x"] + one["width"] <= other["x"] for one, other in pairwise(boxes()))


def expect_arcs_whole(page, columns):
    """The grid and the columns of words, and a word that grows where the pointer is."""
    expect_whole(page, grid_of(page), columns)
    page.mouse.move(0, 0)
    label = tokens(page).nth(3).locator(".label")
    before = steady(page, lambda: label.bounding_box()["height"])
    label.hover()
    wait_for(page, lambda: label.bounding_box()["height"], lambda now: now > 1.2 * before)


def test_presented_grid_and_arcs_stand_whole_side_by_side_and_page_down_leads_on_wherever_the_focus_is(visit):
    page = visit("/?lesson=2&step=1&present=1")
    at_step(page, 1)
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    for size in PROJECTED:
        page.set_viewport_size(size)
        settle(page)
        expect_whole(page, grid_of(page))
        expect_fits(page)
    expect_accessible(page)
    cell(page, 0, 2).click()
    expect(panel(page)).to_contain_text("You have chosen L0 H2.")
    settle(page)
    page.keyboard.press("PageDown")
    expect(panel(page)).to_contain_text("You said L0 H2 (100%): right.")
    at_step(page, 2)
    for size in reversed(PROJECTED):
        page.set_viewport_size(size)
        settle(page)
        expect_arcs_whole(page, arcs(page, "L0 H2").locator(".columns"))
    darken(page)
    expect_accessible(page)
    page.keyboard.press("PageUp")
    at_step(page, 1)
    press(page, "End presenting")
    expect(page.get_by_test_id("stHeader")).to_be_visible()
    at_step(page, 1)
    press(page, "Present")
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    expect_page_down_and_page_up_to_lead_on_and_back_wherever_the_focus_is(page)


CLASS_CODE = "[class*=st-key-class-code]"
BENEATH = """(elements, [code, { x, y, width, height }]) => elements
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([element, box]) => element.checkVisibility({ visibilityProperty: true }) && !element.closest(code)
        && box.left < x + width && x < box.right && box.top < y + height && y < box.bottom)
    .map(([element]) => element.outerHTML.slice(0, 100))"""
"""Which elements lie beneath a box."""
WITH_CODE = ("?lesson=1&step=2", "?lesson=2&step=2&said=1-8", "roles?lesson=4&step=2", "compare?lesson=6&step=3&said=4")
"""Steps that differ in what stands on the screen: a riddle of words, an answer, a number, two checkpoints."""


def test_the_code_of_a_class_covers_nothing_and_leaves_the_grid_whole(visit, tuned_checkpoint):
    lessons = visit("/lessons")
    lessons.locator("summary", has_text="For teachers").click()
    press(lessons, "Make a class code")
    code = re.search("class=([A-Z0-9]{6})", lessons.get_by_test_id("stCode").inner_text())[1]
    for step in WITH_CODE:
        pair = f"&with={tuned_checkpoint}" * ("compare" in step)
        page = visit(f"/{step}&present=1&class={code}{pair}", **PROJECTED[1])
        expect(panel(page)).to_be_visible()
        for size in (*PROJECTED, {"width": 1440, "height": 900}, {"width": 390, "height": 844}):
            page.set_viewport_size(size)
            settle(page)
            expect(page.locator(CLASS_CODE)).to_contain_text(code)
            box = page.locator(CLASS_CODE).bounding_box()
            inked = page.locator("h1, p, li, img, canvas, button, input, textarea, [role=gridcell], [role=option]")
            assert inked.evaluate_all(BENEATH, [CLASS_CODE, box]) == [], (step, size)
            if size["width"] > size["height"] and not pair:
                expect_whole(page, grid_of(page))


def test_presented_arcs_of_two_checkpoints_stand_whole_side_by_side(visit, tuned_checkpoint):
    asked = f"lesson=6&step=3&said=4&present=1&with={tuned_checkpoint}&text={quote_plus(REVIEW)}"
    page = visit(f"/compare?{asked}")
    at_step(page, 3)
    for size in PROJECTED:
        page.set_viewport_size(size)
        settle(page)
        expect_whole(page, *(page.locator(f".st-key-arcs-{part} .columns") for part in ("a", "b", "difference")))
        expect_fits(page)
    for part in (PANEL, PICTURES):  # a folder's long name leaves Streamlit's own box no room to type
        expect_accessible(page, part)
    darken(page)
    for part in (PANEL, PICTURES):
        expect_accessible(page, part)


def test_a_sheet_to_print_is_one_page_of_a4(visit, browser, tmp_path):
    page, paper = visit("/lessons"), browser.new_page()
    page.locator("summary", has_text="For teachers").click()
    for lesson in range(1, len(LESSONS)):  # the last one is offered once there is a pair
        sheet = downloaded(page, page.locator("[class*=st-key-sheet-] button").nth(lesson - 1))
        path = tmp_path / sheet.suggested_filename
        sheet.save_as(path)
        paper.goto(path.as_uri())
        assert len(re.findall(rb"/Type\s*/Page\b(?!s)", paper.pdf(prefer_css_page_size=True))) == 1, lesson
    paper.close()


@pytest.mark.parametrize("language", languages())
def test_the_notes_of_a_teacher_are_one_page_of_a4(visit, browser, tmp_path, language):
    page, paper = visit(f"/lessons?teach=1&language={language}"), browser.new_page()
    for lesson in (1, 4):
        if lesson > 1:
            choose(page, say(language, "notes_on"), f"{lesson}. {words_of(lesson, language).title}")
        settle(page)
        expect(page.locator(".st-key-notes-on-a-lesson")).to_contain_text(teacher_notes(lesson, language).aim)
        notes = downloaded(page, page.locator(".st-key-print-notes button"))
        path = tmp_path / notes.suggested_filename
        notes.save_as(path)
        paper.goto(path.as_uri())
        assert len(re.findall(rb"/Type\s*/Page\b(?!s)", paper.pdf(prefer_css_page_size=True))) == 1, lesson
    expect_fits(page)
    expect_accessible(page)
    paper.close()


def test_a_class_is_asked_before_a_lesson_and_the_projector_sees_the_shares(visit):
    lessons = visit("/lessons?teach=1")
    press(lessons, "Make a class code")
    code = re.search("class=([A-Z0-9]{6})", lessons.get_by_test_id("stCode").inner_text())[1]
    screen, pupil = (visit(f"/?lesson=2&step=1&class={code}{more}") for more in ("&present=1", ""))
    question, n_steps = words_of(2, ENGLISH).question, len(steps_of(2))
    expect(panel(screen)).to_contain_text("Answers so far: 0.")
    settle(pupil)
    pupil.get_by_text(question.options[0]).click()
    expect(panel(pupil)).to_contain_text("Your answer is counted.")
    expect(panel(screen)).to_contain_text("Answers so far: 1.")
    pupil = visit(f"/?lesson=2&step={n_steps}&class={code}")
    pupil.get_by_text(question.options[question.right]).click()
    expect(panel(pupil)).to_contain_text("Answers of the class: 1 before the lesson, 1 after it.")
    screen = visit(f"/?lesson=2&step={n_steps}&class={code}&present=1", **PROJECTED[1])
    screen.get_by_text(question.options[question.right]).click()
    expect(screen.locator(".class-shares .right")).to_contain_text("0%100%")
    expect_fits(screen)
    file = downloaded(lessons, lessons.locator(".st-key-class-file button"))
    assert file.suggested_filename == f"class-{code}.csv"


def test_the_link_to_a_class_is_reached_by_keyboard_on_a_phone_and_a_class_sees_what_it_guessed(visit):
    page = visit("/lessons")
    page.locator("summary", has_text="For teachers").click()
    press(page, "Make a class code")
    link = page.get_by_test_id("stCode").inner_text().strip()
    assert re.search(r"/\?lesson=1&step=1&class=[A-Z0-9]{6}$", link)
    resize(page, "narrow")
    expect_accessible(page, "[data-testid=stCode]")  # a link that scrolls sideways cannot be scrolled by keyboard
    pupil = visit(link.replace("lesson=1&step=1", "lesson=2&step=3"))
    at_step(pupil, 3)
    expect(panel(pupil)).to_contain_text("Guesses so far: 0.")
    settle(pupil)
    pupil.get_by_label("Your guess").fill("7")
    guess(pupil)
    at_step(pupil, 4)
    expect(panel(pupil).get_by_role("img", name="Guesses and how many: 7: 1. The answer: 41.")).to_be_visible()
    said = panel(pupil).locator(".st-key-class-said")
    assert said.bounding_box()["height"] <= 60
    assert said.evaluate("each => each.scrollHeight <= each.clientHeight"), "the numbers below the line are cut"
    pupil = visit(link.replace("lesson=1&step=1", "lesson=2&step=1"))
    at_step(pupil, 1)
    cell(pupil, 1, 8).click()
    expect(panel(pupil)).to_contain_text("You have chosen L1 H8.")
    guess(pupil)
    at_step(pupil, 2)
    expect(cell(pupil, 1, 8)).to_have_accessible_name(re.compile(r"Chosen by 1 of the class\.$"))
    press(pupil, "Next")
    at_step(pupil, 3)
    expect(cell(pupil, 1, 8)).not_to_have_accessible_name(re.compile("of the class"))


def expect_within(page, *views):
    """Wait until these are on the screen from top to bottom."""
    height = page.viewport_size["height"]
    for view in views:
        wait_for(page, view.bounding_box, lambda box: box and box["y"] >= 0 and box["y"] + box["height"] <= height)


TO_PRESS = (
    ("?lesson=1&step=1", "[data-testid=stMain] .st-key-lesson-next button", "[role=listbox]"),
    ("?lesson=1&step=2", ".st-key-lesson-guess-it button", "[role=listbox]"),
    ("?lesson=2&step=3", ".st-key-lesson-guess-it button", ".st-key-guessed-number input", "[role=listbox]"),
    ("?lesson=2&step=5", ".st-key-text textarea", "[role=grid]"),
    ("roles?lesson=4&step=1", ".st-key-lesson-next button", "[role=grid]"),
    ("roles?lesson=4&step=5", ".st-key-sentence-to-add input", "[role=grid]"),
    ("?lesson=5&step=1", ".st-key-lesson-guess-it button", ".st-key-switch-off button", "[role=grid]"),
    ("laboratory?lesson=7&step=1", ".st-key-at", "[role=grid]"),
    ("laboratory?lesson=7&step=2", ".st-key-lesson-guess-it button", "[role=grid]"),
    ("laboratory?lesson=7&step=5", ".st-key-without button", "[role=grid]"),
    ("laboratory?lesson=7&step=7", ".st-key-lesson-next button"),
)
"""Steps, and what has to be pressed or seen there."""
SIZES_OF_TYPE = """views => views.filter((view) => view.checkVisibility())
    .map((view) => parseFloat(getComputedStyle(view).fontSize) * view.currentCSSZoom)"""
READ = (".st-key-lesson p", ".st-key-lesson li", "[role=option] .label", "[role=grid] .name", ".st-key-text textarea")


def test_what_has_to_be_pressed_is_on_the_screen_of_a_projector_and_type_can_be_read_from_the_last_row(
    visit, learnt_model
):
    for step, *views in TO_PRESS:
        page = visit(f"/{step}&present=1", **PROJECTED[0])
        at_step(page, int(step[-1]))
        for size, least in zip(PROJECTED, (20, 20 / 1.5)):  # the small one is a screen at 150 %
            page.set_viewport_size(size)
            settle(page)
            expect_within(page, *(page.locator(view).first for view in views))
            for part in READ:
                sizes = page.locator(part).evaluate_all(SIZES_OF_TYPE)
                assert not sizes or min(sizes) >= least - 0.05, (step, size, part, sizes)
            if "[role=listbox]" in views:
                wait_for(page, lambda page=page: links(page).bounding_box()["height"], lambda high: high > 15 * 16)
            if "[role=grid]" in views:
                box = page.locator(".scroll:has([role=grid])").first
                wait_for(
                    page, lambda box=box: box.evaluate("box => box.scrollWidth - box.clientWidth"), lambda by: by <= 1
                )


def test_a_typed_number_goes_with_page_down_and_arrows_stay_with_whoever_types_or_moves_in_the_grid(visit):
    page = visit("/?lesson=2&step=3&present=1", **PROJECTED[0])
    at_step(page, 3)
    focus(page, grid_of(page).locator("[role=gridcell][tabindex='0']"))
    page.keyboard.press("ArrowRight")
    expect(grid_of(page).locator("[role=gridcell]:focus")).to_have_count(1)
    at_step(page, 3)
    box = page.get_by_label("Your guess")
    box.click()
    page.keyboard.type("41")
    page.keyboard.press("ArrowLeft")
    at_step(page, 3)
    page.keyboard.press("PageDown")
    expect(panel(page)).to_contain_text("You said 41: right.")
    at_step(page, 4)
    cell(page, 3, 4).click()
    settle(page)
    page.keyboard.press("ArrowRight")
    at_step(page, 5)
    page.keyboard.press("ArrowLeft")
    at_step(page, 4)


def test_on_a_phone_the_answer_is_on_the_screen_though_the_chosen_square_lies_below_the_question(visit):
    page = visit("/?lesson=2&step=1", width=390, height=844)
    at_step(page, 1)
    cell(page, 0, 0).click()
    expect(panel(page)).to_contain_text("You have chosen L0 H0.")
    guess(page)
    at_step(page, 2)
    expect_within(page, panel(page).get_by_text("You said L0 H0"), panel(page).get_by_role("button", name="Next"))


def test_a_square_that_comes_to_lie_under_a_resting_pointer_shows_no_tooltip(visit):
    page = visit("/roles?lesson=4&step=3&present=1", **PROJECTED[0])
    at_step(page, 3)
    tip = page.locator(".tip:popover-open").locator("visible=true")
    box = cell(page, 3, 4).bounding_box()
    page.keyboard.press("PageDown")
    at_step(page, 4)
    page.keyboard.press("PageUp")
    at_step(page, 3)
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    expect(tip).to_have_count(1)
    page.keyboard.press("PageDown")
    at_step(page, 4)
    page.keyboard.press("PageUp")
    at_step(page, 3)
    expect(tip).to_have_count(0)
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    expect(tip).to_have_count(1)


def test_back_of_the_browser_goes_one_step_back_also_after_a_link(visit):
    page = visit("/?lesson=1&step=3")
    at_step(page, 3)
    press(page, "Next")
    at_step(page, 4)
    press(page, "Next")
    at_step(page, 5)
    page.go_back()
    at_step(page, 4)
    page.go_back()
    at_step(page, 3)
    press(page, "Back")
    at_step(page, 2)
