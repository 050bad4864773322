"""Plain GPT-2 and BERT models that compute a compiled program; BERT where tokens see both ways."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Int
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from benchmarks.planted.rasp.compiled import FIRST, PADDING, CompiledProgram
from benchmarks.planted.rasp.plain import Heads, PlainWeights, heads_for, plain_weights
from benchmarks.planted.truth import Host

EPSILON: Final = 1e12
"""Of norms, whose weights are its root: with a mean of 0 they then change nothing."""
LEAST_HEADS: Final = 4
LOGIT: Final = 20.0
"""Of the token that the program puts out; all others have 0."""
SPECIAL: Final[dict[Host, dict[str, str]]] = {
    "gpt2": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
    "bert": {
        "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]",
    },
}  # fmt: skip
"""Special tokens; the first one begins each text."""


@dataclass(frozen=True, eq=False)
class Carried:
    """A plain model that computes a program."""

    program: CompiledProgram
    host: Host
    model: GPT2LMHeadModel | BertForMaskedLM
    heads: Heads
    words: tuple[str, ...]
    """Of the host, by id."""

    @property
    def first(self) -> str:
        """The token that begins each text."""
        return next(iter(SPECIAL[self.host].values()))

    @property
    def input_ids(self) -> Int[np.ndarray, " token"]:
        """The host's id of each token of the program's vocabulary."""
        named = {FIRST: self.first, PADDING: SPECIAL[self.host]["pad_token"]}
        return np.array([self.words.index(named.get(word, word)) for word in self.program.vocabulary])

    @property
    def output_ids(self) -> Int[np.ndarray, " value"]:
        """The host's id of each value that the program puts out."""
        return np.array([self.words.index(value) for value in self.program.values])

    @property
    def projections(self) -> tuple[nn.Module, ...]:
        """Of each layer, the module that reads the outputs of all heads, one after the other."""
        if isinstance(self.model, GPT2LMHeadModel):
            return tuple(block.attn.c_proj for block in self.model.transformer.h)
        return tuple(block.attention.output.dense for block in self.model.bert.encoder.layer)


def carried(program: CompiledProgram) -> Carried:
    """A plain model that computes a program.

    Args:
        program: Compiled.
    """
    host: Host = "gpt2" if program.causal else "bert"
    inputs = sorted(set(program.vocabulary) - {FIRST, PADDING})
    words = tuple(dict.fromkeys((*SPECIAL[host].values(), *inputs, *program.values)))
    heads = heads_for(program, LEAST_HEADS)
    model = (_gpt2 if host == "gpt2" else _bert)(program, heads, len(words))
    result = Carried(program, host, model, heads, words)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            is_scale = (".ln_" in name or "LayerNorm" in name) and name.endswith("weight")
            weight.fill_(EPSILON**0.5 if is_scale else 0.0)
        (_write_gpt2 if host == "gpt2" else _write_bert)(result, plain_weights(program, heads))
    return result


def tokenizer(carried: Carried) -> PreTrainedTokenizerFast:
    """Splits a text at spaces, and begins it with the first token.

    Args:
        carried: The model that it is for.
    """
    special = SPECIAL[carried.host]
    ids = {word: index for index, word in enumerate(carried.words)}
    words = Tokenizer(models.WordLevel(ids, unk_token=special["unk_token"]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    first = (carried.first, ids[carried.first])
    words.post_processor = TemplateProcessing(single=f"{carried.first} $A", special_tokens=[first])
    longest = len(carried.program.positions)
    return PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=longest, **special)


def _gpt2(program: CompiledProgram, heads: Heads, n_words: int) -> GPT2LMHeadModel:
    config = GPT2Config(
        vocab_size=n_words, n_positions=len(program.positions), n_embd=heads.width, n_layer=len(program.layers),
        n_head=heads.number, n_inner=program.layers[0].inner.shape[1], activation_function="relu",
        layer_norm_epsilon=EPSILON, tie_word_embeddings=False, bos_token_id=0, eos_token_id=1, pad_token_id=3,
        attn_pdrop=0, embd_pdrop=0, resid_pdrop=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config).eval()


def _bert(program: CompiledProgram, heads: Heads, n_words: int) -> BertForMaskedLM:
    config = BertConfig(
        vocab_size=n_words, max_position_embeddings=len(program.positions), hidden_size=heads.width,
        num_hidden_layers=len(program.layers), num_attention_heads=heads.number,
        intermediate_size=program.layers[0].inner.shape[1], hidden_act="relu", layer_norm_eps=EPSILON,
        tie_word_embeddings=False, pad_token_id=3, hidden_dropout_prob=0, attention_probs_dropout_prob=0,
    )  # fmt: skip
    return BertForMaskedLM(config).eval()


def _write_gpt2(carried: Carried, weights: PlainWeights) -> None:
    body = carried.model.transformer
    body.wte.weight[carried.input_ids] = _tensor(weights.tokens)
    body.wpe.weight[:] = _tensor(weights.positions)
    for block, layer in zip(body.h, weights.layers):
        block.attn.c_attn.weight[:] = _tensor(np.concatenate([layer.query, layer.key, layer.value], axis=1))
        block.attn.c_proj.weight[:] = _tensor(layer.output)
        block.mlp.c_fc.weight[:] = _tensor(layer.inner)
        block.mlp.c_proj.weight[:] = _tensor(layer.outer)
    carried.model.lm_head.weight[carried.output_ids] = _tensor(LOGIT * weights.readout.T)


def _write_bert(carried: Carried, weights: PlainWeights) -> None:
    body, head = carried.model.bert, carried.model.cls.predictions
    body.embeddings.word_embeddings.weight[carried.input_ids] = _tensor(weights.tokens)
    body.embeddings.position_embeddings.weight[:] = _tensor(weights.positions)
    for block, layer in zip(body.encoder.layer, weights.layers):
        block.attention.self.query.weight[:] = _tensor(layer.query.T)
        block.attention.self.key.weight[:] = _tensor(layer.key.T)
        block.attention.self.value.weight[:] = _tensor(layer.value.T)
        block.attention.output.dense.weight[:] = _tensor(layer.output.T)
        block.intermediate.dense.weight[:] = _tensor(layer.inner.T)
        block.output.dense.weight[:] = _tensor(layer.outer.T)
    # The head has a ReLU: of a number and its negative one passes, so that half of the difference is half the number.
    head.transform.dense.weight.fill_diagonal_(2.0)
    head.decoder.weight[carried.output_ids] = _tensor(LOGIT * weights.readout.T)


def _tensor(weights: np.ndarray) -> Tensor:
    return torch.tensor(weights, dtype=torch.float32)
