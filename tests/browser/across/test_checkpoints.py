"""Checkpoints other than the bundled one, and what is said about those that cannot be used."""

import re

from playwright.sync_api import expect
from steps import arcs, cell, choose, chosen, error, expect_number_of_cells, name_checkpoint, type_texts


def test_a_typed_folder_is_used_and_what_cannot_be_used_is_said_in_a_sentence(visit, small_checkpoint, tmp_path):
    page = visit("/")
    type_texts(page, "the black cat sat on the mat")
    cell(page, 5, 11).click()
    expect(arcs(page, "L5 H11")).to_be_visible()
    name_checkpoint(page, small_checkpoint)
    expect(page.get_by_role("grid", name=f"Heads of {small_checkpoint}:")).to_be_visible()
    expect_number_of_cells(page, 2 * 3)
    expect(page.get_by_text("2 layers x 3 heads")).to_be_visible()
    expect(chosen(page)).to_have_text(re.compile("^L[01] H[012]$"))
    # One that cannot be used is said in a sentence, and the rest stays.
    name_checkpoint(page, tmp_path / "nowhere")
    expect(error(page)).to_contain_text(f"There is no folder {tmp_path / 'nowhere'}.")
    expect(page.get_by_role("textbox", name="Your texts")).to_be_editable()
    expect(page.get_by_text("How it is computed")).to_be_visible()
    choose(page, "Checkpoint", "bundled")
    expect(page.get_by_role("grid", name="Heads of bundled")).to_be_visible()
