"""Roles beside what chance gives: their counts under controls as a strip, and the grid of a control instead of that of
the checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import N_CONTROLS, ControlPass, RoleCounts, control_passes, counts_of
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.matched_pairs import MatchedTests
from attention_sieve.core.roles.measures import SYNTACTIC
from attention_sieve.core.roles.question import MATCHED_PAIRS, matched_questions
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.roles.tables import counts_table
from attention_sieve.dashboard import costs, link
from attention_sieve.dashboard.figures.roles.chance import OWN, chance_strip, written
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.asking import ask, find, kept_finding
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.corpus import Corpus, judged
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import from_list
from attention_sieve.dashboard.views.role_grid.grid import grid_over
from attention_sieve.dashboard.views.roles import chance_wording as wording

GRID_KEY: Final = "grid of"
"""Session-state key of the chosen grid."""
IN_LINK: Final = "chance"
"""Parameter of a link whose controls are counted at once."""
REQUESTED: Final = "controls asked for"
"""Session-state key of what the reader has requested the controls of."""


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


def controlled(visit: Visit, tested: Corpus) -> tuple[Controlled, ...]:
    """The texts of the corpus under every control, where that is kept or the reader asks for it; empty otherwise, after
    a button to ask, and after a stop."""
    texts = tuple(visit.texts[position] for position in tested.found.positions)
    settings, controls = RoleSettings(visit.choice.score_settings), list[Controlled]()
    request = (visit.engine, texts, settings)
    if link.take(IN_LINK) == "true":
        st.session_state[REQUESTED] = request
    link.put([IN_LINK], {})
    is_requested = st.session_state.get(REQUESTED) == request
    try:
        for control in control_passes(visit.engine.files, texts, settings):
            under = replace(visit, engine=replace(visit.engine, files=control.files))
            of_control = (under, ROLE_ANALYSIS, control.settings, control.texts)
            found = kept_finding(*of_control)
            if found is None and is_requested:
                found = find(*of_control, doing=wording.doing(control.name))
            if found is None:
                break
            controls.append(Controlled(visit=visit, control_pass=control, tested=judged(found, visit.choice)))
        if is_requested and visit.settings.kind in MATCHED_PAIRS.kinds:
            for question in matched_questions(settings.scores.roles).values():
                if ask(visit, question, visit.texts) is None:
                    return ()
    except AnalysisError as error:
        show_error(error)
        return ()
    if len(controls) == N_CONTROLS:
        return tuple(controls)
    if not is_requested:
        cost = costs.takes(visit.engine.files, N_CONTROLS * len(texts), texts) or ""
        ask_for = partial(st.session_state.update, {REQUESTED: request})
        help_text = f"{wording.COUNT_HELP} {cost}"
        st.button(wording.COUNT, key="count chance", icon=":material/casino:", help=help_text, on_click=ask_for)
    return ()


def of_random_weights(visit: Visit, tested: Corpus) -> Controlled | None:
    """The same texts under random weights; None after a stop."""
    texts = tuple(visit.texts[position] for position in tested.found.positions)
    passes = control_passes(visit.engine.files, texts, RoleSettings(visit.choice.score_settings))
    control = next(each for each in passes if each.control == "random weights")
    under = replace(visit, engine=replace(visit.engine, files=control.files))
    found = find(under, ROLE_ANALYSIS, control.settings, control.texts, doing=wording.doing(control.name))
    if found is None:
        return None
    return Controlled(visit=visit, control_pass=control, tested=judged(found, visit.choice))


def strip(
    tests: HeadTests, controls: tuple[Controlled, ...], table_roles: tuple[str, ...], facts: Mapping[str, str]
) -> None:
    """Draw how many heads hold each role, beside the controls as far as there are any."""
    by_role = _by_role(tests, controls, table_roles)
    if not by_role:
        return
    chart("roles beside chance", chance_strip(by_role, tests.holds[0].size), facts)
    if controls:
        most = max(by_role, key=lambda role: by_role[role][OWN])
        st.markdown(wording.beside(most, by_role[most]))


def _by_role(
    tests: HeadTests, controls: tuple[Controlled, ...], table_roles: tuple[str, ...]
) -> dict[str, dict[str, list[int]]]:
    """Numbers of heads by role and control, one for each seed; roles that were tested in no text are left out."""
    own = counts_of(tests, "none").heads
    under = {
        name: [of_control.counts.heads for of_control in controls if of_control.control_pass.control == name]
        for name in wording.ANSWERS
    }
    places = {role: tests.roles.index(role) for role in table_roles}
    return {
        role: {OWN: [int(own[place])]}
        | {name: [int(heads[place]) for heads in seeds] for name, seeds in under.items() if seeds}
        for role, place in places.items()
        if tests.texts[place].any()
    }


def counts(
    tests: HeadTests, controls: tuple[Controlled, ...], table_roles: tuple[str, ...], facts: Mapping[str, str]
) -> None:
    """Draw the counts as a table, with what each control answers."""
    by_role = _by_role(tests, controls, table_roles)
    titles = [plain(role_title(role)) for role in by_role]
    columns = {name: [by_role[role][name] for role in by_role] for name in (OWN, *wording.ANSWERS)}
    rows = pd.DataFrame(
        {"role": list(map(role_title, by_role)), **{name: list(map(written, heads)) for name, heads in columns.items()}}
    )
    own_and_under = [counts_of(tests, "none"), *(of_control.counts for of_control in controls)]
    table("controls", rows, facts, written=counts_table(own_and_under))
    own = {title: heads[0] for title, heads in zip(titles, columns[OWN], strict=True)}
    n_heads = tests.holds[0].size
    answers = (
        wording.answer(name, own, dict(zip(titles, columns[name], strict=True)), n_heads) for name in wording.ANSWERS
    )
    st.markdown("\n".join(answers))


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


def grid_comes_first() -> bool:
    """Whether the grid hangs on no control: it is that of the checkpoint, and no control is asked for, with which its
    positional heads are found."""
    if REQUESTED in st.session_state or IN_LINK in st.query_params:
        return False
    return st.session_state.get(GRID_KEY, st.query_params.get(GRID_KEY, OWN)) == OWN


def choose_grid(controls: tuple[Controlled, ...]) -> Controlled | None:
    """Let the reader choose which grid is drawn; None for that of the checkpoint."""
    grids = {OWN: None, **{control.control_pass.name: control for control in controls}}
    return from_list("Grid of", grids, key=GRID_KEY, width=220) if controls else None


def say_control(control: Controlled) -> None:
    """Say that the grid is not that of the checkpoint, with a way back."""
    with st.container(horizontal=True, vertical_alignment="center", border=True, key="control shown"):
        st.markdown(wording.control_shown(control.control_pass.name), width="stretch")
        back = partial(st.session_state.update, {GRID_KEY: OWN})
        st.button(wording.BACK, icon=":material/undo:", on_click=back)
