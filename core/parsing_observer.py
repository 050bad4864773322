"""Which word each word attends to most, and which attends to it most, under every head: predictions of a parser."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from core.checkpoints import Checkpoint
from core.errors import AnalysisError
from core.observing import collect
from core.parsing_heads import WordPredictions
from core.passes import PassSettings, PassText
from core.word_attention import FromWord, WordCollector
from core.words import FIRST_WORD, Words, word_map


def predictions(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    words: Sequence[Words],
    settings: PassSettings,
    *,
    from_word: FromWord = "mean",
    batch_tokens: int | None = None,
) -> Iterator[list[tuple[int, WordPredictions]]]:
    """The predictions of every head for each text, with its place, batch by batch.

    Special tokens and the word itself are never predicted.

    Args:
        checkpoint: loaded.
        texts: prepared for the attention that the settings name.
        words: of what each text's queries read (`core.analysis.queries_text`).
        settings: which attention, and which heads are off.
        from_word: how several pieces of a word attend.
        batch_tokens: as in `core.observing.collect`.

    Raises: AnalysisError for cross-attention, whose keys are no words of the tree.
    Source: Clark et al. 2019, section 4.2; a word of several pieces attends by their mean, as in the paper, while the
        authors' code calls it with the first piece.
    """
    if settings.kind == "cross":
        raise AnalysisError(
            "Cross-attention joins two texts and a tree the words of one. Choose the encoder's or the decoder's."
        )
    n_layers = checkpoint.attentions[settings.kind].n_layers
    # Words beyond a cut would cost the square of their number.
    maps = {text: word_map(of_text, text.queries).of_tokens_only() for text, of_text in zip(texts, words, strict=True)}

    def collector(batch: Sequence[PassText]) -> WordCollector:
        of_batch = [maps[text][0] for text in batch]
        return WordCollector(checkpoint, of_batch, most_attended, n_layers=n_layers, from_word=from_word)

    for batch in collect(checkpoint, texts, settings, collector, batch_tokens=batch_tokens):
        yield [
            (place, _placed(found["predicted"], maps[texts[place]][1], len(words[place].segments)))
            for place, found in batch
        ]


def most_attended(layer: int, attention: Float[Tensor, "text head word word"]) -> Mapping[str, Tensor]:
    """Of each word the other word it attends to most and the one that attends to it most; -1 for none."""
    del layer
    between = attention[..., FIRST_WORD:, FIRST_WORD:]
    itself = torch.eye(between.shape[-1], dtype=torch.bool, device=between.device)
    others = between.masked_fill(itself, 0)
    found = [torch.where(most.values > 0, most.indices, -1) for most in (others.max(-1), others.max(-2))]
    return {"predicted": torch.stack(found, 1).to(torch.int32)}


def _placed(
    found: Int[np.ndarray, "layer direction head padded"], places: Int[np.ndarray, " kept"], n_words: int
) -> WordPredictions:
    """Predictions among all words of a text from those among the words that have tokens."""
    of_text = np.moveaxis(found[..., : len(places)], 1, 0)
    placed = np.full((*of_text.shape[:-1], n_words), -1)
    placed[..., places] = np.where(of_text >= 0, places[of_text], -1)
    return WordPredictions(predicted=placed, has_tokens=np.isin(np.arange(n_words), places))
