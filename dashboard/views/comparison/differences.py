"""Two checkpoints of one shape, head by head: grids of roles and of changes, and maps of differences."""

from dataclasses import replace
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.comparison.differences import PairedTests
from attention_sieve.core.comparison.sizes import is_large
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.similarity.distances import MOST
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.head_map import Detail, HeadMap, round_bound
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import CheckpointFocus, divergence_of_heads
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.role_grid.grid import show_role_grid

FINER: Final = "compare finer"
"""Key of whether the finer roles are shown."""


def which_heads(focus: CheckpointFocus, role: str) -> None:
    """Roles gained, kept and lost next to a map of the score differences for one role."""
    left, right = halves()
    with left:
        reference, compared = focus.names
        changes = replace(
            _roles(focus, 1, f"Roles gained, kept and lost by {compared} against {reference}"),
            title="Roles gained, kept and lost",
            held_before=focus.pair.tests[0].holds,
            before=f"against {reference}",
            p_values=focus.compared.tests.p_adjusted,
            p_name="p of b − a",
        )
        _show(focus, changes, "changes", file="changes")
    with right:
        _difference(focus, role)


def grids(focus: CheckpointFocus) -> None:
    for column, side, letter in zip(halves(), (0, 1), "ab"):
        with column:
            name, title = focus.names[side], f"({letter}) Roles of the heads"
            st.markdown(f"**({letter})** {plain(name)}")
            grid = replace(_roles(focus, side, f"{title} of {name}"), title=title)
            _show(focus, grid, letter, file=f"grid {letter}")


def _shown_roles(focus: CheckpointFocus) -> tuple[str, ...]:
    return focus.fine if st.session_state.get(FINER) else focus.coarse


def grid_by_test(tests: HeadTests, scale: Scale, shown: tuple[str, ...], label: str) -> RoleGrid:
    tau = tests.settings.tau
    return RoleGrid(
        label=label,
        roles=tests.roles,
        scores=tests.mean,
        holds=tests.holds,
        tau=tau,
        shown=shown,
        filled=shared_wording.filled_by_test(tau, scale),
        scale=scale,
        p_values=tests.p_adjusted,
        p_name=f"p ({tests.settings.correction})",
    )


def _roles(focus: CheckpointFocus, side: int, label: str) -> RoleGrid:
    grid = grid_by_test(focus.pair.tests[side], focus.choice.scale, _shown_roles(focus), label)
    uniform, greatest = focus.pair.sides[side].counted.mean_references()
    p_name, sentences = f"p ({focus.choice.correction})", focus.sentences[side]
    return replace(grid, uniform=uniform, greatest=greatest, p_name=p_name, sentences=sentences)


def _show(focus: CheckpointFocus, grid: RoleGrid, name: str, file: str) -> None:
    show_role_grid(grid, head_selection(f"compare {name}", focus.heads, focus.reset), file=file, facts=focus.facts)


def divergence(focus: CheckpointFocus) -> None:
    moved = divergence_of_heads(focus.pair)
    if moved is None:
        st.info(wording.NO_DIVERGENCE)
        return
    st.markdown(wording.DIVERGENCE_NOTE)
    divergences = [values for pair in focus.pairs if (values := divergence_of_heads(pair)) is not None]
    bound = min(round_bound(max(float(values.max()) for values in divergences)), MOST)
    _map(focus, "divergence", moved, bound, wording.DIVERGENCE_TITLE)


def differences(focus: CheckpointFocus, role: str) -> None:
    """A map of b - a for each role except the one that is drawn already."""
    st.markdown(wording.sign(focus.choice.scale))
    others = [other for other in _shown_roles(focus) if other != role]
    for start in range(0, len(others), 2):
        for column, other in zip(halves(), others[start : start + 2]):
            with column:
                _difference(focus, other)


def _difference(focus: CheckpointFocus, role: str) -> None:
    """The map of b - a of one role, on a scale that all roles and all compared checkpoints share."""
    tests, index = focus.compared.tests, focus.pair.roles.index(role)
    if not np.isfinite(tests.difference[index]).any():
        st.info(f"No text has a score for the role {LOOKS[role].label} under both checkpoints.")
        return
    indices = [focus.pair.roles.index(name) for name in dict.fromkeys((*_shown_roles(focus), role))]
    absolute_differences = [np.abs(pair.tests[1].mean[indices] - pair.tests[0].mean[indices]) for pair in focus.pairs]
    bound = round_bound(max(float(np.nanmax(values)) for values in absolute_differences))
    _map(focus, role, tests.difference[index], bound, f"{LOOKS[role].label}, b − a", tests)


def _map(
    focus: CheckpointFocus,
    name: str,
    values: Float[np.ndarray, "layer head"],
    bound: float,
    title: str,
    tests: PairedTests | None = None,
) -> None:
    """A map of one number per head with its files; with `tests`, the difference of the role `name` and its tests."""
    index = focus.pair.roles.index(name) if tests is not None else 0
    facts = without_command(focus.facts) if tests is None else focus.facts
    reference, compared = focus.names
    picture = HeadMap(
        title=title,
        label=f"{title} of {compared} against {reference}",
        values=values,
        bound=bound,
        signed=tests is not None,
        low_label="" if tests is None else wording.LESS,
        high_label="" if tests is None else wording.MORE,
        marked=None if tests is None else (tests.differs & is_large(tests, focus.least))[index],
        mark="" if tests is None else wording.mark(focus.least),
        details=() if tests is None else _details(tests, index),
    )
    show_head_map(picture, head_selection(f"map {name}", focus.heads, focus.reset), file=f"map of {name}", facts=facts)


def _details(tests: PairedTests, index: int) -> list[Detail]:
    ends = zip(tests.low[index], tests.high[index])
    interval = [[f"{low:+.3f} to {high:+.3f}" for low, high in zip(*rows)] for rows in ends]
    return [
        ("mean under a", tests.mean_a[index]),
        ("mean under b", tests.mean_b[index]),
        ("b − a", tests.difference[index]),
        (f"{1 - tests.alpha:.0%} interval", interval),
        ("p, corrected", tests.p_adjusted[index]),
        ("p, Wilcoxon", tests.wilcoxon_p[index]),
        ("effect (d)", tests.effect[index]),
        ("texts", tests.texts[index].astype(str).tolist()),
    ]
