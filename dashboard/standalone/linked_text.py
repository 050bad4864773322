"""The data of a text that is drawn without Streamlit."""

from typing import Any, Final

import numpy as np

from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.on_text import PassedText
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.components.arcs import SCROLL_HEIGHT, arcs_data, row_sums, sieve_data
from attention_sieve.dashboard.components.arcs.values import ArcStyle, Overlay
from attention_sieve.dashboard.components.grid.patterns import pack_patterns
from attention_sieve.dashboard.components.terms.sieve_pictures import Sieves
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.text.maps import AttentionMaps
from attention_sieve.dashboard.figures.text.sides import sides

MOST_ROWS: Final = 36
"""Tokens beyond which the arcs scroll, so that the grid beside them stays in view."""


def grid_of_text(passed: PassedText, criterion: Criterion, label: str, n_shared: int) -> RoleGrid:
    """Roles by the scores on a text, which no test can confirm.

    Args:
        passed: the text.
        criterion: when a head has a role.
        label: what the grid shows.
        n_shared: how many neighbouring heads share keys and values.
    """
    scored = passed.scored
    return RoleGrid(
        label=label,
        roles=scored.roles,
        scores=passed.scores,
        holds=passed.roles(criterion),
        tau=criterion.tau,
        filled=wording.filled_by_text(criterion.tau, criterion.rule, scored.scale),
        scale=scored.scale,
        uniform=scored.uniform[0],
        greatest=scored.greatest[0],
        n_shared=n_shared,
    )


def text_data(looked: TextAttention, sieves: Sieves, model: str) -> dict[str, Any]:
    """What `LinkedText` draws of a text: the arcs but for their heads, all heads' attention, and the sieves.

    Args:
        looked: the text with its attention, of which every weight is in the data, a byte each.
        sieves: those that apply in it.
        model: name of the checkpoint, for screen readers.
    """
    queries, keys = sides(looked)
    attention = np.nan_to_num(looked.attention, nan=0)
    maps = AttentionMaps(
        queries=queries,
        keys=keys,
        attention=attention[0, :1],
        heads=[(0, 0)],
        causal=looked.causal,
        label=f"in {model}",
    )
    is_long = max(maps.attention.shape) > MOST_ROWS
    arcs = arcs_data(
        maps, ArcStyle(height=SCROLL_HEIGHT if is_long else None), overlay=Overlay(roles=tuple(sieves.cells))
    )
    weights = pack_patterns(looked.attention, is_part=looked.overview is not None, most_weights=looked.attention.size)
    return {
        "arcs": {name: value for name, value in arcs.items() if name not in ("heads", "attention", "sieve", "inside")},
        "inside": row_sums(attention.reshape(-1, *attention.shape[2:])) if keys.is_part else None,
        "patterns": weights.data(),
        "sieves": {
            role: {name: value for name, value in sieve_data(role, cells, maps).items() if name != "inside"}
            for role, cells in sieves.cells.items()
        },
    }
