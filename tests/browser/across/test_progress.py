"""Long work: how far it is, stopping it and going on."""

import re

from playwright.sync_api import expect
from steps import choose, upload, wait_for

from benchmarks.shared.sentences import sentences

N_TEXTS = 1_500
PROGRESS = re.compile(r"Scoring texts: ([\d,]+) of 1,500, about \d+ (?:s|min) left\.")


def n_done(page):
    """Once the bar counts and estimates."""
    bars = wait_for(page, page.get_by_text(PROGRESS).all_text_contents, bool)
    return int(PROGRESS.search(bars[0])[1].replace(",", ""))


def test_a_long_corpus_is_stopped_keeps_what_is_finished_and_goes_on(visit):
    page = visit("/roles")
    # With so many texts in a box, drawing the page keeps Chromium busy.
    upload(page, "texts.txt", "\n".join(sentences(N_TEXTS, seed=11)))
    stopped_at = n_done(page)
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. What is finished is kept;")).to_be_visible()
    expect(page.get_by_text(PROGRESS)).to_have_count(0)
    page.get_by_role("button", name="Continue").click()
    assert n_done(page) >= stopped_at
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. What is finished is kept;")).to_be_visible()
    choose(page, "Corpus", "sample texts")
    expect(page.get_by_text("Over 64 texts at tau 3:")).to_be_visible()
