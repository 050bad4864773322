"""The question of a lesson: asked at its end and, in a class, also before it. Whoever has answered sees the shares of
both side by side, live and without names."""

from html import escape
from typing import Final

import streamlit as st

from attention_sieve.dashboard import state
from attention_sieve.dashboard.languages import language, percent_of, say
from attention_sieve.dashboard.views.lessons import tally
from attention_sieve.dashboard.views.lessons.class_answers import EVERY
from attention_sieve.dashboard.views.lessons.content import Quiz
from attention_sieve.dashboard.views.lessons.plans import steps_of, words_of
from attention_sieve.dashboard.views.lessons.tally import BEFORE

_STYLE: Final = (
    "<style>.class-shares td { padding: 0 1rem 0 0; } .class-shares td + td { text-align: end; white-space: nowrap; } "
    ".class-shares .right { font-weight: 700; } .class-shares div { height: 6px; margin-inline-start: auto; "
    "background: currentColor; } .class-shares col + col { width: clamp(3.5rem, 14vw, 7rem); }</style>"
)


def before(lesson: int) -> None:
    """Ask the question of a lesson before it, once; while presenting, say how many have answered."""
    question = words_of(lesson, language()).question
    if state.is_presenting():
        _n_before(lesson)
    elif tally.own_answer((lesson, BEFORE)) is None:
        key = f"before {lesson}"
        with st.container(key="question before"):
            st.radio(
                f"{say(language(), 'before')} {question.text}",
                question.options,
                index=None,
                key=key,
                on_change=_take_before,
                args=(lesson, key, question),
            )
    else:
        st.caption(say(language(), "before_counted"))


def _take_before(lesson: int, key: str, question: Quiz) -> None:
    if (selected := st.session_state.get(key)) in question.options:
        tally.count_own((lesson, BEFORE), str(question.options.index(selected)))


@st.fragment(run_every=EVERY)
def _n_before(lesson: int) -> None:
    n_answers = sum(count for _, count in tally.tally().counts(tally.code_now(), (lesson, BEFORE)))
    st.markdown(say(language(), "before_count", count=n_answers))


def check(lesson: int) -> None:
    """Ask the question, and judge the answer. Of a class the first answer counts, and none of who presents."""
    question, place = words_of(lesson, language()).question, (lesson, len(steps_of(lesson)) - 1)
    selected = st.radio(question.text, question.options, index=None, key=f"check {lesson}", persist_state="session")
    if selected is None:
        return
    chosen = question.options.index(selected)
    is_right = chosen == question.right
    icon = ":material/check_circle:" if is_right else ":material/arrow_right_alt:"
    st.markdown(f"{icon} **{say(language(), 'check_right' if is_right else 'check_wrong')}** {question.afterwards}")
    if tally.code_now():
        if not state.is_presenting() and tally.own_answer(place) is None:
            tally.count_own(place, str(chosen))
        _class_shares(lesson, place)


@st.fragment(run_every=EVERY)
def _class_shares(lesson: int, after: tally.LessonStep) -> None:
    counts = [dict(tally.tally().counts(tally.code_now(), question)) for question in ((lesson, BEFORE), after)]
    with st.container(key="class shares", gap=None):
        n_before, n_after = (sum(of_time.values()) for of_time in counts)
        st.caption(say(language(), "class_checked", before=n_before, after=n_after))
        st.html(_STYLE + shares_table(words_of(lesson, language()).question, counts, language()))


def shares_table(question: Quiz, counts: list[dict[str, int]], in_words: str) -> str:
    """The share of each option before and after a lesson, in HTML; the right one is bold."""
    rows = [
        f"<tr{' class=right' * (place == question.right)}><td>{escape(option)}</td>"
        f"{''.join(_share(of_time, str(place), in_words) for of_time in counts)}</tr>"
        for place, option in enumerate(question.options)
    ]
    times = "".join(f"<td>{escape(say(in_words, name))}</td>" for name in ("time_before", "time_after"))
    head = f"<colgroup><col><col><col></colgroup><tr><td></td>{times}</tr>"
    return f'<table class="class-shares">{head}{"".join(rows)}</table>'


def _share(counts: dict[str, int], option: str, in_words: str) -> str:
    if not (total := sum(counts.values())):
        return "<td>–</td>"
    share = counts.get(option, 0) / total
    return f'<td>{percent_of(share, in_words)}<div style="width: {100 * share:.0f}%"></div></td>'
