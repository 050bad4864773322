"""What changes between two checkpoints of one shape: grids of roles, maps of differences, layers, and tables."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st
from jaxtyping import Float

from core.comparison import PairedTests
from core.frames import comparison_table, role_change_table, transition_table
from core.roles import ROLES
from core.transitions import changes_per_layer, role_changes, transitions
from dashboard import compare_wording as wording
from dashboard import provenance, state
from dashboard import wording as shared_wording
from dashboard.components.grid import role_grid
from dashboard.components.head_map import Detail, head_map
from dashboard.downloads import drawing_downloads, figure_downloads, table_downloads
from dashboard.figures.appearance import LOOKS
from dashboard.figures.changes import roles_gained_and_lost
from dashboard.figures.figure import Figure
from dashboard.figures.grid_svg import grid_svg
from dashboard.figures.head_map_svg import head_map_svg, round_bound
from dashboard.figures.score_changes import score_change_scatter
from dashboard.figures.shifts import divergence_by_layer, shift_by_layer
from dashboard.plain import plain
from dashboard.state import Choice, Head
from dashboard.views.comparing import Compared, divergence_of_heads, paired, shift
from dashboard.views.layout import halves

MOST_DIVERGENCE = float(np.log(2))


def grids(chosen: Choice, pair: Compared, coarse: tuple[str, ...], fine: tuple[str, ...]) -> list[Head]:
    """Roles under each checkpoint, and those gained, kept and lost; the heads that are chosen in all of them."""
    finer = st.toggle(shared_wording.FINER, key="compare finer", bind="query-params", persist_state="session")
    shown = fine if finer else coarse
    st.subheader(wording.BOTH_SIDES)
    left, right = halves()
    heads: list[Head] = []
    for place, side, letter in ((left, 0, "a"), (right, 1, "b")):
        with place:
            heads = _roles(chosen, pair, side, letter, shown)
    left, right = halves()
    with left:
        st.subheader(wording.CHANGES)
        _changes(chosen, pair, shown)
    with right:
        _divergence(chosen, pair)
    state.put_in_link(heads)
    return heads


def _chosen(pair: Compared) -> list[Head]:
    n_layers, n_heads = pair.tests[0].mean.shape[1:]
    return state.chosen_heads(n_layers, n_heads, _most_moved(pair))


def _most_moved(pair: Compared) -> Head:
    """The head whose attention is furthest apart: something to look at before one is chosen."""
    moved = divergence_of_heads(pair.corpus)
    if moved is None:
        moved = np.nan_to_num(np.abs(pair.tests[1].mean - pair.tests[0].mean)).sum(axis=0)
    layer, head = np.unravel_index(moved.argmax(), moved.shape)
    return int(layer), int(head)


def _reset(pair: Compared) -> tuple[object, ...]:
    """A head chosen in one view is pushed to all others."""
    return (*(engine.files.fingerprint for engine in pair.engines), tuple(_chosen(pair)))


def _roles(chosen: Choice, pair: Compared, side: int, letter: str, shown: tuple[str, ...]) -> list[Head]:
    name, tests = pair.engines[side].files.name, pair.tests[side]
    title = f"({letter}) Roles of the heads of {name}"
    st.markdown(f"**({letter})** {plain(name)}")
    heads = role_grid(
        key=f"compare {letter}",
        roles=ROLES,
        scores=tests.mean,
        holds=tests.holds,
        p_values=tests.p_adjusted,
        p_name=f"p ({st.session_state['correction']})",
        shown=shown,
        tau=chosen.criterion.tau,
        filled=shared_wording.filled_by_test(chosen.criterion.tau),
        label=title,
        chosen=_chosen(pair),
        reset=_reset(pair),
        on_change=state.choose_heads,
    )
    caption = provenance.caption(provenance.comparison_facts(chosen, pair.engines, len(pair.scores[0])))
    drawing_downloads(
        f"grid {letter}",
        lambda: grid_svg(
            roles=ROLES,
            scores=tests.mean,
            holds=tests.holds,
            shown=shown,
            tau=chosen.criterion.tau,
            title=title,
            caption=caption,
        ),
    )
    return heads


def _changes(chosen: Choice, pair: Compared, shown: tuple[str, ...]) -> None:
    tests_a, tests_b = pair.tests
    title = f"Roles gained, kept and lost by {pair.name} against {pair.engines[0].files.name}"
    role_grid(
        key="compare changes",
        roles=ROLES,
        scores=tests_b.mean,
        holds=tests_b.holds,
        held_before=tests_a.holds,
        before=wording.against(pair.engines[0].files.name),
        p_values=paired(pair, chosen).p_adjusted,
        p_name="p of b − a",
        shown=shown,
        tau=chosen.criterion.tau,
        filled=shared_wording.filled_by_test(chosen.criterion.tau),
        label=title,
        chosen=_chosen(pair),
        reset=_reset(pair),
        on_change=state.choose_heads,
    )
    caption = provenance.caption(provenance.comparison_facts(chosen, pair.engines, len(pair.scores[0])))
    drawing_downloads(
        "changes",
        lambda: grid_svg(
            roles=ROLES,
            scores=tests_b.mean,
            holds=tests_b.holds,
            held_before=tests_a.holds,
            shown=shown,
            tau=chosen.criterion.tau,
            title=title,
            caption=caption,
        ),
    )


def _divergence(chosen: Choice, pair: Compared) -> None:
    moved = divergence_of_heads(pair.corpus)
    if moved is None:
        return
    st.subheader(wording.DIVERGENCE)
    st.markdown(wording.DIVERGENCE_NOTE)
    bound = min(round_bound(float(moved.max())), MOST_DIVERGENCE)
    _map(chosen, pair, "divergence", moved, bound, title=wording.DIVERGENCE_TITLE, signed=False)


def _map(
    chosen: Choice,
    pair: Compared,
    name: str,
    values: Float[np.ndarray, "layer head"],
    bound: float,
    *,
    title: str,
    signed: bool,
    tested: tuple[PairedTests, int] | None = None,
) -> None:
    """One number per head on a scale; with tests, outlines and details of the role at one place of them."""
    outlined = None if tested is None else tested[0].differs[tested[1]]
    head_map(
        key=f"map {name}",
        values=values,
        bound=bound,
        signed=signed,
        outlined=outlined,
        outline="" if tested is None else wording.OUTLINE,
        details=() if tested is None else _paired_details(*tested),
        label=f"{title} of {pair.name} against {pair.engines[0].files.name}",
        title=title,
        low_label=wording.LESS if signed else "",
        high_label=wording.MORE if signed else "",
        chosen=_chosen(pair),
        reset=_reset(pair),
        on_change=state.choose_heads,
    )
    caption = provenance.caption(provenance.comparison_facts(chosen, pair.engines, len(pair.scores[0])))
    drawing_downloads(
        f"map of {name}",
        lambda: head_map_svg(
            values=values,
            bound=bound,
            signed=signed,
            outlined=outlined,
            outline="" if tested is None else wording.OUTLINE,
            title=f"{title}: {pair.name} against {pair.engines[0].files.name}",
            caption=caption,
            low_label=wording.LESS if signed else "",
            high_label=wording.MORE if signed else "",
        ),
    )


def _paired_details(tests: PairedTests, place: int) -> list[Detail]:
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


def differences(chosen: Choice, pair: Compared, coarse: tuple[str, ...], fine: tuple[str, ...]) -> None:
    """A map of b - a for each role, all on one scale."""
    found = paired(pair, chosen)
    st.subheader(wording.DIFFERENCES)
    finer = st.session_state.get("compare finer", False)
    shown = [role for role in (fine if finer else coarse) if np.isfinite(found.difference[ROLES.index(role)]).any()]
    if not shown:
        return
    bound = round_bound(float(np.nanmax(np.abs(found.difference[[ROLES.index(role) for role in shown]]))))
    st.markdown(f"{wording.SIGN} {wording.scale(bound)}")
    for start in range(0, len(shown), 2):
        for place, role in zip(halves(), shown[start : start + 2]):
            with place:
                title = f"{LOOKS[role].label}, b − a"
                where = ROLES.index(role)
                _map(
                    chosen, pair, role, found.difference[where], bound, title=title, signed=True, tested=(found, where)
                )


def details(chosen: Choice, pair: Compared, coarse: tuple[str, ...], fine: tuple[str, ...]) -> None:
    """Layers, transitions and tables, one tab at a time."""
    st.subheader(wording.DETAILS)
    views: dict[str, Callable[[], None]] = {
        "Per layer": lambda: _per_layer(chosen, pair, coarse, fine),
        "Transitions": lambda: _transitions(chosen, pair, coarse),
        "All scores": lambda: _scatter(chosen, pair, coarse),
        "Table": lambda: _table(chosen, pair),
    }
    tabs = st.tabs(list(views), key="compare details", on_change="rerun", bind="query-params")
    for tab, draw in zip(tabs, views.values()):
        if tab.open:
            with tab:
                draw()


def _per_layer(chosen: Choice, pair: Compared, coarse: tuple[str, ...], fine: tuple[str, ...]) -> None:
    tests_a, tests_b = pair.tests
    places = [ROLES.index(role) for role in coarse]
    gained, lost = changes_per_layer(tests_a.holds[places], tests_b.holds[places])
    chart(chosen, pair, "roles gained and lost", roles_gained_and_lost(gained, lost, coarse, tests_a.mean.shape[2]))
    roles = [role for role in (*coarse, *fine) if np.isfinite(tests_a.mean[ROLES.index(role)]).any()]
    usual = "delimiter:sep" if "delimiter:sep" in roles else roles[0]
    role = st.selectbox(
        wording.ROLE_SHIFT,
        roles,
        index=roles.index(usual),
        format_func=lambda name: LOOKS[name].label,
        key="shift role",
        persist_state="session",
    )
    moved = shift(pair, chosen, role or usual)
    chart(chosen, pair, "score change by layer", shift_by_layer([moved], chosen.criterion.alpha))
    if pair.corpus.divergence is not None and divergence_of_heads(pair.corpus) is not None:
        chart(chosen, pair, "divergence by layer", divergence_by_layer(pair.corpus.divergence))


def chart(chosen: Choice, pair: Compared, name: str, figure: Figure) -> None:
    """A figure with its words and its downloads."""
    st.vega_lite_chart(figure.data, figure.spec, width="stretch", alt=figure.description, key=f"chart {name}")
    st.markdown(plain(figure.description))
    facts = provenance.comparison_facts(chosen, pair.engines, len(pair.scores[0]))
    figure_downloads(name, figure, name.capitalize(), facts)


def _transitions(chosen: Choice, pair: Compared, coarse: Sequence[str]) -> None:
    tests_a, tests_b = pair.tests
    facts = provenance.comparison_facts(chosen, pair.engines, len(pair.scores[0]))
    st.markdown(wording.TRANSITIONS)
    table = transition_table(transitions(tests_a.holds, tests_b.holds, ROLES, tuple(coarse)))
    st.dataframe(table, hide_index=True, column_config={"which": st.column_config.TextColumn(width="large")})
    table_downloads("transitions", table, facts)
    st.markdown(wording.MCNEMAR)
    changes = role_change_table(role_changes(tests_a.holds, tests_b.holds, ROLES))
    st.dataframe(changes, hide_index=True, column_config={"p": st.column_config.NumberColumn(format="%.3g")})
    table_downloads("role changes", changes, facts)


def _scatter(chosen: Choice, pair: Compared, coarse: Sequence[str]) -> None:
    chart(chosen, pair, "all scores", score_change_scatter(paired(pair, chosen), coarse))


def _table(chosen: Choice, pair: Compared) -> None:
    table = comparison_table(paired(pair, chosen), pair.tests[0].holds, pair.tests[1].holds)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.multiselect(
            "Roles", ROLES, key="compare roles", placeholder="all roles", bind="query-params", persist_state="session"
        )
        only = st.toggle(
            "Only significant differences", key="compare significant", bind="query-params", persist_state="session"
        )
    wanted = table["role"].isin(shown or ROLES)
    if only:
        wanted &= paired(pair, chosen).differs.ravel()
    table = table[wanted]
    small = {name: st.column_config.NumberColumn(format="%.3g") for name in ("p", "p_adjusted", "wilcoxon_p")}
    score = {
        name: st.column_config.NumberColumn(format="%.3f") for name in ("mean_a", "mean_b", "difference", "t", "effect")
    }
    st.dataframe(table, hide_index=True, column_config={**small, **score})
    table_downloads("differences", table, provenance.comparison_facts(chosen, pair.engines, len(pair.scores[0])))
