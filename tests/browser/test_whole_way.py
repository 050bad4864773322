"""A newcomer with no checkpoint of their own: Compare says how to get one, and Fine-tune leads back to its sentence."""

import re
import shutil

import pytest
from playwright.sync_api import expect
from steps import LONG, settle
from test_compare import SUMMARY
from test_finetune import begin, table


@pytest.fixture(scope="module")
def server(serve, store_folder, tmp_path_factory):
    """A dashboard on which nothing was fine-tuned yet, and whose pip finds no package."""
    folder = tmp_path_factory.mktemp("newcomer") / "store"
    shutil.copytree(store_folder, folder, ignore=shutil.ignore_patterns("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.delenv("PIP_FIND_LINKS", raising=False)
        with serve("dashboard/app.py", folder) as address:
            yield address


def test_without_a_second_checkpoint_one_sentence_says_how_to_get_one_and_a_button_does_it(visit):
    page = visit("/compare")
    expect(page.get_by_text("There is none of your own yet: make the sample pair")).to_be_visible()
    expect(page.get_by_role("link", name="Fine-tune on my own texts")).to_be_visible()
    page.get_by_role("button", name="Make the sample pair").click()
    # Here pip finds nothing, and that is said where the reader looks.
    expect(page.get_by_text("pip could not fetch vaderSentiment==2.5")).to_be_visible(timeout=LONG)


def test_from_200_texts_to_what_fine_tuning_changed(visit):
    page = visit("/compare")
    page.get_by_role("link", name="Fine-tune on my own texts").click()
    settle(page)
    begin(page, "films.csv", table(200))
    expect(page.get_by_text(re.compile("held-out accuracy")).first).to_be_visible(timeout=3 * LONG)
    page.get_by_role("link", name=re.compile("^Compare with bundled")).first.click()
    said = page.get_by_text(SUMMARY).first
    expect(said).to_be_visible(timeout=3 * LONG)
    assert re.search(r"delimiter:sep (rose|fell) by", said.inner_text())
    assert "with=films" in page.url
