"""Features of a probe: attention between words, and word vectors; imports torch only when used."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from attention_sieve.core.attention.settings import Kind, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import FIRST_WORD, Words, word_map
from attention_sieve.core.tree_probes.texts import PassedWords
from attention_sieve.core.tree_probes.word_vectors import WordVectors, looked_up

Pieces = tuple[tuple[int, ...], ...]
"""Token ids of each word of a text."""


def check_kind(kind: Kind) -> None:
    """Raise AnalysisError for cross-attention, in which no word attends to a word of its own text."""
    if kind == "cross":
        raise AnalysisError(
            "Cross-attention goes from one text to another, where no word has its head. Choose the attention of the "
            "encoder or of the decoder."
        )


def word_attention_maps(
    checkpoint: Checkpoint, texts: Sequence[PassText], words: Sequence[Words], settings: PassSettings
) -> Iterator[list[tuple[int, PassedWords]]]:
    """Attention between the words of prepared texts, batch by batch, each with the index of its text; the queries of a
    text are its keys.
    """
    from attention_sieve.core.passes.batches import WordCollector, collect

    # Without truncated words, as the cost grows with the square of the number of words.
    maps = {
        id(text): word_map(text_words, text.queries).tokenized_only()
        for text, text_words in zip(texts, words, strict=True)
    }
    n_layers = checkpoint.attentions[settings.kind].n_layers

    def collector(batch: Sequence[PassText]) -> WordCollector:
        return WordCollector(checkpoint, [maps[id(text)][0] for text in batch], _unreduced, n_layers=n_layers)

    for batch in collect(checkpoint, texts, settings, collector):
        yield [(index, _cropped(columns["attention"], maps[id(texts[index])][1])) for index, columns in batch]


def _unreduced(layer: int, attention: Any) -> dict[str, Any]:
    # A removed head contributes nothing to a probe.
    return {"attention": attention.nan_to_num(nan=0).half()}


def _cropped(attention: np.ndarray, indices: Int[np.ndarray, " passed"]) -> PassedWords:
    """Remove padding, and copy, because a view would keep the whole batch in memory."""
    n = FIRST_WORD + len(indices)
    return PassedWords(attention=attention[:, :, :n, :n].copy(), places=indices)


def word_pieces(text: PassText, words: Words) -> Pieces:
    """Token ids of each word; none for a word without tokens."""
    numbers = word_map(words, text.queries).word_numbers
    return tuple(tuple(text.queries.ids[numbers == FIRST_WORD + word].tolist()) for word in range(len(words.segments)))


def embedded_words(checkpoint: Checkpoint, texts: Sequence[Pieces]) -> WordVectors:
    """Vectors of words from a checkpoint's own input embeddings: the mean over a word's tokens."""
    from attention_sieve.core.checkpoints.load import weight_in  # imports torch

    distinct = sorted({pieces for text in texts for pieces in text if pieces})
    embeddings = weight_in(checkpoint.full_model.get_input_embeddings()).detach()
    vectors = {pieces: embeddings[list(pieces)].float().mean(0).cpu().numpy() for pieces in distinct}
    return looked_up(vectors, texts)
