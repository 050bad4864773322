"""What heads write about the tokens that they look at, in one text; imports no torch."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import SPECIAL

Way = Literal["value", "output"]
WAYS: Final[tuple[Way, ...]] = ("value", "output")
SAMPLE: Final = 25
"""Number of distinct tokens whose logits are compared.

Source: Olsson et al. 2022, appendix: 25 random tokens.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextWrites:
    """How much of what each head raises falls on the token that it looks at, in one text."""

    shares: Float[np.ndarray, "way layer head"]
    """0 to 1, by WAYS; NaN for a head that raises no token.

    "value": what the head would write if it looked at one token alone, for each token of the sample. "output": what it
    wrote; the token looked at is the one of most attention, special tokens left out.
    """
    n_tokens: int
    """Of the sample: without any preference for a token, a share is 1 / n_tokens."""


def sample_of(text: PassText) -> tuple[Int[np.ndarray, " token"], Int[np.ndarray, " token"], Int[np.ndarray, " query"]]:
    """The first SAMPLE distinct tokens of a text, special ones left out.

    Returns: their ids; the position of the first copy of each; and by position the number of its token among them, or
        -1.
    """
    ids = text.queries.ids
    own = np.flatnonzero(text.queries.segments != SPECIAL)
    distinct, first = np.unique(ids[own], return_index=True)
    sample = np.argsort(first)[:SAMPLE]
    number = np.full(len(ids), -1)
    for place, token in enumerate(distinct[sample]):
        number[ids == token] = place
    number[text.queries.segments == SPECIAL] = -1
    return distinct[sample], own[first[sample]], number


def copying_score(shares: Float[np.ndarray, "*cell"]) -> Float[np.ndarray, "*cell"]:
    """Olsson's score: the ratio a / (a + b), 0 to 1/2, of what falls on the token looked at and on all, as -1 to 1.

    Source: Olsson et al. 2022, appendix, head activation evaluators. They do not say over which tokens the mean is that
    is subtracted from the logits, nor which token counts as attended to.
    """
    return 4 * shares / (1 + shares) - 1
