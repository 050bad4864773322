"""Weights of a planted model before they are written into a host: all linear maps read and write one plain stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.planted.functions import Function, Term, Write
from benchmarks.planted.rotary import Rotary
from benchmarks.planted.stream import CODE, SIZES, WIDTH, place, shift, token_embedding
from benchmarks.planted.truth import Host
from benchmarks.planted.vocabulary import token_id

NOISE_WRITTEN: Final = 0.001
"""Standard deviation of the output projection of a head without a function."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Attention:
    """The heads of a layer; scores are query times key, not yet divided by the root of the head's size."""

    query: Float[Tensor, "head size stream"]
    query_bias: Float[Tensor, "head size"]
    key: Float[Tensor, "key_head size stream"]
    key_bias: Float[Tensor, "key_head size"]
    value: Float[Tensor, "key_head size stream"]
    output: Float[Tensor, "head stream size"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Mlp:
    """A layer's MLP with ReLU."""

    inner: Float[Tensor, "inner stream"]
    inner_bias: Float[Tensor, " inner"]
    outer: Float[Tensor, "stream inner"]
    outer_bias: Float[Tensor, " stream"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer:
    """A layer; without an MLP the host's has weights 0."""

    attention: Attention
    mlp: Mlp | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights:
    """All that a host needs to become a planted model."""

    tokens: Float[Tensor, "token stream"]
    positions: Float[Tensor, "position stream"] | None
    segments: Float[Tensor, "segment stream"] | None
    layers: tuple[Layer, ...]
    unembedding: Float[Tensor, "token stream"]


class AttentionWriter:
    """Writes functions into the heads of one layer, each into dimensions that no other head of its key head uses."""

    def __init__(self, host: Host, n_heads: int, n_key_heads: int, size: int) -> None:
        self.host, self.size, self.group = host, size, n_heads // n_key_heads
        self.rotary = Rotary(size) if host == "llama" else None
        self.query, self.query_bias = torch.zeros(n_heads, size, WIDTH), torch.zeros(n_heads, size)
        self.key, self.key_bias = torch.zeros(n_key_heads, size, WIDTH), torch.zeros(n_key_heads, size)
        self.value, self.output = torch.zeros(n_key_heads, size, WIDTH), torch.zeros(n_heads, WIDTH, size)
        free = list(range(size)) if self.rotary is None else self.rotary.slow()
        self.free_scores = [list(free) for _ in range(n_key_heads)]
        self.free_values = [list(range(size)) for _ in range(n_key_heads)]
        if self.rotary is not None:
            self.key_bias[:, self.rotary.fast()] = 1

    def attention(self) -> Attention:
        """What has been written."""
        return Attention(
            query=self.query, query_bias=self.query_bias, key=self.key, key_bias=self.key_bias, value=self.value,
            output=self.output,
        )  # fmt: skip

    def write(self, head: int, function: Function, random: np.random.Generator) -> None:
        """Writes what one head does.

        Args:
            head: Index of the head, whose weights are still 0.
            function: What it does.
            random: Decides the weights of heads without a function.
        """
        if function.looks_at == "nothing":
            return self._write_noise(head, random)
        for term in function.terms():
            self._write_term(head, term)
        for part in function.parts():
            # What only marks the query keeps its size, so that what reads the mark need not know the strength.
            self._write_part(head, part, 1.0 if part.target == "filled" else function.strength)
        return None

    def _write_term(self, head: int, term: Term) -> None:
        if self.rotary is not None and term.query == term.key == "position":
            wanted = self.rotary.query(term.moved, is_avoided=term.weight < 0)
            self.query_bias[head] += abs(term.weight) * self.size**0.5 * wanted
            return
        key_head, n_dimensions = head // self.group, SIZES[term.key]
        at = [self.free_scores[key_head].pop(0) for _ in range(n_dimensions)]
        scale = (abs(term.weight) * self.size**0.5) ** 0.5  # half of it on each side, so that noise finds both alike
        sign = scale if term.weight > 0 else -scale
        self.key[key_head, at, place(term.key)] = scale * torch.eye(n_dimensions)
        if term.query is None:
            self.query_bias[head, at] = sign
        else:
            moved = shift(term.moved) if term.key == "position" else torch.eye(SIZES[term.query], n_dimensions).T
            self.query[head, at, place(term.query)] = sign * moved

    def _write_part(self, head: int, part: Write, strength: float) -> None:
        key_head, n_dimensions = head // self.group, SIZES[part.source]
        at = [self.free_values[key_head].pop(0) for _ in range(n_dimensions)]
        self.value[key_head, at, place(part.source)] = torch.eye(n_dimensions)
        through = torch.eye(n_dimensions)
        if part.word is not None:
            through = token_embedding(self.host)[token_id(self.host, part.word), place("token")].reshape(CODE, 1)
        self.output[head, place(part.target), at] = strength * through

    def _write_noise(self, head: int, random: np.random.Generator) -> None:
        key_head = head // self.group
        scores = [self.free_scores[key_head].pop(0) for _ in range(8)]
        values = [self.free_values[key_head].pop(0) for _ in range(8)]

        def drawn(*sizes: int) -> Float[Tensor, "row column"]:
            return torch.tensor(random.normal(size=sizes), dtype=torch.float32)

        self.query[head, scores], self.key[key_head, scores] = drawn(8, WIDTH), drawn(8, WIDTH)
        self.value[key_head, values] = drawn(8, WIDTH)
        self.output[head, :, values] = NOISE_WRITTEN * drawn(WIDTH, 8)


def head_size(host: Host, n_heads: int) -> int:
    """Dimensions of a head that hold whatever functions compare, and with which heads fill the mirrored stream."""
    return 128 if host == "llama" else max(SIZES["token"] + SIZES["position"] + 2, -(-2 * WIDTH // n_heads))


def attentions(
    host: Host, grid: Sequence[Sequence[Function]], n_key_heads: int, random: np.random.Generator
) -> tuple[Attention, ...]:
    """The heads of all layers.

    Args:
        host: Whose heads they are to be.
        grid: What each head does: layers of heads.
        n_key_heads: Heads of keys and values; each serves as many heads.
        random: Decides the weights of heads without a function.
    """
    layers = []
    for functions in grid:
        writer = AttentionWriter(host, len(functions), n_key_heads, head_size(host, len(functions)))
        for head, function in enumerate(functions):
            writer.write(head, function, random)
        layers.append(writer.attention())
    return tuple(layers)
