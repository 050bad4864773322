"""The second riddle: what is said of the heads that are off is measured, and equal to plain transformers with hooks."""

import re
import shutil

import pytest
from own_hooks import without
from small_checkpoints import save_with_head

from attention_sieve.core.attention.settings import PassSettings, head_name
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.fewest_heads import MOST_HEADS, FewestHeads, drawn_at_random
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.controls import is_pair_here
from attention_sieve.dashboard.views.second_riddle import wording
from attention_sieve.dashboard.views.second_riddle.verdict import PAIRS, RIDDLE, among, verdict_of

SHAPE = (2, 9)
OWN = "the dog sat on the"
LONGEST_FINDING = 20
"""Words."""


@pytest.fixture(scope="module")
def decoder(store):
    """A small random decoder in the place of the downloaded one, with heads of the same names."""
    folder = store / "checkpoints" / SAMPLE_DECODER
    sizes = {"num_attention_heads": SHAPE[1], "num_key_value_heads": 3, "head_dim": 4, "hidden_size": 36}
    sizes["max_position_embeddings"] = 128
    save_with_head("llama", folder, "CausalLM", seed=0, **sizes)
    yield load_checkpoint(find_checkpoint(SAMPLE_DECODER), device="cpu")
    shutil.rmtree(folder)


def shares(checkpoint, text, heads):
    """Probabilities of the next token by plain transformers, without some heads."""
    inputs = model_inputs(checkpoint, [prepare(checkpoint, text, PassSettings())])
    return without(checkpoint.files.folder, type(checkpoint.full_model), inputs, heads)[-1].softmax(-1)


def finding(at):
    """The sentence with its numbers."""
    return next(each.value for each in at.markdown if ":small[" in each.value)


def button(at, label):
    return next(each for each in at.button if each.label == label)


def test_without_the_decoder_the_page_says_how_to_get_it_and_is_not_offered(app):
    at = app("second-riddle")
    assert at.info[0].value == wording.NOT_YET
    assert "secondriddle" not in at.session_state["pages"]


def test_the_decoder_is_no_checkpoint_to_compare_the_bundled_one_with(decoder):
    assert not is_pair_here()


def test_hint_and_answer_are_said_with_what_plain_transformers_give(app, decoder):
    at = app("second-riddle")
    before = shares(decoder, RIDDLE, ())
    word = decoder.tokenizer.decode([int(before.argmax())]).strip()
    assert "secondriddle" in at.session_state["pages"]
    assert f"{word}: {float(before.max()):.0%}" in finding(at)
    assert wording.hint() not in finding(at)
    button(at, wording.HINT).click().run()
    assert wording.hint() in finding(at)
    button(at, wording.SHOW).click().run()
    after = shares(decoder, RIDDLE, PAIRS[0])
    assert f"{float(after[before.argmax()]):.0%} without 2 heads" in finding(at)
    assert ("Found" in finding(at)) == (int(after.argmax()) != int(before.argmax()))
    button(at, wording.ALL_ON).click().run()
    assert "without 2 heads" not in finding(at)


def test_a_link_holds_the_heads_that_are_off(app, decoder):
    at = app("second-riddle", **{"heads-off": "1-3,0-5,77-1,x"})
    assert "**L0 H5** and **L1 H3**" in finding(at)
    assert at.query_params["heads-off"] == "0-5,1-3"
    assert sum("77" in each.value or "“x”" in each.value for each in at.warning) == 1
    button(at, wording.ALL_ON).click().run()
    assert "heads-off" not in at.query_params
    at = app("second-riddle", sentence=OWN, **{"heads-off": "none"})
    assert finding(at).startswith("It says ")
    assert at.query_params["heads-off"] == "none"


def test_for_a_sentence_of_ones_own_heads_are_found_and_drawn_at_random(app, decoder):
    at = app("second-riddle", sentence=OWN)
    text = Text((OWN,))
    before = shares(decoder, text, ())
    off = [(int(layer), int(head)) for layer, head in re.findall(r"L(\d) H(\d)", finding(at))]
    token = int(before.argmax())
    assert (int(shares(decoder, text, off).argmax()) != token) == bool(off)
    drawn = drawn_at_random(len(off) or 2, SHAPE)
    n_changed = sum(int(shares(decoder, text, heads).argmax()) != token for heads in drawn)
    word = decoder.tokenizer.decode([token]).strip()
    assert wording.control(n_changed, len(off) or 2, word) in [each.value for each in at.caption]


def test_a_sentence_that_is_too_long_is_refused_with_its_number_of_tokens(app, decoder):
    at = app("second-riddle", sentence="the dog " * 35)
    assert re.search(r"has \d+ tokens; the search takes at most 64", at.error[0].value)


@pytest.mark.parametrize(
    ("off", "is_changed", "verdict"),
    [
        ((), False, "asked"),
        (((5, 5),), False, "no"),
        (((1, 5),), False, "close"),
        (((1, 5), (0, 8)), False, "close"),
        (PAIRS[0], True, "found"),
        (((7, 7), (8, 8)), True, "found"),
        ((*PAIRS[0], (7, 7)), True, "more than two"),
    ],
)
def test_a_verdict_follows_from_what_is_measured_and_close_needs_a_head_of_a_pair(off, is_changed, verdict):
    assert verdict_of(off, is_changed=is_changed) == verdict
    said = wording.finding(verdict, off, ("Mary", "the" if is_changed else "Mary"), is_riddle=True)
    assert len(said.split()) <= LONGEST_FINDING
    if verdict == "close":
        assert all(head_name(*head) in said for head in among(off))


@pytest.mark.parametrize("n_heads", range(MOST_HEADS + 1))
def test_what_the_search_has_found_is_said_as_far_as_it_has_searched(n_heads):
    said = wording.found(FewestHeads(tuple((0, head) for head in range(n_heads)), 300), "Mary", "the")
    assert len(re.sub(r"\*\*L\d H\d\*\*(,| and)?", "", said).split()) <= LONGEST_FINDING
    assert ("fewer may do" in said) == (n_heads > 2)
    assert ("that was tried" in said) == (n_heads == 0)
