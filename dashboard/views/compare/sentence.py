"""What changed from one checkpoint to another, in one sentence built from the numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from core.comparison.transitions import RoleChange
from dashboard.figures.appearance import LOOKS
from dashboard.figures.figure import counted

DOES: Final = {
    "local": "looking at nearby words",
    "syntactic": "following grammar",
    "delimiter": "resting on special tokens",
    "block": "staying within the segment",
    "sink": "resting on the first token",
}
"""What a head with a role does."""
FEW: Final = 3
"""Where so few heads are says nothing."""


@dataclass(frozen=True)
class _Move:
    """Heads that gain, or that lose, one role."""

    role: str
    n_heads: int
    of: int | None
    """How many held it; None for heads that gain it."""
    where: tuple[int, int, int] | None
    """First and last layer of most of them, and how many are there."""


def what_changed(changes: Sequence[RoleChange], n_layers: int, training: str = "") -> str:
    """Which roles heads gained and lost, most heads first.

    Args:
        changes: of some roles, from the reference to the compared checkpoint.
        n_layers: of either.
        training: what made the compared checkpoint out of the reference; empty where nothing is known to have.
    """
    moves = [move for change in sorted(changes, key=lambda change: -change.changed) for move in _moves(change)]
    if not moves and training:
        return f"{training} changed no head’s role."
    if not moves:
        return "Every head has the same roles under (a) and (b)."
    clauses = []
    for place, move in enumerate(moves):
        again = place > 0 and moves[place - 1].role == move.role
        role = "it" if again else f"the {LOOKS[move.role].label} role ({DOES[move.role]})"
        clauses.append(_clause(move, role, bool(training), named=place == 0) + _where(move, n_layers))
    joined = clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
    return f"{training} {joined}." if training else f"From (a) to (b), {joined}."


def _moves(change: RoleChange) -> list[_Move]:
    """Of one role: what more heads did comes first."""
    lost = _Move(change.role, change.lost, change.before, change.where_lost)
    gained = _Move(change.role, change.gained, None, change.where_gained)
    return sorted((move for move in (lost, gained) if move.n_heads), key=lambda move: -move.n_heads)


def _clause(move: _Move, role: str, training: bool, *, named: bool) -> str:
    """What they do, or what training did to them; only the first number of the sentence names what it counts."""
    known = move.n_heads if move.of is None else move.of
    heads = counted(known, "head") if named else f"{known:,}"
    number = heads if move.of is None else f"{move.n_heads:,} of {heads}"
    if not training:
        verb = "gain" if move.of is None else "lose"
        return f"{number} {verb}{'s' if move.n_heads == 1 else ''} {role}"
    return f"gave {role} to {number}" if move.of is None else f"took {role} from {number}"


def _where(move: _Move, n_layers: int) -> str:
    """In which layers most of them are, if those are not all."""
    if move.where is None or move.n_heads <= FEW or move.where[:2] == (0, n_layers - 1):
        return ""
    first, last, n_there = move.where
    layers = f"layer {first}" if first == last else f"layers {first}–{last}"
    return f", {'all' if n_there == move.n_heads else 'mostly'} in {layers}"
