"""How the pages look: accessible, and nothing overlaps or is cut, light and dark, wide and narrow."""

from dataclasses import dataclass

import pytest
from looks import (
    LAYOUT,
    SEEN,
    darken,
    expect_accessible,
    expect_contrast,
    expect_fits,
    expect_looks_right,
    expect_tabs_to_look_right,
    lighten,
    open_expanders,
    resize,
)
from playwright.sync_api import expect
from steps import arcs, cell, choose, grid_of, name_checkpoint, settle, tokens, wait_for

from attention_sieve.dashboard.views.importance import agreement, by_role, two_sets
from attention_sieve.dashboard.views.importance import wording as importance
from attention_sieve.dashboard.views.surface import wording as surface
from attention_sieve.dashboard.views.word_swap.choice import EXAMPLES


@dataclass(frozen=True)
class Place:
    """A page, or a part of it, by its address."""

    path: str
    tabs: tuple[str, ...] = ()
    part: str | None = None
    """What is looked at for being accessible, where the rest is another place; None for all of the page."""


SURFACE = (
    surface.ENTROPY,
    surface.CHOSEN,
    surface.HEADS,
    surface.FUNCTIONS,
    surface.LAYERS,
    surface.TABLE,
)
IMPORTANCE = (importance.EACH, agreement.TAB, by_role.TAB, two_sets.TAB)
"""All but those that need a table of labelled texts, which have tests of their own."""
ROLES = ("Per layer", "p-values", "Score distributions", "Sensitivity", "Overlaps", "Combinations", "Table")
LESSON = ".st-key-lesson"
PLACES = {
    "roles": Place("/roles?roles+finer=true&head=1-8", ROLES),
    "claims": Place("/claims?claim=L1+H8,+L2+H8+are+amod+heads"),
    "surface": Place("/surface?head=0-2,1-8", SURFACE),
    "similarity": Place(
        "/similarity?similarity+texts=16&head=3-8,2-2",
        ("Most similar heads", "Dendrogram", "Layers", "Two layers", "Table"),
    ),
    "importance": Place("/importance?head=3-8,4-5,2-2", IMPORTANCE),
    "relations": Place("/grammar?random=true", ("Every relation", "Distances", "Argmax and sieve")),
    "coreference": Place("/grammar?grammar+section=Coreference"),
    "word swap": Place(f"/?text={EXAMPLES[1].a}&swap={EXAMPLES[1].b}"),
    "lessons": Place("/lessons"),
    "lesson with an answer": Place("/?lesson=2&step=4&said=7", part=LESSON),
    "question of a lesson": Place("/?lesson=1&step=6", part=LESSON),
}


def drawn(page):
    """Wait until the page has its grid, and its arcs, its charts or its tables."""
    settle(page)
    expect(grid_of(page).get_by_role("gridcell").first).to_be_visible()
    seen = ".view .drawing, svg.marks, canvas.marks, [data-testid=stDataFrame] canvas"
    expect(page.locator(seen).first).to_be_visible()


@pytest.mark.parametrize("place", PLACES)
def test_a_page_with_all_that_unfolds_is_accessible_and_fits(visit, place):
    page, tabs = visit(PLACES[place].path), PLACES[place].tabs
    settle(page)
    expect(page.get_by_test_id("stMain").locator(SEEN).locator("visible=true").first).to_be_visible()
    open_expanders(page.get_by_test_id("stMain"))
    settle(page)
    if tabs:
        expect_tabs_to_look_right(page, tabs)
    else:
        expect_looks_right(page, PLACES[place].part)


def test_inspect_is_accessible_and_fits(visit):
    shown = "sieve=local&head=1-4,0-2&off=0-2,1-4&finer=true&head+details=Roles"
    page = visit(f"/?text=One+text.%0AUnbelievable+words.&{shown}")
    drawn(page)
    expect_fits(page)
    open_expanders(page.locator("body"))
    cell(page, 2, 3).hover()
    arcs(page).get_by_role("radio", name="Matrix").check()
    expect(arcs(page).locator(".matrix canvas").first).to_be_visible()
    expect_accessible(page)
    darken(page)
    expect_contrast(page)
    page.mouse.move(0, 0)
    resize(page, "narrow")
    expect_fits(page)
    arcs(page).get_by_role("radio", name="Arcs").check()
    resize(page, "tablet")
    expect_fits(page)
    name_checkpoint(page, "/nowhere")
    expect(page.get_by_role("alert")).to_be_visible()
    settle(page)
    expect_contrast(page)
    lighten(page)
    expect_accessible(page)


def test_a_page_that_waits_for_a_file_is_accessible_on_a_phone_and_one_too_large_is_said(visit, tmp_path):
    page = visit("/roles?details=Per+layer", width=390, height=844)
    drawn(page)
    choose(page, "Corpus", "upload a file")
    expect(page.get_by_text("Upload a file of texts in the sidebar")).to_be_visible()
    settle(page)
    expect_accessible(page)
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(20_000_001)
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(large)
    # Where the pointer rests on the file, a tooltip says the same.
    expect(page.get_by_role("alert").get_by_text("File must be 20.0MB or smaller.")).to_be_visible()
    expect(page.get_by_text("How it is computed")).to_be_visible()


def test_a_long_text_and_cross_attention_are_accessible_and_fit_a_narrow_screen(visit, encoder_decoder):
    across = f"/?checkpoint={encoder_decoder}&attention=cross-attention&text=the+cat+sat+|||+a+dog&off=2-3&head=2-3"
    long = f"/?text={'word+' * 300}&off=1-3&head=2-1&corpus=type+texts&corpus_text=A+dog+ran."
    for path in (long, across):
        page = visit(path, width=390, height=844)
        drawn(page)
        expect(page.get_by_role("heading", name="What changes without it")).to_be_visible()
        expect_fits(page)
        expect_accessible(page)
    for side in ("From target: queries", "To source: keys"):
        expect(tokens(page, side).first).to_be_visible()


def test_the_next_token_of_a_decoder_and_the_steps_of_what_it_writes_are_accessible_and_fit(visit, decoder):
    page = visit(f"/?checkpoint={decoder}&text=the+cat+sat+on+the&off=0-1&asked+token=z&tokens+to+write=6")
    drawn(page)
    expect(page.get_by_role("heading", name="The next token")).to_be_visible()
    page.get_by_role("button", name="Write on").click()
    written = page.get_by_role("radiogroup", name="The model wrote").or_(page.locator(".st-key-written-token"))
    pieces = written.first.get_by_role("button").or_(written.first.get_by_role("radio"))
    expect(pieces).to_have_count(6)
    settle(page)
    pinned = arcs(page).get_by_role("listbox", name="From: queries").get_by_role("option", selected=True)
    first = pinned.get_attribute("aria-label")
    page.get_by_role("button", name="Later token").click()
    expect(pinned).not_to_have_attribute("aria-label", first)
    expect_looks_right(page)


@pytest.mark.parametrize("shown", ["inspect", "compare"])
def test_a_figure_begins_on_the_first_screen_of_a_page_that_is_enlarged_to_200_percent(
    visit, small_checkpoint, classifier, shown
):
    texts = "corpus=type+texts&corpus_text=A+dog+ran.&text=A+dog+ran."
    compared = f"/compare?checkpoint={small_checkpoint}&with={classifier}&{texts}"
    page = visit("/" if shown == "inspect" else compared, width=720, height=450)
    settle(page)
    place = grid_of(page) if shown == "inspect" else page.locator(".st-key-picture")
    expect(place.get_by_role("gridcell").first).to_be_in_viewport(ratio=0.3)
    expect_fits(page)


def test_the_layout_check_finds_what_is_wrong(visit):
    page = visit("/")
    drawn(page)
    page.evaluate("""() => {
        const box = document.createElement("div");
        box.innerHTML = `<p style="width: 40px; overflow: hidden; white-space: nowrap">far too long a text</p>
            <button style="position: absolute; left: 400px; top: 20px">one</button>
            <button style="position: absolute; left: 410px; top: 25px">two</button>
            <button style="position: absolute; left: -300px; top: 60px">away</button>
            <p style="width: 3000px">wide</p>`;
        document.querySelector("[data-testid=stMainBlockContainer]").prepend(box);
    }""")
    wrongs = ("cut: <p", "controls overlap", "texts overlap", "scrolls sideways", "off the screen")
    wait_for(page, lambda: " ".join(page.evaluate(LAYOUT)), lambda said: all(wrong in said for wrong in wrongs))
