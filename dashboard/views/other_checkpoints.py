"""Checkpoints to compare with that of the sidebar; all pages share the choice."""

from collections.abc import Sequence

import streamlit as st

from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.state import Choice


def other_checkpoints(
    label: str, choice: Choice, runs: Sequence[SavedRun], *, placeholder: str, help: str
) -> list[str]:
    """Ask for other checkpoints.

    Args:
        runs: fine-tuning runs, whose saved steps are offered.

    Returns: their names, in the order in which they were chosen.
    """
    base: str | None = st.session_state.get(state.BASE)
    saved_steps = (name for run in runs for name in reversed(run.checkpoints))
    offered = dict.fromkeys((*([base] if base else []), *saved_steps, *controls.checkpoint_names()))
    st.multiselect(
        label,
        [name for name in offered if name != choice.checkpoint],
        key=state.WITH,
        placeholder=placeholder,
        help=help,
        accept_new_options=not is_public(),
        select_all=False,  # it would take checkpoints of the hub that are not here
        bind="query-params",
        persist_state="session",
    )
    return list(dict.fromkeys(name.strip() for name in st.session_state[state.WITH]))


def buttons_of_steps(runs: Sequence[SavedRun]) -> None:
    """Offer all saved steps of each training run."""
    for run in runs:
        steps = [name for name in run.checkpoints if name != run.name]
        if len(steps) > 1:
            st.button(
                f"{counted(len(steps), 'saved step')} of {plain(run.name)}",
                key=f"all steps {run.name}",
                help=shared_wording.ALL_STEPS_HELP,
                type="tertiary",
                icon=":material/timeline:",
                on_click=choose_others,
                args=(steps,),
            )


def choose_others(names: Sequence[str]) -> None:
    """Choose other checkpoints."""
    st.session_state[state.WITH] = list(names)
