"""What the residual stream of a planted model holds, and where: slots, codes of tokens and of positions."""

from functools import lru_cache
from itertools import accumulate
from typing import Final, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.planted import vocabulary
from benchmarks.planted.truth import Host

Slot = Literal[
    "token", "previous", "output", "position", "pointer", "governed", "governor", "segment", "first", "word", "filled",
    "seen", "asks", "name", "stop",
]  # fmt: skip
CODE: Final = 32
FREQUENCIES: Final = 24
POSITIONS: Final = 128
SIZES: Final[dict[Slot, int]] = {
    "token": CODE,  # codes: which token stands here
    "previous": CODE,  # which token stands before; written by a head
    "output": CODE,  # which token is predicted
    "position": 2 * FREQUENCIES,  # code of the position
    "pointer": 2 * FREQUENCIES,  # code of another position; written by a head
    "governed": vocabulary.CLASSES,  # class of an auxiliary
    "governor": vocabulary.CLASSES,  # class of a verb
    "segment": 2,
    "first": 1,  # marks: the first token of the text
    "word": 1,  # any token that is not special
    "filled": 1,  # a head has found what it looks for
    "seen": 1,  # the same token stands elsewhere, too
    "asks": 1,  # asks for the name
    "name": 1,
    "stop": 1,  # ends a sentence or segment
}
STARTS: Final = dict(zip(SIZES, accumulate(SIZES.values(), initial=0)))
WIDTH: Final = sum(SIZES.values())
"""Of the stream; the residual stream of a host holds it twice, the second time negated."""


def place(slot: Slot) -> slice:
    """Where a slot stands in the stream."""
    return slice(STARTS[slot], STARTS[slot] + SIZES[slot])


@lru_cache
def codes(number: int, size: int) -> Float[Tensor, "number size"]:
    """Unit vectors of which any two have a small inner product, at most about a quarter for 128 of size 32.

    Args:
        number: Of vectors, more than their size.
        size: Of each vector.

    Source: alternating projection as in Tropp et al. 2005, Designing structured tight frames, section III.
    """
    bound = 1.1 * np.sqrt((number - size) / (size * (number - 1)))
    vectors = np.random.default_rng(0).normal(size=(number, size))
    for _ in range(150):
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        products = np.clip(vectors @ vectors.T, -bound, bound)
        np.fill_diagonal(products, 1)
        values, directions = np.linalg.eigh(products)
        vectors = directions[:, -size:] * np.sqrt(np.maximum(values[-size:], 0))
    return torch.tensor(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=torch.float32)


@lru_cache
def frequencies() -> Float[np.ndarray, " frequency"]:
    """Frequencies, in radians a token, whose cosines add up to little at every distance but 0.

    Returns: Of 5,000 drawn sets the one with the smallest greatest sum.
    """
    drawn = np.random.default_rng(0).uniform(0, np.pi, size=(5_000, FREQUENCIES))
    greatest = np.full(len(drawn), -np.inf)
    for distance in range(1, POSITIONS):
        greatest = np.maximum(greatest, np.abs(np.cos(distance * drawn).mean(1)))
    return np.sort(drawn[greatest.argmin()])


def position_codes(positions: Float[np.ndarray, " position"]) -> Float[Tensor, "position code"]:
    """A unit vector for each position; the inner product of two depends on their distance alone."""
    angles = np.outer(positions, frequencies())
    vectors = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(FREQUENCIES)
    return torch.tensor(vectors, dtype=torch.float32)


def shift(tokens: int) -> Float[Tensor, "code code"]:
    """The matrix that turns the code of each position into the code of the one so many tokens before it."""
    cos, sin = (np.diag(turn(tokens * frequencies())) for turn in (np.cos, np.sin))
    return torch.tensor(np.block([[cos, sin], [-sin, cos]]), dtype=torch.float32)


@lru_cache
def token_embedding(host: Host) -> Float[Tensor, "token stream"]:
    """What the stream holds of each token of a host: its code, its class and its marks."""
    tokens = vocabulary.vocabulary(host)
    embedding = torch.zeros(len(tokens), WIDTH)
    embedding[-len(vocabulary.WORDS) :, place("token")] = codes(len(vocabulary.WORDS), CODE)
    for index, token in enumerate(tokens):
        for slot in _marks(host, token):
            embedding[index, place(slot)] = 1
        for kind, slot in ((vocabulary.AUXILIARIES, "governed"), (vocabulary.VERBS, "governor")):
            if token in kind:
                embedding[index, STARTS[slot] + kind.index(token) * vocabulary.CLASSES // len(kind)] = 1
    return embedding


def _marks(host: Host, token: str) -> list[Slot]:
    marks: dict[Slot, bool] = {
        "first": token == vocabulary.first_token(host),
        "word": token in vocabulary.WORDS,
        "asks": token in (vocabulary.ASK, "[MASK]"),
        "name": token in vocabulary.NAMES,
        "stop": token in (vocabulary.STOP, "[SEP]"),
    }
    return [slot for slot, is_marked in marks.items() if is_marked]


def position_embedding() -> Float[Tensor, "position stream"]:
    """What the stream holds of each position, in hosts that learn positions."""
    embedding = torch.zeros(POSITIONS, WIDTH)
    embedding[:, place("position")] = position_codes(np.arange(POSITIONS))
    return embedding


def segment_embedding() -> Float[Tensor, "segment stream"]:
    """What the stream holds of each segment, in hosts that have two."""
    embedding = torch.zeros(SIZES["segment"], WIDTH)
    embedding[:, place("segment")] = torch.eye(SIZES["segment"])
    return embedding


def unembedding(host: Host, scale: float) -> Float[Tensor, "token stream"]:
    """What is read from the stream as the logit of each token of a host."""
    read = torch.zeros(len(vocabulary.vocabulary(host)), WIDTH)
    read[:, place("output")] = scale * token_embedding(host)[:, place("token")]
    return read
