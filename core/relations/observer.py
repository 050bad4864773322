"""Predicts a head for every word from each attention head: the word it attends to most, or that attends to it most; and
the attention between a word and its syntactic head, with what other words give to the same words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attention_sieve.core.answering import REMOVED
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import FromWord, WordCollector, collect, to_device
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.relations.cases import WordPredictions
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.tokens import FIRST_WORD, word_map

NO_WORD: Final = -1
"""In place of a head among the words with tokens, for a word without one."""


def predictions(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    trees: Sequence[Dependencies],
    settings: PassSettings,
    *,
    from_word: FromWord = "mean",
) -> Iterator[list[tuple[int, WordPredictions]]]:
    """The predictions of every head for each text, batch by batch.

    Special tokens and the word itself are never predicted.

    Args:
        texts: prepared for the kind of attention in the settings.
        trees: of each text's queries (`attention_sieve.core.passes.texts.queries_text`).

    Yields: index of the text and its predictions; not in input order.
    Source: Clark et al. 2019, section 4.2; attention from a word is the mean over its tokens, as in the paper; their
        code uses the first token.
    """
    n_layers = checkpoint.attentions[settings.kind].n_layers
    # Truncated words are left out, since memory grows with the square of the number of words.
    maps = {text: word_map(tree.words, text.queries).tokenized_only() for text, tree in zip(texts, trees, strict=True)}
    heads = {text: _among(maps[text][1], tree.heads) for text, tree in zip(texts, trees)}

    def collector(batch: Sequence[PassText]) -> WordCollector:
        predict = _Predicting(checkpoint, [heads[text] for text in batch])
        batch_maps = [maps[text][0] for text in batch]
        return WordCollector(checkpoint, batch_maps, predict, n_layers=n_layers, from_word=from_word)

    for batch in collect(checkpoint, texts, settings, collector):
        yield [
            (index, _for_all_words(columns, maps[texts[index]][1], len(trees[index].heads))) for index, columns in batch
        ]


class _Predicting:
    """Reduces attention between the words of a batch to predictions, and to attention along its trees."""

    def __init__(self, checkpoint: Checkpoint, heads: Sequence[Int[np.ndarray, "_"]]) -> None:
        """`heads` holds the head of each word of each text of a batch, NO_WORD for none."""
        n_words = max(map(len, heads))
        head = np.full((len(heads), n_words), NO_WORD)
        is_other = np.zeros((len(heads), n_words, n_words), bool)
        for row, own in enumerate(heads):
            head[row, : len(own)] = own
            dependents = np.flatnonzero(own != NO_WORD)
            is_other[row, : len(own), : len(own)] = ~np.eye(len(own), dtype=bool)
            is_other[row, dependents, own[dependents]] = is_other[row, own[dependents], dependents] = False
        self._head, self._is_other = (
            to_device(torch.from_numpy(array), checkpoint.device) for array in (head, is_other)
        )

    def __call__(self, layer: int, attention: Float[Tensor, "text head word word"]) -> Mapping[str, Tensor]:
        between_words = attention[..., FIRST_WORD:, FIRST_WORD:]
        is_visible = between_words.nansum(1) > 0  # a key that no head of the layer looks at is hidden by a mask
        others = self._is_other & is_visible
        return {
            **most_attended(layer, attention),
            **self._along_trees(between_words, is_visible),
            # The mean over the others of every key; NaN if there are none.
            "from_others": (between_words * others[:, None]).sum(-2) / others.sum(-2)[:, None],
        }

    def _along_trees(
        self, attention: Float[Tensor, "text head query key"], is_visible: Bool[Tensor, "text query key"]
    ) -> dict[str, Float[Tensor, "text head word"]]:
        """Attention from every word to its head, and to it from its head; NaN where it cannot be seen, or is none."""
        head, has_head = self._head.clamp_min(0), self._head != NO_WORD
        along = {}
        for name, dim in (("to_head", -1), ("from_head", -2)):
            joined = attention.take_along_dim(head[:, None].unsqueeze(dim), dim).squeeze(dim)
            is_seen = is_visible.take_along_dim(head.unsqueeze(dim), dim).squeeze(dim) & has_head
            along[name] = joined.masked_fill(~is_seen[:, None], torch.nan)
        return along


def most_attended(_layer: int, attention: Float[Tensor, "text head word word"]) -> Mapping[str, Tensor]:
    """For each word, the other word that it attends to most, and the one that attends to it most; -1 for none, and
    REMOVED for a head that was removed."""
    between_words = attention[..., FIRST_WORD:, FIRST_WORD:]
    is_itself = torch.eye(between_words.shape[-1], dtype=torch.bool, device=between_words.device)
    others = between_words.masked_fill(is_itself, 0)
    words = [torch.where(strongest.values > 0, strongest.indices, -1) for strongest in (others.max(-1), others.max(-2))]
    is_removed = attention[..., 0, 0].isnan()[:, None, :, None]  # all of its entries are
    return {"predicted": torch.stack(words, 1).masked_fill(is_removed, REMOVED).to(torch.int32)}


def _among(indices: Int[np.ndarray, " kept"], heads: Int[np.ndarray, " word"]) -> Int[np.ndarray, " kept"]:
    """Convert the heads of all words of a text to those of the words with tokens, among them; NO_WORD for none."""
    place = np.full(len(heads) + 1, NO_WORD)
    place[indices] = np.arange(len(indices))
    return place[heads[indices]]  # ROOT reads the last entry, which belongs to no word


def _for_all_words(
    columns: Mapping[str, np.ndarray], indices: Int[np.ndarray, " kept"], n_words: int
) -> WordPredictions:
    """Convert the results for the words with tokens to results for all words of a text."""
    words = columns["predicted"]
    among_words = np.moveaxis(words[..., : len(indices)], 1, 0)
    predicted = np.where((words == REMOVED).all(-1).swapaxes(0, 1)[..., None], REMOVED, np.full(n_words, -1))
    predicted[..., indices] = np.where(among_words >= 0, indices[among_words], among_words)

    def attention(name: str) -> Float[np.ndarray, "layer head word"]:
        padded = np.full((*columns[name].shape[:-1], n_words), np.nan, np.float32)
        padded[..., indices] = columns[name][..., : len(indices)]
        return padded

    return WordPredictions(
        predicted=predicted,
        has_tokens=np.isin(np.arange(n_words), indices),
        to_head=attention("to_head"),
        from_head=attention("from_head"),
        from_others=attention("from_others"),
    )
