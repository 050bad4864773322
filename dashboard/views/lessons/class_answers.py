"""What a class has answered, in little space and none left out: on a line of numbers, on the grid, or in a list."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import Final

import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.components.grid.counts import counts_on_grid
from attention_sieve.dashboard.languages import language, say
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.state import HEAD_NAME
from attention_sieve.dashboard.views.lessons import tally
from attention_sieve.dashboard.views.lessons.computation import StepResult
from attention_sieve.dashboard.views.lessons.plans import Asks

EVERY: Final = 3
"""Seconds between updates of the counts of a class."""
WIDTH: Final = 560
HEIGHT: Final = 58
"""Size of the line of numbers, in pixels: it takes less than 60."""
_BASE: Final = 40
_LARGEST: Final = 4.0
"""Height of the axis, and largest radius of a dot, in pixels."""
_COLORS: Final = "<style>svg{color:#31333f}@media(prefers-color-scheme:dark){svg{color:#fafafa}}</style>"
Counts = Sequence[tuple[str, int]]


@st.fragment(run_every=EVERY)
def class_counts(question: tally.LessonStep) -> None:
    counts = tally.tally().counts(tally.code_now(), question)
    st.markdown(say(language(), "class_count", count=sum(count for _, count in counts)), width="content")


@st.fragment(run_every=EVERY)
def class_answers(question: tally.LessonStep, asks: Asks, result: StepResult, shape: tuple[int, int] | None) -> None:
    """Predictions of the class, updated regularly; heads are counted on a grid of this shape (layers, heads)."""
    counts = tally.tally().counts(tally.code_now(), question)
    said = say(language(), "class_said", count=sum(count for _, count in counts))
    with st.container(key="class said", gap=None):
        if asks == "number" and result.answer is not None and result.most is not None:
            st.caption(said)
            _picture(counts, result.answer, result.most)
        elif asks == "head" and shape is not None:
            inside, n_missing = on_grid(counts, shape)
            missing = say(language(), "class_missing", count=n_missing) if n_missing else ""
            st.caption(f"{said} {say(language(), 'class_on_grid')} {missing}")
            counts_on_grid("class counts", inside)
        else:
            listed = " · ".join(f"{plain(answer)} **{count}**" for answer, count in counts)
            st.markdown(f"{said} {listed}")


def on_grid(counts: Counts, shape: tuple[int, int]) -> tuple[dict[Head, int], int]:
    """Counts by head, and the number of answers that name no head of this grid: of pupils with another checkpoint."""
    inside: dict[Head, int] = {}
    n_missing = 0
    for answer, count in counts:
        match = HEAD_NAME.fullmatch(answer)
        head = (int(match[1]), int(match[2])) if match else None
        if head is not None and head[0] < shape[0] and head[1] < shape[1]:
            inside[head] = count
        else:
            n_missing += count
    return inside, n_missing


def _picture(counts: Counts, answer: int, most: int) -> None:
    """The line of numbers as a picture, because Streamlit removes SVG from HTML."""
    said = ", ".join(f"{number}: {count}" for number, count in sorted(counts, key=lambda each: int(each[0])))
    label = escape(say(language(), "class_dots", answers=said or "0", answer=answer))
    source = b64encode(dot_plot(counts, answer, most).encode()).decode()
    st.html(f'<img alt="{label}" src="data:image/svg+xml;base64,{source}" style="max-width: 100%">')


def dot_plot(counts: Counts, answer: int, most: int) -> str:
    """A dot for each answer above its number on a line from 0, and the true number marked; SVG."""
    n_highest = max((count for _, count in counts), default=1)
    radius = min(_LARGEST, (_BASE - 2) / (2 * n_highest), WIDTH / (2 * (most + 2)))
    dots = "".join(
        f'<circle cx="{_x(int(number), most):.1f}" cy="{_BASE - radius * (2 * place + 1):.1f}" r="{radius:.2f}"/>'
        for number, count in counts
        for place in range(count)
    )
    at = _x(answer, most)
    mark = f'<path d="M{at:.1f} 0V{_BASE + 4}" stroke="currentColor" stroke-width="2" stroke-dasharray="4 2"/>'
    ends = [(number, "normal") for number in (0, most) if abs(_x(number, most) - at) > 24]
    numbers = "".join(
        f'<text x="{_x(number, most):.1f}" y="{HEIGHT - 3}" text-anchor="middle" font-weight="{weight}">{number}</text>'
        for number, weight in (*ends, (answer, "bold"))
    )
    axis = f'<path d="M{_x(0, most):.1f} {_BASE}H{_x(most, most):.1f}" stroke="currentColor"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'fill="currentColor" font-family="sans-serif" font-size="12">{_COLORS}{axis}{dots}{mark}{numbers}</svg>'
    )


def _x(number: int, most: int) -> float:
    return 16 + (WIDTH - 32) * min(number, most) / most
