"""Compare: from a checkpoint of one's own to what fine-tuning changed, in all views at once."""

import re
import shutil
from io import BytesIO

import pandas as pd
import pytest
from looks import expect_looks_right
from playwright.sync_api import expect
from small_checkpoints import save
from steps import SUMMARY, choose, chosen, download, error, settle, slider, type_texts, wait_for

from attention_sieve.__main__ import main
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.views.compare import wording


@pytest.fixture(scope="module", autouse=True)
def films(store_folder, tmp_path_factory):
    """On the dashboard, a checkpoint that was fine-tuned from the bundled one, with its steps."""
    films = store_folder / "checkpoints" / "films"
    data = tmp_path_factory.mktemp("data") / "films.csv"
    rows = [
        f"The film of number {i} is {'lovely' if i % 2 else 'dull'}.,{'good' if i % 2 else 'bad'}" for i in range(80)
    ]
    data.write_text("\n".join(["sentence,label", *rows]))
    finetune(data, films, "--epochs", "2", "--save-steps", "6", "--learning-rate", "2e-4")
    yield
    shutil.rmtree(films)


def finetune(data, output, *options):
    output.parent.mkdir(exist_ok=True)
    columns = ["--text-columns", "sentence", "--label-column", "label"]
    given = ["--checkpoint", "bundled", "--data", str(data), "--output", str(output), "--batch-size", "8", *columns]
    assert main(["finetune", *given, *options]) == 0


def summary(page):
    """The sentence of what differs, once all of the page is there."""
    sentence = page.get_by_text(SUMMARY).first
    expect(sentence).to_be_visible()
    settle(page)
    return sentence


def grid(page, name):
    return page.get_by_role("grid", name=re.compile(name))


def head(page, name, layer, number):
    return grid(page, name).get_by_role("gridcell", name=f"Layer {layer}, head {number}:")


PICTURES = (r"^Attention of .* in bundled", r"^Attention of .* in films", "^Difference of the attention of")


def region(page, name):
    return page.get_by_role("region", name=re.compile(name))


def expect_on_first_screen(page, element):
    """Wait until all of it can be seen without scrolling."""
    expect(element).to_be_visible()
    size = page.viewport_size
    wait_for(page, element.bounding_box, lambda box: box["y"] >= 0 and box["y"] + box["height"] <= size["height"])


def test_a_second_checkpoint_gives_sentence_grids_maps_and_arcs_which_share_one_choice(visit):
    page = visit("/compare")
    expect(page.get_by_text(wording.NOTHING_CHOSEN)).to_be_visible()
    page.get_by_role("button", name="films", exact=True).click()
    expect(summary(page)).to_have_text(
        re.compile(r"^Fine-tuning (took|gave|changed) .+\. \d+ of 72 heads changed a role")
    )
    expect(page).to_have_url(re.compile("[?&]with=films(&|$)"))
    expect_on_first_screen(page, summary(page))
    for name in PICTURES:
        # Titles and the first words of each, side by side below the one set of switches.
        expect_on_first_screen(page, region(page, name).get_by_role("option").nth(4))
        expect(region(page, name).get_by_role("radio")).to_have_count(0)
    expect(region(page, f"^{wording.CONTROLS}").get_by_role("radio", name="Matrix")).to_have_count(1)
    expect(page.get_by_text(re.compile(r"^L\d H\d+: its \w+ score changed most"))).to_be_visible()
    for name, layer, number in (("^Roles gained", 2, 5), (r"^\(a\) Roles", 3, 1), (r"^\w+, b − a", 4, 7)):
        head(page, name, layer, number).click()
        expect(page.get_by_role("region", name=f"Attention of L{layer} H{number} in films")).to_be_visible()
        expect(chosen(page)).to_have_text([f"L{layer} H{number}"] * 4)
        expect(page).to_have_url(re.compile(f"head={layer}-{number}"))
    page.get_by_role("tab", name=wording.DIVERGENCE).click()
    head(page, "^Jensen", 5, 0).click()
    expect(page.get_by_role("region", name="Attention of L5 H0 in films")).to_be_visible()
    page.get_by_role("tab", name=wording.TRANSITIONS).click()
    choose(page, wording.TRANSITION, re.compile("^no role under b: "))
    choose(page, wording.ROLE, "block")
    # All of it is in the link.
    expect(page).to_have_url(re.compile("transition=no(%20|\\+)role(%20|\\+)under(%20|\\+)b"))
    there = visit(page.url)
    expect(there.get_by_role("region", name="Attention of L5 H0 in films")).to_be_visible()
    expect(grid(there, "^block, b − a")).to_be_visible()
    expect(there.get_by_role("tab", name=wording.TRANSITIONS)).to_have_attribute("aria-selected", "true")
    expect(there.get_by_role("combobox", name=wording.TRANSITION)).to_have_value(re.compile("^no role under b: "))


def test_the_link_shows_a_colleague_the_same_and_a_typed_text_what_each_predicts(visit):
    page = visit("/compare?with=films&head=3-4&tau=2.5&text=The+old+cat+slept.")
    expect(page.get_by_text("changed a role at tau 2.5").first).to_be_visible()
    expect(page.get_by_role("region", name="Attention of L3 H4 in films")).to_be_visible()
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value("The old cat slept.")
    type_texts(page, "The film is lovely.")
    expect(page.get_by_text(shared_wording.EMBEDS_ONLY)).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Predicts (good|bad) \d+%, (good|bad) \d+%$"))).to_be_visible()


def test_under_the_share_above_chance_differences_are_those_of_shares(visit):
    page = visit("/compare?with=films")
    summary(page)
    choose(page, "Scale", "share above chance")
    expect(page.get_by_text("changed a role at tau 0.5 of the share above chance").first).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(head(page, r"\(b\) Roles", 0, 2)).to_have_attribute("aria-label", re.compile(r"Shares: local 1\.00 of"))
    page.get_by_role("tab", name=wording.SURE).click()
    panel = page.get_by_role("tabpanel", name=wording.SURE)
    expect(panel.get_by_text("mean share above chance under a, the reference")).to_be_visible()
    there = visit(page.url)
    expect(there.get_by_text("changed a role at tau 0.5 of the share above chance").first).to_be_visible()


def test_equal_checkpoints_differ_in_nothing(visit):
    page = visit("/compare?with=films&checkpoint=films")
    expect(summary(page)).to_have_text(
        re.compile(r"^Every head has the same roles under \(a\) and \(b\)\. 0 of 72 heads changed")
    )
    expect(page.get_by_text(wording.SAME)).to_be_visible()
    page.get_by_role("tab", name=wording.SURE).click()
    expect(page.get_by_text(re.compile(r"^0 of \d+ scores \(one for each head and role\) differ"))).to_be_visible()
    expect(page.get_by_text("delimiter:sep does not change on any text")).to_be_visible()


def test_the_list_of_checkpoints_closes_after_a_choice_and_offers_no_choice_of_all(visit):
    page = visit("/compare")
    page.get_by_role("combobox", name=wording.WITH, exact=True).click()
    listed = page.get_by_test_id("stMultiSelectDropdown")
    expect(listed.get_by_role("option", name="films", exact=True)).to_be_visible()
    expect(listed.get_by_role("option", name="Select all")).to_have_count(0)
    listed.get_by_role("option", name="films", exact=True).click()
    expect(listed).to_have_count(0)
    summary(page)


def test_the_saved_steps_are_scrubbed_through_in_order(visit):
    page = visit("/compare")
    page.get_by_role("button", name=re.compile("saved steps of films")).click()
    expect(page.get_by_text(wording.OVER_STEPS)).to_be_visible()
    at_the_end = summary(page).inner_text()
    slider(page, "Compared checkpoint").press("Home")
    expect(region(page, "^Attention of .* in films.checkpoint-6$")).to_be_visible()
    expect(summary(page)).not_to_have_text(at_the_end)


def test_checkpoints_of_another_shape_keep_the_views_by_depth(visit, tmp_path):
    small = save("bert", tmp_path / "small")
    page = visit(f"/compare?with={small}&corpus=type+texts&corpus_text=The+cat+sat.%0AA+bird+sang.")
    said = page.get_by_text("The reference has 6 layers x 12 heads and the compared checkpoint 2 x 3")
    expect(said).to_be_visible()
    expect(page.get_by_text("Shares by relative depth")).to_be_visible()
    expect(page.locator("[data-testid=stVegaLiteChart]")).to_have_count(2)


def test_other_tokens_are_said_and_the_arcs_drawn_between_words(visit, tmp_path):
    a, b = save("bert", tmp_path / "small-bert"), save("gpt2", tmp_path / "small-gpt2")
    typed = "corpus=type+texts&corpus_text=The+cat+sat.%0AA+bird+sang.&text=The+cat+sat."
    page = visit(f"/compare?checkpoint={a}&with={b}&{typed}")
    expect(page.get_by_text("The tokenizers split 2 of 2 texts differently.")).to_be_visible()
    expect(page.get_by_text("attention is shown between words")).to_be_visible()
    region = page.get_by_role("region", name=re.compile("^Attention of .* in .*small-gpt2"))
    tokens = region.get_by_role("listbox", name="From: queries").get_by_role("option")
    expect(tokens).to_have_text([re.compile(rf"^\d*{token}$") for token in ("The", "cat", r"sat\.")])


def test_what_cannot_be_compared_gets_a_sentence_and_the_others_are_compared(visit, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    page = visit(f"/compare?with=films&with={empty}")
    expect(error(page)).to_contain_text("holds no config.json")
    summary(page)


def test_files_say_which_checkpoints_and_which_sign(visit):
    page = visit("/compare?with=films&compare+details=All+numbers")
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


def test_it_fits_and_is_accessible(visit):
    page = visit("/compare?with=films")
    summary(page)
    expect(page.get_by_role("region", name=re.compile("^Difference"))).to_be_visible()
    expect_looks_right(page)
