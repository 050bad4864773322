"""Links between the words of a pattern over a corpus, head by head: the map and the table of all heads."""

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.word_links.on_corpus import PatternLinks
from attention_sieve.dashboard.figures.head_map import HeadMap, percents, round_bound


def pattern_map(links: PatternLinks, alpha: float, *, title: str, label: str, beats: str) -> HeadMap:
    """One number per head: mean attention from the first word of a pattern to the second, in percent.

    Args:
        links: over the texts.
        alpha: level of the test.
        title: name of the numbers.
        label: description of the map, with its checkpoint.
        beats: meaning of the outline.
    """
    low, high = percents(links.low), percents(links.high)
    even = np.broadcast_to(links.even[:, None], links.shares.shape)
    return HeadMap(
        title=title,
        label=label,
        values=100 * links.shares,
        bound=min(round_bound(100 * float(links.shares.max())), 100),
        outlined=links.beats(alpha),
        outline=beats,
        details=(
            ("attention", percents(links.shares)),
            ("interval", [[f"{ends[0]} to {ends[1]}" for ends in zip(*layer_ends)] for layer_ends in zip(low, high)]),
            ("evenly spread", percents(even)),
            ("other words", percents(links.others)),
            ("p", links.p),
        ),
    )


def pattern_table(links: PatternLinks, alpha: float) -> pd.DataFrame:
    """Table of all heads, with shares from 0 to 1, largest first."""
    n_heads = links.shares.shape[1]
    table = pd.DataFrame(
        {
            "head": [head_name(*head) for head in np.ndindex(links.shares.shape)],
            "texts": links.n_texts,
            "pairs": links.n_pairs,
            "attention": links.shares.ravel(),
            "low": links.low.ravel(),
            "high": links.high.ravel(),
            "even": np.repeat(links.even, n_heads),
            "compared": links.compared.ravel(),
            "others": links.others.ravel(),
            "p": links.p.ravel(),
            "beats": links.beats(alpha).ravel(),
        }
    )
    return table.sort_values("attention", ascending=False, kind="stable", ignore_index=True)
