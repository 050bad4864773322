"""Role transitions as a flow diagram, and the heads of the chosen transition."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import streamlit as st

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.comparison.transitions import Transition
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard.figures.comparison.flow import heads_by_mark, role_flow
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import CheckpointFocus
from attention_sieve.dashboard.views.plotly_charts import plotly_chart

TRANSITION: Final = "transition"
"""Key and query parameter of the chosen transition, by the name of its mark."""
HEAD: Final = "transition head"


def flow(focus: CheckpointFocus, between: Sequence[Transition]) -> None:
    """The diagram, and the heads of the transition clicked in it or chosen in the list below."""
    marks = heads_by_mark(between)
    st.markdown(wording.FLOW_SEE)
    plotly_chart("role flow", role_flow(between, focus.names), focus.facts, on_click=partial(_take_mark, marks))
    if (linked_name := link.take(TRANSITION)) is not None:
        st.session_state[TRANSITION] = linked_name
        if linked_name not in marks:
            link.say(wording.no_such_transition(link.quoted(linked_name)))
    if st.session_state.get(TRANSITION) not in marks:
        st.session_state[TRANSITION] = None  # another tau, or another checkpoint, has other transitions
    mark = st.selectbox(
        wording.TRANSITION,
        list(marks),
        index=None,
        format_func=lambda name: f"{name}: {counted(len(marks[name]), 'head')}",
        key=TRANSITION,
        placeholder=wording.TRANSITION_NONE,
        help=wording.TRANSITION_HELP,
        persist_state="session",
    )
    # Not the label in the list: its number of heads changes with tau.
    link.put([TRANSITION], {} if mark is None else {TRANSITION: mark})
    if mark is not None:
        _heads(focus, marks[mark])


def _take_mark(marks: dict[str, tuple[Head, ...]], mark: Any) -> None:
    if isinstance(mark, str) and mark in marks:
        st.session_state[TRANSITION] = mark


def _heads(focus: CheckpointFocus, heads: Sequence[Head]) -> None:
    by_name = {head_name(*head): head for head in heads}
    pressed = [name for name, head in by_name.items() if head in focus.heads]
    st.session_state[HEAD] = pressed[-1] if pressed else None
    st.pills(wording.HEADS_OF, list(by_name), key=HEAD, on_change=_choose, args=(by_name,), help=wording.HEADS_HELP)
    frame.link_to_inspect(focus.heads)


def _choose(by_name: dict[str, Head]) -> None:
    """Choose the head of the pressed button in every view; pressing it again changes nothing."""
    name = st.session_state[HEAD]
    if name is not None:
        state.push_heads([by_name[name]])
