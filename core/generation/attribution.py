"""What each part of a model adds directly to the logit of a next token; imports no torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, kw_only=True)
class Parts:
    """Direct effects on the logit of one token, relative to the mean of all tokens, in logits."""

    heads: Float[np.ndarray, "layer head"]
    """NaN for removed heads and layers without attention."""
    blocks: Float[np.ndarray, " block"]
    """All else that each layer adds: its MLP, other mixers, and biases."""
    embedding: float
    """What stands in the stream before the first layer: embeddings of the token and its position."""
    end: float
    """Biases after the last layer."""

    @property
    def total(self) -> float:
        """The logit, less the mean of the logits of all tokens."""
        return float(np.nansum(self.heads) + self.blocks.sum() + self.embedding + self.end)


@dataclass(frozen=True, eq=False, kw_only=True)
class Attribution:
    """What each part adds to the logit of a token, before and after a soft cap of the logits."""

    adds: Parts
    capped: Parts | None
    """The same with the factor that a soft cap puts on each token's logit; None for a model without one."""
    alone: Float[np.ndarray, "layer head key"]
    """What each head would add if all its attention were on one key; what it adds is their mean by its attention."""

    def table(self) -> "pd.DataFrame":
        """A row for each part that is no head: name, layer (missing where the part is of none), adds and capped."""
        import pandas as pd  # which the first page does without

        shown = [self.adds] if self.capped is None else [self.adds, self.capped]
        n_blocks = len(self.adds.blocks)
        columns = {name: [*parts.blocks, parts.embedding, parts.end] for name, parts in zip(("adds", "capped"), shown)}
        names = [*(f"L{block} MLP" for block in range(n_blocks)), "embedding", "last biases"]
        layers = pd.array([*range(n_blocks), None, None], "Int64")
        return pd.DataFrame({"name": names, "layer": layers, **columns})
