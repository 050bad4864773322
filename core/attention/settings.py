"""Settings of a pass: the kind of attention, the heads switched off, and the window of a layer."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Int, Num

Kind = Literal["self", "encoder", "decoder", "cross"]
"""Kind of attention: "self" for a checkpoint with one stack, or one of the three of an encoder-decoder."""
ONE_STACK: Final[tuple[Kind, ...]] = ("self",)
TWO_STACKS: Final[tuple[Kind, ...]] = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Reach:
    """Attention window of one layer, in tokens before and after the query; None if unlimited."""

    back: int | None = None
    ahead: int | None = None

    def within(self, n_tokens: int, causal: bool) -> "Reach":
        """The same window, without limits that have no effect on a text of `n_tokens` tokens."""
        back = None if self.back is None or self.back >= n_tokens - 1 else self.back
        ahead = None if self.ahead is None or self.ahead >= n_tokens - 1 or causal else self.ahead
        return Reach(back, ahead)


UNLIMITED: Final = Reach()
"""Every token sees every other."""


@dataclass(frozen=True)
class PassSettings:
    """What a pass depends on besides the checkpoint and the texts."""

    kind: Kind = "self"
    off: tuple[tuple[int, int], ...] = ()
    """Heads switched off, as (layer, head), of the same kind of attention: their outputs are multiplied by 0."""


@dataclass(frozen=True)
class Window:
    """The part of a text's attention map that is stored: first and one-past-last query, and key."""

    queries: tuple[int, int]
    keys: tuple[int, int]


def live_keys(
    n_queries: int,
    n_keys: int,
    causal: bool,
    reach: Reach = UNLIMITED,
) -> Int[np.ndarray, "query 2"]:
    """First and one-past-last key that each query can attend to."""
    query = np.arange(n_queries)
    start = np.zeros(n_queries, dtype=np.int64) if reach.back is None else np.maximum(query - reach.back, 0)
    end = query + 1 if causal else np.full(n_queries, n_keys)
    return np.stack([start, end if reach.ahead is None else np.minimum(end, query + reach.ahead + 1)], axis=1)


Head = tuple[int, int]


def head_name(layer: int, head: int) -> str:
    """Display name of a head: L3 H7."""
    return f"L{layer} H{head}"


def highest_head(values: Num[np.ndarray, "layer head"]) -> Head:
    """The head with the highest value; of several, the first by layer and head. NaN, no value, is below all others."""
    layer, head = np.unravel_index(np.where(np.isnan(values), -np.inf, values).argmax(), values.shape)
    return int(layer), int(head)


def head_names(heads: Iterable[Head]) -> str:
    """Display names of several heads: L3 H7, L4 H1."""
    return ", ".join(head_name(*head) for head in heads)
