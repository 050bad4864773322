"""Roles under controls: their counts, and the grid of a control instead of that of the checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import N_CONTROLS, ControlPass, RoleCounts, control_passes, counts_of
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.matched_pairs import MatchedTests
from attention_sieve.core.roles.measures import SYNTACTIC
from attention_sieve.core.roles.question import MATCHED_PAIRS, matched_questions
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.roles.tables import counts_table
from attention_sieve.dashboard import costs
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.asking import ask, find
from attention_sieve.dashboard.views.corpus import Corpus, judged
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import from_list, toggle
from attention_sieve.dashboard.views.role_grid.grid import grid_over
from attention_sieve.dashboard.views.roles import chance_wording as wording

GRID_KEY: Final = "grid of"
"""Session-state key of the chosen grid."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Controlled:
    visit: Visit
    """Of the checkpoint itself."""
    control_pass: ControlPass
    tested: Corpus

    @property
    def grid(self) -> RoleGrid:
        name = self.control_pass.name
        label = f"Control, {name}: roles of the heads of {self.visit.engine.files.name}"
        return replace(grid_over(self.visit, self.tested, label), title=f"Roles of the heads under a control, {name}")

    @property
    def counts(self) -> RoleCounts:
        return counts_of(self.tested.tests, self.control_pass.control, self.control_pass.seed)


def controlled(visit: Visit, tested: Corpus, container: DeltaGenerator) -> tuple[Controlled, ...]:
    """The texts of the corpus under every control, if the reader turns this on; empty otherwise, and after a stop."""
    texts = tuple(visit.texts[position] for position in tested.found.positions)
    cost = costs.takes(visit.engine.files, N_CONTROLS * len(texts), texts) or ""
    with container:
        is_wanted = toggle("What would chance give?", key="chance", help=f"{wording.SWITCH_HELP} {cost}")
    if not is_wanted:
        return ()
    settings, controls = RoleSettings(visit.choice.score_settings), list[Controlled]()
    try:
        for control in control_passes(visit.engine.files, texts, settings):
            under = replace(visit, engine=replace(visit.engine, files=control.files))
            found = find(under, ROLE_ANALYSIS, control.settings, control.texts, doing=wording.doing(control.name))
            if found is None:
                return ()
            controls.append(Controlled(visit=visit, control_pass=control, tested=judged(found, visit.choice)))
        if visit.settings.kind in MATCHED_PAIRS.kinds:
            for question in matched_questions(settings.scores.roles).values():
                if ask(visit, question, visit.texts) is None:
                    return ()
    except AnalysisError as error:
        show_error(error)
        return ()
    return tuple(controls)


def counts(
    tested: Corpus, controls: tuple[Controlled, ...], table_roles: tuple[str, ...], facts: Mapping[str, str]
) -> None:
    own, under, place = counts_of(tested.tests, "none"), [each.counts for each in controls], tested.tests.roles.index
    rows = {role: place(role) for role in table_roles if tested.tests.texts[place(role)].any()}
    own_heads = {plain(role_title(role)): int(own.heads[row]) for role, row in rows.items()}
    table = pd.DataFrame({"role": list(map(role_title, rows)), wording.CHECKPOINT: list(map(str, own_heads.values()))})
    answers = []
    for control in wording.ANSWERS:
        of_control = [each.heads for each in under if each.control == control]
        heads = {plain(role_title(role)): [int(n[row]) for n in of_control] for role, row in rows.items()}
        table[control] = list(map(wording.count, heads.values()))
        answers.append(wording.answer(control, own_heads, heads, own.n_heads))
    st.table(table, border="horizontal", hide_index=True)
    st.markdown("\n".join(answers))
    table_downloads("controls", counts_table([own, *under]), facts)


def say_positional(tested: Corpus, matched: MatchedTests) -> None:
    """Say how many heads with a syntactic or written role do not beat pairs at the same distance."""
    for of_match, role in enumerate(matched.roles):
        row = tested.tests.roles.index(role)
        n_held = int(tested.tests.holds[row].sum())
        marked = matched.positional(tested.tests)[row]
        n_texts, n_compared = int(tested.tests.texts[row].max()), int(matched.texts[of_match].max())
        if role in SYNTACTIC[1:] or not n_held or n_compared < 2:
            continue
        both = matched.related[of_match], matched.unrelated[of_match]
        heads = {(i, j): (float(both[0][i, j]), float(both[1][i, j])) for i, j in np.argwhere(marked).tolist()}
        sentences = [wording.positional(plain(role_title(role)), n_held, heads)]
        if n_compared < n_texts:
            sentences.append(wording.without_match(n_texts - n_compared, n_texts))
        st.markdown(" ".join(sentences))


def choose_grid(controls: tuple[Controlled, ...]) -> Controlled | None:
    """Let the reader choose which grid is drawn; None for that of the checkpoint."""
    if not controls:
        return None
    chosen_control = from_list(
        "Grid of",
        {wording.CHECKPOINT: None, **{control.control_pass.name: control for control in controls}},
        key=GRID_KEY,
    )
    if chosen_control is not None:
        with st.container(horizontal=True, vertical_alignment="center", border=True, key="control shown"):
            st.markdown(wording.control_shown(chosen_control.control_pass.name), width="stretch")
            back = partial(st.session_state.update, {GRID_KEY: wording.CHECKPOINT})
            st.button(wording.BACK, icon=":material/undo:", on_click=back)
    return chosen_control
