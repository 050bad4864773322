"""Input and output of a pass for one text: its queries and keys, and the attention that is drawn."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Kind, Reach, Window
from attention_sieve.core.texts.notes import TokenNotes
from attention_sieve.core.texts.relations import TokenPair
from attention_sieve.core.texts.tokens import TokenizedText


@dataclass(frozen=True, eq=False, kw_only=True)
class PassText:
    """One text, prepared for a pass."""

    kind: Kind
    source: TokenizedText
    """Input of the only stack, or of the encoder."""
    target: TokenizedText | None = None
    """Input of the decoder of an encoder-decoder; None if the decoder does not run."""
    pairs: tuple[TokenPair, ...] = ()
    """Relations between the queries; empty for cross-attention, whose keys are another text."""
    notes: TokenNotes | None = None
    """What is known of the queries, where a role asks for it; None for cross-attention."""
    predicts_after: tuple[int, ...] | None = None
    """Positions after which a causal language model predicts the next token for its loss; None for all."""

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
        """Number of queries or keys, whichever is larger."""
        return max(len(self.queries.ids), len(self.keys.ids))

    @property
    def lengths(self) -> dict[str, int]:
        """Number of tokens of the whole text, of separately encoded segments the longer one, and how many were cut."""
        sides = (self.queries, self.keys)
        return {
            "n_tokens": max(len(side.ids) + side.n_cut for side in sides),
            "n_cut": max(side.n_cut for side in sides),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class TextAttention:
    """One text and its attention, for display."""

    text: PassText
    causal: bool
    """Whether tokens cannot attend to later tokens."""
    window: Window
    attention: Float[np.ndarray, "layer head query key"]
    """Inside the window."""
    block: int
    """Block size of the overview in tokens; 0 if the window is the whole text."""
    overview: Float[np.ndarray, "layer head query_block key_block"] | None
    """Mean attention between the tokens of two blocks; None if the window is the whole text."""
    reaches: tuple[Reach, ...] = ()
    """Attention window of each layer; empty if no layer of the checkpoint has one."""


def same_tokens(a: PassText, b: PassText) -> bool:
    """Whether two tokenizers split a text identically, special tokens included."""

    def cuts(side: TokenizedText) -> list[np.ndarray]:
        return [side.spans, side.segments, side.is_cls, side.is_sep]

    side_pairs = [(a.queries, b.queries), (a.keys, b.keys)]
    return all(np.array_equal(*pair) for sides in side_pairs for pair in zip(*map(cuts, sides)))
