"""What a notebook shows where its widget is not drawn: pictures of the grid and the arcs, and a table; no script."""

import base64
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import Head, head_name, head_names
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.roles.roles import role_title
from attention_sieve.dashboard.figures.roles.grid import RoleGrid, grid_svg
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, arcs_svg, sides


def still(grid: RoleGrid, passed: PassedText, heads: Sequence[Head], name: str) -> str:
    """A grid and the arcs of some heads in a text as HTML, with a table of the heads that have a role in it.

    Args:
        name: of the text.
    """
    chosen = head_names(heads)
    images = [_image(grid_svg(grid, chosen=heads), f"{grid.label}; chosen: {chosen or 'none'}")]
    if heads:
        svg = arcs_svg(_maps(passed, heads), title=f"Attention of {chosen}", caption=[name])
        images.append(_image(svg, f"Where {chosen} look in: {name}"))
    table = _table(grid).to_html(index=False, border=0)
    return "\n".join([*images, f"<details><summary>Heads with a role in this text</summary>{table}</details>"])


def _image(svg: str, says: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(says)}" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">'


def _maps(passed: PassedText, heads: Sequence[Head]) -> AttentionMaps:
    looked = passed.text_attention
    queries, keys = sides(looked)
    attention = [np.nan_to_num(looked.attention[head], nan=0) for head in heads]
    return AttentionMaps(
        queries=queries, keys=keys, attention=np.array(attention), heads=heads, causal=looked.causal, label=""
    )


def _table(grid: RoleGrid) -> pd.DataFrame:
    """The heads with a role, and their scores of these roles."""
    unit = "scores" if grid.scale == "score" else "shares"
    scores = grid.scores.transpose(1, 2, 0)
    rows = [
        (head_name(*head), ", ".join(f"{role_title(grid.roles[role])} {scores[head][role]:.2f}" for role in held))
        for head in np.ndindex(scores.shape[:2])
        if (held := np.flatnonzero(grid.holds[:, *head]).tolist())
    ]
    return pd.DataFrame(rows, columns=["head", f"roles, with their {unit}"])
