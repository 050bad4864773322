"""The lessons, as a reader and a teacher meet them."""

import re
import shutil
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from looks import darken, expect_accessible, expect_fits, expect_looks_right, lighten, resize
from playwright.sync_api import expect
from safetensors.torch import load_file, save_file
from steps import arcs, cell, chosen, grid_of, links, settle, shifted, steady, tokens, type_texts, wait_for

from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.dashboard.views.lessons.content import ENGLISH
from attention_sieve.dashboard.views.lessons.plans import LESSONS, steps_of, words_of
from attention_sieve.dashboard.views.text.stories import SENTENCE

README = Path(__file__).parents[3] / "dashboard" / "web" / "README.md"
OWN = "The tired girl reads a long book."
REVIEW = "The plot is thin, but the ending is wonderful."
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
    press(page, "That is my guess")


def number(page, value):
    settle(page)
    page.get_by_label("Your guess").fill(str(value))


def pin(page, word):
    """Click a word of the right-hand column, and wait until the address says so."""
    token = tokens(page, "To: keys").filter(has_text=word)
    token.click()
    place = re.search(r", (\d+) of", token.get_attribute("aria-label"))
    expect(page).to_have_url(re.compile(rf"pin=to-{int(place[1]) - 1}\b"))
    settle(page)


MOST_PLACES = 150
"""To which Tab leads on a page, at most."""
HOLD_FOCUS = """(element) => {
    const { signal } = (window.holding = new AbortController());
    const hold = (event) => event.key === "Tab" && event.preventDefault();
    const listen = () => window.addEventListener("keydown", hold, { capture: true, signal });
    element.addEventListener("focusin", listen, { signal });
}"""
"""Make Tab lead no further than to an element, so that it can be pressed ten times without a look between."""
HAS_FOCUS = """(element) => element.getRootNode().activeElement === element
    || element.contains(document.activeElement)"""
IS_BEHIND = """(element) => {
    const active = document.activeElement;
    if (element.matches("[type=radio]")) return false;
    if (active === document.body) return Boolean(element.closest(".st-key-lesson"));
    while (element.getRootNode() !== document) element = element.getRootNode().host;
    return Boolean(active.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_PRECEDING);
}"""
"""Whether Shift+Tab is the shorter way to an element. A button of the panel that was pressed may be gone: then nothing
has the focus, and Tab goes on from where the button was, at the panel's end. Shift+Tab leads to the last of several
options."""


def tab_to(page, element):
    """Go on, or back, by Tab alone until an element has the focus."""
    settle(page)

    def is_reached():
        element.evaluate(HOLD_FOCUS)
        key = "Shift+Tab" if element.evaluate(IS_BEHIND) else "Tab"
        for _ in range(0, MOST_PLACES, 10):
            if element.evaluate(HAS_FOCUS):
                break
            for _ in range(10):
                page.keyboard.press(key)
        page.evaluate("window.holding.abort()")
        return element.evaluate(HAS_FOCUS)

    # A page has fewer places than that; a second round meets what was drawn during the first.
    wait_for(page, is_reached, bool)


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
    page.keyboard.press("Enter")  # which is the guess


def click_on(page, element):
    settle(page)
    element.click()


def head_by_mouse(page, head):
    settle(page)
    cell(page, *head).click()
    expect(panel(page)).to_contain_text(f"You have chosen L{head[0]} H{head[1]}.")


def number_by_keyboard(page, value):
    tab_to(page, page.get_by_label("Your guess"))
    page.keyboard.press("Control+a")
    page.keyboard.type(str(value))


BY_KEYBOARD = {"word": word_by_keyboard, "head": head_by_keyboard, "number": number_by_keyboard}
BY_MOUSE = {"word": pin, "head": head_by_mouse, "number": number}
WRONG = {1: "baker", 2: (1, 8), 3: "heavy", 4: 50, 5: 40, 6: 1}
"""A prediction that does not come true; of a number, one that no answer is near."""
COUNT = r"(\d+) of \d+ (?:heads|are enough)|Layer (\d+)\.|for each of \d+ models: (\d+)"
ANSWERS = {"word": r"looks at (\w+) most|At (\w+): ", "head": r"\bL(\d+) H(\d+)\b", "number": COUNT}
"""Where the text of a reveal names what would have been right."""


def answer_in(page, asks):
    """What the reveal says, behind the line about the guess."""
    said = panel(page).inner_text().partition("You said")[2].partition("\n")[2]
    groups = [group for group in re.search(ANSWERS[asks], said).groups() if group]
    numbers = tuple(int(group) for group in groups if group.isdigit())
    return groups[0] if asks == "word" else numbers if asks == "head" else numbers[0]


def own_sentence(page):
    """Lesson 3, with a sentence of the reader's own on screen; Enter takes it, and lets go of the box."""
    page.keyboard.type(OWN)
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text(re.compile(r"reads → book.* L1 H7 gives \d+%", re.DOTALL))


def own_ranking(page):
    """Lesson 5, with a sentence of the reader's own on screen."""
    first = page.locator(".st-key-lesson-ranking li").first
    before = first.inner_text()
    page.keyboard.type("The dog chased a ball.")
    page.keyboard.press("Enter")
    expect(first).not_to_have_text(before)


def added_sentences(page):
    """Lesson 4, with a prepared sentence and one of the reader's own added to its three."""
    expect(panel(page)).to_contain_text("there are only 3")
    page.keyboard.press("2")
    expect(panel(page)).to_contain_text("there are only 4")
    expect(panel(page)).to_contain_text("Added: A tall waiter")
    tab_to(page, page.get_by_label("A sentence of your own"))
    page.keyboard.type(OWN)
    page.keyboard.press("Enter")
    expect(panel(page)).to_contain_text("there are only 5")


EXTRAS = {(3, "own"): own_sentence, (4, "try"): added_sentences, (5, "try"): own_ranking}
"""What a step lets the reader do besides, by lesson and step."""
IN_THE_BOX = {(3, "own"), (5, "try")}
"""Those that happen in the box for the text."""
LOOKED_AT = {(2, 4), (4, 1)}
"""Lessons and their steps at which the whole page is looked at: on Inspect after an answer, and on another page."""


def walk_in_present(page, lesson):
    """Go through a lesson to its question by the keys of a remote control: each prediction wrong, and then right.

    Gives what would have been right, by the name of the step.
    """
    right = {}
    for place, step in enumerate(steps_of(lesson)[:-1], start=1):
        at_step(page, place)
        expect_accessible(page, PANEL)
        if (lesson, step.name) in EXTRAS:
            if (lesson, step.name) in IN_THE_BOX:
                tab_to(page, page.get_by_role("textbox", name="Your texts"))
                page.keyboard.press("Control+a")
            EXTRAS[lesson, step.name](page)
            expect(page.locator("textarea:focus, input:focus")).to_have_count(0)
        if not step.asks:
            page.keyboard.press("PageDown")
            continue
        expect_no_lines(page, step.asks)
        predict_by_keyboard(page, place, step, wrong_at(lesson, step), is_right=False)
        right[step.name], share = answer_in(page, step.asks), share_in(page)
        page.keyboard.press("PageUp")
        at_step(page, place)
        expect_not_given_away(page, step, right[step.name], share)
        predict_by_keyboard(page, place, step, right[step.name], is_right=True)
    at_step(page, len(steps_of(lesson)))
    return right


def share_in(page):
    """The share that the reveal names first, such as 88%; empty without one."""
    said = panel(page).inner_text().partition("You said")[2].partition("\n")[2]
    match = re.search(r"\d+%", said)
    return match[0] if match else ""


def expect_no_lines(page, asks):
    """While a word is asked for no line is drawn, and while a head is asked for no head is."""
    if asks == "word":
        blank = "canvas => !canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
        wait_for(page, lambda: links(page).evaluate(blank), bool)
        expect(arcs(page).locator(".number")).to_have_count(0)
    elif asks == "head":
        expect(arcs(page)).to_have_count(0)


def expect_not_given_away(page, step, right, share):
    """The page names neither the answer nor its share, now that these are known."""
    expect_no_lines(page, step.asks)
    said = page.get_by_test_id("stMain").inner_text()
    if step.asks == "word":
        assert share not in said
    elif step.asks == "head":
        assert f"L{right[0]} H{right[1]}" not in said
    elif step.name == "layer":
        assert not re.search(rf"\b[Ll]ayers? \d*.?{right}\b", said)
    else:
        assert not re.search(rf"\b{right} (of|heads|are)\b", said)


def predict_by_keyboard(page, place, step, value, is_right):
    BY_KEYBOARD[step.asks](page, value)
    if step.asks == "number":
        page.keyboard.press("Enter")
    elif step.asks == "head":
        enter_on(page, page.get_by_role("button", name="That is my guess"))
    expect_judged(page, place, is_right)


def expect_judged(page, place, is_right):
    at_step(page, place + 1)
    expect(panel(page)).to_contain_text("You said")
    assert bool(re.search(r"You said .*: right\.", panel(page).inner_text())) is is_right


def walk_by_mouse(page, lesson):
    """Go through a lesson to its question, each prediction wrong."""
    for place, step in enumerate(steps_of(lesson)[:-1], start=1):
        at_step(page, place)
        if (lesson, place) in LOOKED_AT:
            expect_looks_right(page)
            lighten(page)
            resize(page, "wide")
        if step.asks:
            BY_MOUSE[step.asks](page, wrong_at(lesson, step))
            click_on(page, panel(page).get_by_role("button", name="That is my guess"))
            expect_judged(page, place, is_right=False)
        else:
            click_on(page, panel(page).get_by_role("button", name="Next"))
    at_step(page, len(steps_of(lesson)))


def wrong_at(lesson, step):
    return 20 if step.name == "rest" else WRONG[lesson]


@pytest.fixture(scope="session")
def tuned_checkpoint(tmp_path_factory):
    """Folder of the bundled checkpoint whose layer 4 attends more sharply."""
    folder = tmp_path_factory.mktemp("checkpoint") / "tuned"
    shutil.copytree(find_checkpoint(BUNDLED).folder, folder)
    path = next(folder.glob("*.safetensors"))
    weights = load_file(path)
    weights["encoder.layer.4.attention.self.query.weight"] *= 1.7
    save_file(weights, path, metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("lesson", range(1, len(LESSONS) + 1))
def test_a_lesson_in_present_by_the_keys_of_a_remote_control(visit, lesson, tuned_checkpoint):
    """Guessing wrongly and rightly, with a sentence of one's own where a lesson takes one."""
    pair = f"&with={tuned_checkpoint}" if lesson == 6 else ""
    page = visit(f"/{'compare' if pair else ''}?lesson={lesson}&step=1&present=1{pair}", **PROJECTED[1])
    walk_in_present(page, lesson)
    question = words_of(lesson, ENGLISH).question
    tab_to(page, page.get_by_role("radio").first)
    for _ in range(question.right):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(panel(page)).to_contain_text("Right. " + question.afterwards)
    page.keyboard.press("PageDown")
    if lesson < len(LESSONS) - 1:  # the last one is offered once there is a pair
        expect(panel(page)).to_contain_text(f"Lesson {lesson + 1} of 5")
        at_step(page, 1)
    expect_no_error(page)


def expect_no_error(page):
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_text("This app has encountered an error")).to_have_count(0)


@pytest.mark.parametrize("lesson", range(1, len(LESSONS) + 1))
def test_a_lesson_by_mouse(visit, lesson, tuned_checkpoint):
    pair = f"&with={tuned_checkpoint}" if lesson == 6 else ""
    page = visit(f"/{'compare' if pair else ''}?lesson={lesson}&step=1{pair}")
    walk_by_mouse(page, lesson)
    question = words_of(lesson, ENGLISH).question
    page.get_by_text(next(option for place, option in enumerate(question.options) if place != question.right)).click()
    expect(panel(page)).to_contain_text("Not quite.")
    page.get_by_text(question.options[question.right]).click()
    expect(panel(page)).to_contain_text("Right. " + question.afterwards)
    darken(page)
    resize(page, "narrow")
    expect_fits(page)
    expect_accessible(page, PANEL)
    resize(page, "wide")
    press(page, "Leave the lesson")
    expect(panel(page)).to_have_count(0)
    if lesson == 4:
        expect(page.get_by_text("Over 128 texts at tau")).to_be_visible()


PLACES = {
    "the text box": (1, lambda page: page.get_by_role("textbox", name="Your texts")),
    "a number": (3, lambda page: page.get_by_label("Your guess")),
    "a square": (1, lambda page: grid_of(page).locator("[role=gridcell][tabindex='0']")),
    "a word": (2, lambda page: tokens(page, "To: keys").first),
    "a button": (2, lambda page: page.get_by_role("button", name="End presenting")),
}


@pytest.mark.parametrize("place", PLACES)
def test_page_down_and_page_up_lead_on_and_back_wherever_the_focus_is(visit, place):
    step, element = PLACES[place]
    page = visit(f"/?lesson=2&step={step}&present=1", **PROJECTED[1])
    at_step(page, step)
    element(page).focus()
    page.keyboard.press("PageDown")
    at_step(page, step + 1)
    page.keyboard.press("PageUp")
    at_step(page, step)
    expect_no_error(page)


def test_the_focus_is_seen_on_the_page_that_scrolls_and_on_a_link_to_another(visit):
    page = visit("/roles?lesson=4&step=2&present=1", **PROJECTED[1])
    at_step(page, 2)
    for element in (page.get_by_test_id("stMain"), page.get_by_role("link", name=re.compile("^Inspect|Inspect L"))):
        element.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        expect(element).to_be_focused()
        expect(element).to_have_css("outline-style", "solid")


def test_enter_releases_the_text_box_while_presenting(visit):
    page = visit("/?lesson=3&step=3&present=1", **PROJECTED[1])
    at_step(page, 3)
    box = page.get_by_role("textbox", name="Your texts")
    box.fill(OWN)
    box.press("Enter")
    expect(panel(page)).to_contain_text("reads → book")
    expect(box).not_to_be_focused()


def test_both_columns_of_words_name_themselves(visit):
    page = visit("/?lesson=1&step=2")
    at_step(page, 2)
    for side, name in (("From: queries", "from: baker, 4 of 16"), ("To: keys", "to: baker, 4 of 16")):
        expect(tokens(page, side).nth(3)).to_have_accessible_name(name)


DEMO = re.findall(r"http://localhost:8501(/\?lesson=[^)\s]*present=1)", README.read_text("utf-8"))


def test_the_demo_of_the_readme_in_present_by_page_down(visit, tuned_checkpoint):
    assert DEMO
    for link in DEMO:
        page = visit(link + f"&with={tuned_checkpoint}" * ("lesson=6" in link), **PROJECTED[1])
        step = int(re.search(r"step=(\d)", link)[1])
        at_step(page, step)
        page.keyboard.press("PageDown")
        at_step(page, step + 1)
        expect_no_error(page)
        page.close()


def test_leaving_a_lesson_leaves_the_page_as_it_was_and_the_next_visit_does_not_offer_it(visit, server):
    page = visit("/", reader="new")
    press(page, "Skip: straight to the tool")
    type_texts(page, OWN)
    cell(page, 3, 4).click()
    expect(chosen(page)).to_have_text(["L3 H4"])
    settle(page)
    page.get_by_role("tab", name="Roles").click()
    expect(page).to_have_url(re.compile("Roles"))
    settle(page)
    offer = page.get_by_role("button", name="Lesson: what is a head?")
    offer.click()
    at_step(page, 1)
    box = page.get_by_role("textbox", name="Your texts")
    expect(box).to_have_value(SENTENCE)
    press(page, "Next")
    at_step(page, 2)
    press(page, "Leave the lesson")
    expect(panel(page)).to_have_count(0)
    expect(box).to_have_value(OWN)
    expect(chosen(page)).to_have_text(["L3 H4"])
    expect(page.get_by_role("tab", name="Roles")).to_have_attribute("aria-selected", "true")
    expect(offer).to_be_visible()
    page.goto(server)
    settle(page)
    expect(page.get_by_role("link", name="Before and after training")).to_have_count(0)  # there is no pair
    expect(offer).to_have_count(0)


def test_a_reload_keeps_the_step_and_the_prediction(visit):
    page = visit("/?lesson=2&step=1")
    at_step(page, 1)
    head_by_mouse(page, (0, 2))
    guess(page)
    at_step(page, 2)
    page.reload()
    at_step(page, 2)
    expect(panel(page)).to_contain_text(re.compile(r"You said L0 H2 \(\d+%\): right\."))
    press(page, "Back")
    at_step(page, 1)
    expect(page).not_to_have_url(re.compile("said="))


def expect_whole(page, *views):
    """Wait until these are on the screen from top to bottom, side by side."""
    height = page.viewport_size["height"]

    def boxes():
        return [view.bounding_box() for view in views]

    wait_for(page, boxes, lambda all_of: all(box["y"] >= 0 and box["y"] + box["height"] <= height for box in all_of))
    assert all(one["x"] + one["width"] <= other["x"] for one, other in pairwise(boxes()))


def test_presented_grid_and_arcs_stand_whole_side_by_side(visit):
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
    page.keyboard.press("PageDown")
    at_step(page, 2)
    for size in reversed(PROJECTED):
        page.set_viewport_size(size)
        settle(page)
        expect_whole(page, grid_of(page), arcs(page, "L0 H2").locator(".columns"))
        page.mouse.move(0, 0)
        label = tokens(page).nth(3).locator(".label")
        before = steady(page, lambda label=label: label.bounding_box()["height"])
        label.hover()
        wait_for(
            page,
            lambda label=label: label.bounding_box()["height"],
            lambda now, before=before: now > 1.2 * before,
        )
    darken(page)
    for size in PROJECTED:
        page.set_viewport_size(size)
        settle(page)
        expect_accessible(page)
    page.keyboard.press("PageUp")
    at_step(page, 1)
    press(page, "End presenting")
    expect(page.get_by_test_id("stHeader")).to_be_visible()
    at_step(page, 1)
    press(page, "Present")
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    at_step(page, 1)


def test_words_without_a_pinned_one_are_large_enough_targets_and_all_in_view_on_a_projector(visit):
    page = visit(f"/?lesson=3&step=3&present=1&text={quote_plus(OWN)}", **PROJECTED[1])
    at_step(page, 3)
    expect(arcs(page)).to_be_visible()
    expect_accessible(page)
    page = visit("/?lesson=1&step=1&present=1", **PROJECTED[1])  # the longest text
    at_step(page, 1)
    expect_whole(page, grid_of(page), arcs(page, "L0 H2").locator(".columns"))


def opened(lesson, place, extras=""):
    """Link to a step of a lesson, from 1, with a prediction where it answers one."""
    steps = steps_of(lesson)
    page = steps[place - 1].page.replace("inspect", "")
    said = f"&said={SAID[steps[place - 2].asks]}" if steps[place - 1].reveals else ""
    return f"/{page}?lesson={lesson}&step={place}&present=1{said}{extras}"


SAID = {"word": "4", "head": "1-8", "number": "20"}
"""A prediction of each kind, as links write it."""


@pytest.mark.parametrize("lesson", range(1, len(LESSONS) + 1))
def test_a_link_to_a_step_in_present_moves_little_while_it_opens(visit, lesson, tuned_checkpoint):
    pair = f"&with={tuned_checkpoint}" * (lesson == 6)
    for place, step in enumerate(steps_of(lesson), start=1):
        if place > 1 and not (step.asks or step.reveals):
            continue
        page = visit(opened(lesson, place, pair), **PROJECTED[1])
        at_step(page, place)
        assert shifted(page) <= 0.1, place
        page.close()


CLASS_CODE = "[class*=st-key-class-code]"
BENEATH = """(elements, [code, { x, y, width, height }]) => elements
    .map((element) => [element, element.getBoundingClientRect()])
    .filter(([element, box]) => element.checkVisibility({ visibilityProperty: true }) && !element.closest(code)
        && box.left < x + width && x < box.right && box.top < y + height && y < box.bottom)
    .map(([element]) => element.outerHTML.slice(0, 100))"""
"""Which elements lie beneath a box."""


@pytest.mark.parametrize("lesson", range(1, len(LESSONS) + 1))
def test_the_code_of_a_class_covers_nothing_and_leaves_the_grid_whole(visit, lesson, tuned_checkpoint):
    page = visit("/lessons")
    press(page, "Make a class code")
    code = re.search("class=([A-Z0-9]{6})", page.get_by_test_id("stCode").inner_text())[1]
    extras = f"&class={code}" + f"&with={tuned_checkpoint}" * (lesson == 6)
    for place, step in enumerate(steps_of(lesson), start=1):
        if not (step.asks or step.reveals):
            continue
        page = visit(opened(lesson, place, extras), **PROJECTED[1])
        at_step(page, place)
        for size in (*PROJECTED, {"width": 1440, "height": 900}, {"width": 390, "height": 844}):
            page.set_viewport_size(size)
            settle(page)
            expect(page.locator(CLASS_CODE)).to_contain_text(code)
            box = page.locator(CLASS_CODE).bounding_box()
            inked = page.locator("h1, p, li, img, canvas, button, input, textarea, [role=gridcell], [role=option]")
            assert inked.evaluate_all(BENEATH, [CLASS_CODE, box]) == [], (place, size)
            if size["width"] > size["height"] and lesson < 6:
                expect_whole(page, grid_of(page))


def test_presented_arcs_of_two_checkpoints_stand_whole_side_by_side(visit, tuned_checkpoint):
    asked = f"lesson=6&step=3&said=4&present=1&with={tuned_checkpoint}&text={quote_plus(REVIEW)}"
    page = visit(f"/compare?{asked}")
    at_step(page, 3)
    expect(panel(page)).to_contain_text("You said 4: right.")
    for size in PROJECTED:
        page.set_viewport_size(size)
        settle(page)
        expect_whole(page, *(page.locator(f".st-key-arcs-{part} .columns") for part in ("a", "b", "difference")))
        expect_fits(page)
        for part in (PANEL, PICTURES):  # a folder's long name leaves Streamlit's own box no room to type
            expect_accessible(page, part)
    darken(page)
    for size in PROJECTED:
        page.set_viewport_size(size)
        settle(page)
        for part in (PANEL, PICTURES):
            expect_accessible(page, part)


def test_the_list_of_lessons_looks_right_its_sheets_are_one_page_of_a4_and_a_class_sees_what_it_guessed(
    visit, browser, tmp_path
):
    page = visit("/lessons")
    settle(page)
    paper = browser.new_page()
    for lesson in range(1, len(LESSONS)):  # the last one is offered once there is a pair
        assert pages_of_sheet(page, lesson, paper, tmp_path) == 1, lesson
    paper.close()
    expect_looks_right(page)
    resize(page, "wide")
    press(page, "Make a class code")
    link = page.get_by_test_id("stCode").inner_text().strip()
    assert re.search(r"/\?lesson=1&step=1&class=[A-Z0-9]{6}$", link)
    resize(page, "narrow")
    expect_accessible(page, "[data-testid=stCode]")  # a link that scrolls sideways cannot be scrolled by keyboard
    pupil = visit(link.replace("lesson=1&step=1", "lesson=2&step=3"))
    at_step(pupil, 3)
    expect(panel(pupil)).to_contain_text("Guesses so far: 0.")
    number(pupil, 7)
    guess(pupil)
    at_step(pupil, 4)
    expect(panel(pupil).get_by_role("img", name="Guesses and how many: 7: 1. The answer: 41.")).to_be_visible()
    said = panel(pupil).locator(".st-key-class-said")
    assert said.bounding_box()["height"] <= 60
    assert said.evaluate("each => each.scrollHeight <= each.clientHeight"), "the numbers below the line are cut"
    press(pupil, "Back")
    press(pupil, "Back")
    press(pupil, "Back")
    at_step(pupil, 1)
    head_by_mouse(pupil, (1, 8))
    guess(pupil)
    at_step(pupil, 2)
    expect(cell(pupil, 1, 8)).to_have_accessible_name(re.compile(r"Chosen by 1 of the class\.$"))
    assert said.bounding_box()["height"] <= 60
    press(pupil, "Next")
    at_step(pupil, 3)
    expect(cell(pupil, 1, 8)).not_to_have_accessible_name(re.compile("of the class"))
    wrong = visit("/?lesson=2&step=3&class=ZZZZZZ")
    expect(wrong.get_by_text("There is no class")).to_be_visible()


def pages_of_sheet(page, lesson, paper, folder):
    """On how many pages the sheet of a lesson is printed."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Sheet to print").nth(lesson - 1).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    paper.goto(path.as_uri())
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", paper.pdf(prefer_css_page_size=True)))
