"""Which heads fetched a word: what each adds for a token, where it looked, and what of that it took from there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.generation.attribution import Attribution

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, kw_only=True)
class Fetching:
    """Where heads looked from the token after which a token follows, and what they added to its logit."""

    most: Int[np.ndarray, "layer head"]
    """Position of the key with most attention, the first of several; -1 for heads that are not there."""
    share: Float[np.ndarray, "layer head"]
    """Attention on it."""
    on_copies: Float[np.ndarray, "layer head"]
    """Attention on earlier copies of the token that follows; 0 where there is none."""
    by_chance: float
    """The same of attention spread evenly over the tokens so far."""
    attribution: Attribution | None
    """None where it is not known."""
    from_copies: Float[np.ndarray, "layer head"] | None
    """What of the added logits goes if the copies' values are replaced by the mean of the other tokens' values; None
    where that is not known."""


def fetching(
    row: Float[np.ndarray, "layer head key"],
    ids: Int[np.ndarray, " earlier"],
    token: int,
    attribution: Attribution | None,
) -> Fetching:
    """Where heads looked from one token, how much at copies of the one that follows, and what they took from there.

    Args:
        row: attention of that token; later keys have none.
        ids: of the tokens up to it.
        token: id of the token that follows.
        attribution: what is added to its logit; None where that is not known.

    Source: Wu et al. 2024: a head retrieves a token if its greatest attention is on a copy of it. The patch of values
        is as in Wang et al. 2022, section 3, of direct effects alone.
    """
    seen, is_copy = row[..., : len(ids)], ids == token
    is_there = ~np.isnan(seen).any(axis=-1)
    nothing = np.where(is_there, 0, np.nan)
    most = np.where(is_there, np.nan_to_num(seen).argmax(axis=-1), -1)
    from_copies = None
    if attribution is not None and not is_copy.all():
        alone = attribution.alone[..., : len(ids)]
        lost = alone - alone[..., ~is_copy].mean(axis=-1, keepdims=True)
        from_copies = (seen * lost)[..., is_copy].sum(axis=-1) + nothing
    return Fetching(
        most=most,
        share=seen.max(axis=-1),
        on_copies=seen[..., is_copy].sum(axis=-1) + nothing,
        by_chance=float(is_copy.mean()),
        attribution=attribution,
        from_copies=from_copies,
    )


def fetching_table(fetched: Fetching, tokens: Sequence[str]) -> "pd.DataFrame":
    """A row for each head that is there, those first that took most from copies of the token.

    Without copies those first that add most; where that is not known, those that look most at copies.

    Args:
        tokens: as shown, by position.

    Returns: columns name, layer, head, adds and from copies (logits; if they are known), capped (adds after a soft cap,
        if the model has one), looks at (a token), position (of it), share (of attention, on it), on copies (of the
        token that follows).
    """
    import pandas as pd  # which the first page does without

    added, there = fetched.attribution, fetched.most >= 0
    layers, heads = np.nonzero(there)
    columns = {
        "name": [head_name(layer, head) for layer, head in zip(layers.tolist(), heads.tolist())],
        "layer": layers,
        "head": heads,
        **({} if added is None else {"adds": added.adds.heads[there]}),
        **({} if added is None or added.capped is None else {"capped": added.capped.heads[there]}),
        **({} if fetched.from_copies is None else {"from copies": fetched.from_copies[there]}),
        "looks at": [tokens[position] for position in fetched.most[there]],
        "position": fetched.most[there],
        "share": fetched.share[there],
        "on copies": fetched.on_copies[there],
    }
    order: list[str] = [name for name in ("from copies", "adds") if name in columns] or ["on copies", "share"]
    return pd.DataFrame(columns).sort_values(order, ascending=False, kind="stable", ignore_index=True)
