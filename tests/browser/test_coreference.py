"""The section Coreference, as a person meets it: the example, a file of one's own, the map and a marked text."""

import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from looks import SIZES, violations, wrongs
from playwright.sync_api import expect
from steps import LONG, choose, download, error, give_file, settle

from core.analysis import prepare
from core.checkpoints import BUNDLED, find_checkpoint, load_checkpoint
from core.coreference import coreference_scores
from core.coreference_files import read_mentions
from core.coreference_observer import mention_choices
from core.mentions import windows
from core.passes import PassSettings
from dashboard import coreference_wording as wording
from dashboard.samples import MENTIONS

SECTION = "/parsing?parsing+section=Coreference"
HOSTILE = "<img/src=x/onerror=alert(1)>"
OWN = [
    {"text": f"Ann{number} met {HOSTILE} . She left him .", "clusters": [[[0, 4], [40, 43]], [[9, 37], [49, 52]]]}
    for number in range(3)
]


def opened(visit, path=SECTION, colours="light", size="wide"):
    width, height = SIZES[size]
    page = visit(path, colours, width=width, height=height)
    drawn(page)
    return page


def drawn(page):
    settle(page)
    expect(marked(page)).to_be_visible(timeout=LONG)
    expect(page.get_by_role("grid", name=re.compile("mentions: "))).to_be_visible(timeout=LONG)
    page.wait_for_function("document.fonts.status === 'loaded'")


def marked(page):
    return page.locator(".st-key-marked-text")


def cell(page, layer, head):
    grid = page.get_by_role("grid", name=re.compile("mentions: "))
    return grid.get_by_role("gridcell", name=f"Layer {layer}, head {head}:")


def named(number, text):
    """How a text of the example stands in the list of texts."""
    whole = f"{text['name']} – {text['text']}"
    return f"{number}: {whole[:59]}…"


EXAMPLE = [json.loads(line) for line in MENTIONS.read_text("utf-8").splitlines()]


def of_example():
    checkpoint, settings = load_checkpoint(find_checkpoint(BUNDLED)), PassSettings()
    texts = windows(checkpoint, read_mentions(MENTIONS.read_bytes())).texts
    prepared = [prepare(checkpoint, text.text, settings) for text in texts]
    found = dict(pair for batch in mention_choices(checkpoint, texts, prepared, settings) for pair in batch)
    return coreference_scores(texts, [found[place] for place in range(len(texts))])


def test_the_numbers_are_those_that_core_computes(visit):
    page, expected = opened(visit), of_example()
    table = pd.read_csv(io.BytesIO(download(page, "CSV of antecedents"))).set_index("who")
    layer, head = expected.best
    for group, place in (("all", 0), ("pronoun", 1), ("nominal", 3)):
        numbers = table.loc[["nearest mention", "same head word", f"L{layer} H{head}, best on all texts"], group]
        wanted = [*expected.baselines[:, place], expected.accuracy[place, layer, head]]
        np.testing.assert_allclose(numbers, wanted, rtol=1e-9)
    assert set(table["mentions of"]) == {"Example texts"}
    assert set(table["from word"]) == {"mean"}
    points = 100 * (expected.accuracy[0, 1, 5] - expected.baselines[1, 0])
    expect(cell(page, 1, 5)).to_contain_text(f"{points:+.0f}".replace("-", "\N{MINUS SIGN}"))
    page.get_by_role("radio", name="pronoun").click()
    points = 100 * (expected.accuracy[1, 1, 5] - expected.baselines[1, 1])
    expect(cell(page, 1, 5)).to_contain_text(f"{points:+.0f}".replace("-", "\N{MINUS SIGN}"))


def test_a_head_of_the_map_is_shown_in_the_text(visit):
    page = opened(visit)
    choose(page, "Text", named(2, EXAMPLE[1]))
    expect(marked(page)).to_contain_text("An old lighthouse")
    cell(page, 0, 2).click()
    expect(page.get_by_text(re.compile(r"^L0 H2 is right in \d of \d cases of this text\."))).to_be_visible()
    n_right = marked(page).text_content().count("✓")
    expect(page.get_by_text(f"L0 H2 is right in {n_right} of ")).to_be_visible()
    choices = pd.read_csv(io.BytesIO(download(page, "CSV of choices")))
    of_text = choices[choices["text"] == "the lighthouse"]
    assert of_text["right"].astype(str).str.lower().eq("true").sum() == n_right
    page.get_by_role("button", name=re.compile(f"^.*{wording.TO_BEST}")).click()
    expect(page.get_by_text("L2 H4 is right in")).to_be_visible()


def test_a_file_of_ones_own_is_read_and_its_text_stays_text(visit):
    page = opened(visit)
    page.get_by_role("radio", name=wording.UPLOAD).click()
    expect(page.get_by_text(wording.WAIT)).to_be_visible()
    assert download(page, wording.TEMPLATE) == MENTIONS.read_bytes()
    give_file(page, "bad.json", b'{"text": "Ann"')
    expect(error(page)).to_contain_text("line 1, character")
    give_file(page, "own.json", json.dumps(OWN).encode())
    expect(page.get_by_text(re.compile(r"own\.json: 3 texts with 1\d mentions, of which 6 refer back"))).to_be_visible(
        timeout=LONG
    )
    drawn(page)
    expect(marked(page)).to_contain_text("img/src=x/onerror=alert(1)> . She³ → ")
    expect(page.locator("img[src=x]")).to_have_count(0)


def test_a_link_restores_the_screen(visit):
    page = opened(visit)
    page.get_by_role("radio", name=wording.AMONG_WORDS).click()
    expect(page).to_have_url(re.compile("[?&]candidates=all"))
    page.get_by_role("radio", name="nearest mention").click()
    expect(page).to_have_url(re.compile("[?&]minus=nearest"))
    choose(page, "Text", named(3, EXAMPLE[2]))
    cell(page, 2, 0).click()
    expect(page.get_by_text("L2 H0 is right in")).to_be_visible()
    page.wait_for_url(re.compile("[?&]coreference.text=3(&|$)"))
    there = opened(visit, page.url)
    expect(there.get_by_text("L2 H0 is right in")).to_be_visible(timeout=LONG)
    expect(there.get_by_role("grid", name=re.compile("right − nearest mention"))).to_be_visible()
    assert marked(there).text_content() == marked(page).text_content()


@pytest.mark.parametrize(
    ("size", "colours"),
    [("wide", "light"), ("wide", "dark"), ("tablet", "light"), ("narrow", "light"), ("narrow", "dark")],
)
def test_the_section_is_accessible_and_fits(visit, size, colours):
    page = opened(visit, colours=colours, size=size)
    for part in (wording.AS_TABLE, "How it is computed", "What the paper found"):
        page.get_by_text(part, exact=True).click()
    expect(page.get_by_text("table 2").last).to_be_visible()
    settle(page)
    assert violations(page) == []
    assert wrongs(page) == []
