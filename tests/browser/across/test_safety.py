"""What people, files and checkpoints bring is text: it is shown as it is, and nothing in it runs or is rendered.

`visit` fails on dialogs, script errors and requests to other places.
"""

import json
import re

import pytest
from hostile import ALL, HOSTILE, expect_nothing_rendered, expect_said
from playwright.sync_api import expect
from steps import (
    arcs,
    cell,
    cells,
    choose,
    expect_cells_other_than,
    give_file,
    go_to,
    name_checkpoint,
    tokens,
    type_texts,
    upload,
    wait_for,
)

from attention_sieve.core.errors import shortened


@pytest.fixture(scope="module")
def hostile_checkpoint(tmp_path_factory):
    """A checkpoint whose folder and tokens are named to do harm."""
    import torch
    from small_checkpoints import config, wordpiece
    from transformers import BertModel

    folder = tmp_path_factory.mktemp("hostile") / ALL
    tokenizer = wordpiece()
    tokenizer.add_tokens(list(HOSTILE))
    torch.manual_seed(1)
    BertModel(config("bert", len(tokenizer))).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_hostile_text_is_drawn_and_hostile_names_are_quoted_as_text(visit):
    page = visit("/")
    before = cells(page)
    type_texts(page, f"{ALL}\nThe second text. ||| {ALL}")
    expect_cells_other_than(page, before)
    expect(page.get_by_role("combobox", name="Showing")).to_have_value(f"1: {ALL}")
    expect(arcs(page).get_by_role("option", name="alert, ").first).to_be_visible()
    expect_nothing_rendered(page)
    choose(page, "Showing", re.compile("^2: The second text. "))
    expect(arcs(page).get_by_role("option", name="second, ").first).to_be_visible()
    expect_nothing_rendered(page)
    name_checkpoint(page, f"/{ALL}")
    expect_said(page, f"There is no folder {shortened(f'/{ALL}')}.")
    expect_nothing_rendered(page)
    name_checkpoint(page, HOSTILE[0])
    expect_said(page, HOSTILE[0])
    expect_nothing_rendered(page)
    choose(page, "Checkpoint", "bundled")
    type_texts(page, f"{ALL} ||| ||| x")
    expect_said(page, "Line 1 has 3 segments")
    expect_nothing_rendered(page)


def test_hostile_tokens_and_names_of_a_checkpoint_are_drawn_as_text(visit, hostile_checkpoint):
    page = visit("/?patterns=false")
    type_texts(page, f"the cat {ALL}")
    name_checkpoint(page, hostile_checkpoint)
    expect(page.get_by_role("grid", name=f"Heads of {hostile_checkpoint}:")).to_be_visible()
    wait_for(page, tokens(page).all_text_contents, lambda drawn: set(HOSTILE) <= set(drawn))
    token = arcs(page).get_by_role("listbox", name="From: queries").get_by_text(HOSTILE[0], exact=True)
    token.click()
    expect(arcs(page).locator(".summary")).to_contain_text(HOSTILE[0])
    cell(page, 1, 2).hover()
    expect(page.locator(".tip").first).to_be_visible()
    arcs(page).get_by_role("radio", name="Matrix").check()
    expect(arcs(page).locator(".matrix canvas").first).to_be_visible()
    expect_nothing_rendered(page)
    go_to(page, "roles")
    expect(page.get_by_role("grid", name=f"Roles of the heads of {hostile_checkpoint}")).to_be_visible()
    expect_nothing_rendered(page)


def test_hostile_texts_and_names_of_columns_of_a_file_are_scored_and_shown_as_text(visit):
    page = visit("/roles")
    upload(page, f"{ALL.replace('/', '_')}.jsonl", "\n".join(json.dumps({"text": f"{ALL} {i}"}) for i in range(3)))
    expect(page.get_by_text("Over 3 texts at tau 3:")).to_be_visible()
    expect_nothing_rendered(page)
    table = "\t".join(HOSTILE) + "\n" + "\t".join(["One text."] * len(HOSTILE))
    give_file(page, "table.tsv", table.encode())
    for name in HOSTILE:
        expect_said(page, name)
    expect_nothing_rendered(page)
    choose(page, "Column with the text", HOSTILE[0])
    expect(page.get_by_text("Over 1 text at tau 3:")).to_be_visible()
    expect_nothing_rendered(page)
