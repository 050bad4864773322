"""What a pass is asked, and what one text gives to it: which attention is looked at, which heads are switched off, and
whose tokens attend to whose."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from core.parses import TokenPair
from core.tokens import TokenizedText

Kind = Literal["self", "encoder", "decoder", "cross"]
"""Which attention: the only one of a checkpoint with one stack, or one of the three of an encoder-decoder."""
ONE_STACK: Final[tuple[Kind, ...]] = ("self",)
TWO_STACKS: Final[tuple[Kind, ...]] = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Reach:
    """How far a query of one layer sees, in tokens; None where only the text's end, or being causal, bounds it."""

    back: int | None = None
    ahead: int | None = None

    def within(self, n_tokens: int, causal: bool) -> "Reach":
        """The same without bounds that a text of so many tokens never meets."""
        back = None if self.back is None or self.back >= n_tokens - 1 else self.back
        ahead = None if self.ahead is None or self.ahead >= n_tokens - 1 or causal else self.ahead
        return Reach(back, ahead)


@dataclass(frozen=True)
class PassSettings:
    """What besides checkpoint and texts decides what a pass measures."""

    kind: Kind = "self"
    off: tuple[tuple[int, int], ...] = ()
    """Layer and head of those switched off, of the same kind: their outputs are multiplied by 0."""


@dataclass(frozen=True)
class Window:
    """The part of a text's attention that is kept entry by entry: first and one-past-last token of each side."""

    queries: tuple[int, int]
    keys: tuple[int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class PassText:
    """One text as a pass takes it."""

    kind: Kind
    source: TokenizedText
    """What the only stack, or the encoder, reads."""
    target: TokenizedText | None = None
    """What the decoder of an encoder-decoder reads; None where it does not run."""
    pairs: tuple[TokenPair, ...] = ()
    """Relations on the queries; none in cross-attention, whose keys are another text."""

    @property
    def queries(self) -> TokenizedText:
        """The tokens that attend."""
        return self.source if self.target is None or self.kind in ("self", "encoder") else self.target

    @property
    def keys(self) -> TokenizedText:
        """The tokens that are attended to."""
        return self.queries if self.kind == "decoder" else self.source

    @property
    def n_tokens(self) -> int:
        """Tokens of the longer side."""
        return max(len(self.queries.ids), len(self.keys.ids))


@dataclass(frozen=True, eq=False, kw_only=True)
class TextAttention:
    """The attention of one text that is kept for the screen, and the text: all that is drawn of it."""

    text: PassText
    causal: bool
    """A token sees no later token."""
    window: Window
    attention: Float[np.ndarray, "layer head query key"]
    """Inside the window."""
    block: int
    """Tokens of a block of the overview; 0 where the window is the whole text."""
    overview: Float[np.ndarray, "layer head query_block key_block"] | None
    """Mean attention between the tokens of two blocks; None where the window is the whole text."""


def same_tokens(a: PassText, b: PassText) -> bool:
    """Whether two tokenizers cut a text at the same places, special tokens included."""

    def cuts(side: TokenizedText) -> list[np.ndarray]:
        return [side.spans, side.segments, side.is_cls, side.is_sep]

    both = [(a.queries, b.queries), (a.keys, b.keys)]
    return all(np.array_equal(*pair) for sides in both for pair in zip(*map(cuts, sides)))
