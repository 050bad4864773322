"""What a person does on the dashboard, and what they then see.

A page is drawn some time after the act that changes it, so nothing here looks only once: a claim is Playwright's
`expect`, or `wait_for` where it needs what a script reads from the page.
"""

import os
import re
from time import monotonic

from playwright.sync_api import TimeoutError, expect

from attention_sieve.dashboard.pages import PAGES
from attention_sieve.dashboard.saved_page.file import read_page

FINISHED = "[data-testid=stApp][data-test-script-state=notRunning]:not(:has(.st-key-first-screen))"
"""Nothing runs, and what is below the first screen is drawn too."""
SLOWDOWN = float(os.environ.get("ATTENTION_SIEVE_TEST_SLOWDOWN", "1"))
"""How many times slower Chromium's processor is made."""
PATIENCE = 180_000
"""Milliseconds that anything may take: with a processor four times as slow, on a machine with other work to do."""
BETWEEN_LOOKS = 200
"""Milliseconds."""
expect.set_options(timeout=PATIENCE)
SIDEBAR = ("Checkpoint", "Corpus", "Attention")
DRAWER = ("Scale", "Correction", "tau", "alpha")
"""What is found only in what unfolds."""
FILMS, PRAISE, BLAME = ("film", "plot", "cast", "score"), ("lovely", "warm", "superb"), ("dull", "cold", "awful")


def slow_down(page):
    """Give a page the slower processor that was asked for."""
    if SLOWDOWN > 1:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})


def wait_for(page, read, holds):
    """What `read()` gives, as soon as it holds."""
    until = monotonic() + PATIENCE / 1000
    while not holds(value := read()):
        assert monotonic() < until, f"still {value!r:.2000} after {PATIENCE / 1000:.0f} seconds"
        page.wait_for_timeout(BETWEEN_LOOKS)
    return value


def wait_until_equal(page, read, wanted):
    """Wait until `read()` gives what is wanted."""
    wait_for(page, read, lambda value: value == wanted)


def wait_until_alike(page, other, read):
    """Wait until `read(page)` gives the same of both pages."""
    wait_for(page, lambda: (read(page), read(other)), lambda values: values[0] == values[1])


def steady(page, read):
    """What `read()` gives, once it gives the same twice in a row."""
    values = [read()]
    wait_for(page, lambda: values.append(read()), lambda _: values[-1] == values[-2])
    return values[-1]


def settle(page):
    """Wait until the page's script has run and its fonts are there."""
    # Looking at every frame, and at whether what is found can be seen, takes a tenth of a visit.
    is_settled = "finished => document.querySelector(finished) !== null && document.fonts.status === 'loaded'"
    page.wait_for_function(is_settled, arg=FINISHED, polling=BETWEEN_LOOKS / 2)


def saved_page(page, folder):
    """The file that *Save this page* gives, under the name that it has, and its data."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save this page").click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path, read_page(path.read_bytes(), path.name)[0]


def shifted(page, since_the_click=False):
    """What has moved by itself, as a share of the window; where a click is what began it, all that followed."""
    return page.evaluate(
        """(sinceTheClick) => new Promise((resolve) => {
            const [click] = performance.getEntriesByName("click").slice(-1);
            let sum = 0;
            new PerformanceObserver((list) => {
                for (const shift of list.getEntries()) {
                    if (sinceTheClick ? shift.startTime > click.startTime : !shift.hadRecentInput) sum += shift.value;
                }
            }).observe({ type: "layout-shift", buffered: true });
            addEventListener("click", () => performance.mark("click"), { capture: true, once: true });
            setTimeout(() => resolve(sum), 500);
        })""",
        since_the_click,
    )


def go_to(page, address):
    """Through the navigation, whose sections unfold, to the page at an address."""
    there = next(each for each in PAGES if each.address == address)
    page.get_by_test_id("stTopNavSection").filter(has_text=there.group).click()
    page.get_by_role("menuitem", name=there.title, exact=True).click()


def grid_of(page):
    return page.get_by_role("grid", name=re.compile("^(Heads|Roles of the heads) of "))


def cell(page, layer, head):
    return grid_of(page).get_by_role("gridcell", name=f"Layer {layer}, head {head}:")


def cells(page):
    """What every cell says to a screen reader."""
    expect(grid_of(page).get_by_role("gridcell").first).to_be_visible()
    return labels(grid_of(page).get_by_role("gridcell"))


def labels(elements):
    return elements.evaluate_all("all => all.map((each) => each.ariaLabel)")


def expect_cells_other_than(page, before):
    """Wait until some cell says something else than before."""
    wait_for(page, lambda: labels(grid_of(page).get_by_role("gridcell")), lambda now: now and now != before)


def expect_number_of_cells(page, n_cells):
    expect(grid_of(page).get_by_role("gridcell")).to_have_count(n_cells)


def chosen(page):
    """The names of the chosen heads, such as `L3 H7`, in the order they were chosen."""
    return page.locator("[role=status] .chip")


def bright(page):
    """Cells that a highlight leaves bright."""
    return grid_of(page).locator("[role=gridcell]:not(.aside)")


def arcs(page, *heads):
    """The arcs of the named heads, such as `L3 H7`; without a name whichever are drawn."""
    names = ", ".join(heads)
    return page.get_by_role("region", name=re.compile(f"^Attention of {names}{' in ' if heads else ''}"))


def tokens(page, side="From: queries"):
    return arcs(page).get_by_role("listbox", name=side).get_by_role("option")


def unfolded(view):
    """A picture of arcs whose settings are unfolded."""
    more = view.locator("details.more")
    if more.get_attribute("open") is None:
        more.locator("summary").click()
        expect(more).to_have_attribute("open", "")
    return view


def choose_sieve(page, role):
    """Highlight the tokens that a role expects."""
    unfolded(arcs(page)).get_by_label("Highlight the tokens that a role expects").select_option(role)


def picture(canvas):
    """What is drawn, as a string: the same for the same picture."""
    return canvas.evaluate("canvas => canvas.toDataURL()")


def links(page):
    """The canvas of the links."""
    return arcs(page).locator("canvas.base")


def drawn_links(page):
    """The picture of the links, once they are drawn."""
    expect_drawn(links(page))
    return steady(page, lambda: picture(links(page)))


def expect_links_other_than(page, before):
    wait_for(page, lambda: picture(links(page)), lambda now: now != before)


def expect_drawn(canvas):
    """Wait until a canvas is not blank."""
    colored = "canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
    wait_for(canvas.page, lambda: canvas.evaluate(f"canvas => canvas.width > 0 && {colored}"), bool)


def type_texts(page, typed, box="Your texts"):
    settle(page)  # a run that ends while somebody types writes its own text into the box
    field = page.get_by_role("textbox", name=box)
    field.fill(typed)
    field.press("Control+Enter")


def choose(page, label, option):
    """Pick from a selectbox."""
    settle(page)
    unfold(page, label)
    box = page.get_by_role("combobox", name=label, exact=True)
    wanted = page.get_by_role("option", name=option, exact=True)
    box.scroll_into_view_if_needed()
    box.click()

    def take():
        # An open list closes when what is still being drawn moves the page.
        if box.get_attribute("aria-expanded") == "false":
            box.press("ArrowDown")
        try:
            wanted.click(timeout=PATIENCE / 20)
        except TimeoutError:
            return False
        return True

    wait_for(page, take, bool)
    if label in DRAWER:
        fold_drawer(page)


def unfold(page, label):
    """Open what a widget is in: the sidebar or the drawer of test settings."""
    if label in SIDEBAR and (button := page.get_by_test_id("stExpandSidebarButton")).is_visible():
        button.click()
        expect(button).to_be_hidden()
    elif label in DRAWER and drawer(page).get_attribute("aria-expanded") == "false":
        drawer(page).click()
        expect(drawer(page)).to_have_attribute("aria-expanded", "true")


def number(page, label):
    """One of the training settings, in their drawer."""
    settings = page.get_by_role("button", name="Training settings")
    if settings.get_attribute("aria-expanded") == "false":
        settings.click()
    return page.get_by_role("spinbutton", name=label)


def set_number(page, label, value):
    """Give one of the training settings a value."""
    number(page, label).fill(str(value))
    number(page, label).press("Enter")


def fold_drawer(page):
    """Close the drawer of test settings, which may lie over what is clicked next."""
    if drawer(page).get_attribute("aria-expanded") == "true":
        page.keyboard.press("Escape")
        expect(drawer(page)).to_have_attribute("aria-expanded", "false")


def drawer(page):
    return page.get_by_role("button", name="Test settings")


def choose_by_keyboard(box):
    """Take the first option of a selectbox whose value is empty, without a pointer."""
    box.focus()

    def take():
        # As above: a list that closed opens again, and the key that takes an option needs one to be marked.
        if box.get_attribute("aria-activedescendant"):
            box.press("Enter")
        else:
            box.press("ArrowDown")
        return box.input_value()

    wait_for(box.page, take, bool)


def name_checkpoint(page, name):
    settle(page)
    unfold(page, "Checkpoint")
    box = page.get_by_role("combobox", name="Checkpoint", exact=True)
    box.click()
    box.fill(str(name))
    box.press("Enter")


def slider(page, name):
    """A slider, in sight."""
    unfold(page, name)
    return page.get_by_role("slider", name=name)


def upload(page, name, content):
    """Choose a file on the page Roles."""
    if isinstance(content, str):
        content = content.encode()
    choose(page, "Corpus", "upload a file")
    give_file(page, name, content)


def give_file(page, name, content):
    """Choose a file, and choose it again if nothing is shown of it.

    Streamlit loses an upload in whose first milliseconds a run begins: `ForwardMsgQueue.clear` drops the answer that
    the browser waits for.
    """
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    uploader = page.get_by_test_id("stFileUploader")
    before = uploader.inner_text()

    def is_shown():
        uploader.locator("input[type=file]").set_input_files(file)
        try:
            expect(uploader).not_to_have_text(before, timeout=PATIENCE / 20, use_inner_text=True)
        except AssertionError:
            return False
        return True

    wait_for(page, is_shown, bool)


def downloaded(page, button):
    """The file that a click brings, and a second click where none comes: see `give_file`."""
    try:
        with page.expect_download(timeout=PATIENCE / 6) as waiting:
            button.click()
    except TimeoutError:
        with page.expect_download() as waiting:
            button.click()
    return waiting.value


def error(page):
    return page.get_by_test_id("stAlertContentError")


def download(page, name):
    """The SVG of a figure."""
    settle(page)
    page.get_by_role("button", name=f"Download {name}", exact=True).click()
    page.get_by_role("radio", name="SVG", exact=True).wait_for()
    settle(page)  # the end of this run would be taken for that of the next
    page.get_by_role("radio", name="SVG", exact=True).click()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name=f"Save {name}", exact=True).click()
    page.keyboard.press("Escape")
    return waiting.value.path().read_bytes()


def reviews(n_texts=200):
    """Short reviews of two kinds."""
    rows = []
    for i in range(n_texts):
        word = (PRAISE if i % 2 else BLAME)[i % 3]
        rows.append(f"The {FILMS[i % 4]} of number {i} is {word}.,{'praise' if i % 2 else 'blame'}")
    return "\n".join(["sentence,label", *rows]).encode()


def expect_summary(page, head, texts):
    """What is said of a head in the first tab below the grid of *Inspect*: once the corpus has been tested."""
    said = page.get_by_role("paragraph").filter(has_text=re.compile(f"^Head {head}.*Over {texts}[:,]", re.DOTALL))
    expect(said).to_be_visible()
