"""Vectors of a text for probing: the output of each head before the output projection, and of each layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.attention.settings import Kind
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText

Pooling = Literal["cls", "last", "mean"]
POOLINGS: Final[tuple[Pooling, ...]] = ("cls", "last", "mean")
"""Where vectors are read: at the first [CLS]-like token, at the last token of the text, or as the mean over its tokens.
Special tokens are tokens here; padding is not."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextVectors:
    """Vectors of one text from a pass."""

    heads: Float[np.ndarray, "layer head channel"]
    """Output of each head before the output projection; NaN for a removed head."""
    layers: Float[np.ndarray, "layer hidden"]
    """Output of each block at the same token. If a model normalises the output of its last block, as GPT-2 and Llama
    do, that of the last layer is normalised."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Vectors:
    """Vectors of many texts."""

    heads: Float[np.ndarray, "text layer head channel"]
    layers: Float[np.ndarray, "text layer hidden"]

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return len(self.heads)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of layers, and of heads per layer."""
        return self.heads.shape[1], self.heads.shape[2]


def usual_pooling(checkpoint: Checkpoint, kind: Kind) -> Pooling:
    """The pooling that the paper uses for such a checkpoint.

    The first token of an encoder with [CLS], and the last token of a decoder. For an encoder without [CLS], such as
    T5's, which the paper does not cover, the mean.

    Source: Jo and Myaeng 2020.
    """
    if kind in ("decoder", "cross") or checkpoint.attentions[kind].causal:
        return "last"
    return "cls" if checkpoint.tokenizer.cls_token_id is not None else "mean"


def places_to_read(texts: Sequence[PassText], pooling: Pooling) -> Int[np.ndarray, " text"]:
    """Position of the token at which the vectors of each text are read; for a mean, that of its last token."""
    if pooling == "cls":
        return np.array([int(text.queries.is_cls.argmax()) for text in texts])
    return np.array([len(text.queries.ids) - 1 for text in texts])


def pair_features(
    first: Float[np.ndarray, "pair *place channel"], second: Float[np.ndarray, "pair *place channel"]
) -> Float[np.ndarray, "pair *place twice_channel"]:
    """Features of two texts: the absolute difference of their vectors, then their product.

    Source: SentEval; Jo and Myaeng 2020.
    """
    return np.concatenate([np.abs(first - second), first * second], axis=-1)
