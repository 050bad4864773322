"""Predicts a head for every word from each attention head: the word it attends to most, or that attends to it most."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.arrays import REMOVED
from core.passes.between_words import FromWord, WordCollector
from core.passes.collect import collect
from core.passes.texts import PassText
from core.relations.accuracy import WordPredictions
from core.texts.words import FIRST_WORD, Words, word_map


def predictions(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    words: Sequence[Words],
    settings: PassSettings,
    *,
    from_word: FromWord = "mean",
    batch_tokens: int | None = None,
) -> Iterator[list[tuple[int, WordPredictions]]]:
    """The predictions of every head for each text, batch by batch.

    Special tokens and the word itself are never predicted.

    Args:
        checkpoint: loaded.
        texts: prepared for the kind of attention in the settings.
        words: words of each text's queries (`core.passes.prepare.queries_text`).
        settings: which attention, and which heads are off.
        from_word: how attention from several tokens of a word is aggregated.
        batch_tokens: as in `core.passes.collect.collect`.

    Yields: index of the text and its predictions; not in input order.
    Source: Clark et al. 2019, section 4.2; attention from a word is the mean over its tokens, as in the paper; their
        code uses the first token.
    """
    n_layers = checkpoint.attentions[settings.kind].n_layers
    # Truncated words are left out, since memory grows with the square of the number of words.
    maps = {
        text: word_map(text_words, text.queries).of_tokens_only() for text, text_words in zip(texts, words, strict=True)
    }

    def collector(batch: Sequence[PassText]) -> WordCollector:
        batch_maps = [maps[text][0] for text in batch]
        return WordCollector(checkpoint, batch_maps, most_attended, n_layers=n_layers, from_word=from_word)

    for batch in collect(checkpoint, texts, settings, collector, batch_tokens=batch_tokens):
        yield [
            (index, _for_all_words(columns["predicted"], maps[texts[index]][1], len(words[index].segments)))
            for index, columns in batch
        ]


def most_attended(_layer: int, attention: Float[Tensor, "text head word word"]) -> Mapping[str, Tensor]:
    """For each word, the other word that it attends to most, and the one that attends to it most; -1 for none, and
    REMOVED for a head that was removed."""
    between_words = attention[..., FIRST_WORD:, FIRST_WORD:]
    is_itself = torch.eye(between_words.shape[-1], dtype=torch.bool, device=between_words.device)
    others = between_words.masked_fill(is_itself, 0)
    words = [torch.where(strongest.values > 0, strongest.indices, -1) for strongest in (others.max(-1), others.max(-2))]
    is_removed = attention.isnan().any(-1).any(-1)[:, None, :, None]
    return {"predicted": torch.stack(words, 1).masked_fill(is_removed, REMOVED).to(torch.int32)}


def _for_all_words(
    words: Int[np.ndarray, "layer direction head padded"], indices: Int[np.ndarray, " kept"], n_words: int
) -> WordPredictions:
    """Convert predictions for the words with tokens to predictions for all words of a text."""
    among_words = np.moveaxis(words[..., : len(indices)], 1, 0)
    predicted = np.where((words == REMOVED).all(-1).swapaxes(0, 1)[..., None], REMOVED, np.full(n_words, -1))
    predicted[..., indices] = np.where(among_words >= 0, indices[among_words], among_words)
    return WordPredictions(predicted=predicted, has_tokens=np.isin(np.arange(n_words), indices))
