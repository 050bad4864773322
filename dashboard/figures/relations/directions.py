"""Names of the two directions in which a head predicts a relation, for figures, tables and controls."""

from typing import Final

from attention_sieve.core.relations.accuracy import Direction

DIRECTION_NAMES: Final[dict[Direction, str]] = {
    "dependent-to-head": "dep → head",
    "head-to-dependent": "head → dep",
}
"""From the attending word to the attended word."""
