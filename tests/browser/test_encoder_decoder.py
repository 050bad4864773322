"""An encoder-decoder: three attentions, and source and target as a pair."""

from playwright.sync_api import expect
from steps import LONG, arcs, cells, choose, error, tokens, type_texts

PAIR = "the cat sat on a mat ||| the dog ran"


def test_a_link_opens_cross_attention_and_the_choice_goes_with_the_checkpoint(visit, encoder_decoder):
    page = visit(f"/?checkpoint={encoder_decoder}&attention=cross-attention&text={PAIR}&head=2-3")
    expect(page.get_by_role("combobox", name="Attention", exact=True)).to_have_value("cross-attention")
    expect(arcs(page, "L2 H3")).to_be_visible(timeout=LONG)
    target, source = tokens(page, "From target: queries"), tokens(page, "To source: keys")
    assert len(target) < len(source)
    assert len(cells(page)) == 3 * 4
    choose(page, "Attention", "encoder")
    expect(page.get_by_role("gridcell")).to_have_count(2 * 3)
    assert tokens(page) == source
    choose(page, "Checkpoint", "bundled")
    expect(page.get_by_role("gridcell")).to_have_count(6 * 12)
    expect(page.get_by_role("combobox", name="Attention", exact=True)).to_have_count(0)


def test_a_text_without_a_target_keeps_what_was_typed(visit, encoder_decoder):
    page = visit(f"/?checkpoint={encoder_decoder}&attention=decoder&text={PAIR}")
    expect(arcs(page)).to_be_visible(timeout=LONG)
    type_texts(page, "the cat sat")
    expect(error(page)).to_contain_text("The text has no target for the decoder to read.")
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value("the cat sat")
    type_texts(page, PAIR)
    expect(arcs(page)).to_be_visible()
