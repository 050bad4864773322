"""Fine-tune: from a table of labelled texts to a checkpoint, stopped, resumed, and found again from any page."""

import re

import pytest
from looks import SIZES, violations, wrongs
from playwright.sync_api import expect
from steps import LONG, choose, error, give_file, settle
from test_safety import ALL, HOSTILE, expect_nothing_rendered, expect_said

FILMS, PRAISE, BLAME = ("film", "plot", "cast", "score"), ("lovely", "warm", "superb"), ("dull", "cold", "awful")
STEP = re.compile(r"[Ss]tep ([\d,]+) of [\d,]+")
UNTIL_FINISHED = 3 * LONG
MOVED = "before => document.querySelector('[data-testid=stVegaLiteChart] svg.marks')?.innerHTML !== before"
FOREVER = "epochs=900&batch_size=8"
LOOKS = (("wide", "light"), ("wide", "dark"), ("tablet", "light"), ("narrow", "dark"))


def table(n_texts=200):
    """Short reviews of two kinds."""
    rows = []
    for i in range(n_texts):
        word = (PRAISE if i % 2 else BLAME)[i % 3]
        rows.append(f"The {FILMS[i % 4]} of number {i} is {word}.,{'praise' if i % 2 else 'blame'}")
    return "\n".join(["sentence,label", *rows]).encode()


def begin(page, name, content=None):
    """Upload a table and start; the run is then on."""
    give_file(page, name, content or table())
    start = page.get_by_role("button", name="Start from")
    expect(start).to_be_enabled(timeout=LONG)
    start.click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible(timeout=LONG)


def stop(page):
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text(re.compile("^Stopped at step"))).to_be_visible(timeout=LONG)


def step(page):
    """Number of the step that the bar names."""
    bar = page.get_by_text(STEP).first
    expect(bar).to_be_visible(timeout=LONG)
    return int(STEP.search(bar.inner_text())[1].replace(",", ""))


def curve(page):
    return page.locator("[data-testid=stVegaLiteChart] svg.marks")


def test_200_texts_become_a_checkpoint_and_the_curve_moves(visit):
    page = visit("/fine-tune?epochs=1")
    give_file(page, "films.csv", table())
    expect(page.get_by_text("200 texts, 2 classes: blame (100), praise (100).")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name of the new checkpoint")).to_have_value("films")
    page.get_by_role("button", name="Start from bundled").click()
    expect(curve(page)).to_be_visible(timeout=UNTIL_FINISHED)
    curve(page).evaluate("drawing => { drawing.isTheFirst = true; }")
    before = curve(page).inner_html()
    step(page)
    page.wait_for_function(MOVED, arg=before, timeout=LONG)
    assert curve(page).evaluate("drawing => drawing.isTheFirst")  # drawn on, not anew
    finished = page.get_by_text("Finished after 12 steps: held-out accuracy")
    expect(finished).to_be_visible(timeout=UNTIL_FINISHED)
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    listed = page.get_by_text("films, from bundled with films.csv (classes, 200 texts)")
    expect(listed).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(finished).to_have_count(0)
    expect(page.get_by_role("textbox", name="Name of the new checkpoint")).to_have_value("films-2")
    page.reload()
    expect(listed).to_be_visible()
    expect(page.get_by_text("Upload a table of labelled texts to see what is in it.")).to_be_visible()
    page.get_by_role("link", name="Compare with bundled").click()
    expect(page.get_by_role("heading", name="Compare", exact=True)).to_be_visible()
    page.wait_for_url(lambda url: "with=films" in url)


def test_a_run_is_found_on_every_way_to_the_page_stopped_and_resumed(visit, small_checkpoint):
    page = visit(f"/fine-tune?checkpoint={small_checkpoint}&{FOREVER}&save_steps=50")
    begin(page, "long.csv")
    step(page)
    page.get_by_role("link", name="Roles").click()
    expect(page.get_by_role("heading", name="Roles")).to_be_visible()
    page.get_by_role("link", name="Fine-tune").click()
    step(page)
    page.reload()
    step(page)
    other = visit("/fine-tune")
    step(other)
    other.get_by_text("Data and settings").click()
    expect(other.get_by_text("long is being fine-tuned now")).to_be_visible()
    expect(other.get_by_role("button", name="Start from")).to_be_disabled()
    stop(other)
    expect(page.get_by_text(re.compile("^Stopped at step"))).to_be_visible(timeout=LONG)
    stopped_at = step(page)
    page.get_by_role("button", name="Resume long").first.click()
    expect(page.get_by_text(re.compile("^Step [0-9,]+ of"))).to_be_visible(timeout=LONG)
    assert step(page) >= stopped_at
    stop(page)


def test_settings_are_in_the_link_and_the_file_is_not(visit):
    page = visit("/fine-tune")
    page.get_by_role("spinbutton", name="Epochs").fill("2")
    page.get_by_role("spinbutton", name="Epochs").press("Enter")
    page.get_by_role("spinbutton", name="Steps between saves").fill("25")
    page.get_by_role("spinbutton", name="Steps between saves").press("Enter")
    give_file(page, "films.csv", table())
    choose(page, "Labels are", "classes")
    for part in ("epochs=2", "save_steps=25", "task=classes"):
        page.wait_for_url(lambda url, part=part: part in url)
    assert "films" not in page.url
    there = visit(page.url)
    expect(there.get_by_role("spinbutton", name="Epochs")).to_have_value("2")
    expect(there.get_by_role("spinbutton", name="Steps between saves")).to_have_value("25")
    give_file(there, "films.csv", table())
    expect(there.get_by_role("combobox", name="Labels are")).to_have_value("classes")
    page.get_by_role("link", name="Roles").click()
    expect(page.get_by_role("heading", name="Roles")).to_be_visible()
    page.get_by_role("link", name="Fine-tune").click()
    expect(page.get_by_role("spinbutton", name="Epochs")).to_have_value("2")


def test_bad_data_is_said_before_anything_starts(visit):
    page = visit("/fine-tune")
    start = page.get_by_role("button", name="Start from")
    expect(start).to_be_disabled()
    give_file(page, "one.csv", b"sentence,label\n" + b"A text.,same\n" * 9)
    expect(error(page)).to_contain_text('All 9 texts have the label "same".')
    expect(start).to_be_disabled()
    give_file(page, "columns.csv", table().replace(b"sentence,label", b"what,kind"))
    expect(page.get_by_text("Pick the columns with the text and with the label.")).to_be_visible()
    expect(start).to_be_disabled()
    choose(page, "Column with the text", "what")
    choose(page, "Column with the label", "kind")
    expect(start).to_be_enabled()
    box = page.get_by_role("textbox", name="Name of the new checkpoint")
    box.fill("../up")
    box.press("Enter")
    expect_said(page, '"../up" cannot be a checkpoint\'s name.')
    expect(start).to_be_disabled()


def test_hostile_names_labels_and_columns_are_shown_as_text_and_harm_nothing(visit, small_checkpoint, store_folder):
    page = visit(f"/fine-tune?checkpoint={small_checkpoint}&epochs=1&batch_size=50")
    rows = [f"{ALL} {i},{HOSTILE[i % 3]}" for i in range(30)]
    give_file(page, f"..\\{HOSTILE[0]}.csv", "\n".join([f"{HOSTILE[3]},{HOSTILE[4]}", *rows]).encode())
    choose(page, "Column with the text", HOSTILE[3])
    choose(page, "Column with the label", HOSTILE[4])
    expect(page.get_by_text("30 texts, 3 classes:")).to_contain_text(HOSTILE[0])
    expect_nothing_rendered(page)
    page.get_by_role("button", name="Start from").click()
    expect(page.get_by_text("Finished after")).to_be_visible(timeout=UNTIL_FINISHED)
    expect_nothing_rendered(page)
    assert (store_folder / "checkpoints" / "img-src-x-onerror-alert-1" / "config.json").is_file()
    assert all(re.fullmatch(r"[\w.-]+", path.name) for path in (store_folder / "data").rglob("*"))


def opened(visit, checkpoint, size, colours):
    """The page in one size and colour scheme, with its explanation."""
    width, height = SIZES[size]
    page = visit(f"/fine-tune?checkpoint={checkpoint}&{FOREVER}", colours, width=width, height=height)
    page.get_by_text("How it is computed").click()
    expect(page.get_by_text("Texts held out are never learned from.")).to_be_visible()
    return page


@pytest.mark.parametrize(("size", "colours"), LOOKS)
def test_the_page_is_accessible_and_nothing_overlaps_or_is_cut(visit, small_checkpoint, size, colours):
    page = opened(visit, small_checkpoint, size, colours)
    give_file(page, f"{size}-{colours}.csv", table())
    expect(page.locator("[data-testid=stDataFrame] canvas").first).to_be_visible()
    settle(page)
    assert violations(page) == []
    assert wrongs(page) == []


def test_a_run_is_accessible_and_nothing_overlaps_or_is_cut_in_any_size(visit, small_checkpoint):
    first = opened(visit, small_checkpoint, *LOOKS[0])
    begin(first, "looks.csv")
    pages = [first, *(opened(visit, small_checkpoint, *look) for look in LOOKS[1:])]
    for page in pages:
        step(page)
        expect(curve(page)).to_be_visible(timeout=LONG)
        assert violations(page) == []
    stop(first)
    for page in pages:
        expect(page.get_by_text(re.compile("^Stopped at step"))).to_be_visible(timeout=LONG)
        expect(page.get_by_role("button", name="Resume looks").first).to_be_visible()
        settle(page)
        assert violations(page) == []
        assert wrongs(page) == []
