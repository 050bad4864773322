"""Models that compute attention in their own way; MPNet stands for all."""

import pytest
import torch
from passing import Recorder, inputs_of
from transformers import MPNetModel

from attention_sieve.core.attention.observed import has_attention_interface, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("The two dogs ran.",)), Text(("Who sat on the mat?", "A black cat.")), Text(("Eat!",)))


@pytest.fixture
def folder(folders):
    return folders("mpnet")


@pytest.fixture
def checkpoint(loaded):
    return loaded("mpnet", "float64")


@pytest.fixture
def inputs(checkpoint):
    return inputs_of(checkpoint, TEXTS)


def plain(folder, **chosen):
    return MPNetModel.from_pretrained(folder, dtype=torch.float64, **chosen).eval()


def test_the_tap_shows_the_maps_that_the_model_returns(checkpoint, folder, inputs):
    assert not has_attention_interface(checkpoint.model)
    recorder = Recorder()
    output = observe(checkpoint.model, inputs, Pass(observers=[recorder]))[0]
    with torch.no_grad():
        expected = plain(folder, attn_implementation="eager")(**inputs, output_attentions=True)
    assert torch.equal(output, expected[0])
    for tile, layer in zip(recorder.tiles, expected.attentions, strict=True):
        assert (tile.texts, tile.queries) == (slice(0, 3), slice(0, layer.shape[2]))
        assert torch.equal(tile.probabilities, layer)


def test_a_tapped_tile_carries_indicator_sums_and_entropy(checkpoint, inputs):
    width = inputs["input_ids"].shape[1]
    indicators = torch.rand((3, width, 5), dtype=torch.float64, generator=torch.manual_seed(0))
    recorder = Recorder(indicators, wants_entropy=True)
    observe(checkpoint.model, inputs, Pass(observers=[recorder]))
    for tile in recorder.tiles:
        torch.testing.assert_close(tile.indicator_sums, torch.einsum("thqk,tki->thqi", tile.probabilities, indicators))
        torch.testing.assert_close(tile.entropy[1], -(tile.probabilities[1] * tile.probabilities[1].log()).sum(-1))


def test_stopping_a_tapped_model_computes_no_output(checkpoint, inputs):
    recorder = Recorder()
    assert observe(checkpoint.model, inputs, Pass(observers=[recorder], calls=[0], stops=True)) is None
    assert [tile.layer for tile in recorder.tiles] == [0]


def test_gates_of_one_change_no_bit_of_a_tapped_model(checkpoint, inputs):
    open_gates = observe(checkpoint.model, inputs, Pass(gates=torch.ones((2, 3))))[0]
    assert torch.equal(open_gates, observe(checkpoint.model, inputs, Pass())[0])


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (0, 2), (1, 1)])
def test_a_tapped_gate_of_zero_equals_removing_the_heads_slice(layer, head, checkpoint, folder, inputs):
    gates = torch.ones((2, 3))
    gates[layer, head] = 0
    model = plain(folder)

    def remove(_, arguments):
        heads = arguments[0].clone()
        heads[..., head * 4 : (head + 1) * 4] = 0
        return (heads,)

    model.encoder.layer[layer].attention.attn.o.register_forward_pre_hook(remove)
    with torch.no_grad():
        removed = model(**inputs)[0]
    found = observe(checkpoint.model, inputs, Pass(gates=gates))[0]
    torch.testing.assert_close(found, removed, rtol=0, atol=1e-12)
    assert (found - observe(checkpoint.model, inputs, Pass())[0]).abs().max() > 0.01


def test_gradients_of_tapped_gates_equal_finite_differences(checkpoint, inputs):
    def of_output(gates):
        return (observe(checkpoint.model, inputs, Pass(gates=gates))[0] ** 3).sum()

    gates = torch.linspace(0.6, 1.4, 6, dtype=torch.float64).view(2, 3)
    (gradient,) = torch.autograd.grad(of_output(free := gates.clone().requires_grad_()), free)
    for layer, head in ((0, 0), (0, 2), (1, 1)):
        moved = torch.zeros_like(gates)
        moved[layer, head] = 1e-5
        slope = (of_output(gates + moved) - of_output(gates - moved)) / 2e-5
        torch.testing.assert_close(gradient[layer, head], slope, rtol=1e-6, atol=1e-6)


def test_a_tap_looks_at_nothing_outside_a_pass(checkpoint, folder, inputs):
    with torch.no_grad():
        assert torch.equal(checkpoint.model(**inputs)[0], plain(folder, attn_implementation="eager")(**inputs)[0])


def test_outputs_of_heads_cannot_be_seen_and_that_is_said(loaded):
    checkpoint = loaded("mpnet")
    recorder = Recorder()
    recorder.wants_outputs = True
    with pytest.raises(AnalysisError, match=r"MPNetModel has its own attention code, so the outputs"):
        observe(checkpoint.model, {"input_ids": torch.tensor([[5, 6, 7]])}, Pass(observers=[recorder]))
