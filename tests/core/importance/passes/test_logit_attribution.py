"""Direct logit attribution equals the sum written out with each family's modules and formulas, and sums up."""

import numpy as np
import pytest
import torch
from small_checkpoints import GEMMA, GROUPED, TOKENIZERS, config

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.passes.direct_path import logit_attribution
from attention_sieve.core.passes.batches import attention_of_token
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
    "granite": ("model.norm", "model.layers.{}.self_attn.o_proj"),
    "cohere": ("model.norm", "model.layers.{}.self_attn.o_proj"),
    "falcon_h1": ("model.final_layernorm", "model.layers.{}.self_attn.o_proj"),
    "gemma4": ("model.norm", "model.layers.{}.self_attn.o_proj"),
}
MIXERS = GROUPED | {
    "mamba_d_state": 4,
    "mamba_d_head": 8,
    "mamba_n_heads": 4,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 8,
}
GRANITE = {"residual_multiplier": 0.22, "logits_scaling": 8.0, "embedding_multiplier": 12.0}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 2}
MULTIPLYING = {
    "granite": ("GraniteConfig", GROUPED | GRANITE),
    "granitemoe": ("GraniteMoeConfig", GROUPED | GRANITE | EXPERTS),
    "granitemoehybrid": (
        "GraniteMoeHybridConfig",
        MIXERS | GRANITE | EXPERTS | {"shared_intermediate_size": 8, "layer_types": ["mamba", "attention"]},
    ),
    "cohere": ("CohereConfig", GROUPED | {"logit_scale": 0.0625}),
    "cohere2": ("Cohere2Config", GROUPED | {"logit_scale": 0.0625}),
    "falcon_h1": (
        "FalconH1Config",
        MIXERS
        | {"mamba_d_ssm": 32, "lm_head_multiplier": 0.05, "attention_out_multiplier": 0.7, "ssm_out_multiplier": 0.4},
    ),
    "gemma4": (
        "Gemma4TextConfig",
        GEMMA
        | {"hidden_size_per_layer_input": 4, "layer_types": ["sliding_attention", "full_attention"]}
        | {"num_kv_shared_layers": 0, "global_head_dim": 6},
    ),
    "zamba2": (
        "Zamba2Config",
        MIXERS
        | {"num_hidden_layers": 4, "num_key_value_heads": 4, "attention_head_dim": 8, "adapter_rank": 4}
        | {"layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "hybrid_layer_ids": [1, 3], "num_mem_blocks": 1}
        | {"mamba_headdim": 8, "mamba_ngroups": 1, "n_mamba_heads": 4, "chunk_size": 8},
    ),
}
"""Families that multiply outside normalisations, or whose heads are read by other layers alone."""
SCALAR = 0.4
"""Of each layer of Gemma 4."""
FACTORS = {
    "granite": lambda _: 0.22 / 8.0,
    "cohere": lambda _: 0.0625,
    "falcon_h1": lambda _: 0.05 * 0.7,
    "gemma4": lambda layer: SCALAR ** (2 - layer),
}
"""By family: what the write of a head of a layer is multiplied by besides normalisations."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made(family, **changed) -> a small random decoder in float64, whose norms have weights."""
    import transformers

    def checkpoint(family, **changed):
        path, tokenizer = tmp_path_factory.mktemp(family), TOKENIZERS.get(family, TOKENIZERS["llama"])()
        torch.manual_seed(2)
        if family in MULTIPLYING:
            name, settings = MULTIPLYING[family]
            settings = settings | {"vocab_size": len(tokenizer), "vocab_size_per_layer_input": len(tokenizer)} | changed
            of_family = getattr(transformers, name)(**settings)
        else:
            of_family = config(family, len(tokenizer), **changed)
        model = transformers.AutoModelForCausalLM.from_config(of_family).double()
        for values in model.parameters():
            if values.ndim == 1:  # norms begin as 1 and 0, which would hide them
                values.data += 0.3 * torch.randn(values.shape, dtype=torch.float64)
        for name, values in model.named_buffers():
            if name.endswith("layer_scalar"):
                values.fill_(SCALAR)
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        dtype = "float32" if family in (*MULTIPLYING, "gpt_oss") else "float64"
        return load_checkpoint(find_checkpoint(str(path)), device="cpu", dtype=dtype)

    return checkpoint


def frozen(norm, at, family):
    """Weights and centring of a norm at one input, from its formula."""
    is_layer_norm = "LayerNorm" in type(norm).__name__
    centred = at - at.mean() if is_layer_norm else at
    eps = next(getattr(norm, name) for name in ("eps", "variance_epsilon") if hasattr(norm, name))
    weight = 1 + norm.weight if family == "gemma3" else norm.weight
    scale = weight / torch.sqrt(centred.square().mean() + eps)
    return lambda rows: scale * (rows - rows.mean(-1, keepdim=True) if is_layer_norm else rows)


def by_hand(folder, family, ids, n_heads, dtype):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", dtype=dtype).eval()
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
        unembedding = model.get_output_embeddings().weight.double()
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
            writes = writes * FACTORS.get(family, lambda _: 1)(layer)
            if family in ("gemma3", "gemma4"):
                after = model.get_submodule(f"model.layers.{layer}.post_attention_layernorm")
                writes = frozen(after, output, family)(writes)
            rows.append(frozen(norm, kept["final"], family)(writes).double() @ direction)
    return torch.stack(rows).numpy()


def logit(checkpoint, ids, token):
    """The logit of a token after the position, less the mean of all."""
    with torch.no_grad():
        logits = checkpoint.full_model(torch.tensor(ids)[None]).logits[0, N_POSITION].double()
    return float(logits[token] - logits.mean())


@pytest.mark.parametrize("family", MODULES)
def test_what_heads_add_is_their_write_through_the_norm_and_every_factor_onto_the_token(made, family):
    checkpoint = made(family)
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN).adds.heads
    dtype = getattr(torch, checkpoint.dtype)
    expected = by_hand(checkpoint.files.folder, family, text.source.ids, found.shape[1], dtype)
    assert np.abs(expected).max() > 0.01
    # Root mean square norms of transformers compute in float32, whatever the model's number format.
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "opt", *MULTIPLYING])
def test_heads_the_rest_of_the_layers_the_embedding_and_last_biases_sum_to_the_logit(made, family):
    checkpoint = made(family)
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)
    assert (found.capped is not None) == (family == "gemma2")
    shown = found.adds if found.capped is None else found.capped
    assert shown.total == pytest.approx(logit(checkpoint, text.source.ids, TOKEN), abs=1e-4)
    assert (shown.embedding, len(shown.blocks)) != (0, 0)
    if family == "zamba2":  # whose heads are read by the mixer of their layer
        assert np.nanmax(np.abs(found.adds.heads)) == 0
    else:
        assert np.nanmax(np.abs(found.adds.heads)) > 0.001


def test_a_soft_cap_takes_of_each_token_its_own_share(made):
    """The logits of Gemma 2 are those before the cap through 5 tanh(x / 5)."""
    checkpoint = made("gemma2", final_logit_softcapping=5.0)
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)
    model = checkpoint.full_model
    with torch.no_grad():
        hidden = model.model(torch.tensor(text.source.ids)[None])[0][0, N_POSITION]
        before = (model.lm_head.weight @ hidden).double()
    assert found.adds.total == pytest.approx(float(before[TOKEN] - before.mean()), abs=1e-4)
    after = 5 * torch.tanh(before / 5)
    assert found.capped.total == pytest.approx(float(after[TOKEN] - after.mean()), abs=1e-4)
    assert abs(found.adds.total - found.capped.total) > 1e-3


@pytest.mark.parametrize("family", ["llama", "gpt_oss"])
def test_what_a_head_adds_is_what_it_would_add_for_each_key_by_its_attention(made, family):
    checkpoint = made(family)
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)
    row = attention_of_token(checkpoint, text, SELF, N_POSITION)
    np.testing.assert_allclose((found.alone * row).sum(-1), found.adds.heads, atol=1e-5)


def test_a_head_that_is_off_adds_nothing(made):
    checkpoint = made("gpt2")
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, PassSettings("self", ((1, 2),)), N_POSITION, TOKEN)
    assert found.adds.heads[1, 2] == 0
    assert (found.adds.heads != 0).sum() == found.adds.heads.size - 1
    assert (found.alone[1, 2] == 0).all()


def test_a_model_that_normalises_after_each_layer_sums_to_the_logit_too(made):
    checkpoint = made("opt", do_layer_norm_before=False)
    text = prepare(checkpoint, TEXT, SELF)
    found = logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)
    assert found.adds.total == pytest.approx(logit(checkpoint, text.source.ids, TOKEN), abs=1e-4)


def test_a_model_with_weights_before_the_unembedding_is_refused(made):
    checkpoint = made("opt", word_embed_proj_dim=8)
    text = prepare(checkpoint, TEXT, SELF)
    with pytest.raises(AnalysisError, match="does more than to normalise before it predicts"):
        logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)


class _Bends(torch.nn.Module):
    def forward(self, hidden):
        return hidden + torch.sin(hidden)


def test_a_model_whose_parts_do_not_sum_to_the_logit_is_refused(made):
    checkpoint = made("llama", num_hidden_layers=1)
    norm = checkpoint.full_model.model.norm
    checkpoint.full_model.model.norm = torch.nn.Sequential(norm, _Bends())
    text = prepare(checkpoint, TEXT, SELF)
    with pytest.raises(AnalysisError, match=r"add sums to .*, and its logit is .* more than to add and to multiply"):
        logit_attribution(checkpoint, text, SELF, N_POSITION, TOKEN)
