"""Checkpoints other than the bundled one, and what is said about those that cannot be used."""

import re
import shutil

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
    choose(page, "Checkpoint", "bundled")
    expect(page.get_by_role("grid", name="Heads of bundled")).to_be_visible()
    expect_number_of_cells(page, 6 * 12)
    pickled = tmp_path / "pickled"
    shutil.copytree(small_checkpoint, pickled)
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    # One that cannot be used is said in a sentence, and the rest stays.
    for name, sentence in (
        (tmp_path / "nowhere", f"There is no folder {tmp_path / 'nowhere'}."),
        (pickled, "has only weights that could run code when loaded (pytorch_model.bin)."),
        (tmp_path, "holds no config.json, so it is not a checkpoint."),
        ("google-bert/bert-base-uncased", "The hub could not be reached for google-bert/bert-base-uncased"),
        ("what is this", "'what is this' is neither a folder nor a hub id."),
    ):
        name_checkpoint(page, name)
        expect(error(page)).to_contain_text(sentence)
        expect(page.get_by_role("textbox", name="Your texts")).to_be_editable()
        expect(page.get_by_text("How it is computed")).to_be_visible()
    choose(page, "Checkpoint", "bundled")
    expect(page.get_by_role("grid", name="Heads of bundled")).to_be_visible()
