"""What a probe reads of a text: the output of each head before the output projection, and of each layer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from core.attention.settings import Kind
from core.checkpoints.checkpoint import Checkpoint
from core.errors import AnalysisError
from core.passes.texts import PassText

Pooling = Literal["cls", "last", "mean"]
POOLINGS: Final[tuple[Pooling, ...]] = ("cls", "last", "mean")
"""Where vectors are read: at the first [CLS]-like token, at the last token of the text, or as the mean over its tokens.
Special tokens are tokens here; padding is not."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextVectors:
    """What a pass gives of one text."""

    heads: Float[np.ndarray, "layer head channel"]
    """Output of each head before the output projection; NaN for a removed head."""
    layers: Float[np.ndarray, "layer hidden"]
    """Output of each block at the same place. Where a model normalises the output of its last block, as GPT-2 and Llama
    do, the last layer's is normalised."""


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
        """Number of layers and of heads of each."""
        return self.heads.shape[1], self.heads.shape[2]


def usual_pooling(checkpoint: Checkpoint, kind: Kind) -> Pooling:
    """Where the paper reads the vectors of such a checkpoint.

    The first token of an encoder that has [CLS], and the last token of a decoder. For an encoder without [CLS], such as
    T5's, of which the paper has none, the mean.

    Source: Jo and Myaeng 2020.
    """
    if kind in ("decoder", "cross") or checkpoint.attentions[kind].causal:
        return "last"
    return "cls" if checkpoint.tokenizer.cls_token_id is not None else "mean"


def check_pooling(texts: Sequence[PassText], pooling: Pooling) -> None:
    """Refuse to read vectors at a token that a text does not have.

    Raises: AnalysisError.
    """
    if pooling == "cls" and not all(text.queries.is_cls.any() for text in texts):
        raise AnalysisError(
            "This checkpoint puts no [CLS] before a text, so there is no vector to read there. Read vectors at the "
            "last token, or their mean."
        )


def places_to_read(texts: Sequence[PassText], pooling: Pooling) -> Int[np.ndarray, " text"]:
    """Position of the token at which the vectors of each text are read; for a mean, of its last token."""
    if pooling == "cls":
        return np.array([int(text.queries.is_cls.argmax()) for text in texts])
    return np.array([len(text.queries.ids) - 1 for text in texts])


def stacked(vectors: Mapping[int, TextVectors]) -> Vectors:
    """Vectors of texts in the order of their indices."""
    ordered = [vectors[index] for index in sorted(vectors)]
    return Vectors(
        heads=np.stack([one.heads for one in ordered]),
        layers=np.stack([one.layers for one in ordered]),
    )


def pair_features(
    first: Float[np.ndarray, "pair *place channel"], second: Float[np.ndarray, "pair *place channel"]
) -> Float[np.ndarray, "pair *place twice_channel"]:
    """What a probe reads of two texts: the absolute difference of their vectors, then their product.

    Source: SentEval; Jo and Myaeng 2020.
    """
    return np.concatenate([np.abs(first - second), first * second], axis=-1)
