"""Two checkpoints of one shape, head by head: grids of their roles, of what changed, and maps of differences."""

from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from core.comparison.differences import PairedTests
from core.roles.roles import ROLES
from dashboard import state
from dashboard import wording as shared_wording
from dashboard.figures.appearance import LOOKS
from dashboard.figures.head_map import Detail, HeadMap, round_bound
from dashboard.figures.roles.grid import RoleGrid
from dashboard.plain import plain
from dashboard.views.compare import wording
from dashboard.views.compare.numbers import Focus, divergence_of_heads, paired
from dashboard.views.layout import halves
from dashboard.views.maps import show_head_map, show_role_grid
from dashboard.views.pickers import toggle

MOST_DIVERGENCE: Final = float(np.log(2))
FINER: Final = "compare finer"


def grids(focus: Focus) -> None:
    """Roles under each checkpoint, those gained, kept and lost, and how far apart each head looks."""
    toggle(shared_wording.FINER, key=FINER)
    st.subheader(wording.BOTH_SIDES)
    for place, side, letter in zip(halves(), (0, 1), "ab"):
        with place:
            name, p_values = focus.names[side], focus.pair.tests[side].p_adjusted
            st.markdown(f"**({letter})** {plain(name)}")
            p_name = f"p ({st.session_state['correction']})"
            _roles(focus, letter, side, p_values, p_name, f"({letter}) Roles of the heads of {name}")
    left, right = halves()
    with left:
        st.subheader(wording.CHANGES)
        before, (reference, compared) = focus.pair.tests[0], focus.names
        title = f"Roles gained, kept and lost by {compared} against {reference}"
        p_values = paired(focus.pair, focus.chosen).p_adjusted
        _roles(focus, "changes", 1, p_values, "p of b − a", title, held_before=before.holds)
    with right:
        _divergence(focus)
    state.put_in_link(focus.heads)


def _shown(focus: Focus) -> tuple[str, ...]:
    return focus.fine if st.session_state.get(FINER) else focus.coarse


def _roles(
    focus: Focus,
    name: str,
    side: int,
    p_values: Float[np.ndarray, "role layer head"],
    p_name: str,
    title: str,
    held_before: Bool[np.ndarray, "role layer head"] | None = None,
) -> None:
    """A grid of the roles of one side with its files; with `held_before`, of those gained, kept and lost."""
    tests = focus.pair.tests[side]
    uniform, greatest = focus.pair.scored.sides[side].mean_references()
    grid = RoleGrid(
        label=title,
        scores=tests.mean,
        holds=tests.holds,
        tau=focus.chosen.criterion.tau,
        shown=_shown(focus),
        held_before=held_before,
        before=wording.against(focus.names[0]),
        filled=shared_wording.filled_by_test(focus.chosen.criterion.tau, focus.chosen.scale),
        scale=focus.chosen.scale,
        uniform=uniform,
        greatest=greatest,
        p_values=p_values,
        p_name=p_name,
    )
    show_role_grid(
        grid,
        key=f"compare {name}",
        file=name if held_before is not None else f"grid {name}",
        heads=focus.heads,
        reset=focus.reset,
        facts=focus.facts,
    )


def _divergence(focus: Focus) -> None:
    moved = divergence_of_heads(focus.pair)
    if moved is None:
        return
    st.subheader(wording.DIVERGENCE)
    st.markdown(wording.DIVERGENCE_NOTE)
    others = [of_one for pair in focus.pairs if (of_one := divergence_of_heads(pair)) is not None]
    bound = min(round_bound(max(float(of_one.max()) for of_one in others)), MOST_DIVERGENCE)
    _map(focus, "divergence", moved, bound, wording.DIVERGENCE_TITLE)


def differences(focus: Focus) -> None:
    """A map of b - a for each role, all on one scale, which all compared checkpoints share."""
    tests = paired(focus.pair, focus.chosen)
    places = [ROLES.index(role) for role in _shown(focus)]
    places = [place for place in places if np.isfinite(tests.difference[place]).any()]
    if not places:
        st.info(wording.NO_SCORES)
        return
    moved = [np.abs(pair.tests[1].mean[places] - pair.tests[0].mean[places]) for pair in focus.pairs]
    bound = round_bound(max(float(np.nanmax(of_one)) for of_one in moved))
    st.markdown(f"{wording.sign(focus.chosen.scale)} {wording.scale(bound)}")
    for start in range(0, len(places), 2):
        for column, place in zip(halves(), places[start : start + 2]):
            with column:
                _map(focus, ROLES[place], tests.difference[place], bound, f"{LOOKS[ROLES[place]].label}, b − a", tests)


def _map(
    focus: Focus,
    name: str,
    values: Float[np.ndarray, "layer head"],
    bound: float,
    title: str,
    tests: PairedTests | None = None,
) -> None:
    """One number per head with its files; with tests, a difference of the role that is named, and what they say."""
    place = ROLES.index(name) if tests is not None else 0
    reference, compared = focus.names
    picture = HeadMap(
        title=title,
        label=f"{title} of {compared} against {reference}",
        values=values,
        bound=bound,
        signed=tests is not None,
        low_label="" if tests is None else wording.LESS,
        high_label="" if tests is None else wording.MORE,
        outlined=None if tests is None else tests.differs[place],
        outline="" if tests is None else wording.OUTLINE,
        details=() if tests is None else _details(tests, place),
    )
    show_head_map(
        picture, key=f"map {name}", file=f"map of {name}", heads=focus.heads, reset=focus.reset, facts=focus.facts
    )


def _details(tests: PairedTests, place: int) -> list[Detail]:
    ends = zip(tests.low[place], tests.high[place])
    interval = [[f"{low:+.3f} to {high:+.3f}" for low, high in zip(*rows)] for rows in ends]
    return [
        ("mean under a", tests.mean_a[place]),
        ("mean under b", tests.mean_b[place]),
        ("b − a", tests.difference[place]),
        (f"{1 - tests.alpha:.0%} interval", interval),
        ("p, corrected", tests.p_adjusted[place]),
        ("p, Wilcoxon", tests.wilcoxon_p[place]),
        ("effect (d)", tests.effect[place]),
        ("texts", tests.texts[place].astype(str).tolist()),
    ]
