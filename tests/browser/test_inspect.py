"""The page Inspect, as a person meets it."""

from playwright.sync_api import expect
from steps import (
    LONG,
    arcs,
    cell,
    cells,
    choose,
    chosen,
    error,
    expect_cells_other_than,
    is_blank,
    links_drawn,
    tokens,
    type_texts,
)

from dashboard.samples import EXAMPLE

SENTENCE = "Two clever engineers finally repaired the noisy engine."


def test_a_first_visit_shows_grid_and_arcs_of_the_example(visit):
    page = visit("/")
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(" ||| ".join(EXAMPLE.segments))
    assert len(cells(page)) == 6 * 12
    assert tokens(page)[:4] == ["[CLS]", "why", "did", "the"]
    assert tokens(page) == tokens(page, "To: keys")
    assert not is_blank(arcs(page).locator("canvas.base"))
    expect(page.get_by_role("heading", name="Head L0 H2 over 128 texts")).to_be_visible()


def test_a_typed_sentence_changes_grid_and_arcs(visit):
    page = visit("/")
    before, drawn = cells(page), links_drawn(page)
    type_texts(page, SENTENCE)
    expect_cells_other_than(page, before)
    expect(arcs(page).get_by_role("option", name="engineers, 4 of 11")).to_have_count(2, timeout=LONG)
    assert links_drawn(page) != drawn


def test_of_several_texts_the_reader_picks_the_one_on_screen(visit):
    page = visit("/")
    type_texts(page, f"The first text.\n{SENTENCE}")
    expect(arcs(page).get_by_role("option", name="first, 3 of 6")).to_have_count(2, timeout=LONG)
    choose(page, "Text on screen", f"2: {SENTENCE}")
    expect(arcs(page).get_by_role("option", name="engineers, 4 of 11")).to_have_count(2, timeout=LONG)


def test_a_click_on_a_head_shows_its_arcs_and_a_shift_click_adds_one(visit):
    page = visit("/")
    before = links_drawn(page)
    cell(page, 3, 7).click()
    expect(arcs(page, "L3 H7")).to_be_visible()
    expect(page.get_by_role("heading", name="Where L3 H7 looks")).to_be_visible()
    assert links_drawn(page) != before
    cell(page, 2, 5).click(modifiers=["Shift"])
    expect(arcs(page, "L3 H7", "L2 H5")).to_be_visible()
    assert chosen(page) == ["L3 H7", "L2 H5"]
    expect(page.get_by_role("heading", name="Head L2 H5 over 128 texts")).to_be_visible()


def test_the_keyboard_chooses_heads(visit):
    page = visit("/")
    cell(page, 3, 7).click()
    expect(arcs(page, "L3 H7")).to_be_visible()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(arcs(page, "L4 H8")).to_be_visible()
    expect(cell(page, 4, 8)).to_have_attribute("aria-selected", "true")
    for key in ("Home", "Shift+Enter"):
        page.keyboard.press(key)
    expect(arcs(page, "L4 H8", "L4 H0")).to_be_visible()
    page.keyboard.press("Escape")  # closes the tooltip
    page.keyboard.press("Escape")
    expect(arcs(page, "L4 H8")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("Click a head in the grid to see its arcs here.")).to_be_visible()


def test_a_thumbnail_chooses_its_head_in_grid_and_arcs(visit):
    page = visit("/")
    page.get_by_role("button", name="Layer 0, head 9").click()
    expect(arcs(page, "L0 H9")).to_be_visible()
    expect(cell(page, 0, 9)).to_have_attribute("aria-selected", "true")


def test_a_token_can_be_walked_to_pinned_and_freed(visit):
    page = visit("/")
    token = arcs(page).get_by_role("listbox", name="From: queries").get_by_role("option", name="baker, 6 of 26")
    token.click()
    expect(token).to_have_attribute("aria-selected", "true")
    expect(arcs(page).locator(".summary")).to_contain_text("attends to")
    page.keyboard.press("Escape")
    expect(token).to_have_attribute("aria-selected", "false")


def test_a_sieve_is_laid_over_the_arcs(visit):
    page = visit("/")
    before = links_drawn(page)
    choose(page, "Lay a role's sieve over the arcs", "local")
    expect(arcs(page).get_by_text("In the local sieve:")).to_be_visible()
    assert links_drawn(page) != before


def test_heads_can_be_shown_as_matrices(visit):
    page = visit("/")
    arcs(page).get_by_role("radio", name="Matrix").check()
    expect(arcs(page).locator(".matrix canvas").first).to_be_visible()
    assert not is_blank(arcs(page).locator(".matrix canvas").first)


def test_corners_filled_by_the_corpus_say_so(visit):
    page = visit("/")
    before = cells(page)
    page.get_by_role("radio", name="test over the corpus").click()
    expect_cells_other_than(page, before)
    expect(page.get_by_role("grid", name="filled by test over the corpus")).to_be_visible()


def test_finer_roles_get_corners_of_their_own(visit):
    page = visit("/")
    expect(cell(page, 0, 0).locator(".corner")).to_have_count(4)
    page.get_by_role("switch", name="Finer roles").press("Space")
    expect(cell(page, 0, 0).locator(".corner")).to_have_count(6)


def test_a_text_that_is_too_long_names_its_tokens_and_can_be_cut(visit):
    page = visit("/")
    type_texts(page, "word " * 700)
    expect(page.get_by_text("The text has 702 tokens and this checkpoint takes 512.")).to_be_visible(timeout=LONG)
    page.get_by_role("switch", name="Cut it to what the checkpoint takes").press("Space")
    expect(arcs(page).get_by_text("Tokens 0 to 255 of 512.")).to_be_visible(timeout=LONG)


def test_what_cannot_be_read_is_said_and_the_rest_of_the_page_stays(visit):
    page = visit("/")
    for typed, sentence in (
        ("A first segment ||| ", "Line 1: segment 2 of 2 is empty."),
        ("one ||| two ||| three", "Line 1 has 3 segments and a text has one or two."),
        ("", "There is no text yet. Type one text a line"),
    ):
        type_texts(page, typed)
        expect(error(page)).to_contain_text(sentence)
        expect(page.get_by_role("heading", name="Inspect")).to_be_visible()
        expect(page.get_by_role("textbox", name="Your texts")).to_be_editable()
        expect(page.get_by_text("How it is computed")).to_be_visible()
