"""The chain from texts to head roles, one call per stage.

    Text -> TokenizedText -> (pass with observers) -> measures || scores -> tests at tau -> roles

Left of the bar costs a forward pass, depends on checkpoint and texts only, and stands here. Right of it is instant:
`core.measures.role_scores`, `core.hypotheses.role_tests`, and what `core.roles` reads off the tests.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from core.checkpoints import Checkpoint
from core.errors import TextTooLong
from core.parses import TokenPair, parse, token_pairs
from core.texts import Text
from core.tokens import TokenizedText, TooLong, tokenize

CHUNK = 64
"""Texts that are parsed and passed before the next are begun, so that a stopped run has kept what it finished."""

Progress = Callable[[int, int], None]
"""Called with texts done and texts in all; it may raise to stop."""


def no_progress(done: int, total: int) -> None:
    """Report to nobody."""


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasuredText:
    """What a pass measured of one text."""

    position: int
    """Place among the texts given."""
    n_tokens: int
    """Tokens of the whole text."""
    n_cut: int
    """Tokens that were cut off."""
    measures: Float[np.ndarray, "measure layer head"] | None
    """By core.measures.MEASURES; None for a text that was left out because it is too long."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextAttention:
    """All that is drawn of the one text on screen."""

    tokenized: TokenizedText
    pairs: tuple[TokenPair, ...]
    causal: bool
    attention: Float[np.ndarray, "layer head query key"]


def measure(
    checkpoint: Checkpoint, texts: Sequence[Text], *, too_long: TooLong = "error", progress: Progress = no_progress
) -> Iterator[MeasuredText]:
    """Measure texts, yielding each as it is done; not in the order given.

    Args:
        checkpoint: loaded.
        texts: one or more.
        too_long: what to do with texts longer than the checkpoint takes: raise, yield without measures, or cut.
        progress: called after every batch.

    Raises: TextTooLong, before any pass; NoTokens.
    """
    whole, too_long_texts = tokenize_all(checkpoint, texts, too_long)
    for position, n_tokens in too_long_texts:
        yield MeasuredText(position=position, n_tokens=n_tokens, n_cut=0, measures=None)
    positions = sorted(whole, key=lambda position: len(whole[position].ids))
    done = 0
    for start in range(0, len(positions), CHUNK):
        for measured in _measure_chunk(checkpoint, texts, whole, positions[start : start + CHUNK]):
            yield from measured
            done += len(measured)
            progress(done, len(positions))


def _measure_chunk(
    checkpoint: Checkpoint, texts: Sequence[Text], whole: dict[int, TokenizedText], positions: Sequence[int]
) -> Iterator[list[MeasuredText]]:
    """Parse and pass some texts; yields batches as they are done."""
    from core.scores import score_batches

    tokenized = [whole[position] for position in positions]
    parses = parse([texts[position] for position in positions])
    pairs = [token_pairs(text, relations) for text, relations in zip(tokenized, parses)]
    for places, measures in score_batches(checkpoint, tokenized, pairs):
        yield [
            MeasuredText(
                position=positions[place],
                n_tokens=len(tokenized[place].ids) + tokenized[place].n_cut,
                n_cut=tokenized[place].n_cut,
                measures=of_text,
            )
            for place, of_text in zip(places, measures)
        ]


def tokenize_all(
    checkpoint: Checkpoint, texts: Sequence[Text], too_long: TooLong
) -> tuple[dict[int, TokenizedText], list[tuple[int, int]]]:
    """Tokens of each text by its position, and place and length of those left out (`skip` only).

    Raises: TextTooLong for the first such text (`error` only); NoTokens.
    """
    tokenized: dict[int, TokenizedText] = {}
    left_out: list[tuple[int, int]] = []
    for position, text in enumerate(texts):
        try:
            tokenized[position] = tokenize(
                text, checkpoint.tokenizer, checkpoint.max_tokens, position=position, truncate=too_long == "truncate"
            )
        except TextTooLong as error:
            if too_long == "error":
                raise
            left_out.append((position, error.n_tokens))
    return tokenized, left_out


def look_at(checkpoint: Checkpoint, text: Text, *, too_long: TooLong = "error") -> TextAttention:
    """The tokens, relations and whole attention of one text.

    Raises: TextTooLong unless it may be cut; NoTokens.
    """
    from core.scores import attention_map

    tokenized = tokenize(text, checkpoint.tokenizer, checkpoint.max_tokens, truncate=too_long == "truncate")
    (relations,) = parse([text])
    return TextAttention(
        tokenized=tokenized,
        pairs=token_pairs(tokenized, relations),
        causal=checkpoint.causal,
        attention=attention_map(checkpoint, tokenized),
    )
