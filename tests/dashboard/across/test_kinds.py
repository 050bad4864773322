"""Encoder-decoders: which of their attentions is looked at; and texts too long for one picture."""

import pytest
from reading import arcs, overview, said, sent

from attention_sieve.dashboard import controls, wording
from attention_sieve.dashboard.samples import read_sample
from attention_sieve.dashboard.views.roles.wording import looks_back

PAIR = "the cat sat on a mat ||| the dog ran"
"""Source and target of different lengths."""
CORPUS = f"{PAIR}\nthe dog chased two birds ||| a cat ran\nthe red house"


@pytest.fixture
def bart(app, small):
    """bart(page, **link) -> the app on an encoder of 2 layers x 3 heads and a decoder of 3 layers x 4 heads."""

    def opened(page="inspect", **link):
        return app(page, **{"checkpoint": small("bart", "Seq2SeqLM"), "text": PAIR, "corpus_text": CORPUS} | link)

    return opened


def shape(at):
    grid = sent(at, "Heads of")
    return grid["layers"], grid["heads"]


def attend(at, kind):
    at.selectbox(key="attention").set_value(kind).run()
    assert not at.exception
    assert not at.error


def n_tokens(at):
    """Queries and keys of the arcs."""
    view = arcs(at)
    return tuple(len((view[side] or view["queries"])["tokens"]) for side in ("queries", "keys"))


def test_each_attention_has_its_own_layers_heads_and_tokens_and_a_link_to_one_works_on_a_first_visit(bart):
    at = bart(attention="cross-attention", head="2-3")
    assert not at.error
    assert at.selectbox(key="attention").value == "cross-attention"
    assert sent(at, "Attention of")["label"].startswith("Attention of L2 H3 in ")
    target, source = n_tokens(at)
    assert (shape(at), target != source) == ((3, 4), True)
    assert [sent(at, "Attention of")[side]["name"] for side in ("queries", "keys")] == ["target", "source"]
    assert wording.ACROSS in [each.value for each in at.info]
    attend(at, "encoder")
    assert (shape(at), n_tokens(at)) == ((2, 3), (source, source))
    attend(at, "decoder")
    assert (shape(at), n_tokens(at)) == ((3, 4), (target, target))


def test_heads_that_the_other_stack_lacks_are_dropped_and_another_attention_begins_with_all_heads_on(bart):
    at = bart(attention="decoder", head="2-3,1-2", off="2-3")
    assert sent(at, "Attention of")["label"].startswith("Attention of L2 H3, L1 H2 in ")
    assert sent(at, "Heads of")["off"] == [[2, 3]]
    attend(at, "encoder")
    assert sent(at, "Attention of")["label"].startswith("Attention of L1 H2 in ")
    assert sent(at, "Heads of")["off"] == []
    attend(at, "decoder")
    assert sent(at, "Attention of")["label"].startswith("Attention of L2 H3, L1 H2 in ")


def test_a_checkpoint_with_one_stack_offers_no_attention(app, small):
    at = app(checkpoint=small("bert"), attention="decoder", text=PAIR, corpus_text=CORPUS)
    assert "attention" not in [each.key for each in at.selectbox]
    assert shape(at) == (2, 3)


def test_a_text_without_a_target_is_asked_for_one_and_stays_typed(bart):
    at = bart(attention="cross-attention", text="the cat sat")
    assert said(at)[0].startswith("The text has no target for the decoder to read.")
    assert at.text_area(key="text").value == "the cat sat"
    attend(at, "encoder")


def test_texts_without_a_target_are_left_out_of_the_test_and_counted(bart):
    at = bart("roles", attention="decoder")
    assert at.info[0].value.startswith("1 of 3 texts have no target for the decoder")
    assert any("Over 2 texts" in each.value for each in at.markdown)
    at = bart("roles")
    assert any("Over 3 texts" in each.value for each in at.markdown)


def test_a_corpus_without_any_target_is_said_and_nothing_is_tested(bart):
    at = bart("roles", attention="decoder", corpus="sample texts")
    n_texts = len(read_sample("texts"))
    (only,) = at.info
    assert f"{n_texts} of {n_texts} texts have no target" in only.value
    assert not at.exception
    assert not [each for each in at.get("bidi_component") if "grid" in each.key]


def test_a_decoders_attention_has_a_sink_in_place_of_delimiters_and_previous_in_place_of_local(app, small):
    at = app(checkpoint=small("gpt2", "CausalLM"), text="the cat sat on a mat and the cat ran")
    grid = sent(at, "Heads of")
    roles = ["previous token", "first-token sink", "induction", "duplicate token"]
    assert [grid["roles"][place]["label"] for place in grid["shown"]] == roles


def test_a_decoders_page_tells_of_sinks_and_says_which_relations_count(app, small):
    said = {
        direction: [
            each.value for each in app("roles", checkpoint=small("gpt2", "CausalLM"), direction=direction).markdown
        ]
        for direction in ("dependent-to-head", "both")
    }
    assert looks_back("dependent-to-head") in said["dependent-to-head"]
    assert any("sink" in each for each in said["both"])
    assert looks_back("both") in said["both"]
    encoder = app("roles", checkpoint=small("bert"), direction="both")
    assert not any(looks_back("both") == each.value for each in encoder.markdown)


LONG = "the dog sat on the red mat and ran to a coffee house. " * 12


@pytest.fixture
def llama(app, small):
    """llama(**link) -> the app on a Llama of 2 layers and 4 heads that takes 1,024 tokens, with a long text."""

    def opened(**link):
        return app(checkpoint=small("llama", "CausalLM", max_position_embeddings=1024), text=LONG, **link)

    return opened


def test_of_a_long_text_a_window_is_drawn_where_the_link_says_and_another_text_begins_at_its_beginning(llama):
    at = llama(window="40-8")
    sides = [arcs(at)[side] for side in ("queries", "keys")]
    assert [side["start"] for side in sides] == overview(at)["start"] == [40, 8]
    assert [len(side["tokens"]) for side in sides] == overview(at)["size"] == [256, 256]
    assert [side["whole"] for side in sides] == overview(at)["tokens"]
    assert sides[0]["whole"] > 300
    at.text_area(key="text").set_value(f"the black cat {LONG}").run()
    assert overview(at)["start"] == [0, 0]
    assert at.query_params.get("window") is None
    at.text_area(key="text").set_value("the black cat").run()
    assert overview(at) is None, "a short text has no window"


def test_the_scores_of_a_long_text_are_those_of_the_whole_wherever_the_window_is(llama):
    at = llama()
    before, passed = sent(at, "Heads of"), controls.inference().n_passed
    moved = llama(window="40-0")
    assert sent(moved, "Heads of")["scores"] == before["scores"]
    assert arcs(moved)["queries"]["start"] == 40
    assert arcs(at)["queries"]["start"] == 0
    assert controls.inference().n_passed == passed + 1


def test_a_long_text_is_cut_only_when_the_reader_says_so(llama):
    at = llama()
    at.text_area(key="text").set_value(LONG * 4).run()
    assert "this checkpoint takes 1,024" in said(at)[0]
    assert at.toggle(key="cut").label == "Use the first 1,024 tokens"
    at.toggle(key="cut").set_value(True).run()
    assert not at.error
    assert overview(at)["tokens"] == [1024, 1024]


def test_the_sidebar_counts_layers_and_heads_of_both_stacks():
    said = wording.about("t5", {"encoder ": (2, 3), "decoder ": (3, 4)}, "", "0123456789abcdef")
    assert said == "**t5**, encoder 2 layers x 3 heads, decoder 3 layers x 4 heads. Fingerprint `0123456789ab`."


def test_texts_too_long_for_a_link_are_used_and_the_page_says_so(llama):
    at = llama()
    assert wording.NOT_IN_LINK not in [each.value for each in at.markdown]
    at.text_area(key="text").set_value("\n".join(f"text {number}" for number in range(600))).run()
    assert wording.NOT_IN_LINK in [each.value for each in at.markdown]
    assert len(at.selectbox(key="number").options) == 600
    at.text_area(key="text").set_value("the cat").run()
    assert wording.NOT_IN_LINK not in [each.value for each in at.markdown]
