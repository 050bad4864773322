"""What chance would give: the counts of roles under controls, and the grid of a control in the place of the grid."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import AnalysisError
from core.roles.controls import ControlPass, RoleCounts, control_passes, counts_of
from core.roles.matched_pairs import MatchedTests
from core.roles.measures import SYNTACTIC
from core.roles.question import MATCHED_PAIRS
from core.roles.tables import counts_table
from dashboard.files.downloads import table_downloads
from dashboard.plain import show_error
from dashboard.progress import in_its_place, with_progress
from dashboard.views.asking import ask
from dashboard.views.corpus import Corpus, judged
from dashboard.views.frame import Visit
from dashboard.views.pickers import from_list, toggle
from dashboard.views.roles import chance_wording as wording

SHOWN: Final = "grid of"
"""Key of the choice of the grid."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Controlled:
    """The corpus under one control."""

    asked: ControlPass
    tested: Corpus

    @property
    def counts(self) -> RoleCounts:
        """Number of heads that hold each role."""
        return counts_of(self.tested.tests, self.asked.control, self.asked.seed)


def controlled(visit: Visit, tested: Corpus, place: DeltaGenerator) -> tuple[Controlled, ...]:
    """The corpus under every control, if the reader asks for it; none while the reader has stopped it.

    Args:
        visit: what the page works with.
        tested: the checkpoint on the corpus; the texts are those that it was tested on.
        place: of the switch that asks for it.
    """
    with place:
        is_wanted = toggle(wording.SWITCH, key="chance", help=wording.SWITCH_HELP)
    if not is_wanted:
        return ()
    texts = tuple(visit.texts[position] for position in tested.positions)
    found: list[Controlled] = []
    try:
        for asked in control_passes(visit.engine.files, texts):
            under = _under(visit, asked)
            if under is None:
                return ()
            found.append(Controlled(asked=asked, tested=under))
        if visit.settings.kind in MATCHED_PAIRS.kinds and ask(visit, MATCHED_PAIRS, visit.texts) is None:
            return ()
    except AnalysisError as error:
        show_error(error)
        return ()
    return tuple(found)


@in_its_place
def _under(visit: Visit, asked: ControlPass) -> Corpus | None:
    """The corpus under a control; None while the reader has stopped it. A text that grew too long is cut."""
    inference, settings = visit.inference, visit.settings
    engine = replace(visit.engine, files=asked.files)
    answers = inference.kept(engine, asked.question, asked.texts, settings, too_long="truncate") or with_progress(
        (asked.name, engine, asked.texts, settings),
        lambda report: inference.ask(engine, asked.question, asked.texts, settings, too_long="truncate", report=report),
        wording.doing(asked.name),
    )
    return None if answers is None else judged(answers, visit.chosen)


def counts(tested: Corpus, found: tuple[Controlled, ...], shown: tuple[str, ...], facts: Mapping[str, str]) -> None:
    """Draw each role's count beside its count under the controls, and say what they answer and what they give.

    Args:
        tested: the checkpoint on the corpus.
        found: the same under every control.
        shown: roles of the table.
        facts: where the counts come from, written into the files.
    """
    own, under = counts_of(tested.tests, "none"), [one.counts for one in found]
    roles = [role for role in shown if tested.tests.texts[tested.tests.roles.index(role)].any()]
    by_control = {control: [of for of in under if of.control == control] for control in wording.ANSWERS}
    places = {role: tested.tests.roles.index(role) for role in roles}
    table = pd.DataFrame({"role": roles, wording.CHECKPOINT: [str(own.heads[place]) for place in places.values()]})
    for control, of_control in by_control.items():
        table[control] = [wording.count([int(of.heads[place]) for of in of_control]) for place in places.values()]
    st.table(table, border="horizontal", hide_index=True)
    st.markdown(
        "\n".join(
            wording.answer(
                control,
                {role: int(own.heads[place]) for role, place in places.items()},
                {role: [int(of.heads[place]) for of in of_control] for role, place in places.items()},
                own.n_heads,
            )
            for control, of_control in by_control.items()
        )
    )
    table_downloads("controls", counts_table([own, *under]), facts)


def say_positional(tested: Corpus, matched: MatchedTests) -> None:
    """Say how many syntactic heads do not beat pairs of words at the same distance."""
    place = tested.tests.roles.index(SYNTACTIC[0])
    n_held = int(tested.tests.holds[place].sum())
    marked = matched.positional(tested.tests)[place]
    n_texts, n_compared = int(tested.tests.texts[place].max()), int(matched.texts[0].max())
    if not n_held or n_compared < 2:
        return
    said = [wording.positional(n_held, [(int(i), int(j)) for i, j in zip(*marked.nonzero())])]
    if n_compared < n_texts:
        said.append(wording.without_match(n_texts - n_compared, n_texts))
    st.markdown(" ".join(said))


def choose_grid(found: tuple[Controlled, ...]) -> Controlled | None:
    """Let the reader choose whose grid is drawn; None for the checkpoint's own."""
    if not found:
        return None
    shown = from_list(wording.GRID_OF, {wording.CHECKPOINT: None, **{one.asked.name: one for one in found}}, key=SHOWN)
    if shown is not None:
        with st.container(horizontal=True, vertical_alignment="center", border=True, key="control shown"):
            st.markdown(wording.control_shown(shown.asked.name), width="stretch")
            st.button(wording.BACK, icon=":material/undo:", on_click=_back)
    return shown


def _back() -> None:
    st.session_state[SHOWN] = wording.CHECKPOINT
