"""Which heads fetched a word: what each says for a token, and where it looked from the token before."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from attention_sieve.core.attention.settings import head_name


@dataclass(frozen=True, eq=False, kw_only=True)
class Fetching:
    """Where heads looked from the token after which a token follows."""

    most: Int[np.ndarray, "layer head"]
    """Position of the key with most attention, the first of several; -1 for heads that are not there."""
    share: Float[np.ndarray, "layer head"]
    """Attention on it."""
    on_copies: Float[np.ndarray, "layer head"]
    """Attention on earlier copies of the token that follows; 0 where there is none."""
    by_chance: float
    """The same of attention spread evenly over the tokens so far."""


def fetching(row: Float[np.ndarray, "layer head key"], ids: Int[np.ndarray, " earlier"], token: int) -> Fetching:
    """Where heads looked from one token, and how much at copies of the one that follows.

    Args:
        row: attention of that token; later keys have none.
        ids: of the tokens up to it.
        token: id of the token that follows.

    Source: Wu et al. 2024: a head retrieves a token if its greatest attention is on a copy of it.
    """
    seen = row[..., : len(ids)]
    is_there = ~np.isnan(seen).any(axis=-1)
    most = np.where(is_there, np.nan_to_num(seen).argmax(axis=-1), -1)
    return Fetching(
        most=most,
        share=seen.max(axis=-1),
        on_copies=seen[..., ids == token].sum(axis=-1) + np.where(is_there, 0, np.nan),
        by_chance=float((ids == token).mean()),
    )


def fetching_table(
    found: Fetching, added: Float[np.ndarray, "layer head"] | None, tokens: Sequence[str]
) -> pd.DataFrame:
    """A row for each head that is there, those that say most for the token first.

    Args:
        added: what each adds to the logit of the token; None where that is not known, and attention on copies of the
            token decides the order.
        tokens: as shown, by position.

    Returns: columns name, layer, head, adds (logits; not if `added` is None), looks at (a token), position (of it),
        share (of attention, on it), on copies (of the token that follows).
    """
    rows = [
        {
            "name": head_name(layer, head),
            "layer": layer,
            "head": head,
            **({} if added is None else {"adds": float(added[layer, head])}),
            "looks at": tokens[found.most[layer, head]],
            "position": int(found.most[layer, head]),
            "share": float(found.share[layer, head]),
            "on copies": float(found.on_copies[layer, head]),
        }
        for layer, head in np.argwhere(found.most >= 0).tolist()
    ]
    order = ["on copies", "share"] if added is None else ["adds"]
    return pd.DataFrame(rows).sort_values(order, ascending=False, kind="stable", ignore_index=True)
