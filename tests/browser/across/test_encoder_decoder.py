"""An encoder-decoder: three attentions, and source and target as a pair."""

from playwright.sync_api import expect
from steps import arcs, choose, error, expect_number_of_cells, tokens, type_texts, unfold, wait_for

PAIR = "the cat sat on a mat ||| the dog ran"


def test_a_link_opens_cross_attention_which_goes_with_its_checkpoint_and_a_missing_target_is_said(
    visit, encoder_decoder
):
    page = visit(f"/?checkpoint={encoder_decoder}&attention=cross-attention&text={PAIR}&head=2-3")
    unfold(page, "Attention")
    expect(page.get_by_role("combobox", name="Attention", exact=True)).to_have_value("cross-attention")
    expect(arcs(page, "L2 H3")).to_be_visible()
    target, source = (tokens(page, side) for side in ("From target: queries", "To source: keys"))
    wait_for(page, lambda: (target.count(), source.count()), lambda lengths: 0 < lengths[0] < lengths[1])
    source_tokens = source.all_text_contents()
    expect_number_of_cells(page, 3 * 4)
    choose(page, "Attention", "encoder")
    expect_number_of_cells(page, 2 * 3)
    expect(tokens(page)).to_have_text(source_tokens)
    # A text without a target keeps what was typed.
    choose(page, "Attention", "decoder")
    expect_number_of_cells(page, 3 * 4)
    type_texts(page, "the cat sat")
    expect(error(page)).to_contain_text("The text has no target for the decoder to read.")
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value("the cat sat")
    type_texts(page, PAIR)
    expect(arcs(page)).to_be_visible()
    choose(page, "Checkpoint", "bundled")
    expect_number_of_cells(page, 6 * 12)
    expect(page.get_by_role("combobox", name="Attention", exact=True)).to_have_count(0)
