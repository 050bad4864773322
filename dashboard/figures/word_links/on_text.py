"""Links between words of one text, head by head: the map and the table of all heads."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.word_links.on_text import WordLinks
from attention_sieve.dashboard.figures.head_map import HeadMap, percents, round_bound


def link_map(
    links: WordLinks,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    title: str,
    label: str,
    beats: Bool[np.ndarray, "layer head"],
    outline: str,
) -> HeadMap:
    """One number per head: attention from one word to another, in percent.

    Args:
        links: strongest link of each head.
        queries: names of the query words.
        keys: names of the key words.
        title: name of the numbers.
        label: description of the map, with its checkpoint.
        beats: heads that are outlined.
        outline: meaning of the outline.
    """
    link_names = [
        [f"{queries[query]} → {keys[key]}" for query, key in zip(*layer_links)]
        for layer_links in zip(links.queries, links.keys)
    ]
    chance = np.broadcast_to(links.chance[:, None], links.shares.shape)
    chance_details = (("strongest by chance", percents(chance)),) if links.n_links.max() > 1 else ()
    return HeadMap(
        title=title,
        label=label,
        values=100 * links.shares,
        bound=min(round_bound(100 * float(np.nanmax(links.shares))), 100),
        outlined=beats,
        outline=outline,
        details=(
            ("link", link_names),
            ("attention", percents(links.shares)),
            ("evenly spread", percents(links.even)),
            *chance_details,
            ("p, not corrected", links.p),
        ),
    )


def link_table(
    links: WordLinks, queries: Sequence[str], keys: Sequence[str], beats: Bool[np.ndarray, "layer head"]
) -> pd.DataFrame:
    """Table of all heads, with shares from 0 to 1, strongest first; heads without a possible link are left out."""
    return pd.DataFrame(
        [
            {
                "head": head_name(*head),
                "from": queries[links.queries[head]],
                "to": keys[links.keys[head]],
                "attention": float(links.shares[head]),
                "even": float(links.even[head]),
                "links": int(links.n_links[head[0]]),
                "chance": float(links.chance[head[0]]),
                "p": float(links.p[head]),
                "beats": bool(beats[head]),
            }
            for head in links.ranked
        ]
    )
