"""Compare: from a checkpoint of one's own to what fine-tuning changed, in all views at once."""

import re
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
from looks import SIZES, violations, wrongs
from playwright.sync_api import expect
from small_checkpoints import save
from steps import LONG, download, error, settle, slider, type_texts

ROOT = Path(__file__).parents[2]
SUMMARY = re.compile(r"(\d+) of 72 heads changed a role at tau 3")
UNTIL_FINISHED = LONG


@pytest.fixture(scope="module")
def folder(store_folder, tmp_path_factory):
    """A store with the samples scored, and a checkpoint fine-tuned from the bundled one, with its steps."""
    folder = tmp_path_factory.mktemp("compare") / "store"
    shutil.copytree(store_folder, folder)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    data = folder / "films.csv"
    rows = [
        f"The film of number {i} is {'lovely' if i % 2 else 'dull'}.,{'good' if i % 2 else 'bad'}" for i in range(80)
    ]
    data.write_text("\n".join(["sentence,label", *rows]))
    finetune(data, folder / "checkpoints" / "films", "--epochs", "2", "--save-steps", "6", "--learning-rate", "2e-4")
    return folder


def finetune(data, output, *options):
    output.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "core", "finetune", "--checkpoint", "bundled", "--data", str(data)]
    columns = ["--text-columns", "sentence", "--label-column", "label", "--output", str(output), "--batch-size", "8"]
    subprocess.run([*command, *columns, *options], cwd=ROOT, check=True, capture_output=True)


@pytest.fixture(scope="module")
def server(serve, folder):
    """In place of the server that all other tests share."""
    with serve("dashboard/app.py", folder) as address:
        yield address


def summary(page):
    said = page.get_by_text(SUMMARY).first
    expect(said).to_be_visible(timeout=UNTIL_FINISHED)
    settle(page)
    return said.inner_text()


def grid(page, name):
    return page.get_by_role("grid", name=re.compile(name))


def head(page, name, layer, number):
    return grid(page, name).get_by_role("gridcell", name=f"Layer {layer}, head {number}:")


def chosen_everywhere(page):
    chips = page.locator("[role=status] .chip").all_text_contents()
    return len(chips), set(chips)


def test_a_second_checkpoint_gives_the_sentence_the_grids_the_maps_and_the_arcs(visit):
    page = visit("/compare")
    expect(page.get_by_text("Choose a second checkpoint above, such as one that was fine-tuned here:")).to_be_visible()
    page.get_by_role("button", name="films", exact=True).click()
    said = summary(page)
    assert re.search(r"\d+ of \d+ scores \(one for each head and role\) differ by more than noise at alpha 0.05", said)
    assert re.search(
        r"delimiter:sep (rose|fell) by [\d.e-]+ on average over all heads and 128 texts, p [<=] 0\.\d+", said
    )
    assert re.search(r"Attention is 0\.\d+ nats apart on average", said)
    assert page.url.endswith("with=films") or "with=films&" in page.url
    for name in (r"^\(a\) Roles", r"^\(b\) Roles", "^Roles gained", "^local, b − a", "^delimiter, b − a", "^Jensen"):
        expect(grid(page, name)).to_be_visible()
    for name in (r"^Attention of .* in bundled", r"^Attention of .* in films", "^Difference of the attention of"):
        expect(page.get_by_role("region", name=re.compile(name))).to_be_visible(timeout=LONG)


def test_a_head_chosen_anywhere_is_chosen_everywhere_and_in_the_link(visit):
    page = visit("/compare?with=films")
    summary(page)
    for name, layer, number in (
        ("^Roles gained", 2, 5),
        (r"^\(a\) Roles", 3, 1),
        ("^block, b − a", 4, 7),
        ("^Jensen", 5, 0),
    ):
        head(page, name, layer, number).click()
        expect(page.get_by_role("region", name=f"Attention of L{layer} H{number} in films")).to_be_visible(timeout=LONG)
        settle(page)
        n_views, chosen = chosen_everywhere(page)
        assert (n_views, chosen) == (8, {f"L{layer} H{number}"})
        assert f"head={layer}-{number}" in page.url


def test_the_link_shows_a_colleague_the_same(visit):
    page = visit("/compare?with=films&head=3-4&tau=2.5&text=The+old+cat+slept.")
    expect(page.get_by_text("changed a role at tau 2.5").first).to_be_visible(timeout=UNTIL_FINISHED)
    expect(page.get_by_role("region", name="Attention of L3 H4 in films")).to_be_visible(timeout=LONG)
    assert "slept" in page.get_by_role("textbox", name="Your texts").input_value()


def test_each_says_what_it_predicts_of_the_typed_text(visit):
    page = visit("/compare?with=films")
    summary(page)
    type_texts(page, "The film is lovely.")
    expect(page.get_by_text("What each says of this text")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("(a) bundled: no classifier")).to_be_visible()
    expect(page.get_by_text("(b) films", exact=True).last).to_be_visible()


def test_equal_checkpoints_differ_in_nothing(visit):
    page = visit("/compare?with=films&checkpoint=films")
    said = summary(page)
    assert said.startswith("0 of 72 heads changed a role")
    assert "0 of 720 scores (one for each head and role) differ by more than noise" in said
    assert "delimiter:sep does not move on any text" in said
    expect(page.get_by_text("This is the reference itself, so nothing differs.")).to_be_visible()


def test_the_saved_steps_are_scrubbed_through_in_order(visit):
    page = visit("/compare")
    page.get_by_role("button", name=re.compile("saved steps of films")).click()
    summary(page)
    expect(page.get_by_text("Over the training run")).to_be_visible(timeout=LONG)
    said = page.get_by_text(SUMMARY).first.inner_text()
    scrubber = slider(page, "Compared checkpoint")
    scrubber.press("Home")
    settle(page)
    expect(page.get_by_role("grid", name="(b) Roles of the heads of films/checkpoint-6")).to_be_visible(timeout=LONG)
    assert page.get_by_text(SUMMARY).first.inner_text() != said


def test_checkpoints_of_another_shape_keep_the_views_by_depth(visit, tmp_path):
    small = save("bert", tmp_path / "small")
    page = visit(f"/compare?with={small}&corpus=type+texts&corpus_text=The+cat+sat.%0AA+bird+sang.")
    said = page.get_by_text("The reference has 6 layers x 12 heads and the compared checkpoint 2 x 3")
    expect(said).to_be_visible(timeout=UNTIL_FINISHED)
    expect(page.get_by_text("Shares by relative depth")).to_be_visible()
    expect(page.locator("[data-testid=stVegaLiteChart]")).to_have_count(2)


def test_other_tokens_are_said_and_the_arcs_drawn_between_words(visit, tmp_path):
    a, b = save("bert", tmp_path / "small-bert"), save("gpt2", tmp_path / "small-gpt2")
    typed = "corpus=type+texts&corpus_text=The+cat+sat.%0AA+bird+sang.&text=The+cat+sat."
    page = visit(f"/compare?checkpoint={a}&with={b}&{typed}")
    expect(page.get_by_text("The tokenizers cut 2 of 2 texts at different places.")).to_be_visible(
        timeout=UNTIL_FINISHED
    )
    expect(page.get_by_text("attention is shown between words")).to_be_visible(timeout=LONG)
    region = page.get_by_role("region", name=re.compile("^Attention of .* in .*small-gpt2"))
    tokens = region.get_by_role("listbox", name="From: queries").get_by_role("option")
    expect(tokens.first).to_be_visible(timeout=LONG)
    assert [re.sub(r"^\d+", "", token) for token in tokens.all_text_contents()] == ["The", "cat", "sat."]


def test_what_cannot_be_compared_gets_a_sentence_and_the_others_are_compared(visit, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    page = visit(f"/compare?with=films&with={empty}")
    expect(error(page)).to_contain_text("holds no config.json")
    summary(page)


def test_files_say_which_checkpoints_and_which_sign(visit):
    page = visit("/compare?with=films&compare+details=Table")
    summary(page)
    table = pd.read_csv(BytesIO(download(page, "CSV of differences")))
    columns = ["role", "layer", "head", "texts", "mean_a", "mean_b", "difference", "t", "p", "p_adjusted"]
    columns += ["wilcoxon_p", "effect", "holds_a", "holds_b"]
    assert list(table.columns)[: len(columns)] == columns
    assert len(table) == 11 * 72
    facts = table.iloc[0]
    assert (facts["checkpoint"], facts["compared checkpoint"]) == ("bundled", "films")
    assert facts["differences"] == "compared minus reference (b - a)"
    assert b"gained" in download(page, "SVG of changes")


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_it_fits_every_width(visit, size):
    page = visit("/compare?with=films", width=size[0], height=size[1])
    summary(page)
    assert wrongs(page) == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_it_is_accessible(visit, colours):
    page = visit("/compare?with=films", colours)
    summary(page)
    expect(page.get_by_role("region", name=re.compile("^Difference"))).to_be_visible(timeout=LONG)
    assert violations(page) == []
