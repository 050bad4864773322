"""Steps of lessons on a page; the lessons are imported only for readers who are taking one."""

from typing import TYPE_CHECKING

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.dashboard import state
from attention_sieve.dashboard.views.frame import Visit

if TYPE_CHECKING:
    from attention_sieve.cache.answers import Engine
    from attention_sieve.core.passes.texts import TextAttention
    from attention_sieve.dashboard.views.corpus import Corpus
    from attention_sieve.dashboard.views.lessons.computation import Beside
    from attention_sieve.dashboard.views.lessons.plans import PagePart


def begin_first_lesson() -> None:
    """Go to the first step of the first lesson; a callback."""
    from attention_sieve.dashboard.views.lessons import course

    course.enter(1, 0)


def shows(page: str, part: "PagePart") -> bool:
    """Whether a page shows one of its parts: outside of lessons every one, in a lesson if its step speaks of it."""
    if not state.lesson_is_on(page):
        return True
    from attention_sieve.dashboard.views.lessons import course

    return part in course.step_now().speaks_of


def lesson_place() -> DeltaGenerator:
    """Keep the place of the panel, which is drawn after what it speaks of."""
    place = st.container(key="lesson place")
    place.empty()  # without an element the container would take up no space
    return place


def lesson_panel(
    container: DeltaGenerator,
    visit: Visit,
    *,
    text_attention: "TextAttention | None" = None,
    tested: "Corpus | None" = None,
    others: "tuple[Engine, ...]" = (),
    typed: str = "",
) -> "Beside":
    """Draw the panel of the current step.

    Args:
        text_attention: see `attention_sieve.dashboard.views.lessons.computation.StepInputs`.
        tested: see there.
        others: see there.
        typed: see there.

    Returns: what the step shows beside the grid.
    """
    from attention_sieve.dashboard.views.lessons.computation import StepInputs
    from attention_sieve.dashboard.views.lessons.panel import panel

    return panel(
        container, StepInputs(visit=visit, text_attention=text_attention, tested=tested, others=others, typed=typed)
    )
