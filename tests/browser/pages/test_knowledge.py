"""Knowledge in Chromium: a reader's file is probed, stopped and gone on with, and every tab fits and is named."""

import re

from looks import expect_tabs_to_look_right, open_expanders, open_tab
from playwright.sync_api import expect
from probing_files import NOUNS, write_task
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
OWN = "tasks+from=your+own+files&own+task=tense"
BEST = re.compile("^(The best head, )?L. H.,? (alone )?tells tense ")


def main(page):
    return page.get_by_test_id("stMain")


def probe(page):
    """Probe what is chosen, and wait until all of it is there."""
    main(page).get_by_role("button", name=re.compile("^(Probe|Go on):")).click()
    expect(main(page).get_by_role("button", name=re.compile("^(Probe|Go on):"))).to_have_count(0)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    settle(page)


def test_files_are_probed_heads_chosen_and_what_they_carry_erased(visit, small_checkpoint, tmp_path):
    page = visit(f"/knowledge?checkpoint={small_checkpoint}&{OWN}&how+far=and+heads+together")
    tense = write_task(tmp_path, "tense", lambda words: words[0] in NOUNS[:3])
    give_file(page, tense.name, tense.read_bytes())
    expect(page.get_by_text("There are no results for tense yet.")).to_be_visible()
    tree_depth = write_task(tmp_path, "tree_depth", lambda words: len(words) > 4)
    give_file(page, tree_depth.name, tree_depth.read_bytes())
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
