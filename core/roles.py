"""The roles a head can hold, which heads hold which, and how roles overlap."""

from typing import Final

RELATIONS: Final = ("nsubj", "dobj", "amod", "advmod")
COARSE_ROLES: Final = ("local", "syntactic", "delimiter", "block")
ROLES: Final = (
    "local",
    "syntactic",
    "delimiter",
    "block",
    "delimiter:cls",
    "delimiter:sep",
    *(f"syntactic:{relation}" for relation in RELATIONS),
)
FINE_ROLES: Final = ROLES[len(COARSE_ROLES):]
