"""Two checkpoints of one shape, head by head: grids of roles and of changes, and maps of differences."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.comparison.differences import PairedTests
from attention_sieve.core.similarity.distances import MOST
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.head_map import Detail, HeadMap, round_bound
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import Compared, ComparedCheckpoint, divergence_of_heads
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.role_grid.grid import grid_of, show_role_grid

FINER: Final = "compare finer"
"""Key of whether the finer roles are shown."""


def how_far_between() -> float:
    """How far the reader has moved from the reference, 0, to the compared checkpoint, 1."""
    stop = st.select_slider(
        wording.FROM_A_TO_B,
        list(wording.STOPS),
        wording.BETWEEN,
        key="between",
        help=wording.BETWEEN_HELP,
        bind="query-params",
        persist_state="session",
    )
    return wording.STOPS[str(stop)]


def grid_between(shown: Compared, far: float) -> None:
    """The roles of either checkpoint, or between them those gained, kept and lost.

    Args:
        far: from the reference, 0, to the compared checkpoint, 1.
    """
    reference, compared = shown.names
    if far in (0, 1):
        grid = _grid(shown, int(far), f"Roles of the heads of {shown.names[int(far)]}")
    else:
        grid = replace(
            _grid(shown, 1, f"Roles gained, kept and lost by {compared} against {reference}"),
            title="Roles gained, kept and lost",
            scores=(1 - far) * shown.tests[0].mean + far * shown.tests[1].mean,
            held_before=shown.tests[0].holds,
            before=f"against {reference}",
            far=far,
            p_values=None if shown.paired is None else shown.paired.p_adjusted,
            p_name="p of b − a",
        )
    _show(shown, grid, "changes", file="changes")


def grids(shown: Compared) -> None:
    for column, side, letter in zip(halves(), (0, 1), "ab"):
        with column:
            name, title = shown.names[side], f"({letter}) Roles of the heads"
            st.markdown(f"**({letter})** {plain(name)}")
            grid = replace(_grid(shown, side, f"{title} of {name}"), title=title)
            _show(shown, grid, letter, file=f"grid {letter}")


def _shown_roles(shown: Compared) -> tuple[str, ...]:
    return shown.coarse_and_fine[bool(st.session_state.get(FINER))]


def _grid(shown: Compared, side: int, label: str) -> RoleGrid:
    grid = grid_of(shown.tests[side], shown.references[side], label, shown.scale, shown.correction)
    return replace(grid, shown=_shown_roles(shown), sentences=shown.sentences[side])


def _show(shown: Compared, grid: RoleGrid, name: str, file: str) -> None:
    show_role_grid(grid, head_selection(f"compare {name}", shown.heads, shown.reset), file=file, facts=shown.facts)


def divergence(pair: ComparedCheckpoint, pairs: Sequence[ComparedCheckpoint], shown: Compared) -> None:
    moved = divergence_of_heads(pair)
    if moved is None:
        st.info(wording.NO_DIVERGENCE)
        return
    st.markdown(wording.DIVERGENCE_NOTE)
    divergences = [values for other in pairs if (values := divergence_of_heads(other)) is not None]
    bound = min(round_bound(max(float(values.max()) for values in divergences)), MOST)
    _show_map(shown, "divergence", HeadMap(title=wording.DIVERGENCE_TITLE, label="", values=moved, bound=bound))


def differences(shown: Compared) -> None:
    """A map of b - a for each role."""
    st.markdown(wording.sign(shown.scale))
    roles = _shown_roles(shown)
    for start in range(0, len(roles), 2):
        for column, role in zip(halves(), roles[start : start + 2]):
            with column:
                difference_of(shown, role)


def difference_of(shown: Compared, role: str) -> None:
    """The map of b - a of one role, on a scale that all roles and all compared checkpoints share."""
    index, large = shown.roles.index(role), shown.large
    values = shown.difference[index]
    if not np.isfinite(values).any():
        st.info(f"No text has a score for the role {LOOKS[role].label} under both checkpoints.")
        return
    indices = [shown.roles.index(name) for name in dict.fromkeys((*_shown_roles(shown), role))]
    absolute_differences = [np.abs(b.mean[indices] - a.mean[indices]) for a, b in shown.all_tests]
    means = [("mean under a", shown.tests[0].mean[index]), ("mean under b", shown.tests[1].mean[index])]
    picture = HeadMap(
        title=f"{LOOKS[role].label}, b − a",
        label="",
        values=values,
        bound=round_bound(max(float(np.nanmax(values)) for values in absolute_differences)),
        signed=True,
        low_label=wording.LESS,
        high_label=wording.MORE,
        marked=None if large is None else large[index],
        mark="" if large is None else wording.mark(shown.least),
        details=means if shown.paired is None else _details(shown.paired, index),
    )
    _show_map(shown, role, picture)


def _show_map(shown: Compared, name: str, picture: HeadMap) -> None:
    reference, compared = shown.names
    picture = replace(picture, label=f"{picture.title} of {compared} against {reference}")
    facts = shown.facts if picture.signed else without_command(shown.facts)
    show_head_map(picture, head_selection(f"map {name}", shown.heads, shown.reset), file=f"map of {name}", facts=facts)


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
