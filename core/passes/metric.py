"""Metrics of a checkpoint's output when something in it is changed, and the tokens that are masked for a loss.

Does not import torch.
"""

from typing import Final, Literal

import numpy as np
from jaxtyping import Int

from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

Metric = Literal["output", "lm", "labels"]
"""Change of the text vector (1 - cosine), loss of the language model, or score of a classifier on labelled texts."""
MASKED_SHARE: Final = 0.15
"""Share of the non-special tokens that are masked; at least one token."""


def masked_tokens(text: TokenizedText, seed: int = 0) -> Int[np.ndarray, " masked"]:
    """Indices of the tokens to mask, sorted; deterministic for the same tokens and seed."""
    candidates = np.flatnonzero(text.segments != SPECIAL)
    generator = np.random.default_rng([seed, *text.ids.tolist()])
    return np.sort(generator.choice(candidates, size=max(1, round(MASKED_SHARE * len(candidates))), replace=False))
