"""Every button of every page is pressed and every section opened: no error page, no empty panel, and each file opens.

The lessons have a walk of their own, in tests/browser/pages/test_lessons.py.
"""

import io
import re
import shutil
import zipfile
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from playwright.sync_api import expect
from small_checkpoints import save_with_head
from steps import go_to, read_page, reviews, settle, tokens, wait_for

from attention_sieve.__main__ import main
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.views.word_links import wording as words_wording

TEXTS = "The+old+cat+sat.%0AA+small+dog+ran+home.%0AShe+ate+the+red+apple.%0AWho+is+it+%7C%7C%7C+It+is+me."
CORPUS = f"corpus=type+texts&corpus_text={TEXTS}"
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}"
MOST_PRESSES = 90
"""On one page."""
NEXT = """
(pressed) => {
  const buttons = [".stButton button", "[data-testid=stFormSubmitButton] button", "details > summary",
    "[data-testid=stPopoverButton]", "[data-testid=stButtonGroup] button", "label input[type=checkbox]"];
  const inside = (place, parts) => parts.map((part) => `[data-testid=${place}] ${part}`).join(",");
  // What is open is pressed before it is left: a popover, then an open tab, then the next tab.
  const places = [inside("stPopoverBody", buttons), inside("stMain", buttons), inside("stMain", ["[role=tab]"])];
  // Lessons and the drawers of all pages have tests of their own; of the files, the archive holds each.
  const elsewhere = /lesson|present|test-settings|device-settings|st-key-download|st-key-in-words|notes/;
  for (const each of places.flatMap((place) => [...document.querySelectorAll(place)])) {
    if (!(each.closest("label") ?? each).checkVisibility({ visibilityProperty: true }) || each.disabled) continue;
    if (each.ariaSelected === "true" || each.ariaChecked === "true" || each.ariaExpanded === "true") continue;
    if (each.ariaLabel?.startsWith("Help for") || /French/.test(each.innerText)) continue; // takes another parser
    const keys = [];
    for (let at = each; at; at = at.parentElement) {
      keys.push(...[...at.classList].filter((name) => name.startsWith("st-key-")));
    }
    if (keys.some((key) => elsewhere.test(key))) continue;
    // Of options side by side one other than the chosen one; what a button with a key says may change with each press.
    const hasKey = keys.length && each.closest(".stButton, [data-testid=stButtonGroup]");
    const words = [...(each.closest("label") ?? each).querySelectorAll("p")].map((part) => part.innerText).join(" ");
    const name = `${keys[0] ?? ""} ${hasKey ? "" : words || each.ariaLabel}`.replace(/\\d{4,}/g, "").trim();
    if (pressed.includes(name)) continue;
    each.click();
    return name;
  }
  return null;
}
"""
EMPTY = """
() => [...document.querySelectorAll("[role=tabpanel], details[open], [data-testid=stPopoverBody]")]
  .filter((each) => each.checkVisibility() && !each.querySelector("canvas, svg.marks, input, textarea, button"))
  .filter((each) => [...each.querySelectorAll("p, td, li, pre")].every((part) => !part.textContent.trim()))
  .map((each) => each.outerHTML.slice(0, 300))
"""


def expect_sound(page, after):
    """No error page, and no panel that stays empty."""
    settle(page)
    expect(page.get_by_test_id("stException"), f"after {after}").to_have_count(0)
    wait_for(page, lambda: page.evaluate(EMPTY), lambda empty: not empty)


def press_every_button(page):
    """Press what has not been pressed yet, as long as there is some; returns what was pressed, in order."""
    pressed = []
    while name := page.evaluate(NEXT, pressed):
        pressed.append(name)
        assert len(pressed) < MOST_PRESSES, pressed
        page.wait_for_timeout(50)  # in which Streamlit notes that the click asks for a run
        expect_sound(page, name)
    return pressed


def ask_about_a_word(page):
    """Press the button below the arcs, which stands there while a token is pinned."""
    tokens(page).nth(1).click()
    page.get_by_role("button", name=words_wording.ASK_FROM).click()
    expect(page.get_by_role("grid", name=re.compile("^Word links in "))).to_be_visible()
    expect_sound(page, words_wording.ASK_FROM)


def opens(name, content):
    """Read a file as what it is called."""
    if name.endswith(".svg"):
        ET.fromstring(content)
    elif name.endswith(".csv"):
        pd.read_csv(io.BytesIO(content))
    elif name.endswith(".parquet"):
        pd.read_parquet(io.BytesIO(content))
    elif name.endswith((".png", ".pdf")):
        assert content.startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[name[-3:]]), name
    assert content, name


def expect_every_file_to_open(page):
    """All files of the page, as one archive and as one saved page."""
    everything = page.get_by_test_id("stMain").get_by_role("button", name=wording.DOWNLOAD_ALL)
    if everything.count():
        everything.click()
        settle(page)
        with page.expect_download() as waiting:
            page.locator(".st-key-download-archive button").click()
        with zipfile.ZipFile(waiting.value.path()) as packed:
            for name in packed.namelist():
                opens(name, packed.read(name))
        page.keyboard.press("Escape")
        settle(page)  # the address of a file is another one after each run of the page
    save = page.get_by_role("button", name=wording.SAVE_PAGE)
    if save.count():
        with page.expect_download() as waiting:
            save.click()
        read_page(waiting.value.path().read_bytes(), "page.html")


@pytest.fixture(scope="module")
def tuned(store_folder, tmp_path_factory):
    """Name of a checkpoint that was fine-tuned from the bundled one, on the dashboard."""
    folder, data = store_folder / "checkpoints" / "tuned", tmp_path_factory.mktemp("data") / "films.csv"
    folder.parent.mkdir(exist_ok=True)
    data.write_bytes(reviews(16))
    columns = ["--text-columns=sentence", "--label-column=label"]
    options = ["--epochs=1", "--batch-size=8", "--learning-rate=4e-4"]
    assert main(["finetune", "--checkpoint=bundled", f"--data={data}", f"--output={folder}", *columns, *options]) == 0
    yield folder.name
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def chatting(tmp_path_factory):
    """Folder of a small random GPT-2 with a chat template, which takes all texts of the pages."""
    folder = save_with_head("gpt2", tmp_path_factory.mktemp("chat") / "chatting", "CausalLM", seed=0, n_positions=200)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


def walk(page, addresses):
    """Through pages by their links, so that each meets what was chosen on those before; or by an address of its own."""
    for address in addresses:
        if "?" in address:
            page.goto(urljoin(page.url, f"/{address}"))
        elif address:
            go_to(page, address)
            page.wait_for_url(re.compile(f"/{address}"))
        expect_sound(page, address)
        assert press_every_button(page)
        if not address:
            ask_about_a_word(page)
        expect_every_file_to_open(page)


def test_every_button_with_the_bundled_checkpoint_the_fine_tuned_pair_and_a_pair_of_segments(visit, tuned):
    claims, compare = f"claims?{CORPUS}&claim=L1+H8,+L2+H8+are+amod+heads", f"compare?{CORPUS}&with={tuned}"
    page = visit(f"/?{CORPUS}&text=Who+is+it+|||+It+is+me.")
    walk(page, ["", "roles", "surface", "grammar", "similarity", claims, compare])


@pytest.mark.usefixtures("nothing_made")
def test_every_button_of_long_work(visit, guessing):
    """Where heads are switched off one by one and models are trained, with a checkpoint that takes no time for it."""
    walk(visit(f"/importance?checkpoint={guessing}&{CORPUS}"), ["importance", "knowledge", "laboratory", "fine-tune"])


def test_every_button_with_a_decoder(visit, chatting, small_checkpoint):
    decoder = f"checkpoint={chatting}&{CORPUS}&text=the+cat+sat+on+the+mat&tokens+to+write=3"
    walk(visit(f"/?{decoder}"), ["", "roles", f"compare?{decoder}&with={small_checkpoint}"])
