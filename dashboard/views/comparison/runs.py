"""More than two checkpoints at once."""

from collections.abc import Sequence

import numpy as np

from attention_sieve.dashboard.figures.comparison.checkpoints import role_small_multiples
from attention_sieve.dashboard.figures.comparison.steps import roles_over_steps, shift_over_steps
from attention_sieve.dashboard.files.commands import without_command
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.comparison.numbers import CheckpointFocus, shift
from attention_sieve.dashboard.views.layout import halves


def over_checkpoints(focus: CheckpointFocus, steps: Sequence[int] | None, role: str) -> None:
    """Small multiples of the roles under each checkpoint, and the checkpoints along an axis.

    Args:
        focus: the selected checkpoint among the others.
        steps: of the reference and the others, if all are of one training run; None for other checkpoints.
        role: the role of the score to plot.
    """
    names = [focus.names[0], *(pair.name for pair in focus.pairs)]
    indices = [focus.pair.roles.index(role) for role in focus.coarse]
    reference = focus.pairs[0].tests[0]
    holds = np.stack([tests.holds[indices] for tests in (reference, *(pair.tests[1] for pair in focus.pairs))])
    marked = 1 + list(focus.pairs).index(focus.pair)
    left, right = halves()
    facts = without_command(focus.facts)
    with left:
        counts = holds.sum(axis=(2, 3))
        chart("roles over checkpoints", roles_over_steps(names, steps, counts, focus.coarse, marked), facts)
    shifts = np.array([0.0, *(shift(pair, focus.choice, role).overall for pair in focus.pairs)])
    with right:
        figure = shift_over_steps(names, steps, shifts, role, marked, focus.choice.scale)
        chart("shift over checkpoints", figure, facts)
    chart("roles of each checkpoint", role_small_multiples(names, holds, focus.coarse), facts)
