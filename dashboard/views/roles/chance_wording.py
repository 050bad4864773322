"""Sentences about what chance would give."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from core.attention.settings import Head, head_names
from core.roles.controls import SEEDS, Control
from dashboard.figures.figure import counted

SWITCH: Final = "What would chance give?"
SWITCH_HELP: Final = (
    "Counts the same roles by the same rule with permuted keys, with shuffled words, and under random weights "
    f"({len(SEEDS)} seeds). Takes about {2 + len(SEEDS)} times as long as scoring the texts, once; the results are "
    "kept, and tau needs no further pass."
)
CHECKPOINT: Final = "this checkpoint"
GRID_OF: Final = "Grid of"
BACK: Final = "Back to this checkpoint"
ANSWERS: Final[dict[Control, str]] = {
    "permuted keys": (
        "each row of attention keeps its weights, in random order among the keys that the query can attend to. Would "
        "a head hold the role if it were as sharp, but did not know where to look?"
    ),
    "shuffled words": (
        "the words of each segment in random order, parsed anew. Does the role need the order of the words?"
    ),
    "random weights": (
        f"the same architecture before any training, {len(SEEDS)} seeds. Does the role need training at all?"
    ),
}
"""What each control is, and which question it answers."""


def doing(name: str) -> str:
    """What the progress bar says."""
    return f"Scoring texts with {name}" if name.split(",")[0] != "random weights" else f"Scoring texts under {name}"


def count(heads: Sequence[int]) -> str:
    """Number of heads under a control; mean and range over seeds."""
    if len(heads) == 1:
        return str(heads[0])
    low, high = min(heads), max(heads)
    return str(low) if low == high else f"{np.mean(heads):.1f} ({low} to {high})"


def answer(control: Control, own: Mapping[str, int], under: Mapping[str, Sequence[int]], n_heads: int) -> str:
    """What a control answers, and what the counts say, as an item of a list.

    Args:
        control: which.
        own: heads of this checkpoint by role.
        under: heads under the control by role, one number per seed.
        n_heads: of the checkpoint.
    """
    held = {role: heads for role, heads in under.items() if any(heads)}
    if not under:
        says = "none of these roles applies to these texts."
    elif not held:
        says = (
            f"no head of {n_heads} holds "
            + (_either(list(under)) if len(under) > 1 else f"the role {next(iter(under))}")
            + "."
        )
    else:
        named = ", ".join(f"{role} {count(heads)} (here {own[role]})" for role, heads in held.items())
        none = [role for role in under if role not in held]
        says = f"of {n_heads} heads hold a role: {named}." + (f" None holds {_either(none)}." if none else "")
        says += _not_needed(control, [role for role, heads in held.items() if np.mean(heads) >= own[role]])
    return f"- **{control.capitalize()}**: {ANSWERS[control]} Here {says}"


NEEDS: Final[dict[Control, str]] = {
    "permuted keys": "where a head looks",
    "shuffled words": "the order of the words",
    "random weights": "training",
}


def _not_needed(control: Control, roles: Sequence[str]) -> str:
    """Which counts are no larger than under the control."""
    if not roles:
        return ""
    counts = "count is" if len(roles) == 1 else "counts are"
    return f" This checkpoint's {counts} no larger for {_and(roles)}: that many heads do not need {NEEDS[control]}."


def _either(roles: Sequence[str]) -> str:
    return _joined(roles, "or")


def _and(roles: Sequence[str]) -> str:
    return _joined(roles, "and")


def _joined(roles: Sequence[str], word: str) -> str:
    return roles[0] if len(roles) == 1 else f"{', '.join(roles[:-1])} {word} {roles[-1]}"


def control_shown(name: str) -> str:
    """Above the grid of a control."""
    under = "under" if name.startswith("random") else "with"
    return f"**Control: roles {under} {name}.** The grid is not this checkpoint's."


def positional(n_held: int, heads: Sequence[Head]) -> str:
    """How many syntactic heads do not beat pairs of words at the same distance."""
    if not heads:
        return (
            f"{_of(n_held)} scores higher on pairs of words that a relation joins than on pairs at the same distance "
            "that none joins."
        )
    does = "does" if len(heads) == 1 else "do"
    return (
        f"Of {counted(n_held, 'syntactic head')} {len(heads)} {does} not beat pairs of words at the same distance that "
        f"no relation joins (positional): {head_names(heads)}."
    )


def _of(n_held: int) -> str:
    return "The syntactic head" if n_held == 1 else f"Each of {n_held} syntactic heads"


def without_match(n_without: int, n_texts: int) -> str:
    """How many texts could not be compared."""
    have = "has" if n_without == 1 else "have"
    return (
        f"{n_without} of {counted(n_texts, 'text')} with a relation {have} no other pair of words at its distance, and "
        "take no part in that comparison."
    )
