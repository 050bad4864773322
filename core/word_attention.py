"""Attention between words, layer by layer: the observer that sums and averages word pieces while the tiles pass."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.checkpoints import Checkpoint
from core.observers import Tile
from core.scores import to_device
from core.words import FIRST_WORD, FromWord, WordMap

Reduce = Callable[[int, Float[Tensor, "text head word key_word"]], Mapping[str, Tensor]]
"""Takes a layer and its attention between words; gives named arrays whose first axis is the text."""


class WordCollector:
    """Keeps of each layer's attention between words what a function reduces it to.

    Both axes of what the function gets are, in order: all [CLS]-like tokens as one word, all other special tokens as
    one, then the text's words (from FIRST_WORD on), padded to the longest text of the batch with words that have no
    token. Rows of words with tokens sum to 1, all others are 0, and so are columns of words without tokens. What it
    gets is valid only until it returns.
    Source: Clark et al. 2019, section 4.1: to a word the sum over its pieces, from a word the mean; their code calls it
    with the first piece.
    """

    indicators = None
    wants_entropy = False
    wants_outputs = False

    def __init__(
        self,
        checkpoint: Checkpoint,
        maps: Sequence[WordMap],
        reduce: Reduce,
        *,
        n_layers: int,
        from_word: FromWord = "mean",
    ) -> None:
        """Say which tokens make which words, and what is kept.

        Args:
            checkpoint: loaded.
            maps: of the texts of the batch, whose queries are their keys.
            reduce: see Reduce.
            n_layers: layers that are watched.
            from_word: which pieces of a word attend.
        """
        n_words = FIRST_WORD + max(one.n_words for one in maps)
        n_tokens = max(len(one.of_token) for one in maps)
        belongs = np.zeros((len(maps), n_tokens, n_words))
        for row, one in enumerate(maps):
            belongs[row, np.arange(len(one.of_token)), one.of_token] = 1
        attends = belongs if from_word == "mean" else belongs * (np.cumsum(belongs, axis=1) == 1)
        attends = attends / np.maximum(attends.sum(axis=1, keepdims=True), 1)
        dtype = checkpoint.statistics_dtype
        self._to_word = to_device(torch.from_numpy(belongs).to(dtype), checkpoint.device)
        self._from_word = to_device(torch.from_numpy(attends).to(dtype).transpose(1, 2).contiguous(), checkpoint.device)
        self._reduce, self._n_layers = reduce, n_layers
        self._layer = -1
        self._words: Tensor | None = None
        self._kept: list[Mapping[str, Tensor]] = []

    def observe(self, tile: Tile) -> None:
        """Add a tile's queries to the words they are pieces of."""
        if tile.layer != self._layer:
            self._finish_layer()
            self._layer = tile.layer
        attention = tile.probabilities
        if tile.row_sums is not None:
            attention = attention / tile.row_sums[..., None].clamp_min(torch.finfo(attention.dtype).tiny)
        to_word = self._to_word[tile.texts, : attention.shape[-1]]
        by_word = attention @ to_word[:, None]
        n_texts, n_heads = len(self._to_word), attention.shape[1]
        if self._words is None:
            n_words = to_word.shape[-1]
            self._words = attention.new_zeros((n_texts, n_heads, n_words, n_words))
        self._words[tile.texts] += self._from_word[tile.texts, None, :, tile.queries] @ by_word

    def _finish_layer(self) -> None:
        if self._words is not None:
            self._kept.append({name: kept.clone() for name, kept in self._reduce(self._layer, self._words).items()})
            self._words.zero_()

    @torch.inference_mode()
    def results(self) -> list[dict[str, np.ndarray]]:
        """What was kept of each text, by name, layers first."""
        self._finish_layer()
        if len(self._kept) != self._n_layers:
            raise RuntimeError(f"The pass showed {len(self._kept)} layers and {self._n_layers} were to be watched.")
        arrays = {name: torch.stack([of[name] for of in self._kept], 1).cpu().numpy() for name in self._kept[0]}
        return [{name: array[row] for name, array in arrays.items()} for row in range(len(self._to_word))]
