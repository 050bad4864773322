"""Direct logit attribution equals the sum written out with each family's modules and formulas."""

import numpy as np
import pytest
import torch
from small_checkpoints import TOKENIZERS, config

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.passes.direct_path import logit_attribution
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

TEXT = Text(("the dog sat on the red mat.",))
SELF = PassSettings("self")
N_POSITION, TOKEN = 4, 7
MODULES = {
    "gpt2": ("transformer.ln_f", "transformer.h.{}.attn.c_proj"),
    "llama": ("model.norm", "model.layers.{}.self_attn.o_proj"),
    "qwen3": ("model.norm", "model.layers.{}.self_attn.o_proj"),
    "opt": ("model.decoder.final_layer_norm", "model.decoder.layers.{}.self_attn.out_proj"),
    "gpt_neox": ("gpt_neox.final_layer_norm", "gpt_neox.layers.{}.attention.dense"),
    "gemma3": ("model.norm", "model.layers.{}.self_attn.o_proj"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made(family, **changed) -> a small random decoder in float64, whose norms have weights."""
    import transformers

    def checkpoint(family, **changed):
        path, tokenizer = tmp_path_factory.mktemp(family), TOKENIZERS[family]()
        torch.manual_seed(2)
        model = transformers.AutoModelForCausalLM.from_config(config(family, len(tokenizer), **changed)).double()
        for values in model.parameters():
            if values.ndim == 1:  # norms begin as 1 and 0, which would hide them
                values.data += 0.3 * torch.randn(values.shape, dtype=torch.float64)
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        return load_checkpoint(find_checkpoint(str(path)), device="cpu", dtype="float64")

    return checkpoint


def frozen(norm, at, family):
    """Weights and centring of a norm at one input, from its formula."""
    is_layer_norm = isinstance(norm, torch.nn.LayerNorm)
    centred = at - at.mean() if is_layer_norm else at
    eps = next(getattr(norm, name) for name in ("eps", "variance_epsilon") if hasattr(norm, name))
    weight = 1 + norm.weight if family == "gemma3" else norm.weight
    scale = weight / torch.sqrt(centred.square().mean() + eps)
    return lambda rows: scale * (rows - rows.mean(-1, keepdim=True) if is_layer_norm else rows)


def by_hand(folder, family, ids, n_heads):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float64).eval()
    norm_name, projection_name = MODULES[family]
    norm, kept = model.get_submodule(norm_name), {}
    norm.register_forward_pre_hook(lambda _, args: kept.update(final=args[0][0, N_POSITION]))
    for layer in range(model.config.num_hidden_layers):
        module = model.get_submodule(projection_name.format(layer))
        module.register_forward_hook(
            lambda _, args, out, layer=layer: kept.update({layer: (args[0][0, N_POSITION], out[0, N_POSITION])})
        )
    with torch.no_grad():
        model(input_ids=torch.tensor(ids)[None])
        unembedding = model.get_output_embeddings().weight
        direction = unembedding[TOKEN] - unembedding.mean(0)
        rows = []
        for layer in range(model.config.num_hidden_layers):
            module = model.get_submodule(projection_name.format(layer))
            weight = module.weight if isinstance(module, torch.nn.Linear) else module.weight.T
            inputs, output = kept[layer]
            by_head = inputs.view(n_heads, -1)
            writes = torch.stack(
                [weight.view(len(weight), n_heads, -1)[:, head] @ by_head[head] for head in range(n_heads)]
            )
            if family == "gemma3":
                after = model.get_submodule(f"model.layers.{layer}.post_attention_layernorm")
                writes = frozen(after, output, family)(writes)
            rows.append(frozen(norm, kept["final"], family)(writes) @ direction)
    return torch.stack(rows).numpy()


@pytest.mark.parametrize("family", MODULES)
def test_what_heads_add_is_their_write_through_the_norm_onto_the_token(made, family):
    checkpoint = made(family)
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)
    expected = by_hand(checkpoint.files.folder, family, text.source.ids, found.shape[1])
    assert np.abs(expected).max() > 0.01
    # Root mean square norms of transformers compute in float32, whatever the model's number format.
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-6)


def test_a_head_that_is_off_adds_nothing(made):
    checkpoint = made("gpt2")
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, PassSettings("self", ((1, 2),)), N_POSITION, TOKEN)
    assert found[1, 2] == 0
    assert (found != 0).sum() == found.size - 1


def test_a_model_that_normalises_after_each_layer_is_refused(made):
    checkpoint = made("opt", do_layer_norm_before=False)
    text = prepare(checkpoint, TEXT, SELF)
    with pytest.raises(AnalysisError, match="normalises the sum after each layer"):
        logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)
