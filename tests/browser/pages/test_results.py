"""Pages on a results folder, as a person meets them."""

import json
import re

import pytest
from looks import expect_looks_right
from playwright.sync_api import expect
from steps import settle

from attention_sieve.__main__ import main
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER
from attention_sieve.dashboard.views.results import wording as words
from benchmarks.shared.sentences import sentences

N_TEXTS = 24
FOLDER = "sentences-scored"


@pytest.fixture(scope="module")
def results(store_folder, tmp_path_factory):
    """A corpus that was run on this machine, so that the dashboard knows of it."""
    base = tmp_path_factory.mktemp("corpus")
    rows = [{"text": text, "language": "en" if row % 2 else "de"} for row, text in enumerate(sentences(N_TEXTS))]
    (base / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    folder = base / FOLDER
    told = ["--checkpoint", "bundled", "--texts", str(base / "texts.jsonl"), "--output", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_SIEVE_CACHE", str(store_folder))
        assert main(["corpus", "run", *told, "--workers", "1", "--questions", "roles,surface"]) == 0
    return folder


def test_a_reader_opens_the_latest_results_from_the_sidebar_and_the_link_names_them(results, visit):
    page = visit("/roles")
    settle(page)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("combobox", name="Corpus", exact=True).click()
    page.get_by_role("option", name=A_RESULTS_FOLDER, exact=True).click()
    settle(page)
    expect(page.get_by_text(words.FROM_STATISTICS)).to_be_visible()
    expect(page.get_by_text(f"{N_TEXTS} texts of")).to_be_visible()
    expect(page.locator("[role=grid]").first).to_be_visible()
    expect(page).to_have_url(re.compile(f"[?&]results={FOLDER}(&|$)"))
    again = visit(f"{page.url}&results+details=Side+by+side")
    expect(again.get_by_text(f"{N_TEXTS} texts of")).to_be_visible()
    expect(again).to_have_url(re.compile(f"[?&]results={FOLDER}(&|$)"))
    expect(again.locator("svg.marks").first).to_be_visible()
    expect_looks_right(again)


def test_inspect_on_results_without_texts_looks_right(results, visit):
    page = visit(f"/?corpus={A_RESULTS_FOLDER.replace(' ', '+')}&results={FOLDER}")
    expect(page.locator(".st-key-results-without-texts")).to_be_visible()
    expect_looks_right(page)
