"""The page Inspect, as a person meets it."""

import re

from colours import contrast
from looks import expect_accessible, expect_fits, sweeping_rules
from playwright.sync_api import expect
from steps import (
    arcs,
    cell,
    cells,
    choose,
    choose_sieve,
    chosen,
    drawn_links,
    expect_cells_other_than,
    expect_drawn,
    expect_links_other_than,
    expect_number_of_cells,
    expect_summary,
    go_to,
    grid_of,
    links,
    saved_page,
    settle,
    shifted,
    tokens,
    type_texts,
    unfolded,
    wait_for,
)

from attention_sieve.dashboard.figures.appearance import mixed
from attention_sieve.dashboard.glossary import TERMS
from attention_sieve.dashboard.samples import EXAMPLE
from attention_sieve.dashboard.views.word_links import wording as words_wording

LEAST_ROWS = {(1440, 900): 10, (1280, 720): 10, (853, 480): 10, (390, 844): 3}
"""Of arcs that are seen with the grid when nothing has been scrolled, by the size of the window."""
LEAST_AFTER_CLICK = 12
"""The same on a phone after a click."""
PALE_CORNERS = """
() => {
  const all = (root) =>
    [...root.querySelectorAll("*")].flatMap((one) => [one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);
  const cell = all(document.body).find((one) => one.matches(".cell"));
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const seen = (...colors) => {
    for (const color of colors) {
      context.fillStyle = color;
      context.fillRect(0, 0, 1, 1);
    }
    const parts = [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
    return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
  };
  const background = getComputedStyle(cell).backgroundColor;
  const colors = [...cell.children].map((corner) => {
    corner.className = "corner";
    corner.style.setProperty("--tint", 1);
    return seen(background, getComputedStyle(corner).backgroundColor);
  });
  return [colors, seen(background)];
}
"""
"""The colour of a corner whose score is just not enough for its role, by role, and the background."""
NOTE_STROKES = """
() => {
  window.strokes = [];
  const { stroke } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.stroke = function (...given) {
    window.strokes.push([this.strokeStyle, this.globalAlpha]);
    return stroke.apply(this, given);
  };
}
"""
SENTENCE = "Two clever engineers finally repaired the noisy engine."


def expect_nothing_to_jump_from_page_to_page(page):
    """Ends on Inspect again."""
    charts = page.get_by_test_id("stVegaLiteChart").locator("svg.marks")
    for address, drawn in (
        ("surface", charts.first),
        ("inspect", links(page)),
        ("surface", charts.first),
        ("inspect", links(page)),
    ):
        go_to(page, address)
        expect(drawn).to_be_visible()
        settle(page)
        assert shifted(page, since_the_click=True) < 0.1, address


def test_a_first_visit_shows_grid_and_arcs_of_the_example_nothing_jumps_and_tooltips_cover_no_arcs(visit):
    page = visit("/")
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(" ||| ".join(EXAMPLE.segments))
    expect_number_of_cells(page, 6 * 12)
    queries = wait_for(page, tokens(page).locator(".label").all_text_contents, lambda queries: len(queries) == 16)
    assert queries[:4] == ["[CLS]", "the", "old", "baker"]
    expect(tokens(page, "To: keys").locator(".label")).to_have_text(queries)
    for side, name in (("From: queries", "from: baker, 4 of 16"), ("To: keys", "to: baker, 4 of 16")):
        expect(tokens(page, side).nth(3)).to_have_accessible_name(name)
    expect_drawn(links(page))
    expect_summary(page, "L1 H7", "128 texts")
    assert shifted(page) < 0.1
    assert sweeping_rules(page) == []
    expect_nothing_to_jump_from_page_to_page(page)
    for (width, height), least in LEAST_ROWS.items():
        page.set_viewport_size({"width": width, "height": height})
        wait_for(page, lambda: rows_seen_with_the_grid(page), lambda rows, least=least: rows >= least)
    cell(page, 5, 3).click()
    wait_for(page, lambda: rows_seen_with_the_grid(page), lambda rows: rows >= LEAST_AFTER_CLICK)
    page.set_viewport_size({"width": 1440, "height": 900})
    expect_a_term_to_explain_itself(page)
    page.get_by_role("switch", name="Patterns").press("Space")
    expect_the_tooltip_to_cover_no_arcs_and_a_tap_to_open_none(page)


def test_the_first_screen_is_a_finding_and_a_picture(visit):
    page = visit("/")
    expect(page.get_by_text("closed looks at shop")).to_be_visible()
    settle(page)
    assert len(re.findall(r"\w+", page.locator(".st-key-surprising-link strong").inner_text())) <= 20
    legend = " ".join(page.locator(".st-key-inspect-grid .legend").inner_text().split())
    found = re.fullmatch(r"L local 1 S syntactic 4 rests on \[CLS\], \[SEP\] \((\d+) of 72\) how to read", legend)
    assert found is not None, legend
    letters = grid_of(page).locator(".corner:not(:empty)").all_text_contents()
    assert sorted(letters) == ["L", *"SSSS"], "what most heads do is a line"
    assert grid_of(page).locator(".corner.line.held").count() == int(found[1]) > 36
    assert page.locator(".cell[aria-selected=true]").evaluate(
        "cell => getComputedStyle(cell).boxShadow.includes(getComputedStyle(cell).color)"
    )
    page.get_by_role("switch", name="Patterns").press("Space")
    expect(grid_of(page).locator("canvas")).to_have_count(0)
    expect(page).to_have_url(re.compile("patterns=false"))


def test_in_the_dark_weak_links_and_corners_that_are_not_held_have_a_contrast_of_three(visit):
    page = visit("/?head=1-7&patterns=false", colours="dark")
    pale, background = page.evaluate(PALE_CORNERS)
    assert len(pale) == 4
    assert all(contrast(color, background) >= 3 for color in pale), pale
    page.evaluate(NOTE_STROKES)
    page.set_viewport_size({"width": 1300, "height": 900})
    strokes = wait_for(page, lambda: page.evaluate("window.strokes"), bool)
    for color, alpha in strokes:
        assert contrast(mixed(color, alpha, background), background) >= 2.95, (color, alpha)


def test_on_a_projector_nothing_moves_and_an_answer_leaves_the_whole_grid_and_ten_rows_of_arcs_on_screen(visit):
    page = visit("/", width=853, height=480)
    assert shifted(page) < 0.05
    screen = {"width": 853, "height": 480, "deviceScaleFactor": 1.5, "mobile": False}
    page.context.new_cdp_session(page).send("Emulation.setDeviceMetricsOverride", screen)
    type_texts(page, SENTENCE)
    expect(page.locator(".st-key-surprising-link")).to_contain_text("engineers looks at engine")
    settle(page)
    wait_for(page, lambda: rows_seen_with_the_grid(page), lambda rows: rows >= LEAST_ROWS[853, 480])


def expect_settings_that_a_first_visit_does_without_to_be_in_one_folded_line(page):
    expect(arcs(page).get_by_role("radio")).to_have_count(2)
    expect(arcs(page).get_by_role("slider")).to_have_count(0)
    expect(page.get_by_label("Highlight the tokens that a role expects")).to_be_hidden()
    unfolded(arcs(page))
    expect(arcs(page).get_by_role("radio", name="Strongest 1")).to_be_visible()
    expect(arcs(page).get_by_role("slider")).to_be_visible()
    expect_accessible(page, ".st-key-arcs")
    expect_fits(page)


def expect_the_hint_about_enter_to_cover_no_line_of_the_text(page):
    box = page.get_by_role("textbox", name="Your texts")
    box.fill("The keys to the old cabinet that my brother lost in the garden of our neighbours are on the table again.")
    hint = page.locator(".st-key-text [data-testid=InputInstructions]")
    for width, height in ((853, 1000), (1280, 720), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        expect(hint).to_be_visible()
        space_below = box.evaluate("box => parseFloat(getComputedStyle(box).paddingBottom)")
        around = box.bounding_box()
        assert hint.bounding_box()["y"] >= around["y"] + around["height"] - space_below - 1


def expect_the_text_box_to_grow_to_a_third_of_the_page_at_most(page):
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
    if first is None:  # it is being drawn anew
        return 0
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
    page.get_by_role("button", name="how to read", exact=True).hover()
    expect(page.get_by_role("tooltip")).to_contain_text("Each square is a head, one of the model’s ways of looking")


def test_typed_texts_change_grid_and_arcs_and_the_reader_picks_the_one_on_screen_which_is_saved(visit, tmp_path):
    page = visit("/")
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
    assert [text["segments"] for text in saved_page(page, tmp_path)[1]["asked"]["drawn"]] == [[SENTENCE]]


def test_heads_are_chosen_by_click_and_keyboard_and_previewed_by_their_patterns(visit):
    page = visit("/?head=1-7&patterns=false")
    tip = page.locator(".tip:popover-open")
    before = drawn_links(page)
    cell(page, 2, 5).click()
    expect(arcs(page, "L2 H5")).to_be_visible()
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


def test_the_arcs_unfold_pin_a_token_show_a_sieve_become_matrices_and_corners_are_filled_by_the_corpus(visit):
    page = visit("/")
    expect_settings_that_a_first_visit_does_without_to_be_in_one_folded_line(page)
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
    page.get_by_role("button", name="Test settings").click()
    page.get_by_role("radio", name="the corpus").click()
    expect_cells_other_than(page, before)
    expect(page.get_by_role("grid", name="roles on the corpus")).to_be_visible()
    expect(cell(page, 0, 0).locator(".corner")).to_have_count(4)
    page.get_by_role("switch", name="Finer roles").press("Space")
    page.keyboard.press("Escape")
    expect(cell(page, 0, 0).locator(".corner")).to_have_count(6)
    hidden = grid_of(page).evaluate("grid => grid.closest('.scroll').scrollWidth - grid.closest('.scroll').clientWidth")
    assert hidden == 0
    expect_the_text_box_to_grow_to_a_third_of_the_page_at_most(page)
    expect_the_hint_about_enter_to_cover_no_line_of_the_text(page)


def test_enter_pins_the_most_surprising_link_in_the_arcs_and_next_another(visit):
    page = visit("/")
    type_texts(page, "I love cats and dogs.")
    answer = page.locator(".st-key-surprising-link")
    expect(answer).to_contain_text("dogs looks at cats")
    expect(answer).to_contain_text("L5 H4 gives it ")
    pinned = arcs(page, "L5 H4").locator(".tokens.from [aria-selected=true]")
    expect(pinned).to_have_text(re.compile("^dogs"))
    page.get_by_role("button", name="Next (1 of ").click()
    expect(page.get_by_role("button", name="Next (2 of ")).to_be_visible()
    pinned = arcs(page).locator(".tokens.from [aria-selected=true]")
    expect(pinned).to_have_text(re.compile("^i"))
    arcs(page).locator(".tokens.from .token").nth(3).click()
    expect(pinned).to_have_text(re.compile("^cats"))
    expect(page).to_have_url(re.compile("pin=from-3"))
    expect_accessible(page, ".st-key-surprising-link")


def test_a_tooltip_leads_to_an_example_of_a_head_and_a_pinned_word_asks_which_heads_link_it(visit):
    page = visit("/?head=0-2&patterns=false")
    cell(page, 0, 2).hover()
    expect(page.locator(".tip .sentence")).to_contain_text("In varied sample texts: mostly looks at the previous token")
    page.get_by_text("Seen most clearly in these texts").scroll_into_view_if_needed()
    example = page.get_by_role("list", name="Texts in which L0 H2 does so").get_by_role("button").first
    words = example.text_content()
    example.click()
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(words.replace(" / ", " ||| "))
    expect(arcs(page, "L0 H2")).to_be_visible()
    page.get_by_role("tab", name="Scores").click()
    tokens(page).nth(3).click()
    page.get_by_role("button", name=words_wording.ASK_FROM).click()
    strongest = page.get_by_role("button", name=re.compile(r"^L\d H\d+: \d+% to “")).first
    head = strongest.inner_text().partition(":")[0]
    strongest.press("Enter")
    expect(arcs(page, head)).to_be_visible()
    numbers = page.get_by_role("grid", name=re.compile("^Word links in "))
    numbers.get_by_role("gridcell", name="Layer 0, head 1:").click()
    expect(arcs(page, "L0 H1")).to_be_visible()
    expect(cell(page, 0, 1)).to_have_attribute("aria-selected", "true")
    expect_accessible(page, ".st-key-word-links")
    expect_fits(page)


def test_an_answer_comes_into_view_unless_the_reader_has_gone_on_by_then(visit):
    page = visit("/?head=0-2", height=500)
    tokens(page).nth(3).click()
    page.get_by_role("button", name=words_wording.ASK_FROM).click()
    expect(page.get_by_role("grid", name=re.compile("^Word links in "))).to_be_in_viewport()
    page = visit("/?head=0-2", height=500)
    # What waits a moment here waits long, as on a machine with other work to do.
    page.evaluate("() => { const own = setTimeout; setTimeout = (then, ms) => own(then, ms === 150 ? 2000 : ms); }")
    tokens(page).nth(3).click()
    page.get_by_role("button", name=words_wording.ASK_FROM).click()
    expect(page.get_by_role("grid", name=re.compile("^Word links in "))).to_be_visible()
    typed = page.get_by_role("textbox", name="Your texts")
    typed.click()
    page.wait_for_timeout(2500)
    expect(typed).to_be_in_viewport()


def test_beside_the_sidebar_the_way_to_a_lesson_and_the_text_are_not_cut(visit):
    page = visit("/", newcomer=True, width=1280, height=720)
    page.get_by_role("button", name="Skip: straight to the tool").click()
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("button", name="Examples").click()
    expect(page.get_by_role("button", name="Lesson: what is a head?")).to_be_visible()
    page.keyboard.press("Escape")
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


def test_paper_has_no_room_for_controls_that_are_not_printed(visit):
    page = visit("/?head=1-8")
    settle(page)
    page.set_viewport_size({"width": 680, "height": 1000})  # A4 without its margins
    page.emulate_media(media="print")
    above = page.get_by_role("heading", name="Attention Sieve").bounding_box()
    text = page.get_by_role("textbox", name="Your texts, one per line").bounding_box()
    assert text["y"] - (above["y"] + above["height"]) < 100
