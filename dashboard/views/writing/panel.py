"""What a decoder has written, the steps through it, and what can be done with it."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import streamlit as st

from attention_sieve.core.generation.chat import read_turns
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.plain import WORD_JOINER, plain
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.heads_off import token_to_predict
from attention_sieve.dashboard.views.writing import wording
from attention_sieve.dashboard.views.writing.button import (
    Written,
    continuation_of,
    first_difference,
    go,
    put,
    remember,
    wish_to_write,
    written,
    written_before,
)

if TYPE_CHECKING:
    from attention_sieve.core.generation.continuation import Continuation

MOST_SHOWN: Final = 120
"""Tokens that are drawn as buttons; of more, those around the chosen one."""


def panel(visit: Visit, screen: PassedText, prompt: Text, continuation: "Continuation") -> None:
    """What was written, each token a button that leads to its step, and what can be done with it."""
    now, n_tokens = written(visit, prompt), len(continuation.pieces)
    if now is None:
        return
    position = token_to_predict(screen)
    step = None if position is None else position - continuation.n_prompt + 1
    step = step if step is not None and 0 <= step < n_tokens else None
    with st.container(border=True, key="written text", gap="small"):
        _tokens(continuation, step)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _buttons(visit, prompt, continuation, now, step)
        for sentence in _sentences(visit, screen, continuation, now):
            st.caption(sentence)
        _before(visit, prompt, now)


def _tokens(continuation: "Continuation", step: int | None) -> None:
    n_tokens, key = len(continuation.pieces), "written token"
    first = max(0, min((step or 0) - MOST_SHOWN // 2, n_tokens - MOST_SHOWN))
    shown = range(first, min(first + MOST_SHOWN, n_tokens))
    n_same, labels = Counter[str](), []  # no two labels are equal: Streamlit tells options by them
    for piece in continuation.pieces:
        labels.append(plain(visible(piece)) + WORD_JOINER * n_same[piece])
        n_same[piece] += 1
    st.session_state[key] = step
    st.pills(
        wording.TITLE if len(shown) == n_tokens else wording.part(first + 1, shown.stop, n_tokens),
        shown,
        format_func=labels.__getitem__,
        key=key,
        on_change=_choose,
        args=(key, continuation.n_prompt),
    )


def _choose(key: str, n_prompt: int) -> None:
    if (step := st.session_state[key]) is not None:
        go(n_prompt - 1 + step)


def _buttons(visit: Visit, prompt: Text, continuation: "Continuation", now: Written, step: int | None) -> None:
    n_tokens, first = len(continuation.pieces), continuation.n_prompt - 1
    for label, icon, to in (
        (wording.EARLIER, "chevron_left", -1 if step is None else step - 1),
        (wording.LATER, "chevron_right", 0 if step is None else step + 1),
    ):
        is_out = not 0 <= to < n_tokens
        st.button(label, key=label, icon=f":material/{icon}:", disabled=is_out, on_click=go, args=(first + to,))
    st.button(
        wording.CUT,
        key="cut written",
        icon=":material/content_cut:",
        help=wording.CUT_HELP,
        disabled=step is None or step == n_tokens - 1,
        on_click=put,
        args=(visit, prompt, _up_to(now, (step or 0) + 1, continuation.n_prompt)),
    )
    st.button(
        wording.AGAIN,
        key="write again",
        icon=":material/replay:",
        help=wording.AGAIN_HELP,
        on_click=wish_to_write,
        args=("again",),
    )
    if prompt.given is not None and prompt.given.turns is not None:
        st.button(
            wording.AS_TURN,
            key="as turn",
            icon=":material/forum:",
            help=wording.AS_TURN_HELP,
            on_click=_as_turn,
            args=(continuation.written,),
        )
    st.button(wording.REMOVE, key="remove written", icon=":material/close:", on_click=put, args=(visit, prompt, None))


def _up_to(now: Written, n_tokens: int, n_prompt: int) -> Written:
    """The first tokens of what was written."""
    return replace(
        now, ids=now.ids[:n_tokens], whole=tuple(place for place in now.whole if place < n_prompt + n_tokens)
    )


def _as_turn(written: str) -> None:
    """Put what was written below the typed turns, or behind the last one if that is the assistant's."""
    typed = (st.session_state["text"] or "").rstrip()
    goes_on = typed.lower().endswith("assistant:") or read_turns(typed)[-1]["role"] == "assistant"
    st.session_state["text"] = f"{typed}{written}" if goes_on else f"{typed}\nassistant: {written.strip()}"


def _sentences(visit: Visit, screen: PassedText, continuation: "Continuation", now: Written) -> list[str]:
    sentences = []
    if continuation.end == "full":
        sentences.append(wording.full(len(screen.text_attention.text.queries.ids)))
    elif continuation.end == "ended":
        sentences.append(wording.ENDED)
    if continuation.ends_inside_a_character:
        sentences.append(wording.INSIDE)
    if now.whole:
        sentences.append(wording.by_whole_passes(len(now.whole)))
    if now.off is not None and now.off != visit.choice.off:
        sentences.append(wording.other_heads(visit.choice.off, now.off))
    return sentences


def _before(visit: Visit, prompt: Text, now: Written) -> None:
    """What stood there before it was written again, with a button that puts it back."""
    before = written_before(visit, prompt)
    if before is None or before.ids == now.ids:
        return
    how = "" if before.off is None else wording.with_heads(before.off)
    if before.settings is not None:
        how += wording.chosen(before.settings.temperature, before.settings.seed)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        text = continuation_of(visit, prompt, before.ids).written
        st.caption(wording.before(how, plain(text.strip()), first_difference(now.ids, before.ids)), width="stretch")
        st.button(
            wording.BACK,
            key="put back",
            type="tertiary",
            icon=":material/undo:",
            on_click=_put_back,
            args=(visit, prompt, before, now),
        )


def _put_back(visit: Visit, prompt: Text, before: Written, now: Written) -> None:
    put(visit, prompt, before)
    remember(visit, prompt, now)
