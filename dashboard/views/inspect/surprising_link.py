"""The answer to a text that the reader types: its most surprising link, chosen and pinned, and said in a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import Head, Kind, PassSettings, head_name, head_names
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.analysis import DISTANCES
from attention_sieve.core.word_links.habits import Habits, SurprisingLink, habits_of, surprising_links
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.samples import read_sample
from attention_sieve.dashboard.views.arcs import pin_word
from attention_sieve.dashboard.views.frame import Visit, can_read
from attention_sieve.dashboard.views.word_links import wording
from attention_sieve.dashboard.views.word_links.choice import word_name

MOST_LINKS: Final = 5
"""Links of a text, each of another head."""
SAMPLE: Final = "both"
"""Sample over which habits are measured, whatever the corpus: a reader's own may be a few texts, or too many."""
ANSWERED: Final = "text answered"
"""Key of the text to which the page has answered, and of the answer."""
_links: Final[WeakKeyDictionary[TextAttention, tuple[SurprisingLink, ...]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Answer:
    """The text to which the page has answered, and what it has chosen."""

    text: Text
    rank: int = 0
    """Of the link on screen, from 0."""
    shown: tuple[Head, ...] = ()
    """The head of that link; empty where the address named others."""
    before: tuple[Head, ...] = ()
    """Heads that the reader had chosen before."""


@in_its_place
def answer(visit: Visit, screen: PassedText, *, is_own: bool) -> bool:
    """Choose and pin the most surprising link of a new text, and say what it is. Call it before the grid is drawn.

    Heads that the address names, or that the reader chose while the text was loading, stay chosen, and so do all on a
    text that is not the reader's own (`is_own`): it may be there because of them. Those chosen on an earlier text can
    be restored.

    Returns: whether the answer waits for `measure_habits`.
    """
    text, text_attention = screen.text, screen.text_attention
    last: _Answer | None = st.session_state.get(ANSWERED)
    is_new = last is None or last.text != text
    is_over = st.session_state.get(state.CHOSEN_OVER) == st.session_state.get("text")
    is_chosen = is_new and (is_over or (not is_own and bool(st.session_state.get(state.HEADS))))
    if stays := is_chosen or link.asks_for([state.HEADS]):
        st.session_state[ANSWERED] = _Answer(text)
    links = _kept_links(visit, text_attention)
    if links is None:
        return visit.settings.kind in DISTANCES.kinds
    if is_new and not stays:
        st.session_state[ANSWERED] = _Answer(text, before=_chosen_before(last))
        if links:
            _show(text_attention, links, 0)
    if links:
        _say(text_attention, links)
    else:
        st.markdown(wording.NOTHING_STANDS_OUT)
    return False


def take_as_answer(text: Text) -> None:
    """Take the chosen heads, those of a story, as the answer to a text; another text is then answered as usual."""
    st.session_state[ANSWERED] = _Answer(text, shown=tuple(st.session_state.get(state.HEADS) or ()))


def measure_habits(visit: Visit) -> bool:
    """Measure what each head usually does, under a progress bar; whether it is known then.

    Raises: AnalysisError of any stage.
    """
    question = (DISTANCES.name, visit.engine, visit.settings.kind)
    measured = with_progress(
        question,
        lambda report: visit.inference.ask(
            visit.engine,
            DISTANCES,
            _texts(visit.settings.kind),
            PassSettings(visit.settings.kind),
            too_long="truncate",
            report=report,
        ),
        wording.MEASURING,
    )
    return measured is not None


def _texts(kind: Kind) -> tuple[Text, ...]:
    """The sample texts that an attention can read."""
    return tuple(text for text in read_sample(SAMPLE) if can_read(kind, text))


def _kept_links(visit: Visit, text_attention: TextAttention) -> tuple[SurprisingLink, ...] | None:
    """The links of a text that stand out, those between content words first; None where habits are."""
    if text_attention not in _links:
        habits = kept_habits(visit)
        if habits is None:
            return None
        links = [link for link in surprising_links(text_attention, habits) if link.stands_out]
        # As each has the same place as before among its kind, the greatest excess stays first.
        links.sort(key=lambda link: link.joins_function_words)
        _links[text_attention] = tuple(links[:MOST_LINKS])
    return _links[text_attention]


def kept_habits(visit: Visit) -> Habits | None:
    """What each head usually does; None until it is measured, and for attention between two texts.

    Called before a text is typed, it spares the answer from reading the store.
    """
    kind = visit.settings.kind
    if kind not in DISTANCES.kinds:
        return None

    def computed() -> Habits | None:
        measured = visit.inference.kept(visit.engine, DISTANCES, _texts(kind), PassSettings(kind), too_long="truncate")
        return None if measured is None else habits_of(measured.results)

    return memory().get_or_put("habits", (visit.engine, kind), computed)


def _chosen_before(last: _Answer | None) -> tuple[Head, ...]:
    """The heads that the reader has chosen, rather than the page as its answer to the last text."""
    chosen = tuple(st.session_state.get(state.HEADS) or ())
    return last.before if last is not None and chosen == last.shown else chosen


def _show(text_attention: TextAttention, links: Sequence[SurprisingLink], rank: int) -> None:
    """Choose the head of a link, and pin the token of its query that gives most to the key."""
    surprising = links[rank]
    (start, _), (first_key, _) = text_attention.window.queries, text_attention.window.keys
    query, key = (np.array(word.tokens) for word in (surprising.query, surprising.key))
    to_key = text_attention.attention[*surprising.head][query[:, None] - start, key - first_key].sum(axis=-1)
    pin_word(text_attention, int(query[to_key.argmax()]))
    state.push_heads([surprising.head])
    answered = replace(st.session_state[ANSWERED], rank=rank, shown=(surprising.head,))
    st.session_state[ANSWERED] = answered


def _say(text_attention: TextAttention, links: Sequence[SurprisingLink]) -> None:
    """A sentence about the link on screen, with buttons for the next one and for the heads of before."""
    answered: _Answer = st.session_state[ANSWERED]
    rank = min(answered.rank, len(links) - 1)
    surprising = links[rank]
    n_segments = text_attention.text.queries.n_segments
    query, key = (word_name(word, n_segments) for word in (surprising.query, surprising.key))
    sentence = wording.surprising(
        head_name(*surprising.head), query, key, surprising.attention, surprising.from_others, surprising.even
    )
    is_shown = st.session_state.get(state.HEADS) == [surprising.head]
    with st.container(horizontal=True, vertical_alignment="center", key="surprising link"):
        st.markdown(sentence, width="content")
        if not is_shown:
            _button("show link", f"Show {plain(query)} → {plain(key)}", text_attention, links, rank)
        elif len(links) > 1:
            following = (rank + 1) % len(links)
            _button(
                "next link", f"Next ({rank + 1} of {len(links)})", text_attention, links, following, wording.NEXT_HELP
            )
        if is_shown and answered.before:
            st.button(
                f"Back to {head_names(answered.before)}",
                key="heads before",
                icon=":material/undo:",
                type="tertiary",
                on_click=state.push_heads,
                args=(list(answered.before),),
            )


def _button(
    key: str,
    label: str,
    text_attention: TextAttention,
    links: Sequence[SurprisingLink],
    rank: int,
    help: str | None = None,
) -> None:
    st.button(label, key=key, type="tertiary", help=help, on_click=_show, args=(text_attention, links, rank))
