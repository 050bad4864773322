"""What changed, in sentences: briefly as the finding of the page, in full with its numbers, and of the head shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.comparison.sizes import difference_sizes
from attention_sieve.core.comparison.transitions import RoleChange, role_changes
from attention_sieve.core.roles.roles import role_named
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import Compared

FEW: Final = 3
"""Up to this number of heads, their layers are not named."""


@dataclass(frozen=True)
class _Move:
    """Heads that gain, or that lose, one role."""

    role: str
    n_heads: int
    n_before: int | None
    """Number of heads that held it before; None for heads that gain it."""
    layers: tuple[int, int, int] | None
    """First and last layer of most of these heads, and their number there."""


def what_changed(
    changes: Sequence[RoleChange],
    n_layers: int,
    training: str = "",
    *,
    between: str = wording.FROM_A_TO_B,
    briefly: bool = False,
) -> str:
    """Which roles heads gained and lost, most heads first.

    Args:
        changes: of some roles, from the reference to the compared checkpoint.
        n_layers: of either checkpoint.
        training: the training that led from the reference to the compared checkpoint; empty if unknown.
        between: begins a sentence where the training is unknown.
        briefly: only the change of most heads, without what its role is.
    """
    moves = [move for change in sorted(changes, key=lambda change: -change.changed) for move in _moves(change)]
    if not moves and training:
        return f"{training} changed no head’s role."
    if not moves:
        return "Every head has the same roles under (a) and (b)."
    clauses = []
    for index, move in enumerate(moves[:1] if briefly else moves):
        label, expects = LOOKS[move.role].label, role_named(move.role).expects
        is_same_role = index > 0 and moves[index - 1].role == move.role
        role = "it" if is_same_role else f"the {label} role" + ("" if briefly else f" (attention to {expects})")
        clauses.append(_clause(move, role, bool(training), named=index == 0) + _in_layers(move, n_layers))
    joined_clauses = clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
    return f"{training} {joined_clauses}." if training else f"{between}, {joined_clauses}."


def _moves(change: RoleChange) -> list[_Move]:
    """Gains and losses of one role, the more frequent first."""
    lost = _Move(change.role, change.lost, change.before, change.where_lost)
    gained = _Move(change.role, change.gained, None, change.where_gained)
    return sorted((move for move in (lost, gained) if move.n_heads), key=lambda move: -move.n_heads)


def _clause(move: _Move, role: str, training: bool, *, named: bool) -> str:
    """One clause: what heads do, or what training did to them; only the first number has its noun."""
    total = move.n_heads if move.n_before is None else move.n_before
    heads = counted(total, "head") if named else f"{total:,}"
    number = heads if move.n_before is None else f"{move.n_heads:,} of {heads}"
    if not training:
        verb = "gain" if move.n_before is None else "lose"
        return f"{number} {verb}{'s' if move.n_heads == 1 else ''} {role}"
    return f"gave {role} to {number}" if move.n_before is None else f"took {role} from {number}"


def _in_layers(move: _Move, n_layers: int) -> str:
    """The layers of most of these heads, unless they are spread over all."""
    if move.layers is None or move.n_heads <= FEW or move.layers[:2] == (0, n_layers - 1):
        return ""
    first, last, n_there = move.layers
    named_layers = f"layer {first}" if first == last else f"layers {first}–{last}"
    return f", {'all' if n_there == move.n_heads else 'mostly'} in {named_layers}"


def what_changed_in_roles(shown: Compared, *, briefly: bool = False) -> str:
    changes = [change for change in role_changes(*shown.holds, shown.roles) if change.role in shown.coarse]
    n_layers = len(shown.difference[0])
    return what_changed(changes, n_layers, shown.training, between=shown.between, briefly=briefly)


def say_what_changed(shown: Compared) -> None:
    """The finding of the page."""
    changed = shown.changed
    n_changed, n_heads = int(changed.sum()), changed.size - shown.n_removed
    at_tau = shared_wording.at_tau(shown.tests[0].settings.tau, shown.scale)
    frame.say_finding(what_changed_in_roles(shown, briefly=True), wording.summary(n_changed, n_heads, at_tau))
    if shown.fingerprints[0] == shown.fingerprints[1]:
        st.info(wording.SAME)


def all_that_changed(shown: Compared) -> str:
    """The changes of all roles, and how large the differences are."""
    sentences = [what_changed_in_roles(shown)]
    if shown.paired is not None:
        n_changed = int(shown.changed.sum())
        differs = shown.paired.differs & (shown.holds[0] != shown.holds[1])
        differs_too = differs[[shown.roles.index(role) for role in shown.coarse]].any(axis=0)
        sizes = difference_sizes(shown.paired, shown.least, shown.coarse)
        sentences.append(wording.sizes_first(sizes, n_changed, int(differs_too.sum()), shown.scale))
    return " ".join(filter(None, (*sentences, shown.note)))


def head_shown(shown: Compared) -> None:
    """Change of the score of the head chosen last; the help explains why it is shown if the reader chose none."""
    if not shown.heads:
        return
    head, index = shown.heads[-1], shown.roles.index(shown.role)
    scores = [float(tests.mean[index, *head]) for tests in shown.tests]
    if not np.isnan(scores).any():
        label, is_most = LOOKS[shown.role].label, head == shown.moved_most
        st.caption(
            wording.head_shown(head_name(*head), label, scores[0], scores[1], shown.scale, is_most=is_most),
            help=wording.HEAD_SHOWN_HELP,
        )
