"""Links between words of one text, head by head: the map and the table of all heads."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from core.attention.settings import head_name
from core.word_links.on_text import WordLinks
from dashboard.figures.head_map import HeadMap, percents, round_bound


def link_map(links: WordLinks, queries: Sequence[str], keys: Sequence[str], *, title: str, label: str) -> HeadMap:
    """One number per head: how much of the attention of a word goes to another, in percent.

    Args:
        links: strongest link of each head.
        queries: names of the words that may look.
        keys: names of those that may be looked at.
        title: what the numbers are.
        label: what the map shows, with its checkpoint.
    """
    named = [
        [f"{queries[query]} → {keys[key]}" for query, key in zip(*of_layer)]
        for of_layer in zip(links.queries, links.keys)
    ]
    return HeadMap(
        title=title,
        label=label,
        values=100 * links.shares,
        bound=min(round_bound(100 * float(np.nanmax(links.shares))), 100),
        details=(("link", named), ("attention", percents(links.shares)), ("evenly spread", percents(links.even))),
    )


def link_table(links: WordLinks, queries: Sequence[str], keys: Sequence[str]) -> pd.DataFrame:
    """The same as rows of shares from 0 to 1, strongest first; heads that cannot have such a link are left out."""
    return pd.DataFrame(
        [
            {
                "head": head_name(*head),
                "from": queries[links.queries[head]],
                "to": keys[links.keys[head]],
                "attention": float(links.shares[head]),
                "even": float(links.even[head]),
            }
            for head in links.ranked
        ]
    )
