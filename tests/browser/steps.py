"""What a person does on the dashboard, and what they then see."""

import re

from playwright.sync_api import expect

FINISHED = "[data-testid=stApp][data-test-script-state=notRunning]"
LONG = 60_000
"""Milliseconds that anything may take on a busy machine."""
expect.set_options(timeout=LONG // 3)


def settle(page):
    """Wait until the page's script has run."""
    page.wait_for_selector(FINISHED, timeout=LONG)


def grid_of(page):
    return page.get_by_role("grid", name=re.compile("^(Heads|Roles of the heads) of "))


def cell(page, layer, head):
    return grid_of(page).get_by_role("gridcell", name=f"Layer {layer}, head {head}:")


def cells(page):
    """What every cell says to a screen reader."""
    expect(grid_of(page)).to_be_visible()
    return grid_of(page).get_by_role("gridcell").evaluate_all("all => all.map((each) => each.ariaLabel)")


def expect_cells_other_than(page, before):
    """Wait until some cell says something else than before."""
    page.wait_for_function(
        """before => {
            const deep = (root) => [...root.querySelectorAll("*")].flatMap(
                (each) => each.shadowRoot ? [...each.shadowRoot.querySelectorAll("[role=gridcell]")] : []);
            const now = deep(document).map((each) => each.ariaLabel);
            return now.length > 0 && now.join() !== before;
        }""",
        arg=",".join(before),
        timeout=LONG,
    )


def chosen(page):
    """The chosen heads, such as `L3 H7`, in the order they were chosen."""
    chips = page.locator("[role=status] .chip")
    expect(chips.first).to_be_visible()
    return chips.all_text_contents()


def bright(page):
    """Cells that a highlight leaves bright."""
    return grid_of(page).locator("[role=gridcell]:not(.aside)")


def arcs(page, *heads):
    """The arcs of the named heads, such as `L3 H7`; without a name whichever are drawn."""
    names = ", ".join(heads)
    return page.get_by_role("region", name=re.compile(f"^Attention of {names}{' in ' if heads else ''}"))


def tokens(page, side="From: queries"):
    return arcs(page).get_by_role("listbox", name=side).get_by_role("option").all_text_contents()


def links_drawn(page):
    """The picture of the links; the same string for the same picture."""
    return arcs(page).locator("canvas.base").evaluate("canvas => canvas.toDataURL()")


def is_blank(canvas):
    return canvas.evaluate(
        "canvas => !canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
    )


def type_texts(page, typed, box="Your texts"):
    field = page.get_by_role("textbox", name=box)
    field.fill(typed)
    field.press("Control+Enter")


def choose(page, label, option):
    """Pick from a selectbox."""
    box = page.get_by_role("combobox", name=label, exact=True)
    wanted = page.get_by_role("option", name=option, exact=True)
    box.scroll_into_view_if_needed()
    box.click()
    try:
        expect(wanted).to_be_visible(timeout=LONG // 20)
    except AssertionError:
        box.press("ArrowDown")  # an open list closes when what is still being drawn moves the page
    wanted.click()


def name_checkpoint(page, name):
    box = page.get_by_role("combobox", name="Checkpoint", exact=True)
    box.click()
    box.fill(str(name))
    box.press("Enter")


def slider(page, name):
    return page.get_by_role("slider", name=name)


def upload(page, name, content):
    """Choose a file on the page Roles."""
    if isinstance(content, str):
        content = content.encode()
    choose(page, "Texts for the test", "upload a file")
    give_file(page, name, content)


def give_file(page, name, content):
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(file)


def error(page):
    return page.get_by_test_id("stAlertContentError")


def download(page, button):
    """The bytes behind a download button."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button, exact=True).click()
    return waiting.value.path().read_bytes()
