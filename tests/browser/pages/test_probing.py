"""The section Probes in a browser: train, watch, stop, and come back by the link."""

import re

from playwright.sync_api import expect
from steps import choose, settle

PAGE = "/parsing?parsing+section=Probes&probe+control=false"
FOUND = re.compile(r"predicts the head of \d+\.\d% of words correctly, compared with \d+\.\d% by right-branching")


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def test_training_gives_scores_weights_and_a_curve_and_a_click_on_a_head_keeps_them(visit):
    page = visit(f"{PAGE}&probe+epochs=2&probe+seed=5")
    button(page, "Train").click()
    expect(page.get_by_text(FOUND)).to_be_visible()
    expect(page.get_by_text("Share of correct syntactic heads", exact=True).last).to_be_visible()
    expect(page.get_by_text("Learning curve", exact=True)).to_be_visible()
    expect(button(page, "Stop")).to_have_count(0)
    expect(button(page, "Train")).to_have_count(0)
    settle(page)
    said = page.get_by_text(FOUND).inner_text()
    choose(page, "Probe shown below", "attention alone")
    for letter in "wu":
        expect(page.get_by_role("grid", name=re.compile(f"^{letter}: .*, heads of bundled"))).to_be_visible()
    page.get_by_role("grid", name=re.compile("^u: ")).get_by_role("gridcell", name="Layer 2, head 4:").click()
    expect(page).to_have_url(re.compile("head=2-4"))
    expect(page.get_by_text(FOUND)).to_have_text(said)
    page.reload()
    expect(page.get_by_text(FOUND)).to_have_text(said)


def test_a_stopped_training_shows_what_it_has_learned(visit):
    page = visit(f"{PAGE}&probe+epochs=5000&probe+patience=5000&probe+seed=6")
    button(page, "Train").click()
    expect(page.get_by_text(re.compile(r"epoch \d\d+ of at most 5000"))).to_be_visible()
    button(page, "Stop").click()
    expect(page.get_by_text("Stopped. Results so far are shown below.")).to_be_visible()
    expect(page.get_by_text(FOUND)).to_be_visible()
    expect(button(page, "Train from the beginning")).to_be_visible()
