"""How figures, tables and controls name the two directions in which a head predicts a relation."""

from typing import Final

from core.relations.accuracy import Direction

DIRECTION_NAMES: Final[dict[Direction, str]] = {
    "dependent-to-head": "dep → head",
    "head-to-dependent": "head → dep",
}
"""From the word that attends to the word that it attends to."""
