"""Two checkpoints over the same texts of a corpus of any size, from its statistics."""

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from core.corpus.paired import Differences, check_same_texts, read_differences
from core.corpus.results import Results
from core.corpus.strata import EVERYTHING
from core.roles.hypotheses import HeadTests
from core.roles.roles import ROLES, shown_roles_of_all
from core.roles.tables import by_head
from dashboard import controls, state
from dashboard import wording as shared_wording
from dashboard.figures.appearance import LOOKS
from dashboard.figures.head_map import HeadMap, round_bound
from dashboard.figures.roles.grid import RoleGrid
from dashboard.files.downloads import table_downloads
from dashboard.offers.results import offered, open_offered
from dashboard.plain import plain
from dashboard.views import frame
from dashboard.views.layout import halves
from dashboard.views.maps import show_head_map, show_role_grid
from dashboard.views.pickers import from_list
from dashboard.views.results import chosen as choosing
from dashboard.views.results import wording
from dashboard.views.results.chosen import Opened, busiest, decided, part_of

FIELDS = ("texts", "mean_a", "mean_b", "difference", "low", "high", "t", "p", "p_adjusted", "differs")


def compare() -> None:
    """Draw the body of the page Compare."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        a = choosing.opened()
        if a is None:
            return
        other = _other(a)
    choosing.say_what(a)
    if other is None:
        st.info(wording.NO_OTHER)
        return
    check_same_texts(a.results, other)
    b = replace(a, results=other, part=part_of(other, a.part.stratum))
    tests = decided(a, False), decided(b, False)
    if tests[0].mean.shape != tests[1].mean.shape:
        st.info(plain(f"{a.results.checkpoint} and {other.checkpoint} have not the same heads."))
        return
    apart = None
    if a.part.stratum == EVERYTHING:
        apart = read_differences(a.results, other, a.chosen.criterion)
        _say_differences(a, b, apart)
    else:
        st.info(wording.PAIRED_OVER_ALL)
    frame.tabs(
        "results compare",
        {
            "Which heads": lambda: _which_heads(a, b, tests, apart),
            "Grids": lambda: _grids(a, b, tests),
            "Table": lambda: _table(a, tests, apart),
        },
    )


def _other(a: Opened) -> Results | None:
    names = [name for name, folder in offered().items() if folder != a.results.folder.resolve()]
    name = st.selectbox(
        wording.COMPARED,
        names,
        index=None,
        key="other results",
        accept_new_options=not controls.public.is_public(),
        help=wording.COMPARED_HELP,
        bind="query-params",
        persist_state="session",
    )
    return open_offered(str(name)) if name else None


def _say_differences(a: Opened, b: Opened, apart: Differences | None) -> None:
    if apart is None:
        st.info(wording.NOT_PAIRED)
        command = f"python -m core corpus compare {a.results.folder.name} {b.results.folder.name}"
        st.code(command, language=None)
    else:
        n_tested = int((apart.texts > 1).sum())
        st.markdown(wording.differing(int(apart.differs.sum()), n_tested, a.chosen.criterion.alpha))


def _grid(of: Opened, tests: HeadTests, shown: tuple[str, ...]) -> RoleGrid:
    tau, scale = tests.settings.tau, of.results.settings.scale
    return RoleGrid(
        label=f"Roles of the heads of {of.results.checkpoint}",
        scores=tests.mean,
        holds=tests.holds,
        tau=tau,
        shown=shown,
        filled=shared_wording.filled_by_test(tau, scale),
        scale=scale,
        p_values=tests.p_adjusted,
        p_name=f"p ({tests.settings.correction})",
    )


def _which_heads(a: Opened, b: Opened, tests: tuple[HeadTests, HeadTests], apart: Differences | None) -> None:
    """Roles gained, kept and lost beside a map of how far the scores of one role moved."""
    coarse, _ = shown_roles_of_all([each.mean for each in tests])
    heads = a.heads(busiest(tests[1]))
    left, right = halves()
    with left:
        grid = replace(_grid(b, tests[1], coarse), held_before=tests[0].holds, before=a.results.checkpoint)
        show_role_grid(grid, key="results changes", file="changes", heads=heads, reset=a.reset, facts=b.facts)
    with right:
        role = from_list("Role", {LOOKS[each].label: each for each in coarse}, key="results compare role")
        index = ROLES.index(role)
        moved = tests[1].mean[index] - tests[0].mean[index]
        known = np.abs(moved[np.isfinite(moved)])
        if not known.size:
            st.info(wording.NO_SCORE)
            return
        picture = HeadMap(
            title=f"{LOOKS[role].label}: difference of the mean scores",
            label=f"Scores of {b.results.checkpoint} minus those of {a.results.checkpoint}",
            values=moved,
            bound=round_bound(float(known.max()) or 1.0),
            signed=True,
            low_label="lower than before",
            high_label="higher",
            outlined=None if apart is None else apart.differs[index],
            outline="" if apart is None else "differs significantly",
            details=[("before", tests[0].mean[index]), ("after", tests[1].mean[index])],
        )
        show_head_map(picture, key="results moved", file="differences", heads=heads, reset=a.reset, facts=b.facts)
    state.put_in_link(heads)


def _grids(a: Opened, b: Opened, tests: tuple[HeadTests, HeadTests]) -> None:
    coarse, _ = shown_roles_of_all([each.mean for each in tests])
    heads = a.heads(busiest(tests[1]))
    for place, of, each, letter in zip(halves(), (a, b), tests, "ab"):
        with place:
            st.markdown(f"**({letter})** {plain(of.results.checkpoint)}")
            show_role_grid(
                _grid(of, each, coarse),
                key=f"results {letter}",
                file=letter,
                heads=heads,
                reset=a.reset,
                facts=of.facts,
            )


def _table(a: Opened, tests: tuple[HeadTests, HeadTests], apart: Differences | None) -> None:
    if apart is not None:
        table = by_head(ROLES, {name: getattr(apart, name) for name in FIELDS})
    else:
        sides = {
            f"{name}_{letter}": getattr(each, name) for each, letter in zip(tests, "ab") for name in ("mean", "holds")
        }
        table = by_head(ROLES, {"difference": tests[1].mean - tests[0].mean, **sides})
    number = {name: st.column_config.NumberColumn(format="%.3g") for name in FIELDS if name not in ("texts", "differs")}
    st.dataframe(table, hide_index=True, column_config=number)
    table_downloads("differences", pd.DataFrame(table), a.facts)
