"""Writes a planted model's weights into the architectures of transformers that hold them: GPT-2, BERT, Llama.

A layer norm with an epsilon of 1e12 and weights of 1e6 is the identity on a stream that adds up to 0, and so each
stream is held twice, the second time negated. What reads it takes half of the difference.
"""

from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
)

from benchmarks.planted.rotary import THETA
from benchmarks.planted.truth import Host
from benchmarks.planted.weights import Attention, Mlp, Weights

EPSILON: Final = 1e12
N_INNER: Final = 8
"""Of the MLP of a host where the weights have none."""


def plain_model(host: Host, weights: Weights) -> PreTrainedModel:
    """A model of transformers with these weights, in evaluation mode and with eager attention.

    Args:
        host: The architecture.
        weights: Whose heads, times their size, are as wide as the stream twice, or wider; Llama's may be of any size.
    """
    model = HOSTS[host](weights).eval()
    model.set_attn_implementation("eager")
    return model


def twice(written: Float[Tensor, "*row stream"], width: int) -> Float[Tensor, "*row width"]:
    """What writes the stream, for a residual stream that holds it twice, and 0 beyond."""
    rest = written.new_zeros(*written.shape[:-1], width - 2 * written.shape[-1])
    return torch.cat([written, -written, rest], dim=-1)


def read_twice(read: Float[Tensor, "*row stream"], width: int) -> Float[Tensor, "*row width"]:
    """What reads the stream, for a residual stream that holds it twice."""
    return twice(read / 2, width)


def _cleared(model: PreTrainedModel) -> PreTrainedModel:
    """The model with norms that are the identity, and all other weights 0."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(EPSILON**0.5 if is_norm(name) and name.endswith("weight") else 0)
    return model


def is_norm(parameter: str) -> bool:
    """Whether a parameter of this name is a norm's."""
    return "norm" in parameter.lower() or ".ln_" in parameter


def _inner(weights: Weights) -> int:
    return next((len(layer.mlp.inner) for layer in weights.layers if layer.mlp), N_INNER)


def _width(attention: Attention) -> int:
    """Of the residual stream: that of all heads."""
    n_heads, size, _ = attention.query.shape
    return n_heads * size


@torch.no_grad()
def _gpt2(weights: Weights) -> PreTrainedModel:
    attention = weights.layers[0].attention
    width, n_inner = _width(attention), _inner(weights)
    config = GPT2Config(
        vocab_size=len(weights.tokens), n_positions=len(weights.positions), n_embd=width, n_layer=len(weights.layers),
        n_head=len(attention.query), n_inner=n_inner, activation_function="relu", layer_norm_epsilon=EPSILON,
        tie_word_embeddings=False, bos_token_id=0, eos_token_id=0, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0,
    )  # fmt: skip
    model = _cleared(GPT2LMHeadModel(config))
    body = model.transformer
    body.wte.weight.copy_(twice(weights.tokens, width))
    body.wpe.weight.copy_(twice(weights.positions, width))
    for block, layer in zip(body.h, weights.layers):
        heads = layer.attention
        joined = torch.cat([part.flatten(0, 1) for part in (heads.query, heads.key, heads.value)])
        block.attn.c_attn.weight.copy_(read_twice(joined, width).T)
        block.attn.c_attn.bias[: 2 * width] = torch.cat([heads.query_bias.flatten(), heads.key_bias.flatten()])
        block.attn.c_proj.weight.copy_(twice(heads.output.transpose(1, 2).flatten(0, 1), width))
        if layer.mlp:
            _copy_mlp(layer.mlp, width, block.mlp.c_fc, block.mlp.c_proj, is_transposed=True)
    model.lm_head.weight.copy_(read_twice(weights.unembedding, width))
    return model


@torch.no_grad()
def _bert(weights: Weights) -> PreTrainedModel:
    attention = weights.layers[0].attention
    width, n_inner = _width(attention), _inner(weights)
    config = BertConfig(
        vocab_size=len(weights.tokens), max_position_embeddings=len(weights.positions), hidden_size=width,
        num_hidden_layers=len(weights.layers), num_attention_heads=len(attention.query), intermediate_size=n_inner,
        hidden_act="relu", layer_norm_eps=EPSILON, tie_word_embeddings=False, pad_token_id=0, type_vocab_size=2,
        hidden_dropout_prob=0, attention_probs_dropout_prob=0,
    )  # fmt: skip
    model = _cleared(BertForMaskedLM(config))
    embeddings = model.bert.embeddings
    embeddings.word_embeddings.weight.copy_(twice(weights.tokens, width))
    embeddings.position_embeddings.weight.copy_(twice(weights.positions, width))
    embeddings.token_type_embeddings.weight.copy_(twice(weights.segments, width))
    for block, layer in zip(model.bert.encoder.layer, weights.layers):
        _copy_attention(layer.attention, width, block.attention.self, ("query", "key", "value"))
        written = layer.attention.output.transpose(1, 2).flatten(0, 1)
        block.attention.output.dense.weight.copy_(twice(written, width).T)
        if layer.mlp:
            _copy_mlp(layer.mlp, width, block.intermediate.dense, block.output.dense, is_transposed=False)
    # ReLU of the stream and of its opposite: their difference is the stream again.
    model.cls.predictions.transform.dense.weight.copy_(torch.eye(width))
    model.cls.predictions.decoder.weight.copy_(twice(weights.unembedding, width))
    return model


@torch.no_grad()
def _llama(weights: Weights) -> PreTrainedModel:
    attention = weights.layers[0].attention
    n_heads, size, n_stream = attention.query.shape
    width, n_inner = -(-2 * n_stream // n_heads) * n_heads, _inner(weights)  # transformers wants a multiple
    config = LlamaConfig(
        vocab_size=len(weights.tokens), max_position_embeddings=128, hidden_size=width, head_dim=size,
        num_hidden_layers=len(weights.layers), num_attention_heads=n_heads, num_key_value_heads=len(attention.key),
        intermediate_size=n_inner, rms_norm_eps=EPSILON, attention_bias=True, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": THETA}, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = _cleared(LlamaForCausalLM(config))
    model.model.embed_tokens.weight.copy_(twice(weights.tokens, width))
    for block, layer in zip(model.model.layers, weights.layers):
        if layer.mlp:
            raise ValueError("Llama's MLP is a product of two projections, and holds none of these. Take another host.")
        _copy_attention(layer.attention, width, block.self_attn, ("q_proj", "k_proj", "v_proj"))
        written = layer.attention.output.transpose(1, 2).flatten(0, 1)
        block.self_attn.o_proj.weight.copy_(twice(written, width).T)
    model.lm_head.weight.copy_(read_twice(weights.unembedding, width))
    return model


def _copy_attention(attention: Attention, width: int, module: nn.Module, names: tuple[str, str, str]) -> None:
    query, key, value = (getattr(module, name) for name in names)
    query.weight.copy_(read_twice(attention.query.flatten(0, 1), width))
    query.bias.copy_(attention.query_bias.flatten())
    key.weight.copy_(read_twice(attention.key.flatten(0, 1), width))
    key.bias.copy_(attention.key_bias.flatten())
    value.weight.copy_(read_twice(attention.value.flatten(0, 1), width))


def _copy_mlp(mlp: Mlp, width: int, inner: nn.Linear, outer: nn.Linear, *, is_transposed: bool) -> None:
    into, out = read_twice(mlp.inner, width), twice(mlp.outer.T, width).T
    inner.weight.copy_(into.T if is_transposed else into)
    outer.weight.copy_(out.T if is_transposed else out)
    inner.bias.copy_(mlp.inner_bias)
    outer.bias.copy_(twice(mlp.outer_bias, width))


HOSTS: Final[dict[Host, Callable[[Weights], PreTrainedModel]]] = {"gpt2": _gpt2, "bert": _bert, "llama": _llama}
