"""How many heads can go, in Chromium: curves drawn, stopped, gone on with, and over the training of a run."""

import re
import shutil

import pytest
from looks import darken, expect_accessible, expect_fits, resize
from playwright.sync_api import expect
from small_checkpoints import save
from steps import give_file, reviews, settle

from attention_sieve.__main__ import main
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.views.importance.curves import wording

TAB = "metric=labelled+texts&importance+details=How+many+heads+can+go%3F"


@pytest.fixture(scope="module")
def run(store_folder, tmp_path_factory):
    """Name of a run on the dashboard: a small BERT that was fine-tuned on reviews, with its saved steps."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "films.csv").write_bytes(reviews(40))
    made = store_folder / "checkpoints" / "small-films"
    options = {
        "checkpoint": save("bert", folder / "bert"),
        "data": folder / "films.csv",
        "text-columns": "sentence",
        "label-column": "label",
        "output": made,
        "batch-size": 12,
        "save-steps": 3,
        "epochs": 2,
    }
    assert main(["finetune", *(f"--{name}={value}" for name, value in options.items())]) == 0
    yield made.name
    shutil.rmtree(made)


def press(page, element, key):
    settle(page)
    element.focus()
    element.press(key)


def test_curves_are_stopped_gone_on_with_and_drawn_over_training_by_keyboard(visit, run):
    page = visit(f"/importance?checkpoint={run}&{TAB}")
    # So many that a slow browser, too, draws the first curves and is told to stop while the others are computed.
    give_file(page, "films.csv", reviews(400))
    charts = page.get_by_test_id("stVegaLiteChart")
    press(page, page.get_by_role("button", name=wording.BEGIN), "Enter")
    expect(charts).to_have_count(1)
    page.get_by_role("button", name=shared_wording.STOP).click()
    expect(page.get_by_text(shared_wording.STOPPED)).to_be_visible()
    press(page, page.get_by_role("button", name=shared_wording.GO_ON), "Enter")
    expect(page.get_by_text(re.compile(r"of 6 heads can go in the order of ablation"))).to_be_visible()
    press(page, page.get_by_role("switch", name=wording.OVER_TRAINING), "Space")
    press(page, page.get_by_role("button", name=wording.BEGIN), "Enter")
    expect(page.get_by_text(re.compile(r"at step 3 and .* at step 6 can go in the order of gradient"))).to_be_visible()
    expect(page.get_by_text("Without step 0, the checkpoint before fine-tuning")).to_be_visible()
    expect(charts).to_have_count(3)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect_fits(page)
    expect_accessible(page)
    darken(page)
    resize(page, "narrow")
    expect_fits(page)
    expect_accessible(page)
