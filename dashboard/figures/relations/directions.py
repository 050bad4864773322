"""Names of the two directions in which a head predicts a relation, for figures, tables and controls."""

from typing import Final

from attention_sieve.core.relations.settings import Direction

DIRECTION_NAMES: Final[dict[Direction, str]] = {
    "dependent-to-head": "dep → head",
    "head-to-dependent": "head → dep",
}
"""From the attending word to the attended word."""


def with_short_directions(heads: str) -> str:
    """Heads with their directions, as in the column held_out_heads, with DIRECTION_NAMES."""
    for direction, name in DIRECTION_NAMES.items():
        heads = heads.replace(direction, name)
    return heads
