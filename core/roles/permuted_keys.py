"""A control for roles: scores of heads whose attention weights are randomly permuted over the keys."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attention_sieve.core.attention.observers import Observer, Tile
from attention_sieve.core.attention.settings import Reach, live_keys
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers
from attention_sieve.core.passes.batches import to_device
from attention_sieve.core.passes.texts import PassText

POSITION_BITS: Final = 20
"""Bits for a token's position in a text, so that every entry of a text's attention has its own number."""
POSITION_MASK: Final = (1 << POSITION_BITS) - 1
GOLDEN: Final = -0x61C8864680B583EB
MIXES: Final = ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15))
"""The constants of SplitMix64, as signed numbers."""


class PermutedKeys(Observer):
    """Passes attention on to an observer of scores, with the live keys of every row in random order.

    The weights of a row and its entropy stay the same, only their positions change. Every head, layer and query has its
    own order, which depends only on the tokens of the text and the seed: neither on the other texts of the batch nor on
    the device.
    """

    def __init__(self, scores: Observer, texts: Sequence[PassText], attention: AttentionLayers, seed: int) -> None:
        self._scores = scores
        self.indicators, self.wants_entropy = scores.indicators, scores.wants_entropy
        self._reaches = [attention.reach(layer) for layer in range(attention.n_layers)]
        self._bounds = {reach: _bounds(texts, attention.causal, reach) for reach in dict.fromkeys(self._reaches)}
        self._seeds = torch.tensor([_seed(text, seed) for text in texts])

    def observe(self, tile: Tile) -> None:
        """Permute the rows of a tile, recompute its sums, and pass it on."""
        attention = tile.probabilities
        permuted = attention.gather(-1, self._order(tile))
        indicators = self._scores.indicators
        sums = None if indicators is None else permuted @ indicators[tile.texts, None, : attention.shape[-1]]
        self._scores.observe(replace(tile, probabilities=permuted, indicator_sums=sums))

    def _order(self, tile: Tile) -> Int[Tensor, "text head query key"]:
        """For each key the key whose attention it gets: a random live one, or itself if it is not live.

        Sorts random numbers that carry the number of their key in their last bits. Keys before the live ones come
        first, and those after them last, so that both keep their places.
        """
        device = tile.probabilities.device
        _, n_heads, n_queries, n_keys = tile.probabilities.shape
        bounds = to_device(self._bounds[self._reaches[tile.layer]], str(device))[tile.texts, tile.queries]
        start, end = bounds[:, None, :, :1], bounds[:, None, :, 1:]
        key, head = torch.arange(n_keys, device=device), torch.arange(n_heads, device=device)
        query = torch.arange(n_queries, device=device) + tile.queries.start
        row = ((tile.layer * n_heads + head[:, None, None]) << POSITION_BITS) + query[:, None]
        entry = (row << POSITION_BITS) + key
        drawn = _random(to_device(self._seeds, str(device))[tile.texts, None, None, None] + entry * GOLDEN)
        with_key = (_shifted(drawn, 2) & ~POSITION_MASK) | key  # from 0 to 2^62
        before_or_after = torch.where(key < start, key - (1 << 62), key + (1 << 62))
        return _sorted(torch.where((start <= key) & (key < end), with_key, before_or_after)) & POSITION_MASK


def _seed(text: PassText, seed: int) -> int:
    """A number for the tokens of a text and a seed, of 63 bits."""
    tokens = [side.ids.astype(np.int64).tobytes() for side in (text.queries, text.keys)]
    digest = hashlib.sha256(b"|".join([str(seed).encode(), *tokens])).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def _random(numbers: Int[Tensor, "*entry"]) -> Int[Tensor, "*entry"]:
    """Hash distinct numbers to random numbers of 64 bits, the same on every device.

    Source: Steele, Lea & Flood 2014, SplitMix64.
    """
    for shift, factor in MIXES:
        numbers = (numbers ^ _shifted(numbers, shift)) * factor
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Int[Tensor, "*entry"], shift: int) -> Int[Tensor, "*entry"]:
    """Logical shift to the right; the shift of torch would repeat the sign bit."""
    return (numbers >> shift) & ((1 << (64 - shift)) - 1)


def _sorted(numbers: Int[Tensor, "*row key"]) -> Int[Tensor, "*row key"]:
    """Sort each row; on the CPU with NumPy, which is ten times as fast as torch there."""
    if numbers.device.type == "cpu":
        return torch.from_numpy(np.sort(numbers.numpy(), axis=-1))
    return numbers.sort(dim=-1).values


def _bounds(texts: Sequence[PassText], causal: bool, reach: Reach) -> Int[Tensor, "text query 2"]:
    """First and one-past-last live key of each query; padded queries have none."""
    bounds = np.zeros((len(texts), max(len(text.queries.ids) for text in texts), 2), dtype=np.int64)
    for row, text in enumerate(texts):
        n_own = len(text.queries.ids)
        bounds[row, :n_own] = live_keys(n_own, len(text.keys.ids), causal, reach)
    return torch.from_numpy(bounds)
