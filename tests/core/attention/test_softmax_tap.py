"""Models that compute attention in their own way; MPNet stands for all."""

import pytest
import torch
from passing import Recorder, inputs_of
from transformers import MPNetModel

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("The two dogs ran.",)), Text(("Who sat on the mat?", "A black cat.")), Text(("Eat!",)))


@pytest.fixture
def checkpoint(loaded):
    return loaded("mpnet", "float64")


@pytest.fixture
def inputs(checkpoint):
    return inputs_of(checkpoint, TEXTS)


def test_a_tapped_tile_carries_indicator_sums_and_entropy(checkpoint, inputs):
    width = inputs["input_ids"].shape[1]
    indicators = torch.rand((3, width, 5), dtype=torch.float64, generator=torch.manual_seed(0))
    recorder = Recorder(indicators, wants_entropy=True)
    observe(checkpoint.model, inputs, Pass(observers=[recorder]))
    for tile in recorder.tiles:
        torch.testing.assert_close(tile.indicator_sums, torch.einsum("thqk,tki->thqi", tile.probabilities, indicators))
        torch.testing.assert_close(tile.entropy[1], -(tile.probabilities[1] * tile.probabilities[1].log()).sum(-1))


def test_a_tap_looks_at_nothing_outside_a_pass(checkpoint, folders, inputs):
    options = {"dtype": torch.float64, "attn_implementation": "eager"}
    plain = MPNetModel.from_pretrained(folders("mpnet"), **options).eval()
    with torch.no_grad():
        torch.testing.assert_close(checkpoint.model(**inputs)[0], plain(**inputs)[0])


def test_outputs_of_heads_cannot_be_seen_and_that_is_said(loaded):
    checkpoint = loaded("mpnet")
    recorder = Recorder()
    recorder.wants_outputs = True
    with pytest.raises(AnalysisError, match=r"MPNetModel has its own attention code, so the outputs"):
        observe(checkpoint.model, {"input_ids": torch.tensor([[5, 6, 7]])}, Pass(observers=[recorder]))
