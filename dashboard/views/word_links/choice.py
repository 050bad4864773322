"""The choice of two words: lists of the words in view, kept in the session and in the link by the words' names."""

from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.tokens import TokenizedText
from attention_sieve.core.word_links.on_text import TextWord, other_words, words_on
from attention_sieve.dashboard import link
from attention_sieve.dashboard.components.into_view import scroll_to
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.views.word_links import wording

FROM: Final = "from"
"""Key of the word that looks, in the session and in the link; both hold its name."""
TO: Final = "to"
SEGMENTS: Final = "AB"
TABS: Final = "head details"
"""Key of the tabs that include this choice, in the session and in the link."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordChoice:
    """Words that look, and words that are looked at, by name; a single one on a side where the reader chose it."""

    queries: dict[str, TextWord]
    keys: dict[str, TextWord]


def pick_words(attention: TextAttention) -> WordChoice | None:
    """Let the reader choose one or two words; None if none is chosen.

    Raises: AnalysisError for a text without a second word.
    """
    all_queries, all_keys = _words_by_name(attention, FROM), _words_by_name(attention, TO)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        query = _pick(wording.FROM, all_queries, FROM)
        if _is_one_text(attention):
            st.button(wording.SWAP, key="swap words", icon=":material/swap_horiz:", type="tertiary", on_click=_swap)
        key = _pick(wording.TO, all_keys, TO)
    for side in (FROM, TO):
        if missing := st.session_state.get(_missing(side)):
            st.warning(wording.missing(missing), icon=":material/search_off:")
    if query is None and key is None:
        return None
    return WordChoice(
        queries=_chosen_or_others(attention, all_queries, query, all_keys.get(key or "")),
        keys=_chosen_or_others(attention, all_keys, key, all_queries.get(query or "")),
    )


def take_token(attention: TextAttention, side: str, token: int) -> None:
    """Choose the word of a token, by its position in the whole text, for FROM or TO."""
    name = next((name for name, word in _words_by_name(attention, side).items() if token in word.tokens), None)
    st.session_state[TABS] = wording.TITLE
    scroll_to(wording.TITLE)
    _remember(side, name or visible(_side(attention, side)[0].tokens[token]))


def words_first() -> None:
    """Open the tab of the choice if the link names words but no tab."""
    if TABS not in st.session_state and TABS not in st.query_params and {FROM, TO} & set(st.query_params):
        st.session_state[TABS] = wording.TITLE


def _words_by_name(attention: TextAttention, side: str) -> dict[str, TextWord]:
    text, window = _side(attention, side)
    return {word_name(word, text.n_segments): word for word in words_on(text, window)}


def _side(attention: TextAttention, side: str) -> tuple[TokenizedText, tuple[int, int]]:
    text, window = attention.text, attention.window
    return (text.queries, window.queries) if side == FROM else (text.keys, window.keys)


def word_name(word: TextWord, n_segments: int) -> str:
    """The name of a word of a text, distinct from those of its other occurrences."""
    if word.n_occurrences == 1:
        return visible(word.text)
    segment = SEGMENTS[word.segment] if n_segments > 1 and word.segment >= 0 else ""
    return wording.occurrence(visible(word.text), word.occurrence, word.n_occurrences, segment)


def _chosen_or_others(
    attention: TextAttention, words: dict[str, TextWord], name: str | None, opposite: TextWord | None
) -> dict[str, TextWord]:
    if name is not None or opposite is None:
        return {name: words[name]} if name else words
    possible = other_words(tuple(words.values()), opposite, same_text=_is_one_text(attention))
    return {name: word for name, word in words.items() if word in possible}


def _is_one_text(attention: TextAttention) -> bool:
    return attention.text.queries is attention.text.keys


def _pick(label: str, words: dict[str, TextWord], side: str) -> str | None:
    """The chosen word, or None for any; a missing name is reported until another word is chosen.

    The link is written by hand: a bound list would drop a missing name silently.
    """
    if (linked := link.take(side)) is not None:
        st.session_state[side] = linked
    name = st.session_state.setdefault(side, wording.ANY)
    if name != wording.ANY and name not in words:
        st.session_state[_missing(side)], st.session_state[side] = name, wording.ANY
    elif (missing := st.session_state.get(_missing(side))) in words:
        _remember(side, missing)
    options = [wording.ANY, *words]
    picked = st.selectbox(label, options, key=side, persist_state="session", on_change=_forget_missing, args=(side,))
    if picked == wording.ANY:
        st.query_params.pop(side, None)
        return None
    if st.query_params.get(side) != picked:
        st.query_params[side] = picked
    return picked


def _swap() -> None:
    from_name, to_name = (st.session_state.get(side, wording.ANY) for side in (FROM, TO))
    _remember(FROM, to_name)
    _remember(TO, from_name)


def _remember(side: str, name: str) -> None:
    st.session_state[side] = name
    _forget_missing(side)


def _forget_missing(side: str) -> None:
    st.session_state.pop(_missing(side), None)


def _missing(side: str) -> str:
    return f"{side} missing"
