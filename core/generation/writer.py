"""Writes a text on with a causal language model, through the attention function of every other pass."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observers import Observer, Pass, Tile
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.generation.settings import WritingSettings
from attention_sieve.core.generation.steps import Kept, passed, way_of
from attention_sieve.core.passes.batches import gates
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL

End = Literal["enough", "ended", "full"]
"""Why no more is written: as many tokens as were asked for, a token with which the model ends a text, or its maximum
length."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WrittenToken:
    """One token, and what the model looked at when it wrote it."""

    token: int
    """Its id."""
    log_probability: float
    """Natural logarithm of the probability that the model gave to it, whatever the temperature."""
    rows: Float[np.ndarray, "layer head key"]
    """Attention of the token before it, whose query wrote it, to that token and all earlier ones; NaN for heads that
    are not there."""


class Writer:
    """Writes a text, of one segment or ids, on, token by token; holds no reference to the checkpoint.

    Attributes:
        ids: of the text so far; empty until the first token is written.
        end: why no more is written; None while more will be.
        whole: positions of the written tokens that took a pass over the whole text each, since with the keys and values
            that the model keeps of earlier tokens it would have given other probabilities.
    """

    def __init__(self, text: Text, pass_settings: PassSettings, settings: WritingSettings) -> None:
        self.ids: list[int] = []
        self.end: End | None = None
        self.whole: list[int] = []
        self._text, self._pass_settings, self._settings = text, pass_settings, settings
        self._n_written = 0
        self._kept: Kept | None = None
        """Keys and values of the tokens that have been passed; None before the first pass, and where each is over the
        whole text."""

    def write(self, checkpoint: Checkpoint, seconds: float = 0.0) -> list[WrittenToken]:
        """Write tokens for a while, at least one; none where the text has ended.

        Args:
            checkpoint: loaded; the same at each call.
            seconds: no token is begun after so long.

        Raises: AnalysisError for a checkpoint that is no causal language model; TextTooLong; NoTokens.
        """
        if not self.ids:
            self.ids = list(prompt_ids(checkpoint, self._text, self._pass_settings))
            self.end = "full" if len(self.ids) >= checkpoint.max_tokens else None
        began, written = time.monotonic(), list[WrittenToken]()
        while self.end is None and (not written or time.monotonic() - began < seconds):
            written.append(self._step(checkpoint))
        return written

    def _step(self, checkpoint: Checkpoint) -> WrittenToken:
        logits, rows = self._passed(checkpoint)
        token = self._chosen(logits)
        self.ids.append(token)
        self._n_written += 1
        if token in end_ids(checkpoint):
            self.end = "ended"
        elif len(self.ids) >= checkpoint.max_tokens:
            self.end = "full"
        elif self._n_written == self._settings.tokens:
            self.end = "enough"
        return WrittenToken(
            token=token, log_probability=float(logits.log_softmax(-1)[token]), rows=rows.all(len(self.ids) - 1)
        )

    def _passed(self, checkpoint: Checkpoint) -> tuple[Float[Tensor, " token"], "_LastRows"]:
        """Logits after the last token, and where its heads look."""
        rows, way, before = _LastRows(), way_of(checkpoint), self._kept
        observed_pass = Pass(
            observers=[rows],
            calls=checkpoint.attentions[self._pass_settings.kind].calls,
            gates=gates(checkpoint, self._pass_settings),
        )
        logits, self._kept = passed(checkpoint, self.ids, before, way, observed_pass)
        is_stale = before is not None and self._kept is not None and not before.is_turned_as(self._kept)
        if is_stale or way == "whole":
            self.whole.append(len(self.ids))
        if is_stale:
            self._kept = None
            return self._passed(checkpoint)
        return logits.cpu().double(), rows

    def _chosen(self, logits: Float[Tensor, " token"]) -> int:
        if not self._settings.temperature:
            return int(logits.argmax())
        shares = (logits / self._settings.temperature).softmax(-1).cumsum(-1)
        # By seed and place alone, so that a text that was stopped goes on as it would have.
        drawn = np.random.default_rng((self._settings.seed, len(self.ids))).random()
        return int(torch.searchsorted(shares, drawn * float(shares[-1]), right=True).clamp_max(len(shares) - 1))


class _LastRows(Observer):
    """Keeps the attention of the last query of one text."""

    def __init__(self) -> None:
        self._rows: dict[int, Float[Tensor, "head key"]] = {}

    def observe(self, tile: Tile) -> None:
        """Copy the last row of a layer, whose last queries come first."""
        if tile.layer not in self._rows:
            self._rows[tile.layer] = tile.probabilities[0, :, -1].clone()

    def all(self, n_keys: int) -> Float[np.ndarray, "layer head key"]:
        """The rows of all layers; a layer with a window keeps its latest keys only, and attends to no others."""
        rows = [self._rows[layer] for layer in sorted(self._rows)]
        padded = [torch.nn.functional.pad(row, (n_keys - row.shape[-1], 0)) for row in rows]
        return torch.stack(padded).cpu().numpy()


def write_on(
    checkpoint: Checkpoint, text: Text, settings: WritingSettings, pass_settings: PassSettings | None = None
) -> Iterator[WrittenToken]:
    """Yield each token as it is written after a text, by default with all heads on; raises as `Writer.write`."""
    writer = Writer(text, pass_settings or PassSettings(), settings)
    while writer.end is None:
        yield from writer.write(checkpoint)


def prompt_ids(checkpoint: Checkpoint, text: Text, pass_settings: PassSettings) -> tuple[int, ...]:
    """Ids of the tokens after which a text is written on: all that it has, but for special tokens that end it.

    Raises: AnalysisError for a checkpoint that is no causal language model; TextTooLong; NoTokens.
    """
    if checkpoint.head != "next token" or pass_settings.kind != "self":
        raise AnalysisError(
            f"{checkpoint.files.name} cannot write a text on, since it has no head that predicts the next token from "
            "those before it. Choose a causal language model, such as GPT-2."
        )
    tokens = prepare(checkpoint, text, pass_settings).queries
    own = np.flatnonzero(tokens.segments != SPECIAL)
    n_kept = len(tokens.ids) if text.given is not None or not len(own) else int(own[-1]) + 1
    return tuple(int(token) for token in tokens.ids[:n_kept])


def end_ids(checkpoint: Checkpoint) -> frozenset[int]:
    """Ids of the tokens with which a checkpoint ends a text."""
    model = checkpoint.full_model
    model_ends = [getattr(config, "eos_token_id", None) for config in (model.generation_config, model.config)]
    stated = next((ends for ends in model_ends if ends is not None), checkpoint.tokenizer.eos_token_id)
    return frozenset(stated if isinstance(stated, list | tuple) else () if stated is None else (stated,))
