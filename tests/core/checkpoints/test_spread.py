"""Models that are spread over several devices, or whose weights are elsewhere until a layer runs.

There is one device here. What stands on which device is followed by tensors without numbers (FakeTensorMode), which
refuse to be combined with those of another device, as those of two GPUs do.
"""

import numpy as np
import pytest
import torch
import transformers
from accelerate import cpu_offload, disk_offload
from small_checkpoints import TOKENIZERS, config
from torch._subclasses.fake_tensor import FakeTensorMode

from attention_sieve.core.answering import find
from attention_sieve.core.attention.observed import ATTENTION_NAME, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.in_memory import observed_in_place
from attention_sieve.core.checkpoints.load import device_map
from attention_sieve.core.importance.passes.ov_circuit import ov_signs
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.texts.text import read_typed

TEXTS = read_typed("The black cat quickly chased two birds on the mat.\nShe ran.")


def made(family, auto_class="AutoModelForCausalLM", **options):
    torch.manual_seed(4)
    return getattr(transformers, auto_class).from_config(config(family, len(TOKENIZERS[family]()), **options)).eval()


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_a_model_whose_weights_are_elsewhere_is_observed_as_if_they_were_here(where, tmp_path):
    def found(model):
        with observed_in_place(model, TOKENIZERS["llama"]()) as checkpoint:
            signs = ov_signs(checkpoint, prepare(checkpoint, TEXTS[1], PassSettings("self")))
            return find(ROLE_ANALYSIS, checkpoint, TEXTS).scored.scores, signs

    model, here = made("llama"), torch.device("cpu")
    expected = found(model)
    elsewhere = cpu_offload(model, here) if where == "memory" else disk_offload(model, tmp_path, here)
    for _ in range(2):
        assert {weights.device.type for weights in elsewhere.parameters()} == {"meta"}
        for one, other in zip(found(elsewhere), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_model_that_is_too_large_for_one_device_fills_several_by_whole_layers():
    model = made("llama", num_hidden_layers=8)
    n_bytes = model.get_memory_footprint()
    plan = device_map(model, {0: n_bytes // 2, 1: n_bytes, "cpu": n_bytes})
    layers = {name: device for name, device in plan.items() if ".layers." in name}
    assert set(plan.values()) == {0, 1}
    assert [name.count(".") for name in layers] == [2] * 8, "no layer is divided"
    assert list(layers.values()) == sorted(layers.values())


class Everything:
    """Asks for all that a tile can hold, and keeps sums."""

    wants_entropy = wants_outputs = True

    def __init__(self, indicators):
        self.indicators, self.sums = indicators, []

    def observe(self, tile):
        per_head = tile.probabilities @ self.indicators[:, None]
        self.sums.append(per_head.sum(2) + tile.indicator_sums.sum(2) + tile.entropy.sum(2)[..., None])
        self.sums[-1] += tile.outputs.sum((2, 3))[..., None]


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_tiles_of_layers_on_another_device_come_to_that_of_the_first(family):
    def moved(value, device):
        if isinstance(value, tuple):
            return tuple(moved(each, device) for each in value)
        return value.to(device) if isinstance(value, torch.Tensor) else value

    def on(module, device):
        for store in (part._parameters for part in module.modules()):
            for name, weights in store.items():
                if weights is not None:
                    store[name] = torch.nn.Parameter(torch.empty(weights.shape, device=device))

    with FakeTensorMode(allow_non_fake_inputs=True):
        model = made(family, "AutoModel")
        model.set_attn_implementation(ATTENTION_NAME)
        model.config.use_cache = False
        layer = next(part for part in model.modules() if isinstance(part, torch.nn.ModuleList))[1]
        on(model, "cpu")
        on(layer, "meta")
        layer.register_forward_pre_hook(
            lambda _, given, named: (
                moved(given, "meta"),
                {name: moved(value, "meta") for name, value in named.items()},
            ),
            with_kwargs=True,
        )
        layer.register_forward_hook(lambda *given: moved(given[-1], "cpu"))
        mask = torch.ones((2, 7), dtype=torch.long, device="cpu")
        observer = Everything(torch.ones((2, 7, 3), device="cpu"))
        gates = torch.ones((2, model.config.num_attention_heads), device="cpu")
        given = {"input_ids": mask.clone(), "attention_mask": mask}
        observe(model, given, Pass(observers=[observer], gates=gates))
        assert [sums.device.type for sums in observer.sums] == ["cpu", "cpu"]
