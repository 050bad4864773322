"""Steps of lessons on a page; the lessons are imported only for readers who are taking one."""

from typing import Any

from streamlit.delta_generator import DeltaGenerator

from dashboard import state
from dashboard.views.frame import Visit


def begin_first_lesson() -> None:
    """Go to the first step of the first lesson; a callback."""
    from dashboard.views.lessons import course

    course.enter(1, 0)


def lesson_asks(page: str) -> bool:
    """Whether the step on this page asks for a prediction, which the rest of the page must not give away."""
    if not state.lesson_is_on(page):
        return False
    from dashboard.views.lessons import course

    return bool(course.step_now().asks)


def lesson_panel(container: DeltaGenerator, visit: Visit, **inputs: Any) -> None:
    """Draw the panel of the current step.

    Args:
        container: where to draw it.
        visit: what the page works with.
        inputs: further fields of `answers.Seen`, from which the step may compute its answers.
    """
    from dashboard.views.lessons.answers import Seen
    from dashboard.views.lessons.panel import panel

    panel(container, Seen(visit=visit, **inputs))
