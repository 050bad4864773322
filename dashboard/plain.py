"""Text from people, files and tokenizers, escaped so that a page shows it as text, never as markup."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import streamlit as st

from attention_sieve.core.errors import AnalysisError, FetchNeeded
from attention_sieve.dashboard.offers import hub
from attention_sieve.dashboard.offers.paths import for_visitors

OPTION: Final = re.compile(r"(?<!\S)(--[a-z]+(?:-[a-z]+)*)(?=[\s.,;:)]|$)")
"""An option of a command, which is set as code so that it can be copied: code needs no word joiner."""
RENDERED: Final = re.compile(r":(?=\S)|www(?=\.)|@|[<>~-](?=[-=>])")
"""Where Streamlit inserts icons, emoji, links and arrows even into escaped text."""
WORD_JOINER: Final = "\u2060"
"""Zero-width character that keeps two characters from being read as one."""


def show_error(error: AnalysisError) -> None:
    """Display an error as escaped text, with a button to confirm a download where one is needed."""
    if isinstance(error, FetchNeeded):
        st.info(plain(str(error)), icon=":material/download:")
        hub.ask(error)
    else:
        st.error(plain(for_visitors(str(error))), icon=":material/error:")


@contextmanager
def errors_shown() -> Iterator[None]:
    """An error inside ends what stands there and is shown; what follows goes on."""
    try:
        yield
    except AnalysisError as error:
        show_error(error)


def plain(text: str) -> str:
    """Escape a text so that Markdown shows it unchanged; options of a command become code."""
    pieces = OPTION.split(text.replace("\n", " "))
    return "".join(f"`{piece}`" if index % 2 else _escaped(piece) for index, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    apart = RENDERED.sub(lambda match: match[0] + WORD_JOINER, text)
    return "".join("\\" + sign if sign in r"\`*_{}[]()#+-.!|<>~$:&" else sign for sign in apart)
