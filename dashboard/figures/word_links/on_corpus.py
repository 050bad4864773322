"""Links between the words of a pattern over a corpus, head by head."""

import numpy as np

from attention_sieve.core.word_links.on_corpus import PatternLinks
from attention_sieve.dashboard.figures.head_map import HeadMap, percents, round_bound


def pattern_map(links: PatternLinks, alpha: float, *, title: str, label: str, beats: str) -> HeadMap:
    """One number per head: mean attention from the first word of a pattern to the second, in percent."""
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
