"""What a model says on Inspect, before anything is switched off and after: masked word, class, value."""

import numpy as np
import pytest

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.passes.outputs import head_output
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.figures.figure import percent
from attention_sieve.dashboard.figures.text.bars import read_names
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.inspect import wording

TEXT = "the black cat quickly chased two birds"
OFF = ((0, 1), (1, 2))


def measured(folder, off=(), token=None):
    checkpoint = load_checkpoint(find_checkpoint(folder), device="cpu")
    settings = PassSettings(off=off)
    return head_output(checkpoint, prepare(checkpoint, Text((TEXT,)), settings), settings, token)


def drawn(at):
    """The names, and the numbers beside them, in the bars of the page, and what is said of them."""
    element = next(each for each in at.get("bidi_component") if "What it says: " in each.proto.json)
    return element.proto.json


@pytest.mark.parametrize("head", ["MaskedLM", "SequenceClassification"])
def test_what_it_says_stands_there_before_and_after_heads_are_off_with_both_numbers(app, small, head):
    folder = small("bert", head)
    expected = measured(folder, OFF)
    names = read_names(expected.names) if head == "MaskedLM" else list(expected.names)
    at = app(checkpoint=folder, text=TEXT)
    assert wording.SAYS in [each.value for each in at.subheader]
    likeliest = int(expected.before.argmax())
    share = percent(float(expected.before.max()), 0)
    assert f"It says *{plain(names[likeliest])}* ({share})." in [each.value for each in at.markdown]
    assert f"{names[likeliest]} {share}" in drawn(at)
    at = app(checkpoint=folder, text=TEXT, off="0-1,1-2")
    said = next(each.value for each in at.markdown if each.value.startswith("Without 2 heads it "))
    assert said.endswith(f"with all heads on, *{plain(names[likeliest])}* ({share}).")
    now = int(expected.after.argmax())
    assert ("still" in said) == (now == likeliest)
    assert f"{names[now]} {percent(float(expected.after.max()), 0)}, was " in drawn(at)


def test_another_masked_word_is_predicted_and_stays_in_the_link(app, small):
    at = app(checkpoint=small("bert", "MaskedLM"), text=TEXT)
    at.selectbox(key="guess").set_value(2).run()
    expected = measured(small("bert", "MaskedLM"), token=2)
    said = f"It says *{plain(read_names(expected.names)[int(expected.before.argmax())])}* "
    assert any(each.value.startswith(said) for each in at.markdown)
    assert at.query_params["guess"] == "2"


def test_a_regression_says_a_value_without_bars_and_an_embedding_says_nothing(app, small):
    folder = small("bert", "SequenceClassification", num_labels=1)
    at = app(checkpoint=folder, text=TEXT)
    assert f"It says {measured(folder).before[0]:.3f}." in [each.value for each in at.markdown]
    assert not any("What it says: " in each.proto.json for each in at.get("bidi_component"))
    at = app(checkpoint=small("bert"), text=TEXT)
    assert wording.SAYS not in [each.value for each in at.subheader]


def test_a_next_token_is_said_as_bars_too(app, small):
    at = app(checkpoint=small("gpt2", "CausalLM"), text=TEXT, off="0-1")
    assert any(each.value.startswith("Without L0 H1 it ") for each in at.markdown)
    assert ", was " in drawn(at)


def test_without_a_change_both_passes_say_the_same(small):
    found = measured(small("bert", "MaskedLM"))
    np.testing.assert_array_equal(found.before, found.after)
