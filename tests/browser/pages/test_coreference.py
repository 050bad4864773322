"""The section Coreference, as a person meets it: a head shown in a text, and a file of one's own."""

import json
import re

from playwright.sync_api import expect
from steps import give_file, settle, wait_for

from attention_sieve.dashboard.views.grammar.coreference import wording

SECTION = "/grammar?grammar+section=Coreference"
HOSTILE = "<img/src=x/onerror=alert(1)>"
OWN = [
    {"text": f"Ann{number} met {HOSTILE} . She left him .", "clusters": [[[0, 4], [40, 43]], [[9, 37], [49, 52]]]}
    for number in range(3)
]


def drawn(page):
    settle(page)
    expect(marked(page)).to_be_visible()
    expect(page.get_by_role("grid", name=re.compile("mentions: "))).to_be_visible()


def marked(page):
    return page.locator(".st-key-marked-text")


def test_a_head_of_the_map_is_shown_in_the_text_and_the_best_is_a_click_away(visit):
    page = visit(SECTION)
    drawn(page)
    grid = page.get_by_role("grid", name=re.compile("mentions: "))
    grid.get_by_role("gridcell", name="Layer 0, head 2:").click()
    expect(page.get_by_text(re.compile(r"^L0 H2 is right in \d of \d cases of this text\."))).to_be_visible()
    wait_for(
        page,
        lambda: marked(page).text_content().count("✓"),
        lambda n_right: page.get_by_text(f"L0 H2 is right in {n_right} of ").is_visible(),
    )
    page.get_by_role("button", name=re.compile(f"^.*{wording.TO_BEST}")).click()
    expect(page.get_by_text("L2 H4 is right in")).to_be_visible()


def test_the_text_of_a_file_of_ones_own_stays_text(visit):
    page = visit(f"{SECTION}&mentions+from={wording.UPLOAD.replace(' ', '+')}")
    expect(page.get_by_text(wording.WAIT)).to_be_visible()
    give_file(page, "own.json", json.dumps(OWN).encode())
    drawn(page)
    expect(marked(page)).to_contain_text("img/src=x/onerror=alert(1)> . She³ → ")
    expect(page.locator("img[src=x]")).to_have_count(0)
