"""Sentences about roles under controls."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.controls import SEEDS, Control
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.roles.chance import written
from attention_sieve.dashboard.plain import plain

COUNT: Final = "Count what chance gives"
COUNT_HELP: Final = (
    "Counts the same roles by the same rule with permuted keys, with shuffled words, and under random weights "
    f"({len(SEEDS)} seeds). The results are kept, and changing tau needs no further pass."
)
WHAT_CHANCE_GIVES: Final = "What would chance give?"

BACK: Final = "Back to this checkpoint"
ANSWERS: Final[dict[Control, str]] = {
    "permuted keys": (
        "each row of attention keeps its weights, in random order among the keys that the query can attend to. Would "
        "a head hold the role if it were as sharp, but did not know where to look?"
    ),
    "shuffled words": (
        "the words of each segment are put in random order and parsed again. Does the role depend on word order?"
    ),
    "random weights": (
        f"the same architecture before any training ({len(SEEDS)} seeds). Does the role need training at all?"
    ),
}
"""What each control is, and which question it answers."""


def doing(name: str) -> str:
    return f"Scoring texts {_under(name)}"


def beside(role: str, counts: Mapping[str, Sequence[int]]) -> str:
    """How many heads hold a role, beside the control under which most do; counts by names of `chance_strip`."""
    (_, here), *under = counts.items()
    control, heads = max(under, key=lambda counted: np.mean(counted[1]))
    return f"**{plain(role_title(role))}**: {written(here)} here, {written(heads)} {_under(control)}."


def answer(
    control: Control, checkpoint_heads: Mapping[str, int], control_heads: Mapping[str, Sequence[int]], n_heads: int
) -> str:
    """The question that a control answers, and what the counts say about it, as a list item; a count for each seed."""
    none = [role for role, heads in control_heads.items() if not any(heads)]
    as_many = [
        role for role, heads in control_heads.items() if role not in none and np.mean(heads) >= checkpoint_heads[role]
    ]
    fewer = [
        f"{role}, {written(heads)} instead of {checkpoint_heads[role]}"
        for role, heads in control_heads.items()
        if role not in none + as_many
    ]
    sentences = [] if control_heads else ["None of these roles applies to these texts."]
    if none:
        sentences.append(f"Here none of {n_heads} heads holds {_joined(none, 'or')}.")
    if fewer:
        sentences.append(f"Fewer heads than in this checkpoint hold: {'; '.join(fewer)}.")
    if as_many:
        counts = "this count does" if len(as_many) == 1 else "these counts do"
        sentences.append(
            f"As many heads as in this checkpoint, or more, hold {_joined(as_many, 'and')}: {counts} not show that "
            f"{SHOWS[control]}."
        )
    return f"- **{control.capitalize()}**: {ANSWERS[control]} {' '.join(sentences)}"


SHOWS: Final[dict[Control, str]] = {
    "permuted keys": "heads look at some tokens rather than others",
    "shuffled words": "heads depend on word order",
    "random weights": "training gave heads the role",
}
"""What a count does not show if it is no larger than under the control."""


def _joined(roles: Sequence[str], word: str) -> str:
    return roles[0] if len(roles) == 1 else f"{', '.join(roles[:-1])} {word} {roles[-1]}"


def control_shown(name: str) -> str:
    return f"**Control: roles {_under(name)}.** The grid is not this checkpoint's."


def _under(name: str) -> str:
    return f"under {name}" if name.startswith("random") else f"with {name}"


def positional(role: str, n_held: int, heads: Mapping[Head, tuple[float, float]]) -> str:
    """`heads` are positional; score of each on the pairs of the role and on others, times uniform attention."""
    others = "as on pairs at the same distance that are not joined"
    if not heads:
        each = f"The {role} head" if n_held == 1 else f"Each of {n_held} {role} heads"
        return f"{each} scores at least {LEAST_TIMES:g} times as high on pairs that the role joins {others}."
    does = "does" if len(heads) == 1 else "do"
    named = ", ".join(f"{head_name(*head)} ({own:.1f} beside {other:.1f})" for head, (own, other) in heads.items())
    return (
        f"Of {counted(n_held, f'{role} head')}, {len(heads)} {does} not score at least {LEAST_TIMES:g} times as high "
        f"on pairs that the role joins {others} (positional): {named} times uniform attention."
    )


def without_match(n_without: int, n_texts: int) -> str:
    have, are = ("has", "is") if n_without == 1 else ("have", "are")
    return (
        f"{n_without} of {counted(n_texts, 'text')} with such a pair {have} no other pair at its distance, "
        f"and {are} left out of this comparison."
    )
