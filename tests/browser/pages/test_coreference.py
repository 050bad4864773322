"""The section Coreference, as a person meets it: the example, a file of one's own, the map and a marked text."""

import hashlib
import io
import json
import re

import numpy as np
import pandas as pd
from looks import expect_looks_right, lighten, resize
from playwright.sync_api import expect
from steps import choose, download, error, give_file, settle, wait_for, wait_until_alike

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.coreference.accuracy import coreference_scores
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import WINDOW, windows
from attention_sieve.core.coreference.observer import mention_choices
from attention_sieve.core.passes.prepare import prepare
from attention_sieve.dashboard.samples import MENTIONS as MENTION_SAMPLE
from attention_sieve.dashboard.views.parsers.coreference import wording

SECTION = "/parsing?parsing+section=Coreference"
HOSTILE = "<img/src=x/onerror=alert(1)>"
OWN = [
    {"text": f"Ann{number} met {HOSTILE} . She left him .", "clusters": [[[0, 4], [40, 43]], [[9, 37], [49, 52]]]}
    for number in range(3)
]


def opened(visit, path=SECTION):
    page = visit(path)
    drawn(page)
    return page


def drawn(page):
    settle(page)
    expect(marked(page)).to_be_visible()
    expect(page.get_by_role("grid", name=re.compile("mentions: "))).to_be_visible()


def marked(page):
    return page.locator(".st-key-marked-text")


def cell(page, layer, head):
    grid = page.get_by_role("grid", name=re.compile("mentions: "))
    return grid.get_by_role("gridcell", name=f"Layer {layer}, head {head}:")


def named(number, text):
    """How a text of the example stands in the list of texts."""
    whole = f"{text['name']} – {text['text']}"
    return f"{number}: {whole[:59]}…"


EXAMPLE = [json.loads(line) for line in MENTION_SAMPLE.read_text("utf-8").splitlines()]


def of_example():
    checkpoint, settings = load_checkpoint(find_checkpoint(BUNDLED)), PassSettings()
    texts = windows(checkpoint, read_mentions(MENTION_SAMPLE.read_bytes())).texts
    prepared = [prepare(checkpoint, text.text, settings) for text in texts]
    found = dict(pair for batch in mention_choices(checkpoint, texts, prepared, settings) for pair in batch)
    return coreference_scores(texts, [found[place] for place in range(len(texts))]).judgement


def test_it_looks_right_with_the_numbers_that_core_computes_heads_shown_in_texts_links_and_files_of_ones_own(visit):
    page = opened(visit)
    expect_the_section_to_look_right(page)
    expect_the_numbers_that_core_computes_and_a_head_of_the_map_shown_in_the_text(page)
    expect_a_link_to_restore_the_screen(visit, page)
    expect_a_file_of_ones_own_to_be_read_and_its_text_to_stay_text(page)


def expect_the_numbers_that_core_computes_and_a_head_of_the_map_shown_in_the_text(page):
    expected = of_example()
    table = pd.read_csv(io.BytesIO(download(page, "CSV of antecedents"))).set_index("who")
    layer, head = expected.best
    for group, place in (("all", 0), ("pronoun", 1), ("nominal", 3)):
        numbers = table.loc[["nearest mention", "same head word", f"L{layer} H{head}, best on all texts"], group]
        wanted = [*expected.baselines[:, place], expected.accuracy[place, layer, head]]
        np.testing.assert_allclose(numbers, wanted, rtol=1e-9)
    assert set(table["mentions of"]) == {"Example texts"}
    assert set(table["from word"]) == {"mean"}
    assert set(table["window"]) == {WINDOW}
    assert set(table["candidates"]) == {"mentions"}
    assert set(table["texts sha256"]) == {hashlib.sha256(MENTION_SAMPLE.read_bytes()).hexdigest()}
    points = 100 * (expected.accuracy[0, 1, 5] - expected.baselines[1, 0])
    expect(cell(page, 1, 5)).to_contain_text(f"{points:+.0f}".replace("-", "\N{MINUS SIGN}"))
    page.get_by_role("radio", name="pronoun").click()
    points = 100 * (expected.accuracy[1, 1, 5] - expected.baselines[1, 1])
    expect(cell(page, 1, 5)).to_contain_text(f"{points:+.0f}".replace("-", "\N{MINUS SIGN}"))
    page.get_by_role("radio", name="all", exact=True).click()
    choose(page, "Text", named(2, EXAMPLE[1]))
    expect(marked(page)).to_contain_text("An old lighthouse")
    cell(page, 0, 2).click()
    expect(page.get_by_text(re.compile(r"^L0 H2 is right in \d of \d cases of this text\."))).to_be_visible()
    n_right = wait_for(
        page,
        lambda: marked(page).text_content().count("✓"),
        lambda n_right: page.get_by_text(f"L0 H2 is right in {n_right} of ").is_visible(),
    )
    choices = pd.read_csv(io.BytesIO(download(page, "CSV of choices")))
    of_text = choices[choices["text"] == "the lighthouse"]
    assert of_text["right"].astype(str).str.lower().eq("true").sum() == n_right
    page.get_by_role("button", name=re.compile(f"^.*{wording.TO_BEST}")).click()
    expect(page.get_by_text("L2 H4 is right in")).to_be_visible()


def expect_a_file_of_ones_own_to_be_read_and_its_text_to_stay_text(page):
    page.get_by_role("radio", name=wording.UPLOAD).click()
    expect(page.get_by_text(wording.WAIT)).to_be_visible()
    assert download(page, wording.TEMPLATE) == MENTION_SAMPLE.read_bytes()
    give_file(page, "bad.json", b'{"text": "Ann"')
    expect(error(page)).to_contain_text("line 1, character")
    give_file(page, "own.json", json.dumps(OWN).encode())
    expect(
        page.get_by_text(re.compile(r"own\.json: 3 texts with 1\d mentions, of which 6 have an antecedent"))
    ).to_be_visible()
    drawn(page)
    expect(marked(page)).to_contain_text("img/src=x/onerror=alert(1)> . She³ → ")
    expect(page.locator("img[src=x]")).to_have_count(0)


def expect_a_link_to_restore_the_screen(visit, page):
    page.get_by_role("radio", name=wording.AMONG_WORDS).click()
    expect(page).to_have_url(re.compile("[?&]candidates=all"))
    page.get_by_role("radio", name="nearest mention").click()
    expect(page).to_have_url(re.compile("[?&]minus=nearest"))
    choose(page, "Text", named(3, EXAMPLE[2]))
    cell(page, 2, 0).click()
    expect(page.get_by_text("L2 H0 is right in")).to_be_visible()
    page.wait_for_url(re.compile("[?&]coreference.text=3(&|$)"))
    there = opened(visit, page.url)
    expect(there.get_by_text("L2 H0 is right in")).to_be_visible()
    expect(there.get_by_role("grid", name=re.compile("right − nearest mention"))).to_be_visible()
    wait_until_alike(page, there, lambda page: marked(page).text_content())


def expect_the_section_to_look_right(page):
    """With all that unfolds."""
    for part in (wording.AS_TABLE, "How it is computed", "What the paper found"):
        page.get_by_text(part, exact=True).click()
    expect(page.get_by_text("table 2").last).to_be_visible()
    settle(page)
    expect_looks_right(page)
    lighten(page)
    resize(page, "wide")
