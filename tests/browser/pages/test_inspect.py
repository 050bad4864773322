"""The page Inspect, as a person meets it."""

import re
from urllib.parse import quote_plus

import pytest
from looks import expect_accessible, expect_fits
from playwright.sync_api import expect
from steps import (
    arcs,
    cell,
    cells,
    choose,
    choose_sieve,
    chosen,
    drawn_links,
    error,
    expect_cells_other_than,
    expect_drawn,
    expect_links_other_than,
    expect_number_of_cells,
    expect_summary,
    grid_of,
    links,
    name_checkpoint,
    settle,
    shifted,
    tokens,
    type_texts,
    unfolded,
    wait_for,
)

from attention_sieve.dashboard.glossary import TERMS
from attention_sieve.dashboard.samples import EXAMPLE
from attention_sieve.dashboard.views.inspect import wording
from attention_sieve.dashboard.views.text import stories
from attention_sieve.dashboard.views.text import wording as story_wording
from attention_sieve.dashboard.views.word_links import wording as words_wording

LEAST_ROWS = {(1440, 900): 10, (1280, 720): 10, (853, 480): 10, (390, 844): 3}
"""Of arcs that are seen with the grid when nothing has been scrolled, by the size of the window."""
LEAST_AFTER_CLICK = 12
"""The same on a phone after a click."""
SENTENCE = "Two clever engineers finally repaired the noisy engine."


def expect_nothing_to_jump_from_page_to_page(page):
    """Ends on Inspect again."""
    charts = page.get_by_test_id("stVegaLiteChart").locator("svg.marks")
    for name, drawn in (
        ("Where heads look", charts.first),
        ("Inspect", links(page)),
        ("Where heads look", charts.first),
        ("Inspect", links(page)),
    ):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")
        expect(drawn).to_be_visible()
        settle(page)
        assert shifted(page, since_the_click=True) < 0.05, name


def test_a_first_visit_shows_grid_and_arcs_of_the_example_nothing_jumps_and_tooltips_cover_no_arcs(visit):
    page = visit("/")
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(" ||| ".join(EXAMPLE.segments))
    expect_number_of_cells(page, 6 * 12)
    queries = wait_for(page, tokens(page).all_text_contents, lambda queries: len(queries) == 16)
    assert queries[:4] == ["[CLS]", "the", "old", "baker"]
    expect(tokens(page, "To: keys")).to_have_text(queries)
    expect_drawn(links(page))
    expect_summary(page, "L1 H7", "128 texts")
    assert shifted(page) < 0.1
    expect_nothing_to_jump_from_page_to_page(page)
    for (width, height), least in LEAST_ROWS.items():
        page.set_viewport_size({"width": width, "height": height})
        wait_for(page, lambda: rows_seen_with_the_grid(page), lambda rows, least=least: rows >= least)
    cell(page, 5, 3).click()
    wait_for(page, lambda: rows_seen_with_the_grid(page), lambda rows: rows >= LEAST_AFTER_CLICK)
    page.set_viewport_size({"width": 1440, "height": 900})
    expect_a_term_to_explain_itself(page)
    expect_the_tooltip_to_cover_no_arcs_and_a_tap_to_open_none(page)


def test_on_a_projector_the_answer_to_a_typed_text_leaves_the_whole_grid_and_ten_rows_of_arcs_on_screen(visit):
    page = visit("/", width=853, height=480)
    screen = {"width": 853, "height": 480, "deviceScaleFactor": 1.5, "mobile": False}
    page.context.new_cdp_session(page).send("Emulation.setDeviceMetricsOverride", screen)
    type_texts(page, SENTENCE)
    expect(page.get_by_text("other words give it")).to_be_visible()
    settle(page)
    wait_for(page, lambda: rows_seen_with_the_grid(page), lambda rows: rows >= LEAST_ROWS[853, 480])


def test_nothing_moves_on_a_projector_while_the_first_screen_loads(visit):
    assert shifted(visit("/", width=853, height=480)) < 0.05


def test_the_settings_that_a_first_visit_does_without_are_in_one_folded_line(visit):
    page = visit("/")
    expect(arcs(page).get_by_role("radio")).to_have_count(2)
    expect(arcs(page).get_by_role("slider")).to_have_count(0)
    expect(page.get_by_label("Highlight the tokens that a role expects")).to_be_hidden()
    unfolded(arcs(page))
    expect(arcs(page).get_by_role("radio", name="Strongest 1")).to_be_visible()
    expect(arcs(page).get_by_role("slider")).to_be_visible()
    expect_accessible(page, ".st-key-arcs")
    expect_fits(page)


def test_the_text_box_grows_to_a_third_of_the_page_at_most(visit):
    page = visit("/")
    box = page.get_by_role("textbox", name="Your texts")
    least = box.bounding_box()["height"]
    box.fill("\n".join(["A cat sat."] * 3))
    assert least < box.bounding_box()["height"] <= 300
    box.fill("\n".join(["A cat sat."] * 60))
    assert 200 < box.bounding_box()["height"] <= 300


def rows_seen_with_the_grid(page):
    """Rows of arcs that nothing covers; 0 where not every head is seen, or the arcs are neither beside nor below."""
    corners = "all => all.map((each) => each.getBoundingClientRect()).map(({ right, bottom }) => [right, bottom])"
    seen = grid_of(page).get_by_role("gridcell")
    right, bottom = map(max, zip(*seen.evaluate_all(corners)))
    first, top = tokens(page).first.bounding_box(), seen.first.bounding_box()["y"]
    end = arcs(page).locator(".status").bounding_box()["y"]
    is_apart = first["x"] >= right or first["y"] >= bottom
    if top < 0 or bottom > page.viewport_size["height"] or not is_apart:
        return 0
    return sum(of <= end for _, of in tokens(page).evaluate_all(corners))


def expect_a_term_to_explain_itself(page):
    """To the keyboard and to the pointer, roles with the sieve of the text on screen."""
    term = page.get_by_role("button", name="local", exact=True)
    term.focus()
    expect(term).to_have_accessible_description(re.compile(re.escape(TERMS["local"])))
    expect(page.get_by_role("tooltip")).to_contain_text("On your text: each row is a token that looks")
    expect_drawn(page.get_by_role("tooltip").locator("canvas"))
    page.keyboard.press("Escape")
    expect(page.get_by_role("tooltip")).to_have_count(0)
    page.get_by_role("button", name="head", exact=True).hover()
    expect(page.get_by_role("tooltip")).to_have_text(TERMS["head"])


def test_typed_texts_change_grid_and_arcs_and_what_cannot_be_read_is_said(visit):
    page = visit("/")
    expect_typed_texts_to_change_grid_and_arcs_and_the_reader_to_pick_the_one_on_screen(page)
    expect_what_cannot_be_read_to_be_said_and_the_rest_of_the_page_to_stay(page)


def expect_typed_texts_to_change_grid_and_arcs_and_the_reader_to_pick_the_one_on_screen(page):
    before, drawn = cells(page), drawn_links(page)
    box = page.get_by_role("textbox", name="Your texts")
    box.fill(SENTENCE)
    box.press("Enter")
    expect_cells_other_than(page, before)
    expect(arcs(page).get_by_role("option", name="engineers, 4 of 11")).to_have_count(2)
    expect_links_other_than(page, drawn)
    box.press("ControlOrMeta+Home")
    box.press_sequentially("The first text.")
    box.press("Shift+Enter")
    expect(box).to_have_value(f"The first text.\n{SENTENCE}")
    box.press("Enter")
    expect(arcs(page).get_by_role("option", name="first, 3 of 6")).to_have_count(2)
    choose(page, "Showing", f"2: {SENTENCE}")
    expect(arcs(page).get_by_role("option", name="engineers, 4 of 11")).to_have_count(2)


def test_heads_are_chosen_by_click_and_keyboard_and_previewed_by_their_patterns(visit):
    page = visit("/")
    tip = page.locator(".tip:popover-open")
    before = drawn_links(page)
    cell(page, 2, 5).click()
    expect(arcs(page, "L2 H5")).to_be_visible()
    expect(page.get_by_role("heading", name="Where L2 H5 looks")).to_be_visible()
    expect_links_other_than(page, before)
    cell(page, 3, 7).click(modifiers=["Shift"])
    expect(arcs(page, "L2 H5", "L3 H7")).to_be_visible()
    expect(chosen(page)).to_have_text(["L2 H5", "L3 H7"])
    expect_summary(page, "L3 H7", "128 texts")
    cell(page, 3, 7).click()
    expect(chosen(page)).to_have_text(["L3 H7"])
    expect(tip).to_have_count(0)
    cell(page, 3, 7).hover(position={"x": 4, "y": 4})  # another corner of what was clicked
    expect(tip).to_have_count(0)
    cell(page, 3, 6).hover()
    expect(tip).to_contain_text("Layer 3, head 6")
    page.mouse.move(0, 0)  # what is drawn anew below a resting pointer can show its tooltip, which Escape closes first
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(tip).to_contain_text("Layer 4, head 8")
    page.keyboard.press("Enter")
    expect(tip).to_have_count(0)
    expect(arcs(page, "L4 H8")).to_be_visible()
    expect(cell(page, 4, 8)).to_have_attribute("aria-selected", "true")
    for key in ("Home", "Shift+Enter"):
        page.keyboard.press(key)
    expect(arcs(page, "L4 H8", "L4 H0")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(tip).to_contain_text("Layer 4, head 1")
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    expect(chosen(page)).to_have_text(["L4 H8", "L4 H0"])
    page.keyboard.press("Escape")
    expect(arcs(page, "L4 H8")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Click a head in the grid to see its arcs here.")).to_be_visible()
    cell(page, 3, 7).click()
    expect(arcs(page, "L3 H7")).to_be_visible()
    page.get_by_role("switch", name="Patterns").press("Space")
    expect_drawn(grid_of(page).locator("canvas"))
    own = drawn_links(page)
    heads = arcs(page).get_by_role("group", name="Heads shown")
    cell(page, 3, 9).hover()
    expect(heads).to_have_text("L3 H9preview: click to choose it")
    expect_links_other_than(page, own)
    page.get_by_role("heading", name="Attention Sieve").hover()
    expect(heads.get_by_role("button", name="L3 H7")).to_be_visible()
    expect(heads).not_to_contain_text("preview")
    cell(page, 3, 7).focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(heads).to_contain_text("L4 H8")
    expect(cell(page, 3, 7)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(arcs(page, "L4 H8")).to_be_visible()
    heads.get_by_role("button", name="L4 H8").press("ArrowUp")
    expect(heads).to_contain_text("L3 H8")
    expect(chosen(page)).to_have_text(["L3 H8"])
    expect(arcs(page, "L3 H8")).to_be_visible()
    expect(heads.get_by_role("button", name="L3 H8")).to_be_focused()
    own = drawn_links(page)
    unfolded(arcs(page)).get_by_role("radio", name="Strongest 1").check()
    expect(arcs(page).locator(".summary")).to_have_text(re.compile("^16 links shown, the strongest of each token"))
    expect_links_other_than(page, own)


def expect_the_tooltip_to_cover_no_arcs_and_a_tap_to_open_none(page):
    tip = page.locator(".tip:popover-open")
    for width, height in ((1440, 900), (853, 480), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for layer, head in ((0, 0), (5, 9)):
            cell(page, layer, head).hover()
            expect(tip).to_contain_text(f"Layer {layer}, head {head}")
            box, below = tip.bounding_box(), arcs(page).bounding_box()
            assert 0 <= box["x"] <= box["x"] + box["width"] <= width
            assert 0 <= box["y"] <= box["y"] + box["height"] <= height
            assert box["x"] + box["width"] <= below["x"] or box["y"] + box["height"] <= below["y"]
    page.mouse.move(0, 0)
    expect(tip).to_have_count(0)
    cell(page, 5, 9).dispatch_event("pointerover", {"pointerType": "touch", "bubbles": True})
    expect(tip).to_have_count(0)


def test_the_arcs_pin_a_token_show_a_sieve_become_matrices_and_corners_are_filled_by_the_corpus(visit):
    page = visit("/")
    token = arcs(page).get_by_role("listbox", name="From: queries").get_by_role("option", name="baker, 4 of 16")
    token.click()
    expect(token).to_have_attribute("aria-selected", "true")
    expect(arcs(page).locator(".summary")).to_contain_text("attends to")
    page.keyboard.press("Escape")
    expect(token).to_have_attribute("aria-selected", "false")
    before = drawn_links(page)
    choose_sieve(page, "local")
    expect(arcs(page).get_by_text("In the local sieve:")).to_be_visible()
    expect_links_other_than(page, before)
    arcs(page).get_by_role("radio", name="Matrix").check()
    expect_drawn(arcs(page).locator(".matrix canvas").first)
    before = cells(page)
    page.get_by_role("radio", name="the corpus").click()
    expect_cells_other_than(page, before)
    expect(page.get_by_role("grid", name="roles on the corpus")).to_be_visible()
    expect(cell(page, 0, 0).locator(".corner")).to_have_count(4)
    page.get_by_role("switch", name="Finer roles").press("Space")
    expect(cell(page, 0, 0).locator(".corner")).to_have_count(6)
    hidden = grid_of(page).evaluate("grid => grid.closest('.scroll').scrollWidth - grid.closest('.scroll').clientWidth")
    assert hidden == 0


def test_three_kept_texts_change_the_odds_of_a_head_and_may_be_stopped_at_any_time(visit):
    page = visit("/?by=the+corpus&head=1-8")
    cells_of_samples = cells(page)
    sentences = (
        SENTENCE,
        "A stray dog chased them over the field.",
        "The tall boy quickly opened the old door.",
    )
    for n_texts, sentence in enumerate(sentences, start=1):
        type_texts(page, sentence)
        page.get_by_role("button", name="Keep this text").click()
        cell(page, 1, 8).click()  # the text was answered with the head of its most surprising link
        texts = "1 text" if n_texts == 1 else f"{n_texts} texts"
        expect(page.get_by_text(f"Kept. The corpus is {texts} of your own")).to_be_visible()
        expect(page).to_have_url(re.compile(f"[?&]corpus_text={re.escape(quote_plus(sentences[0]))}"))
        expect(page).to_have_url(re.compile("[?&]corpus=type[+]texts"))
        expect_summary(page, "L1 H8", texts)
        expect_cells_other_than(page, cells_of_samples)
        now = wait_for(page, lambda: cells(page), lambda now: all("evidence" in label for label in now))
        assert now != cells_of_samples
        cells_of_samples = now
    expect(page.get_by_text("stop whenever you like")).to_be_visible()
    page.get_by_role("tab", name=wording.ROLES, exact=True).click()
    described = page.get_by_role("button", name=re.compile("^Show data: Evidence .* after each of 3 texts")).first
    expect(described).to_be_attached()
    drawn = dict(
        re.findall("(local|syntactic|delimiter) ([0-9.,]*[0-9] : [0-9.,]*[0-9])", described.get_attribute("aria-label"))
    )
    assert len(drawn) == 3
    for role, odds in drawn.items():
        expect(cell(page, 1, 8)).to_have_accessible_name(re.compile(f"{role} [^,(]*\\(evidence {odds}\\)"))
    expect(page.get_by_role("textbox", name="Texts, one per line", exact=True)).to_have_value("\n".join(sentences))
    page.get_by_role("textbox", name="Texts, one per line", exact=True).fill("\n".join(sentences[:2]))
    page.get_by_role("textbox", name="Texts, one per line", exact=True).press("Control+Enter")
    page.get_by_role("tab", name=wording.THIS_HEAD).click()
    expect(page.get_by_text("Evidence also counts 1 text that you have removed.")).to_be_visible()
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_text("Evidence also counts")).to_have_count(0)
    expect_cells_other_than(page, cells_of_samples)
    page.get_by_role("button", name="Back to sample pairs and texts").click()
    expect_summary(page, "L1 H8", "128 texts")


def expect_what_cannot_be_read_to_be_said_and_the_rest_of_the_page_to_stay(page):
    for typed, sentence in (
        ("A first segment ||| ", "Line 1: segment 2 of 2 is empty."),
        ("one ||| two ||| three", "Line 1 has 3 segments and a text has one or two."),
        ("", "There is no text yet. Type one text per line"),
    ):
        type_texts(page, typed)
        expect(error(page)).to_contain_text(sentence)
        expect(page.get_by_role("heading", name="Attention Sieve")).to_be_visible()
        expect(page.get_by_role("textbox", name="Your texts")).to_be_editable()
        expect(page.get_by_text("How it is computed")).to_be_visible()
    type_texts(page, "word " * 700)
    expect(error(page)).to_contain_text("The text has 702 tokens and this checkpoint takes 512.")
    page.get_by_role("switch", name="Use the first 512 tokens").press("Space")
    expect(arcs(page).get_by_text("Tokens 0 to 255 of 512.")).to_be_visible()


def test_a_story_is_one_click_away_and_so_is_the_way_back(visit):
    page = visit("/?text=A+text+of+my+own.")
    typed = page.get_by_role("textbox", name="Your texts, one per line")
    for chip, words in (
        (story_wording.OBJECT, "from the verb to its object"),
        (story_wording.HER, "whose shop it is"),
    ):
        page.get_by_role("radio", name=chip).click()
        said = page.get_by_text(words)
        expect(said).to_be_visible()
        expect(typed).to_have_value(stories.SENTENCE)
        head = said.locator("strong").text_content()
        expect(arcs(page, head)).to_be_visible()
        expect(page).to_have_url(re.compile(f"head={head[1]}-{head[4:]}&"))
    there = visit(page.url)
    expect(there.get_by_text("whose shop it is")).to_be_visible()
    expect(arcs(there, head)).to_be_visible()
    cell(there, 2, 3).click()
    expect(there.get_by_text("L2 H3 mostly looks from a subject to its verb")).to_be_visible()
    example = there.get_by_role("list", name="Texts in which L2 H3 does so").get_by_role("button").first
    words = example.text_content()
    example.click()
    expect(there.get_by_role("textbox", name="Your texts")).to_have_value(words.replace(" / ", " ||| "))
    expect(arcs(there, "L2 H3")).to_be_visible()
    cell(there, 0, 2).hover()
    expect(there.locator(".tip .sentence")).to_contain_text("Mostly looks at the previous token")
    page.get_by_role("button", name="Back to my text").click()
    expect(typed).to_have_value("A text of my own.")
    expect(page.get_by_text("whose shop it is")).to_have_count(0)


def test_enter_pins_the_most_surprising_link_and_a_new_text_or_next_pins_another(visit):
    page = visit("/")
    for typed, head, word in (
        ("My brother broke his new phone.", "L2 H4", "his"),
        ("I love cats and dogs.", "L5 H4", "dogs"),
    ):
        type_texts(page, typed)
        answer = page.locator(".st-key-surprising-link").get_by_text(f"{head} gives ")
        expect(answer).to_contain_text(f"of {word} to ")
        expect(arcs(page, head)).to_be_visible()
        expect(arcs(page).locator(".tokens.from [aria-selected=true]")).to_have_text(re.compile(f"^{word}"))
        expect(page).to_have_url(re.compile(f"head={head[1]}-{head[4:]}(&|$)"))
    page.get_by_role("button", name="Next (1 of ").click()
    expect(page.get_by_role("button", name="Next (2 of ")).to_be_visible()
    expect(arcs(page).locator(".tokens.from [aria-selected=true]")).to_have_text(re.compile("^and"))
    arcs(page).locator(".tokens.from .token").nth(3).click()
    expect(arcs(page).locator(".tokens.from [aria-selected=true]")).to_have_text(re.compile("^cats"))
    expect(page).to_have_url(re.compile("pin=from-3"))
    there = visit(page.url)
    expect(arcs(there).locator(".tokens.from [aria-selected=true]")).to_have_text(re.compile("^cats"))
    expect(there.get_by_text("other words give it")).to_be_visible()
    expect_accessible(page, ".st-key-surprising-link")


def test_words_first_finds_the_planted_head(visit, planted_checkpoint):
    page = visit("/?text=She+chased+the+cat+on+the+mat&corpus=type+texts&corpus_text=She+sat.&head=0-0")
    name_checkpoint(page, planted_checkpoint)
    page.get_by_role("tab", name="Scores").click()
    arcs(page).get_by_role("option", name="she, 2 of 9").first.click()
    page.get_by_role("button", name=words_wording.ASK_FROM).click()
    expect(page.get_by_role("button", name="L1 H2: 100% to “cat”")).to_be_visible()
    choose(page, words_wording.TO, "the (2 of 2)")
    expect(page.get_by_text("No head looks there clearly more than attention split at random would")).to_be_visible()
    choose(page, words_wording.TO, "cat")
    said = page.get_by_text("Strongest in L1 H2: “she” gives 100% of its attention to “cat”.")
    expect(said).to_contain_text(
        "Evenly spread attention would give it 11%. 1 of 6 heads gives clearly more than a random split"
    )
    page.get_by_role("button", name="L1 H2: 100%").press("Enter")
    expect(arcs(page, "L1 H2")).to_be_visible()
    for part in ("from=she", "to=cat", "head=1-2"):
        expect(page).to_have_url(re.compile(f"[?&]{part}(&|$)"))
    numbers = page.get_by_role("grid", name=re.compile("^Word links in "))
    best = re.compile("^Layer 1, head 2: 100, clearly more than attention split at random. link: she → cat.")
    expect(numbers.get_by_role("gridcell", name=best)).to_have_attribute("aria-selected", "true")
    numbers.get_by_role("gridcell", name="Layer 0, head 1: 11.").click()
    expect(arcs(page, "L0 H1")).to_be_visible()
    expect(cell(page, 0, 1)).to_have_attribute("aria-selected", "true")
    expect_accessible(page, ".st-key-word-links")
    expect_fits(page)


@pytest.mark.parametrize("size", [(853, 1000), (1280, 720), (390, 844)])
def test_the_hint_about_enter_covers_no_line_of_the_text(visit, size):
    page = visit("/", **dict(zip(("width", "height"), size)))
    box = page.get_by_role("textbox", name="Your texts")
    box.fill("The keys to the old cabinet that my brother lost in the garden of our neighbours are on the table again.")
    hint = page.locator(".st-key-text [data-testid=InputInstructions]")
    expect(hint).to_be_visible()
    space_below = box.evaluate("box => parseFloat(getComputedStyle(box).paddingBottom)")
    around = box.bounding_box()
    assert hint.bounding_box()["y"] >= around["y"] + around["height"] - space_below - 1


def test_beside_the_sidebar_the_way_to_a_lesson_and_the_text_are_not_cut(visit):
    page = visit("/", reader="new", width=1280, height=720)
    page.get_by_role("button", name="Skip: straight to the tool").click()
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.get_by_role("button", name="Lesson: what is a head?")).to_be_visible()
    for width in (1280, 1100, 1024):
        page.set_viewport_size({"width": width, "height": 720})
        expect_fits(page)
        assert page.get_by_role("textbox", name="Your texts").bounding_box()["width"] > 100


def test_a_head_that_is_clicked_before_the_answer_to_a_text_arrives_stays_chosen(visit):
    page, held, is_slow = visit("/"), [], False

    def connect(browser):
        server = browser.connect_to_server()
        server.on_message(lambda message: held.append(message) if is_slow else browser.send(message))
        sockets.append(browser)

    sockets = []
    page.route_web_socket(re.compile("_stcore/stream"), connect)
    page.reload()
    settle(page)
    is_slow = True
    type_texts(page, SENTENCE)
    wait_for(page, lambda: any(b" of its attention to " in message for message in held), bool)
    cell(page, 5, 11).click()
    is_slow = False
    for message in held:
        sockets[-1].send(message)
    expect(arcs(page, "L5 H11")).to_be_visible()
    settle(page)
    expect(cell(page, 5, 11)).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("[?&]head=5-11(&|$)"))
