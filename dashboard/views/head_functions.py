"""What every head does, after Voita et al.: positional, syntactic, or for rare tokens; and what counts as rare."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import streamlit as st

from core.frequencies import FrequencyList, english_frequencies, frequencies_of, read_frequencies
from core.hypotheses import HeadTests
from core.roles import RELATIONS
from core.texts import Text
from dashboard import surface_wording as wording
from dashboard.figures.appearance import LOOKS
from dashboard.figures.function_grid import Function, function_grid
from dashboard.figures.head_dots import Head
from dashboard.plain import plain
from dashboard.views.corpus import corpus
from dashboard.views.surface_focus import Surface, chart

KINDS: Final = (wording.BY_TEXTS, wording.BY_WORDFREQ, wording.BY_FILE)


def frequency_list(texts: tuple[Text, ...]) -> FrequencyList:
    """The list the reader chose; that of the texts while it has yet to be given.

    Raises: TextError for a file that is no such list.
    """
    kind = st.selectbox(
        wording.FREQUENCIES,
        KINDS,
        key="frequencies",
        help=wording.FREQUENCIES_HELP,
        bind="query-params",
        persist_state="session",
        width=320,
    )
    if kind == wording.BY_WORDFREQ:
        return english_frequencies()
    if kind == wording.BY_FILE:
        given = st.file_uploader(wording.LIST, type=["txt", "tsv", "gz"], key="frequency list", help=wording.LIST_HELP)
        if given is not None:
            return _read(given.file_id, given.name, given.getvalue())
        st.info(wording.WAIT_LIST)
    return _of_texts(texts)


@lru_cache(maxsize=4)
def _of_texts(texts: tuple[Text, ...]) -> FrequencyList:
    return frequencies_of(texts)


@st.cache_resource(max_entries=8, show_spinner=False)
def _read(file_id: str, name: str, _content: bytes) -> FrequencyList:
    return read_frequencies(name, _content)


def functions(surface: Surface) -> None:
    """The grid of functions, heads in order of confidence."""
    st.markdown(wording.ORDER)
    rare = surface.numbers.rare
    st.markdown(plain(wording.rare_texts(rare.n_texts, surface.numbers.n_texts, surface.facts["word frequencies"])))
    tested = corpus(surface.inference, surface.engine, surface.chosen, surface.texts)
    if tested is None:
        st.info(wording.NO_RELATIONS)
    found = head_functions(surface, None if tested is None else tested.tests)
    figure = function_grid(found, surface.numbers.heads.of("confidence"), "confidence", surface.heads)
    chart(surface, "functions", figure, wording.VOITA_1, selects=True)


def head_functions(surface: Surface, tests: HeadTests | None) -> dict[Head, list[Function]]:
    """What each head does, by head; heads that do none of it are left out.

    Args:
        surface: the statistics.
        tests: of the roles; None leaves out the syntactic functions.
    """
    found: defaultdict[Head, list[Function]] = defaultdict(list)
    behaviours, rare = surface.numbers.behaviours, surface.numbers.rare
    positional = behaviours.positional
    for layer, head in np.argwhere(positional.holds).tolist():
        evidence = wording.by_offset(float(positional.share[layer, head]))
        found[layer, head].append(
            Function("positional", wording.offset_name(int(positional.offset[layer, head])), evidence)
        )
    for of_head, relations in ({} if tests is None else _relations(tests)).items():
        found[of_head].append(Function("syntactic", ", ".join(relations), wording.BY_SIEVE, _letters(relations)))
    for layer, head in np.argwhere(behaviours.rare).tolist():
        evidence = wording.by_rarest(float(rare.two_rarest[layer, head]), rare.chance)
        found[layer, head].append(Function("rare", "", evidence))
    return dict(found)


def _letters(relations: Sequence[str]) -> str:
    return "".join(LOOKS[f"syntactic:{relation}"].letter for relation in relations)


def _relations(tests: HeadTests) -> dict[Head, list[str]]:
    """Relations of the heads that hold a syntactic role; none is named where only all of them together are."""
    held: dict[Head, list[str]] = {}
    for role in ("syntactic", *(f"syntactic:{relation}" for relation in RELATIONS)):
        for layer, head in np.argwhere(tests.holds[tests.roles.index(role)]).tolist():
            held.setdefault((layer, head), []).extend(role.split(":")[1:])
    return held
