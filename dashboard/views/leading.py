"""Steps of lessons on a page; the lessons are imported only for readers who are taking one."""

from typing import TYPE_CHECKING

from streamlit.delta_generator import DeltaGenerator

from dashboard import state
from dashboard.views.frame import Visit

if TYPE_CHECKING:
    from cache.engine import Engine
    from core.passes.texts import TextAttention
    from dashboard.views.corpus import Corpus
    from dashboard.views.lessons.computation import Beside
    from dashboard.views.lessons.plans import Part


def begin_first_lesson() -> None:
    """Go to the first step of the first lesson; a callback."""
    from dashboard.views.lessons import course

    course.enter(1, 0)


def shows(page: str, part: "Part") -> bool:
    """Whether a page shows one of its parts: outside of lessons every one, in a lesson if its step speaks of it."""
    if not state.lesson_is_on(page):
        return True
    from dashboard.views.lessons import course

    return part in course.step_now().speaks_of


def lesson_panel(
    container: DeltaGenerator,
    visit: Visit,
    *,
    looked: "TextAttention | None" = None,
    tested: "Corpus | None" = None,
    others: "tuple[Engine, ...]" = (),
    typed: str = "",
) -> "Beside":
    """Draw the panel of the current step.

    Args:
        container: where to draw it.
        visit: what the page works with.
        looked: see `dashboard.views.lessons.computation.StepInputs`.
        tested: see there.
        others: see there.
        typed: see there.

    Returns: what the step shows beside the grid.
    """
    from dashboard.views.lessons.computation import StepInputs
    from dashboard.views.lessons.panel import panel

    return panel(container, StepInputs(visit=visit, looked=looked, tested=tested, others=others, typed=typed))
