"""What a page does for a lesson that leads through it; the lessons are imported only for readers who are in one."""

from typing import Any

from streamlit.delta_generator import DeltaGenerator

from dashboard import state
from dashboard.views.frame import Visit


def begin_first_lesson() -> None:
    """Go to the first step of the first lesson; a callback."""
    from dashboard.views.lessons import course

    course.enter(1, 0)


def lesson_asks(page: str) -> bool:
    """Whether the step on this page asks for a prediction, which nothing else on the page is to give away."""
    if not state.lesson_is_on(page):
        return False
    from dashboard.views.lessons import course

    return bool(course.step_now().asks)


def lesson_panel(place: DeltaGenerator, visit: Visit, **seen: Any) -> None:
    """Draw the panel of the current step.

    Args:
        place: where it belongs on the page.
        visit: what the page works with.
        seen: what else the step may compute from, by the fields of `answers.Seen`.
    """
    from dashboard.views.lessons.answers import Seen
    from dashboard.views.lessons.panel import panel

    panel(place, Seen(visit=visit, **seen))
