"""What is said on a page about what people, files and tokenizers gave: shown as text, never as markup."""

import re
from typing import Final

import streamlit as st

from core.errors import AnalysisError, FetchNeeded
from dashboard.offers import hub

RENDERED: Final = re.compile(r":(?=\S)|www(?=\.)|@|[<>~-](?=[-=>])")
"""Where Streamlit puts icons, emoji, links and arrows into a text, also when its signs are escaped."""
WORD_JOINER: Final = "\u2060"
"""Takes no place and keeps two signs from being read as one."""


def show_error(error: AnalysisError) -> None:
    """The sentence, as text; messages may hold what people, files and tokenizers gave. A download can be agreed to."""
    if isinstance(error, FetchNeeded):
        st.info(plain(str(error)), icon=":material/download:")
        hub.ask(error)
    else:
        st.error(plain(str(error)), icon=":material/error:")


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    apart = RENDERED.sub(lambda match: match[0] + WORD_JOINER, text.replace("\n", " "))
    return "".join("\\" + sign if sign in r"\`*_{}[]()#+-.!|<>~$:&" else sign for sign in apart)
