"""Knowledge in Chromium: a reader's file is probed, stopped and gone on with, and every tab fits and is named."""

import re

import numpy as np
from hostile import HOSTILE, expect_nothing_rendered
from looks import expect_tabs_to_look_right, open_expanders
from playwright.sync_api import expect
from steps import give_file, settle

from attention_sieve.dashboard.views.knowledge import wording

DRAWN = "svg.marks, [role=grid], .stButton button, [data-testid=stAlert], [data-testid=stDataFrame]"
TABS = (
    wording.EACH,
    wording.LAYERS,
    wording.SIDE_BY_SIDE,
    wording.TOGETHER,
    wording.CHECKPOINTS,
    wording.ROLES,
    wording.USED,
)
NOUNS = ("cat", "dog", "bird", "mat", "house", "birds")
OWN = "tasks+from=your+own+files&own+task=tense"
BEST = re.compile("The best head by the validation part is L. H.")


def task(label, n_rows=60):
    """A task in SentEval's format."""
    rng, rows = np.random.default_rng(0), []
    for part, count in {"tr": n_rows, "va": n_rows // 3, "te": n_rows // 2}.items():
        for row in range(count):
            words = [str(rng.choice(NOUNS)) for _ in range(3 + row % 4)]
            rows.append(f"{part}\t{label(words)}\tthe {' '.join(words)} {part} {row}")
    return "\n".join(rows).encode()


def main(page):
    return page.get_by_test_id("stMain")


def open_tab(page, tab):
    page.get_by_role("tab", name=tab, exact=True).click()
    expect(
        page.get_by_role("tabpanel", name=tab, exact=True).locator(DRAWN).locator("visible=true").first
    ).to_be_visible()
    settle(page)


def probe(page):
    """Probe what is chosen, and wait until all of it is there."""
    main(page).get_by_role("button", name=re.compile("^(Probe|Go on):")).click()
    expect(main(page).get_by_role("button", name=re.compile("^(Probe|Go on):"))).to_have_count(0)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    settle(page)


def test_files_are_probed_heads_chosen_and_what_they_carry_erased(visit, small_checkpoint):
    page = visit(f"/knowledge?checkpoint={small_checkpoint}&{OWN}&how+far=and+heads+together")
    give_file(page, "tense.txt", task(lambda words: words[0] in NOUNS[:3]))
    expect(page.get_by_text("There are no results for tense yet.")).to_be_visible()
    give_file(page, "tree_depth.txt", task(lambda words: len(words) > 4))
    settle(page)
    expect(main(page).get_by_role("button", name="Probe: 2 tasks in 2 checkpoints")).to_be_visible()
    probe(page)
    expect(page.get_by_text(BEST)).to_be_visible()
    page.get_by_role("gridcell", name="Layer 1, head 2:").click()
    expect(main(page).get_by_role("link", name="Inspect L1 H2")).to_be_visible()
    settle(page)
    open_tab(page, wording.LAYERS)
    page.locator("svg.marks").last.locator("path[aria-label*='L0 H1']").first.dispatch_event("click")
    expect(main(page).get_by_role("link", name="Inspect L0 H1")).to_be_visible()
    settle(page)
    open_tab(page, wording.USED)
    page.get_by_role("button", name="Erase it from L0 H1").click()
    expect(
        page.get_by_text(re.compile("^L0 H1: a probe gets .* before and .* after erasing 1 direction of"))
    ).to_be_visible()
    open_expanders(main(page))
    expect_tabs_to_look_right(page, TABS, open_tab)


def test_what_is_wrong_with_a_file_is_said_and_its_columns_are_asked_for(visit, small_checkpoint):
    page = visit(f"/knowledge?checkpoint={small_checkpoint}&tasks+from=your+own+files")
    rows = "\n".join(f"a {NOUNS[row % 6]} {row},{row % 2}" for row in range(60))
    give_file(page, "kinds <b>.csv", f"{HOSTILE[0]},kind\n{rows}".encode())
    form = main(page).get_by_test_id("stForm")
    expect(form).to_be_visible()
    expect_nothing_rendered(page)
    form.get_by_role("button", name=wording.USE_COLUMNS).click()
    expect(form).to_have_count(0)
    settle(page)
    expect(page.get_by_role("combobox", name=wording.TASK, exact=True)).to_be_visible()
