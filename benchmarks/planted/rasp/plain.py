"""The weights of a compiled program as a host of planted models takes them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.planted.rasp.compiled import FIRST, PADDING, CompiledLayer, CompiledProgram
from benchmarks.planted.truth import Head, Host
from benchmarks.planted.vocabulary import SPECIAL, first_token
from benchmarks.planted.weights import Attention, Layer, Mlp, Weights

LEAST_HEADS: Final = 4
"""Of a layer of the host; heads that the program does not use have no weights."""
LEAST_POSITIONS: Final = 16
"""Of a host, so that texts for trial fit; those after the longest input of a program mean nothing to its heads."""
LOGIT: Final = 20.0
"""Of the token that the program puts out; all others have 0."""


@dataclass(frozen=True)
class Layout:
    """Which tokens and heads of a host do the work of those of a program."""

    host: Host
    words: tuple[str, ...]
    """Of the host, by id: its special ones, values that are no inputs, and the inputs."""
    input_ids: tuple[int | None, ...]
    """Of each token of the program's vocabulary; None for padding."""
    output_ids: tuple[int, ...]
    """Of each value that the program puts out."""
    places: tuple[tuple[int, ...], ...]
    """By layer: the host's head for each head of the program."""
    n_heads: int
    head_size: int

    def place(self, layer: int, head: int) -> Head:
        """The host's head that does the work of one of the program."""
        return layer, self.places[layer][head]


def layout(program: CompiledProgram) -> Layout:
    """Finds place for a program in a host: BERT where its tokens see both ways, else GPT-2.

    Args:
        program: Compiled; its seed decides which heads of the host do its work.
    """
    host: Host = "gpt2" if program.causal else "bert"
    inputs = [first_token(host) if word == FIRST else word for word in program.vocabulary]
    # Inputs come last, since probe texts draw their tokens from all but the first of a vocabulary.
    answers = [value for value in program.values if value not in inputs]
    words = tuple(dict.fromkeys((*SPECIAL[host], *answers, *(word for word in inputs if word != PADDING))))
    stream, n_used, size = program.layers[0].query.shape
    n_heads = max(n_used, LEAST_HEADS)
    random = np.random.default_rng(program.seed)
    return Layout(
        host=host,
        words=words,
        input_ids=tuple(None if word == PADDING else words.index(word) for word in inputs),
        output_ids=tuple(words.index(value) for value in program.values),
        places=tuple(tuple(random.permutation(n_heads)[:n_used].tolist()) for _ in program.layers),
        n_heads=n_heads,
        head_size=max(size, -(-2 * stream // n_heads)),
    )


def plain_weights(program: CompiledProgram, at: Layout) -> Weights:
    """The weights of a program in a host.

    Args:
        program: Compiled.
        at: Where it is put.
    """
    stream = program.tokens.shape[1]
    tokens, unembedding = torch.zeros(len(at.words), stream), torch.zeros(len(at.words), stream)
    for embedding, index in zip(program.tokens, at.input_ids, strict=True):
        if index is not None:
            tokens[index] = _tensor(embedding)
    positions = torch.zeros(max(LEAST_POSITIONS, len(program.positions)), stream)
    positions[: len(program.positions)] = _tensor(program.positions)
    unembedding[list(at.output_ids)] = _tensor(LOGIT * program.readout.T)
    return Weights(
        tokens=tokens,
        positions=positions,
        segments=torch.zeros(2, stream) if at.host == "bert" else None,
        layers=tuple(_layer(layer, places, at) for layer, places in zip(program.layers, at.places, strict=True)),
        unembedding=unembedding,
    )


def _layer(layer: CompiledLayer, places: Sequence[int], at: Layout) -> Layer:
    stream, _, size = layer.query.shape

    def placed(weights: Float[np.ndarray, "used size stream"]) -> Float[Tensor, "head size stream"]:
        spread = torch.zeros(at.n_heads, at.head_size, stream)
        spread[list(places), :size] = _tensor(weights)
        return spread

    # The host divides scores by the root of its own head size, which may be greater.
    scale = (at.head_size / size) ** 0.5
    no_bias = torch.zeros(at.n_heads, at.head_size)
    attention = Attention(
        query=placed(scale * layer.query.transpose(1, 2, 0)),
        query_bias=no_bias,
        key=placed(layer.key.transpose(1, 2, 0)),
        key_bias=no_bias,
        value=placed(layer.value.transpose(1, 2, 0)),
        output=placed(layer.output).transpose(1, 2),
    )
    inner = layer.inner.shape[1]
    mlp = Mlp(
        inner=_tensor(layer.inner.T),
        inner_bias=torch.zeros(inner),
        outer=_tensor(layer.outer.T),
        outer_bias=torch.zeros(stream),
    )
    return Layer(attention=attention, mlp=mlp)


def _tensor(weights: np.ndarray) -> Tensor:
    return torch.tensor(weights, dtype=torch.float32)
