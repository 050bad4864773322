"""Two checkpoints of one shape, head by head: grids of their roles, of what changed, and maps of differences."""

from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from core.comparison import PairedTests
from core.hypotheses import HeadTests
from core.roles import ROLES
from dashboard import compare_wording as wording
from dashboard import state
from dashboard import wording as shared_wording
from dashboard.components.grid import role_grid
from dashboard.components.head_map import Detail, head_map
from dashboard.downloads import drawing_downloads
from dashboard.figures.appearance import LOOKS
from dashboard.figures.grid_svg import grid_svg
from dashboard.figures.head_map_svg import head_map_svg, round_bound
from dashboard.plain import plain
from dashboard.views.comparing import Focus, divergence_of_heads, paired
from dashboard.views.layout import halves

MOST_DIVERGENCE: Final = float(np.log(2))
FINER: Final = "compare finer"


def grids(focus: Focus) -> None:
    """Roles under each checkpoint, those gained, kept and lost, and how far apart each head looks."""
    st.toggle(shared_wording.FINER, key=FINER, bind="query-params", persist_state="session")
    st.subheader(wording.BOTH_SIDES)
    for place, side, letter in zip(halves(), (0, 1), "ab"):
        with place:
            name, tests = focus.names[side], focus.pair.tests[side]
            st.markdown(f"**({letter})** {plain(name)}")
            p_name = f"p ({st.session_state['correction']})"
            _roles(focus, letter, tests, tests.p_adjusted, p_name, f"({letter}) Roles of the heads of {name}")
    left, right = halves()
    with left:
        st.subheader(wording.CHANGES)
        (before, after), (reference, compared) = focus.pair.tests, focus.names
        title = f"Roles gained, kept and lost by {compared} against {reference}"
        p_values = paired(focus.pair, focus.chosen).p_adjusted
        _roles(focus, "changes", after, p_values, "p of b − a", title, held_before=before.holds)
    with right:
        _divergence(focus)
    state.put_in_link(focus.heads)


def _shown(focus: Focus) -> tuple[str, ...]:
    return focus.fine if st.session_state.get(FINER) else focus.coarse


def _roles(
    focus: Focus,
    name: str,
    tests: HeadTests,
    p_values: Float[np.ndarray, "role layer head"],
    p_name: str,
    title: str,
    held_before: Bool[np.ndarray, "role layer head"] | None = None,
) -> None:
    """A grid of roles with its files; with `held_before`, of those gained, kept and lost."""
    tau, shown = focus.chosen.criterion.tau, _shown(focus)
    role_grid(
        key=f"compare {name}",
        roles=ROLES,
        scores=tests.mean,
        holds=tests.holds,
        held_before=held_before,
        before=wording.against(focus.names[0]),
        p_values=p_values,
        p_name=p_name,
        shown=shown,
        tau=tau,
        filled=shared_wording.filled_by_test(tau),
        label=title,
        chosen=focus.heads,
        reset=focus.reset,
        on_change=state.choose_heads,
    )
    drawing_downloads(
        name if held_before is not None else f"grid {name}",
        lambda: grid_svg(
            roles=ROLES,
            scores=tests.mean,
            holds=tests.holds,
            held_before=held_before,
            shown=shown,
            tau=tau,
            title=title,
            caption=focus.caption,
        ),
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
    found = paired(focus.pair, focus.chosen)
    places = [ROLES.index(role) for role in _shown(focus)]
    places = [place for place in places if np.isfinite(found.difference[place]).any()]
    if not places:
        st.info(wording.NO_SCORES)
        return
    moved = [np.abs(pair.tests[1].mean[places] - pair.tests[0].mean[places]) for pair in focus.pairs]
    bound = round_bound(max(float(np.nanmax(of_one)) for of_one in moved))
    st.markdown(f"{wording.SIGN} {wording.scale(bound)}")
    for start in range(0, len(places), 2):
        for column, place in zip(halves(), places[start : start + 2]):
            with column:
                _map(focus, ROLES[place], found.difference[place], bound, f"{LOOKS[ROLES[place]].label}, b − a", found)


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
    drawn: dict[str, Any] = {
        "values": values,
        "bound": bound,
        "signed": tests is not None,
        "outlined": None if tests is None else tests.differs[place],
        "outline": "" if tests is None else wording.OUTLINE,
        "low_label": "" if tests is None else wording.LESS,
        "high_label": "" if tests is None else wording.MORE,
    }
    reference, compared = focus.names
    head_map(
        key=f"map {name}",
        details=() if tests is None else _details(tests, place),
        label=f"{title} of {compared} against {reference}",
        title=title,
        chosen=focus.heads,
        reset=focus.reset,
        on_change=state.choose_heads,
        **drawn,
    )
    drawing_downloads(
        f"map of {name}",
        lambda: head_map_svg(title=f"{title}: {compared} against {reference}", caption=focus.caption, **drawn),
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
