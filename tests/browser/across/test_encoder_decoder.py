"""An encoder-decoder: source and target as a pair."""

from playwright.sync_api import expect
from steps import arcs, choose, expect_number_of_cells, tokens, wait_for

PAIR = "the cat sat on a mat ||| the dog ran"


def test_cross_attention_is_drawn_between_target_and_source_and_another_attention_between_its_own_tokens(
    visit, encoder_decoder
):
    page = visit(f"/?checkpoint={encoder_decoder}&attention=cross-attention&text={PAIR}&head=2-3")
    expect(arcs(page, "L2 H3")).to_be_visible()
    target, source = (tokens(page, side) for side in ("From target: queries", "To source: keys"))
    wait_for(page, lambda: (target.count(), source.count()), lambda lengths: 0 < lengths[0] < lengths[1])
    source_tokens = source.all_text_contents()
    expect_number_of_cells(page, 3 * 4)
    choose(page, "Attention", "encoder")
    expect_number_of_cells(page, 2 * 3)
    expect(tokens(page)).to_have_text(source_tokens)
