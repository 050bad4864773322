"""Text from people, files and tokenizers, escaped so that a page shows it as text, never as markup, and without paths
of this machine where visitors read it."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PureWindowsPath
from typing import Final

import streamlit as st

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.errors import AnalysisError, FetchNeeded
from attention_sieve.dashboard import offers
from attention_sieve.dashboard.offers import named_results
from attention_sieve.dashboard.public import is_public

OPTION: Final = re.compile(r"(?<!\S)(--[a-z]+(?:-[a-z]+)*)(?=[\s.,;:)]|$)")
"""An option of a command, which is set as code so that it can be copied: code needs no word joiner."""
RENDERED: Final = re.compile(r":(?=\S)|www(?=\.)|@|[<>~-](?=[-=>])")
"""Where Streamlit inserts icons, emoji, links and arrows even into escaped text."""
WORD_JOINER: Final = "\u2060"
"""Zero-width character that keeps two characters from being read as one."""
_PATH: Final = re.compile(r"(?<![\w./:])(?:[A-Za-z]:\\|~?/(?=[^\s/]))[^\s\"'“”,;()]*")
_log: Final = logging.getLogger(__name__)


def show_error(error: AnalysisError) -> None:
    """Display an error as escaped text, with a button to confirm a download where one is needed."""
    if isinstance(error, FetchNeeded):
        st.info(plain(str(error)), icon=":material/download:")
        offers.ask_to_fetch(error)
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


def for_visitors(message: str) -> str:
    """A message as the page shows it: on a public server, each path is shortened to its last name.

    The owner finds the whole message in the log of the server.
    """
    if not is_public():
        return message
    without = message
    for folder in (*named_results(), program_folder()):  # these may hold spaces, at which any other path would end
        without = without.replace(str(folder), folder.name)
    without = _PATH.sub(_last_name, without)
    if without != message:
        _log.warning("%s", message)
    return without


def _last_name(path: re.Match[str]) -> str:
    """The last name of a path, with the full stop of the sentence that it ends."""
    return PureWindowsPath(path[0].rstrip(".")).name + "." * path[0].endswith(".")
