"""The section Probes in a browser: train, stop, and go on reading."""

import re

from playwright.sync_api import expect
from steps import choose, settle

FOUND = re.compile(r"predicts the head of \d+\.\d% of words correctly, compared with \d+\.\d% by right-branching")


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def test_a_stopped_training_shows_what_it_has_learned_and_a_click_on_a_head_keeps_it(visit):
    page = visit("/grammar?grammar+section=Probes&probe+control=false&probe+epochs=5000&probe+patience=5000")
    button(page, "Train").click()
    expect(page.get_by_text(re.compile(r"epoch \d\d+ of at most 5000"))).to_be_visible()
    page.reload()
    expect(page.get_by_text(re.compile(r"epoch \d\d+ of at most 5000"))).to_be_visible()
    button(page, "Stop").click()
    expect(page.get_by_text("Stopped. Results so far are shown below.")).to_be_visible()
    expect(button(page, "Continue")).to_be_visible()
    settle(page)
    found = page.get_by_text(FOUND).inner_text()
    choose(page, "Probe shown below", "attention alone")
    page.get_by_role("grid", name=re.compile("^u: ")).get_by_role("gridcell", name="Layer 2, head 4:").click()
    expect(page).to_have_url(re.compile("head=2-4"))
    expect(page.get_by_text(FOUND)).to_have_text(found)
