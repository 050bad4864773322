"""Collectors of a pass: attention entry by entry, as whole maps or of one token, and between words, layer by layer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import MapObserver, Pass, Tile
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import gates, model_inputs, to_device
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import FIRST_WORD, FromWord, WordMap


class MapCollector:
    """Stores every text's attention maps in full."""

    indicators = None
    wants_entropy = False
    wants_outputs = False

    def __init__(self, texts: Sequence[PassText], precision: type[np.floating[Any]] = np.float16) -> None:
        """Prepare to store the attention of these texts, without padding; in single precision rows sum to 1."""
        self._precision = precision
        self._observers = [
            MapObserver(row, len(text.queries.ids), len(text.keys.ids)) for row, text in enumerate(texts)
        ]

    def observe(self, tile: Tile) -> None:
        """Copy a tile to the maps of its texts."""
        for observer in self._observers[tile.texts]:
            observer.observe(tile)

    def results(self) -> list[Float[np.ndarray, "layer head query key"]]:
        """The maps of each text."""
        return [observer.attention().cpu().numpy().astype(self._precision) for observer in self._observers]


def attention_of_token(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int
) -> Float[np.ndarray, "layer head key"]:
    """Attention of one token of a text to every key, whatever the length of the text.

    Returns: NaN for heads that are not there.
    """
    n_queries, n_keys = len(text.queries.ids), len(text.keys.ids)
    row = MapObserver(0, n_queries, n_keys, Window((position, position + 1), (0, n_keys)))
    calls = checkpoint.attentions[text.kind].calls
    of_pass = Pass(observers=[row], calls=calls, gates=gates(checkpoint, settings), stops=True)
    observe(checkpoint.model, model_inputs(checkpoint, [text]), of_pass)
    return row.attention()[:, :, 0].cpu().numpy()


Reduce = Callable[[int, Float[Tensor, "text head word key_word"]], Mapping[str, Tensor]]
"""Maps a layer and its attention between words to named arrays whose first axis is the text."""


class WordCollector:
    """Computes each layer's attention between words, and stores the result of a function of it.

    Both axes of the function's argument are: all [CLS]-like tokens as one word, all other special tokens as one word,
    and the text's words (from FIRST_WORD on), padded to the longest text of the batch. Rows of words with tokens sum to
    1; rows and columns of words without tokens are 0. The argument is valid only until the function returns.
    Source: Clark et al. 2019, section 4.1: attention to a word is the sum over its tokens, attention from a word the
    mean; their code calls it with the first token instead.
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
        """Set up the aggregation of a batch. The maps are of the words of each text; queries and keys must be the same
        tokens."""
        n_words = FIRST_WORD + max(word_map.n_words for word_map in maps)
        n_tokens = max(len(word_map.of_token) for word_map in maps)
        membership = np.zeros((len(maps), n_tokens, n_words))
        for row, word_map in enumerate(maps):
            membership[row, np.arange(len(word_map.of_token)), word_map.of_token] = 1
        weights = membership if from_word == "mean" else membership * (np.cumsum(membership, axis=1) == 1)
        weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1)
        dtype = checkpoint.statistics_dtype
        self._to_word = to_device(torch.from_numpy(membership).to(dtype), checkpoint.device)
        self._from_word = to_device(torch.from_numpy(weights).to(dtype).transpose(1, 2).contiguous(), checkpoint.device)
        self._reduce, self._n_layers = reduce, n_layers
        self._layer = -1
        self._words: Tensor | None = None
        self._kept: list[Mapping[str, Tensor]] = []

    def observe(self, tile: Tile) -> None:
        """Add the attention of a tile's queries to their words."""
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
            self._kept.append({name: array.clone() for name, array in self._reduce(self._layer, self._words).items()})
            self._words.zero_()

    @torch.inference_mode()
    def results(self) -> list[dict[str, np.ndarray]]:
        """The stored arrays of each text, by name; the first axis is the layer."""
        self._finish_layer()
        if len(self._kept) != self._n_layers:
            raise RuntimeError(f"The pass showed {len(self._kept)} layers and {self._n_layers} were to be watched.")
        arrays = {name: torch.stack([layer[name] for layer in self._kept], 1).cpu().numpy() for name in self._kept[0]}
        return [{name: array[row] for name, array in arrays.items()} for row in range(len(self._to_word))]
