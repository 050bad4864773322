"""Heads in a cell of a notebook, drawn in Chromium with the network off, through the interface of anywidget."""

import json
import re

import pytest
from hostile import HOSTILE
from looks import CONTRAST, violations
from playwright.sync_api import expect
from steps import wait_until_equal

import attention_sieve as sieve

TEXTS = ["The black cat quickly chased two birds.", ("She ran.", f"The dog sat. {HOSTILE[0]}")]
NOTEBOOK = """
async ([esm, state]) => {
  const listeners = {};
  window.model = {
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      (listeners[`change:${name}`] ?? []).forEach((listener) => listener());
    },
    save_changes: () => (window.sent = JSON.stringify([state.heads, state.text])),
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    off: (event, listener) => (listeners[event] = listeners[event].filter((each) => each !== listener)),
  };
  const module = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  const element = document.createElement("div");
  window.leave = await module.default.render({ model, el: element }); // notebooks render before they attach
  document.querySelector("main").append(element);
}
"""


@pytest.fixture
def notebook(browser, guessing):
    """A page with a widget in it; at the end nothing may have been asked for, or have gone wrong."""
    shown, wrong = sieve.show(guessing, TEXTS, tau=1.5), []
    state = {name: shown.trait_values()[name] for name in ("heads", "text", "_data", "_still")}
    page = browser.new_page(viewport={"width": 1100, "height": 900}, offline=True)
    still = f'<div data-still="{shown._still}">{shown.still()}</div>'
    page.set_content(f"<html lang=en><title>Notebook</title><main style='margin: 20px'></main>{still}</html>")
    expect(page.locator("[data-still] img")).to_have_count(2)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("request", lambda request: request.url.startswith("blob:") or wrong.append(request.url))
    page.evaluate(NOTEBOOK, [shown._esm, json.loads(json.dumps(state))])
    yield page
    page.close()
    assert wrong == []


def test_heads_and_words_are_chosen_in_a_cell_by_pointer_and_by_keys_and_python_is_told(notebook):
    page, chips = notebook, notebook.locator(".foot .chip")
    cell = page.get_by_role("gridcell", name=re.compile("^Layer 1, head 2"))
    cell.click()
    expect(chips).to_have_text(["L1 H2"])
    expect(page.locator(".heads .chip")).to_have_text(["L1 H2"])
    assert page.evaluate("sent") == "[[[1,2]],0]"
    page.get_by_role("option", name="from: cat, ").click()
    expect(page.locator(".summary")).to_contain_text("attends to")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Unpin")).to_be_hidden()
    cell.press("ArrowLeft")
    page.keyboard.press("Shift+Enter")
    expect(chips).to_have_text(["L1 H2", "L1 H1"])
    assert page.evaluate("sent") == "[[[1,2],[1,1]],0]"
    page.evaluate("model.set('heads', [[0, 0]])")  # as Python does
    expect(chips).to_have_text(["L0 H0"])
    page.get_by_role("combobox", name="Text").select_option(index=1)
    expect(page.get_by_role("option", name="from: dog, ")).to_be_visible()
    assert page.evaluate("sent") == "[[[0,0]],1]"
    expect(page.locator("select option").nth(1)).to_have_text(f"She ran. ||| The dog sat. {HOSTILE[0]}")
    page.get_by_role("checkbox", name="Patterns").check()
    expect(page.locator("canvas.drawn")).to_be_attached()
    expect(page.locator("main img")).to_have_count(0)
    wait_until_equal(page, lambda: violations(page), [])
    page.evaluate("Object.assign(document.body.style, { background: 'oklch(0.2 0 0)', color: 'oklch(0.95 0 0)' })")
    expect(page.locator(".cell.dark")).to_be_visible()
    wait_until_equal(page, lambda: violations(page, None, CONTRAST), [])
    expect(page.locator("[data-still]")).to_be_hidden()
    page.evaluate("leave()")
    expect(page.get_by_role("gridcell")).to_have_count(0)
    expect(page.locator("[data-still]")).to_be_visible()
