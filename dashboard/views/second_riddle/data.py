"""What the small decoder says without heads: one set at a click, many in a search or at random."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import streamlit as st

from attention_sieve.cache.looks import expected_next, token_leads
from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.fewest_heads import FewestHeads, Heads, drawn_at_random, fewest_heads
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.progress import Turns, with_progress
from attention_sieve.dashboard.public import MOST_SEARCHES
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.second_riddle import wording
from attention_sieve.dashboard.views.text.on_screen import waiting

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import NextTokens

MOST_TOKENS: Final = 64
"""Of a sentence for which heads are searched."""
SEARCHES: Final = Turns(MOST_SEARCHES)
"""Of all readers of this server."""


def next_words(visit: Visit, text: Text, off: Heads) -> "NextTokens":
    settings = replace(visit.settings, off=off)
    with waiting() as report:
        found = visit.inference.on_screen(visit.engine, expected_next, text, settings, None, "", report=report)
    assert found is not None, "the decoder predicts a next token"
    return found


def is_changed(all_on: "NextTokens", now: "NextTokens") -> bool:
    return now.ids[int(now.log_probabilities[1].argmax())] != all_on.ids[0]


def _leads(visit: Visit, text: Text, token: int, sets: Sequence[Heads]) -> tuple[float, ...]:
    def report(_: Status) -> None:
        st.session_state.get("page")  # Streamlit ends a run only when it is called

    work = (visit.engine, token_leads, text, visit.settings, tuple(sets), token)
    return visit.inference.on_screen(*work, report=report)


def search_heads(visit: Visit, text: Text, looked: TextAttention, all_on: "NextTokens") -> FewestHeads | None:
    """The fewest heads that are found; None if the reader has stopped the search."""
    if (n_tokens := len(looked.text.queries.ids)) > MOST_TOKENS:
        raise AnalysisError(wording.too_many_tokens(n_tokens, MOST_TOKENS))
    n_layers, n_heads = looked.attention.shape[:2]

    def search(report: Report) -> FewestHeads:
        def say(done: int, total: int, n_before: int = 0) -> None:
            report(Status(done=done, total=total, seconds_left=None, n_waiting_before=n_before))

        with SEARCHES.turn(lambda n_before: say(0, n_layers * n_heads, n_before)):
            return fewest_heads((n_layers, n_heads), partial(_leads, visit, text, all_on.ids[0]), say)

    key = (visit.engine, text)
    found: FewestHeads | None = visit.inference.memory.get("fewest heads", key)
    if found is None and (found := with_progress(key, search, wording.SEARCHING)) is not None:
        visit.inference.memory.put("fewest heads", key, found)
    return found


def n_changed_at_random(visit: Visit, text: Text, token: int, n_in_set: int) -> int:
    """How many sets of heads, drawn at random, change the word; one at a time, so that a click does not wait."""
    sets = drawn_at_random(n_in_set, (visit.engine.files.n_layers or 0, visit.engine.files.n_heads or 0))
    return sum(_leads(visit, text, token, [heads])[0] < 0 for heads in sets)
