"""Texts in batches of similar length, run through the model with one result per text; and collectors of attention,
entry by entry or between words, layer by layer."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import MapObserver, Observer, Pass, Tile
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import FIRST_WORD, FromWord, TokenizedText, WordMap

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")

BATCH_TOKENS: Final = {"cpu": 1024, "mps": 4096, "cuda": 16384}
"""Tokens per batch, padding included, by device: small batches fit into a CPU's cache."""
MOST_ENTRIES: Final = 1 << 30
"""Attention entries of one text, over all layers and heads, that a pass may keep for its backward pass: 4 GB."""


class Collector(Observer, Protocol[Result_co]):
    """An observer of one batch with a result for each text."""

    def results(self) -> Sequence[Result_co]:
        """One result per text of the batch, in order, on the CPU; called once, after the pass."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts of one forward pass."""

    positions: tuple[int, ...]
    """Indices of the texts in the input."""
    width: int
    """Length of the longest text, in tokens."""


def plan_batches(lengths: Sequence[int], budget: int) -> list[Batch]:
    """Group texts of similar length into batches of at most `budget` tokens, padding included, but at least one
    text."""
    batches: list[Batch] = []
    current: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if current and (len(current) + 1) * lengths[position] > budget:
            batches.append(Batch(tuple(current), lengths[current[-1]]))
            current = []
        current.append(position)
    return [*batches, Batch(tuple(current), lengths[current[-1]])] if current else batches


def collect(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    collector: Callable[[Sequence[PassText]], Collector[Result]],
    *,
    batch_tokens: int | None = None,
) -> Iterator[list[tuple[int, Result]]]:
    """Run texts through the model, yielding the results of each batch. `collector` creates the observer of a batch from
    its texts; a batch has at most so many tokens, padding included, or by default as many as suit the device.

    Yields: index of the text and its result; not in input order.
    """
    attention = checkpoint.attentions[settings.kind]
    budget = batch_tokens or BATCH_TOKENS[checkpoint.device]
    for batch in plan_batches([text.n_tokens for text in texts], budget):
        batch_texts = [texts[position] for position in batch.positions]
        observer = collector(batch_texts)
        observe(
            checkpoint.model,
            model_inputs(checkpoint, batch_texts),
            Pass(observers=[observer], calls=attention.calls, gates=gates(checkpoint, settings), stops=True),
        )
        yield list(zip(batch.positions, observer.results(), strict=True))


def check_length(attention: AttentionLayers, n_tokens: int) -> None:
    """Refuse a text whose attention, kept for the backward pass, would fill the memory.

    Raises: AnalysisError.
    """
    per_pair = attention.n_layers * attention.n_heads
    if per_pair * n_tokens**2 > MOST_ENTRIES:
        raise AnalysisError(
            f"A text has {n_tokens:,} tokens, and gradients of this checkpoint's attention take too much memory beyond "
            f"{int((MOST_ENTRIES / per_pair) ** 0.5):,}. Leave the text out, or truncate it."
        )


def gates(checkpoint: Checkpoint, settings: PassSettings) -> Float[Tensor, "layer head"] | None:
    """Factor for the output of each head: 1, or 0 if switched off; None if all heads are on."""
    if not settings.off:
        return None
    attention = checkpoint.attentions[settings.kind]
    values = torch.ones((attention.n_layers, attention.n_heads))
    for layer, head in settings.off:
        values[layer, head] = 0
    return to_device(values, checkpoint.device)


def model_inputs(checkpoint: Checkpoint, texts: Sequence[PassText]) -> dict[str, Tensor]:
    """Arguments of the model for a batch: ids, masks if there is padding, and type ids if the model uses them."""
    inputs = _padded(checkpoint, [text.source for text in texts])
    if checkpoint.takes_type_ids:
        inputs["token_type_ids"] = _stacked([text.source.type_ids for text in texts], 0, checkpoint.device)
    targets = [text.target for text in texts if text.target is not None]
    if targets:
        inputs |= {f"decoder_{name}": value for name, value in _padded(checkpoint, targets).items()}
    return inputs


def _padded(checkpoint: Checkpoint, texts: Sequence[TokenizedText]) -> dict[str, Tensor]:
    inputs = {"input_ids": _stacked([text.ids for text in texts], checkpoint.padding_id, checkpoint.device)}
    lengths = {len(text.ids) for text in texts}
    if len(lengths) > 1:
        inputs["attention_mask"] = _stacked([np.ones_like(text.ids) for text in texts], 0, checkpoint.device)
    return inputs


def _stacked(rows: Sequence[np.ndarray], padding: int, device: str) -> Tensor:
    stacked = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for row, values in enumerate(rows):
        stacked[row, : len(values)] = values
    return to_device(torch.from_numpy(stacked), device)


def to_device(values: Tensor, device: str) -> Tensor:
    """Move a tensor to a device; to a GPU asynchronously, through pinned memory."""
    return values.pin_memory().to(device, non_blocking=True) if device == "cuda" else values.to(device)


def tensor_on(array: np.ndarray, device: str, dtype: torch.dtype) -> Tensor:
    """An array on a device, with numbers of this format unless they are integers."""
    values = torch.from_numpy(array)
    # Convert the dtype first: MPS has no float64.
    return to_device(values.to(dtype) if values.is_floating_point() else values, device)


class MapCollector(Observer):
    """Stores every text's attention maps in full."""

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
    observed_pass = Pass(observers=[row], calls=calls, gates=gates(checkpoint, settings), stops=True)
    observe(checkpoint.model, model_inputs(checkpoint, [text]), observed_pass)
    return row.attention()[:, :, 0].cpu().numpy()


Reduce = Callable[[int, Float[Tensor, "text head word key_word"]], Mapping[str, Tensor]]
"""Maps a layer and its attention between words to named arrays whose first axis is the text."""


class WordCollector(Observer):
    """Computes each layer's attention between words, and stores the result of a function of it.

    Both axes of the function's argument are: all [CLS]-like tokens as one word, all other special tokens as one word,
    and the text's words (from FIRST_WORD on), padded to the longest text of the batch. Rows of words with tokens sum to
    1; rows and columns of words without tokens are 0. The argument is valid only until the function returns.
    Source: Clark et al. 2019, section 4.1: attention to a word is the sum over its tokens, attention from a word the
    mean; their code calls it with the first token instead.
    """

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
        n_tokens = max(len(word_map.word_numbers) for word_map in maps)
        membership = np.zeros((len(maps), n_tokens, n_words))
        for row, word_map in enumerate(maps):
            membership[row, np.arange(len(word_map.word_numbers)), word_map.word_numbers] = 1
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
