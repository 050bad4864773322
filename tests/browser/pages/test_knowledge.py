"""Knowledge in Chromium: a reader's file is probed, stopped and gone on with, and every tab fits and is named."""

import re

import numpy as np
from looks import expect_tabs_to_look_right, open_expanders, open_tab
from playwright.sync_api import expect
from steps import give_file, settle

from attention_sieve.dashboard.views.knowledge import wording

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
    expect_tabs_to_look_right(page, TABS)
