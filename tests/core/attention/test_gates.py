"""Gates and the outputs of heads, against the model as transformers computes it, hooked at its output projection."""

import pytest
import torch
from passing import Recorder, inputs_of

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("The two dogs ran.",)), Text(("Who sat on the mat?", "A black cat.")), Text(("Eat!",)))
GATED = ("bert", "gpt2", "llama")
"""Bidirectional, causal, and with grouped keys; each names its output projection differently."""
EVERY = (*GATED, "mpnet")
"""And one that computes attention in its own way, whose softmax is tapped."""


def output_projections(model):
    if model.config.model_type == "bert":
        return [layer.attention.output.dense for layer in model.encoder.layer]
    if model.config.model_type == "mpnet":
        return [layer.attention.attn.o for layer in model.encoder.layer]
    if model.config.model_type == "gpt2":
        return [layer.attn.c_proj for layer in model.h]
    return [layer.self_attn.o_proj for layer in model.layers]


def gated_without_the_door(checkpoint, folder, inputs, gates):
    """Output without observers with slice h of each output projection's input scaled by gate h, and those inputs."""
    dtype = getattr(torch, checkpoint.dtype)
    implementation = "eager" if checkpoint.files.model_type == "mpnet" else "sdpa"
    model = type(checkpoint.model).from_pretrained(folder, attn_implementation=implementation, dtype=dtype).eval()
    seen = []

    def scale(_, arguments):
        layer, heads = len(seen), arguments[0].clone()
        size = heads.shape[-1] // gates.shape[1]
        for head, gate in enumerate(gates[layer]):
            heads[..., head * size : (head + 1) * size] *= gate
        seen.append(heads)
        return (heads,)

    for projection in output_projections(model):
        projection.register_forward_pre_hook(scale)
    with torch.no_grad():
        return model(**inputs)[0], seen


def n_heads(checkpoint):
    return checkpoint.attentions["self"].n_heads


def one_off(checkpoint, layer, head):
    gates = torch.ones((2, n_heads(checkpoint)), dtype=torch.float64)
    gates[layer, head] = 0
    return gates


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", EVERY)
def test_gates_of_one_change_nothing(family, dtype, loaded):
    checkpoint = loaded(family, dtype)
    inputs = inputs_of(checkpoint, TEXTS)
    plain = observe(checkpoint.model, inputs, Pass())[0]
    torch.testing.assert_close(
        observe(checkpoint.model, inputs, Pass(gates=torch.ones((2, n_heads(checkpoint)))))[0], plain
    )


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (0, 2), (1, 1)])
@pytest.mark.parametrize("family", EVERY)
def test_a_gate_of_zero_equals_removing_the_heads_slice(family, layer, head, loaded, folders):
    checkpoint = loaded(family, "float64")
    inputs = inputs_of(checkpoint, TEXTS)
    real = inputs["attention_mask"].bool()
    gates = one_off(checkpoint, layer, head)
    found = observe(checkpoint.model, inputs, Pass(gates=gates))[0][real]
    removed, _ = gated_without_the_door(checkpoint, folders(family), inputs, gates)
    torch.testing.assert_close(found, removed[real], rtol=0, atol=1e-10)
    plain = observe(checkpoint.model, inputs, Pass())[0][real]
    assert (found - plain).abs().max() > 0.01, "a head that does nothing would show nothing"


def test_gates_belong_to_the_watched_calls(loaded):
    checkpoint = loaded("bert", "float64")
    inputs = inputs_of(checkpoint, TEXTS)
    by_call = observe(checkpoint.model, inputs, Pass(calls=[1], gates=torch.tensor([[1.0, 0, 1]])))[0]
    torch.testing.assert_close(by_call, observe(checkpoint.model, inputs, Pass(gates=one_off(checkpoint, 1, 1)))[0])


@pytest.mark.parametrize(
    ("family", "step", "tolerance"),
    [("bert", 1e-3, 1e-6), ("gpt2", 1e-3, 1e-6), ("llama", 1e-2, 1e-3), ("mpnet", 1e-3, 1e-6)],
)
def test_gradients_of_gates_equal_finite_differences(family, step, tolerance, loaded):
    """Llama's norms are taken in float32 whatever the model's number format, so its steps are larger."""
    checkpoint = loaded(family, "float64")
    inputs = inputs_of(checkpoint, TEXTS)
    shape = (2, n_heads(checkpoint))
    gates = 0.5 + torch.rand(shape, dtype=torch.float64, generator=torch.manual_seed(0))

    def of_output(gates):
        output = observe(checkpoint.model, inputs, Pass(gates=gates))[0]
        return (output[inputs["attention_mask"].bool()] ** 3).sum()

    (gradient,) = torch.autograd.grad(of_output(free := gates.clone().requires_grad_()), free)
    assert gradient.shape == shape
    for layer, head in torch.cartesian_prod(torch.arange(2), torch.arange(shape[1])).tolist():
        moved = torch.zeros(shape, dtype=torch.float64)
        moved[layer, head] = step
        near, far = (of_output(gates + moved * k) - of_output(gates - moved * k) for k in (1, 2))
        slope = (8 * near - far) / (12 * step)
        torch.testing.assert_close(gradient[layer, head], slope, rtol=tolerance, atol=tolerance)
    assert gradient.abs().min() > 1e-4


def test_without_gradients_of_gates_the_output_carries_none(loaded):
    checkpoint = loaded("bert")
    gates = torch.ones((2, 3))
    assert not observe(checkpoint.model, inputs_of(checkpoint, TEXTS), Pass(gates=gates))[0].requires_grad


@pytest.mark.parametrize("small", [False, True], ids=["one tile", "small tiles"])
@pytest.mark.parametrize("gated", [False, True], ids=["open", "gated"])
@pytest.mark.parametrize("family", GATED)
def test_head_outputs_side_by_side_are_what_the_output_projection_takes(
    family, gated, small, loaded, folders, small_tiles
):
    checkpoint = loaded(family, "float64")
    inputs = inputs_of(checkpoint, TEXTS)
    if small:
        small_tiles(50)
    shape = (2, n_heads(checkpoint))
    gates = torch.rand(shape, dtype=torch.float64, generator=torch.manual_seed(1)) if gated else torch.ones(shape)
    recorder, stopped = Recorder(wants_outputs=True), Recorder(wants_outputs=True)
    observe(checkpoint.model, inputs, Pass(observers=[recorder], gates=gates if gated else None))
    observe(
        checkpoint.model, inputs, Pass(observers=[stopped], calls=[0, 1], gates=gates if gated else None, stops=True)
    )
    assert len(recorder.tiles) > 2 * small * len(TEXTS)
    _, expected = gated_without_the_door(checkpoint, folders(family), inputs, gates)
    real = inputs["attention_mask"].bool()
    for tiles in (recorder.tiles, stopped.tiles):
        for found, taken in zip(side_by_side(tiles, expected[0]), expected):
            torch.testing.assert_close(found[real], taken.view_as(found)[real], rtol=0, atol=1e-10)


def side_by_side(tiles, like):
    found = torch.full((2, *like.shape), float("nan"), dtype=like.dtype)
    for tile in tiles:
        found[tile.layer, tile.texts, tile.queries] = tile.outputs.transpose(1, 2).flatten(2)
    return found
