"""Links between words, head by head: those of one text, and those of a pattern over a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.word_links.analysis import PatternLinks
from attention_sieve.core.word_links.on_text import WordLinks
from attention_sieve.dashboard.figures.head_map import NOT_APPLICABLE, HeadMap, intervals, percents, round_bound


@dataclass(frozen=True, eq=False, kw_only=True)
class NamedLinks:
    """The strongest link of each head between the words that the reader chose."""

    links: WordLinks
    queries: Sequence[str]
    """Names of the query words."""
    keys: Sequence[str]
    """Names of the key words."""
    beats: Bool[np.ndarray, "layer head"]
    """Heads whose link is beyond chance."""

    def words(self, head: Head) -> tuple[str, str]:
        return self.queries[self.links.queries[head]], self.keys[self.links.keys[head]]


def link_map(named: NamedLinks, *, title: str, label: str, mark: str) -> HeadMap:
    """Attention from one word to another, in percent; heads that are beyond chance are marked."""
    links, (n_layers, n_heads) = named.links, named.links.shares.shape
    link_names = [[" → ".join(named.words((layer, head))) for head in range(n_heads)] for layer in range(n_layers)]
    chance = np.broadcast_to(links.chance[:, None], links.shares.shape)
    chance_details = (("strongest by chance", percents(chance)),) if links.n_links.max() > 1 else ()
    return HeadMap(
        title=title,
        label=label,
        values=100 * links.shares,
        bound=min(round_bound(100 * float(np.nanmax(links.shares))), 100),
        marked=named.beats,
        mark=mark,
        details=(
            ("link", link_names),
            ("attention", percents(links.shares)),
            ("evenly spread", percents(links.even)),
            *chance_details,
            ("p, not corrected", links.p),
        ),
    )


def link_table(named: NamedLinks) -> pd.DataFrame:
    """Table of all heads, with shares from 0 to 1, strongest first; heads without a possible link are left out."""
    links = named.links
    return pd.DataFrame(
        [
            {
                "head": head_name(*head),
                **dict(zip(("from", "to"), named.words(head))),
                "attention": float(links.shares[head]),
                "even": float(links.even[head]),
                "links": int(links.n_links[head[0]]),
                "chance": float(links.chance[head[0]]),
                "p": float(links.p[head]),
                "beats": bool(named.beats[head]),
            }
            for head in links.ranked
        ]
    )


def pattern_map(links: PatternLinks, alpha: float, *, title: str, label: str, beats: str) -> HeadMap:
    """One number per head: mean attention from the first word of a pattern to the second, in percent."""
    even = np.broadcast_to(links.even[:, None], links.shares.shape)
    return HeadMap(
        title=title,
        label=label,
        values=100 * links.shares,
        bound=min(round_bound(100 * float(links.shares.max())), 100),
        marked=links.beats(alpha),
        mark=beats,
        details=(
            ("attention", percents(links.shares)),
            ("interval", intervals(links.low, links.high, ".1%", NOT_APPLICABLE)),
            ("evenly spread", percents(even)),
            ("other words", percents(links.others)),
            ("p", links.p),
        ),
    )
