"""Passes that begin above kept layers say what those of plain transformers with hooks say, and run fewer modules."""

import numpy as np
import pytest
import torch
from own_hooks import without
from small_checkpoints import save_with_head
from torch.nn.modules.module import register_module_forward_hook

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.passes import kept_pass
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.kept_pass import logits_without
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

TEXT, OTHER = Text(("the dog sat on the red mat.",)), Text(("a black cat ran home.",))
SETS = [(), ((0, 1),), ((1, 0), (1, 2)), ((0, 2), (1, 1)), ((1, 2),), ()]
HEADS = [("gpt2", "CausalLM"), ("llama", "CausalLM"), ("bert", "MaskedLM"), ("bert", "SequenceClassification")]
"""The last one has one row of logits for a text."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """loaded(family, head) -> a small random checkpoint, loaded once."""
    made = {}

    def of(family, head):
        if (family, head) not in made:
            folder = save_with_head(family, tmp_path_factory.mktemp(family), head, seed=0)
            made[family, head] = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
        return made[family, head]

    return of


def inputs_of(checkpoint, text=TEXT):
    return model_inputs(checkpoint, [prepare(checkpoint, text, PassSettings())])


@pytest.mark.parametrize(("family", "head"), HEADS)
def test_logits_without_sets_of_heads_are_those_of_plain_transformers_with_hooks(loaded, family, head):
    checkpoint = loaded(family, head)
    for text in (TEXT, OTHER):  # what is kept of one text is not taken for another
        inputs = inputs_of(checkpoint, text)
        token = None if head == "SequenceClassification" else 2
        found = logits_without(checkpoint, inputs, "self", SETS, token).softmax(-1).numpy()
        for row, heads in zip(found, SETS, strict=True):
            logits = without(checkpoint.files.folder, type(checkpoint.full_model), inputs, heads)
            expected = (logits if token is None else logits[token]).softmax(-1).numpy()
            np.testing.assert_allclose(row, expected, atol=2e-5)
    assert np.abs(found[1] - found[0]).max() > 1e-4, "a head that is off changes something"


def n_runs(checkpoint, heads):
    """How many modules are run for the logits without some heads."""
    seen = []
    watching = register_module_forward_hook(lambda module, *_: seen.append(module))
    try:
        logits_without(checkpoint, inputs_of(checkpoint), "self", [(), heads], 2)
    finally:
        watching.remove()
    return len(seen)


def test_what_lies_before_the_first_missing_head_is_not_computed_again(loaded):
    checkpoint = loaded("llama", "CausalLM")
    n_runs(checkpoint, ((0, 0),))
    first, last, none = (n_runs(checkpoint, heads) for heads in (((0, 0),), ((1, 0),), ()))
    assert none == 0
    assert 0 < last < 0.75 * first


def test_of_a_text_that_is_too_long_or_a_model_that_computes_something_else_nothing_is_kept(loaded, monkeypatch):
    checkpoint = loaded("gpt2", "CausalLM")
    inputs = inputs_of(checkpoint)
    expected = logits_without(checkpoint, inputs, "self", SETS, 2)
    for name, value in (("MOST_KEPT", 1), ("TOLERANCE", {"float32": -1.0})):
        kept_pass._kept.pop(checkpoint, None)
        with monkeypatch.context() as patch:
            patch.setattr(kept_pass, name, value)
            found = logits_without(checkpoint, inputs, "self", SETS, 2)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    kept_pass._kept.pop(checkpoint, None)
