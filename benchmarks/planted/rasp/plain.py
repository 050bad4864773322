"""Weights of a host that computes a compiled program: matrices that read and write a mirrored residual stream.

The stream of the host holds the compiled one twice, the second time negated, so that its mean is 0 and layer norm can
be made to change nothing. A map reads half of what it reads from each copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from benchmarks.planted.rasp.compiled import CompiledLayer, CompiledProgram


@dataclass(frozen=True)
class Heads:
    """How many heads each layer of a host has, their size, and which of them do a program's work."""

    number: int
    size: int
    places: tuple[tuple[int, ...], ...]
    """By layer: the host's head for each head of the program."""

    @property
    def width(self) -> int:
        """Of the residual stream."""
        return self.number * self.size


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainLayer:
    """Attention, then an MLP with ReLU; scores are divided by the root of the head's size, and no map has a bias."""

    query: Float[np.ndarray, "width width"]
    key: Float[np.ndarray, "width width"]
    value: Float[np.ndarray, "width width"]
    output: Float[np.ndarray, "width width"]
    inner: Float[np.ndarray, "width inner"]
    outer: Float[np.ndarray, "inner width"]


@dataclass(frozen=True, eq=False, kw_only=True)
class PlainWeights:
    """All weights of a host but those of its norms."""

    tokens: Float[np.ndarray, "token width"]
    """In the order of the program's vocabulary."""
    positions: Float[np.ndarray, "position width"]
    layers: tuple[PlainLayer, ...]
    readout: Float[np.ndarray, "width value"]


def heads_for(program: CompiledProgram, least: int) -> Heads:
    """Heads that hold those of a program and its stream twice.

    Args:
        program: Compiled.
        least: Heads of a layer; those that the program does not need have no weights.
    """
    stream, n_heads, size = program.layers[0].query.shape
    number = max(n_heads, least)
    random = np.random.default_rng(program.seed)
    places = tuple(tuple(random.permutation(number)[:n_heads].tolist()) for _ in program.layers)
    return Heads(number, max(size, -(-2 * stream // number)), places)


def plain_weights(program: CompiledProgram, heads: Heads) -> PlainWeights:
    """The weights of a host with such heads.

    Args:
        program: Compiled.
        heads: Of the host.
    """
    return PlainWeights(
        tokens=writing(program.tokens, heads.width),
        positions=writing(program.positions, heads.width),
        layers=tuple(_layer(layer, heads, places) for layer, places in zip(program.layers, heads.places, strict=True)),
        readout=reading(program.readout, heads.width),
    )


def reading(weights: Float[np.ndarray, "stream column"], width: int) -> Float[np.ndarray, "width column"]:
    """A map that reads from a mirrored stream what the given one reads from the stream."""
    stream = len(weights)
    mirrored = np.zeros((width, weights.shape[1]))
    mirrored[:stream], mirrored[stream : 2 * stream] = weights / 2, -weights / 2
    return mirrored


def writing(weights: Float[np.ndarray, "row stream"], width: int) -> Float[np.ndarray, "row width"]:
    """A map that writes into a mirrored stream what the given one writes into the stream."""
    stream = weights.shape[1]
    mirrored = np.zeros((len(weights), width))
    mirrored[:, :stream], mirrored[:, stream : 2 * stream] = weights, -weights
    return mirrored


def _layer(layer: CompiledLayer, heads: Heads, places: Sequence[int]) -> PlainLayer:
    def placed(weights: Float[np.ndarray, "stream head size"]) -> Float[np.ndarray, "stream width"]:
        spread = np.zeros((len(weights), heads.number, heads.size))
        spread[:, places, : weights.shape[2]] = weights
        return spread.reshape(len(weights), heads.width)

    # The host divides scores by the root of its own head size, which may be greater.
    scale = (heads.size / layer.query.shape[2]) ** 0.5
    return PlainLayer(
        query=reading(placed(layer.query * scale), heads.width),
        key=reading(placed(layer.key), heads.width),
        value=reading(placed(layer.value), heads.width),
        output=writing(placed(layer.output.transpose(2, 0, 1)).T, heads.width),
        inner=reading(layer.inner, heads.width),
        outer=writing(layer.outer, heads.width),
    )
