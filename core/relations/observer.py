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
    # Words beyond a cut would cost the square of their number.
    maps = {text: word_map(of_text, text.queries).of_tokens_only() for text, of_text in zip(texts, words, strict=True)}

    def collector(batch: Sequence[PassText]) -> WordCollector:
        of_batch = [maps[text][0] for text in batch]
        return WordCollector(checkpoint, of_batch, most_attended, n_layers=n_layers, from_word=from_word)

    for batch in collect(checkpoint, texts, settings, collector, batch_tokens=batch_tokens):
        yield [
            (place, _placed(columns["predicted"], maps[texts[place]][1], len(words[place].segments)))
            for place, columns in batch
        ]


def most_attended(_layer: int, attention: Float[Tensor, "text head word word"]) -> Mapping[str, Tensor]:
    """For each word, the other word that it attends to most, and the one that attends to it most; -1 for none, and
    REMOVED for a head that was removed."""
    between = attention[..., FIRST_WORD:, FIRST_WORD:]
    itself = torch.eye(between.shape[-1], dtype=torch.bool, device=between.device)
    others = between.masked_fill(itself, 0)
    words = [torch.where(most.values > 0, most.indices, -1) for most in (others.max(-1), others.max(-2))]
    is_removed = attention.isnan().any(-1).any(-1)[:, None, :, None]
    return {"predicted": torch.stack(words, 1).masked_fill(is_removed, REMOVED).to(torch.int32)}


def _placed(
    words: Int[np.ndarray, "layer direction head padded"], places: Int[np.ndarray, " kept"], n_words: int
) -> WordPredictions:
    """Predictions among all words of a text from those among the words that have tokens."""
    of_text = np.moveaxis(words[..., : len(places)], 1, 0)
    placed = np.where((words == REMOVED).all(-1).swapaxes(0, 1)[..., None], REMOVED, np.full(n_words, -1))
    placed[..., places] = np.where(of_text >= 0, places[of_text], of_text)
    return WordPredictions(predicted=placed, has_tokens=np.isin(np.arange(n_words), places))
