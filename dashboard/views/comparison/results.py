"""Two checkpoints on the same corpus of any size, compared by their statistics."""

import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head, highest_head
from attention_sieve.core.comparison.differences import PairedTests
from attention_sieve.core.comparison.sizes import LEAST_DIFFERENCE, difference_sizes, is_large
from attention_sieve.core.comparison.transitions import changed_heads, role_changes
from attention_sieve.core.corpus.paired import check_same_texts, read_differences
from attention_sieve.core.corpus.results import Results
from attention_sieve.core.corpus.statistics import EVERYTHING
from attention_sieve.core.roles.hypotheses import HeadTests, few_texts
from attention_sieve.core.roles.roles import shown_roles_of_all
from attention_sieve.core.roles.tables import by_head
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.roles.parts import NOTHING
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.offers import offered_results, open_offered_results
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import SMALL_NUMBER, head_selection, show_head_map
from attention_sieve.dashboard.views.comparison import wording as compare_wording
from attention_sieve.dashboard.views.comparison.differences import grid_by_test
from attention_sieve.dashboard.views.comparison.summary import what_changed
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.pickers import from_list, halves
from attention_sieve.dashboard.views.results import chosen as choosing
from attention_sieve.dashboard.views.results import wording
from attention_sieve.dashboard.views.results.chosen import Opened, busiest, decided, part_of
from attention_sieve.dashboard.views.role_grid.grid import show_role_grid

FIELDS = ("texts", "mean_a", "mean_b", "difference", "low", "high", "t", "p", "p_adjusted", "differs")


def compare(results: Results) -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        a = choosing.opened(results)
        other = _other(a)
    if other is None:
        choosing.say_what(a)
        st.info(wording.NO_OTHER)
        return
    check_same_texts(a.results, other)
    b = replace(a, results=other, part=part_of(other, a.part.stratum))
    a, b = (replace(side, facts=side.facts | {"command": choosing.commands_of(a, b)}) for side in (a, b))
    tests = decided(a, False), decided(b, False)
    if tests[0].mean.shape != tests[1].mean.shape:
        st.info(
            plain(f"{a.results.checkpoint} and {other.checkpoint} do not have the same number of layers and heads.")
        )
        return
    choosing.say_both(a, b)
    is_whole = a.part.stratum == EVERYTHING
    paired_tests = read_differences(a.results, other, a.choice.criterion) if is_whole else None
    _summary(a, tests, paired_tests)
    if not is_whole:
        st.info(wording.PAIRED_OVER_ALL)
    elif paired_tests is None:
        _how_to_pair(a, b)
    frame.tabs(
        "results compare",
        {
            "Which heads": lambda: _which_heads(a, b, tests, paired_tests),
            "Grids": lambda: _grids(a, b, tests),
            "Table": lambda: _table(a, tests, paired_tests),
        },
    )


def _other(a: Opened) -> Results | None:
    names = [name for name, folder in offered_results().items() if folder != a.results.folder.resolve()]
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
    return open_offered_results(str(name)) if name else None


def _summary(a: Opened, tests: tuple[HeadTests, HeadTests], paired_tests: PairedTests | None) -> None:
    coarse, _ = shown_roles_of_all([side.mean for side in tests], tests[0].roles)
    holds_a, holds_b = (side.holds for side in tests)
    changes = [change for change in role_changes(holds_a, holds_b, tests[0].roles) if change.role in coarse]
    changed = changed_heads(holds_a, holds_b, tests[0].roles, coarse)
    scale = a.results.settings.scale
    at_tau = shared_wording.at_tau(tests[0].settings.tau, scale)
    counts = compare_wording.summary(int(changed.sum()), changed.size, at_tau)
    note = few_texts(a.part.n_texts)
    st.markdown(f"**{what_changed(changes, len(changed))}** {counts} {note or ''}")
    if paired_tests is not None:
        sizes = difference_sizes(paired_tests, LEAST_DIFFERENCE[scale])
        st.markdown(wording.differing(sizes, a.choice.criterion.alpha))
    if reasons := {role: reason for role, reason in a.part.untested(tests[0]).items() if role in coarse}:
        st.markdown(evidence_wording.untested(reasons))


def _how_to_pair(a: Opened, b: Opened) -> None:
    if controls.public.is_public():
        st.info(wording.NOT_PAIRED_HERE)
    else:
        st.info(wording.NOT_PAIRED)
        folders = [str(side.results.folder.resolve()) for side in (a, b)]
        st.code(shlex.join(["python", "-m", "attention_sieve", "corpus", "compare", *folders]), language=None)


def _grid(opened: Opened, tests: HeadTests, roles: tuple[str, ...]) -> RoleGrid:
    label = f"Roles of the heads of {opened.results.checkpoint}"
    return grid_by_test(tests, opened.results.settings.scale, roles, label)


def _most_changed(tests: tuple[HeadTests, HeadTests]) -> Head:
    """The head that gains or loses most roles; where none does, the one with most roles."""
    changes = (tests[0].holds != tests[1].holds).sum(axis=0)
    return highest_head(changes) if changes.any() else busiest(tests[1])


def _which_heads(a: Opened, b: Opened, tests: tuple[HeadTests, HeadTests], paired_tests: PairedTests | None) -> None:
    coarse, _ = shown_roles_of_all([side.mean for side in tests], tests[0].roles)
    heads = a.heads(_most_changed(tests))
    left, right = halves()
    with left:
        grid = replace(_grid(b, tests[1], coarse), held_before=tests[0].holds, before=a.results.checkpoint)
        show_role_grid(grid, head_selection("results changes", heads, a.reset), file="changes", facts=b.facts)
    with right:
        role = from_list("Role", {LOOKS[name].label: name for name in coarse}, key="results compare role")
        index, least = tests[0].roles.index(role), LEAST_DIFFERENCE[a.results.settings.scale]
        large = None if paired_tests is None else paired_tests.differs & is_large(paired_tests, least)
        difference = tests[1].mean[index] - tests[0].mean[index]
        finite = np.abs(difference[np.isfinite(difference)])
        if not finite.size:
            st.info(NOTHING)
            return
        picture = HeadMap(
            title=f"{LOOKS[role].label}: difference of the mean scores",
            label=f"Scores of {b.results.checkpoint} minus those of {a.results.checkpoint}",
            values=difference,
            bound=round_bound(float(finite.max()) or 1.0),
            signed=True,
            low_label=compare_wording.LESS,
            high_label=compare_wording.MORE,
            marked=None if large is None else large[index],
            mark="" if large is None else compare_wording.mark(least),
            details=[("a", tests[0].mean[index]), ("b", tests[1].mean[index])],
        )
        show_head_map(picture, head_selection("results moved", heads, a.reset), file="differences", facts=b.facts)
    state.put_in_link(heads)


def _grids(a: Opened, b: Opened, tests: tuple[HeadTests, HeadTests]) -> None:
    coarse, _ = shown_roles_of_all([side.mean for side in tests], tests[0].roles)
    heads = a.heads(_most_changed(tests))
    for column, opened, side, letter in zip(halves(), (a, b), tests, "ab"):
        with column:
            st.markdown(f"**({letter})** {plain(opened.results.checkpoint)}")
            show_role_grid(
                _grid(opened, side, coarse),
                head_selection(f"results {letter}", heads, a.reset),
                file=letter,
                facts=opened.facts,
            )


def _table(a: Opened, tests: tuple[HeadTests, HeadTests], paired_tests: PairedTests | None) -> None:
    if paired_tests is not None:
        table = by_head(tests[0].roles, {name: getattr(paired_tests, name) for name in FIELDS})
    else:
        sides = {
            f"{name}_{letter}": getattr(side, name) for side, letter in zip(tests, "ab") for name in ("mean", "holds")
        }
        table = by_head(tests[0].roles, {"difference": tests[1].mean - tests[0].mean, **sides})
    number = {name: SMALL_NUMBER for name in FIELDS if name not in ("texts", "differs")}
    st.dataframe(table, hide_index=True, column_config=number)
    table_downloads("differences", pd.DataFrame(table), a.facts)
