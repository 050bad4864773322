"""A saved page as one HTML file, which asks for nothing: written from its data, and read again."""

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final

from attention_sieve import __version__
from attention_sieve.core.errors import AnalysisError, shortened
from attention_sieve.core.json_values import parse_json
from attention_sieve.dashboard.components import arcs, grid, venn
from attention_sieve.dashboard.components.source import joined
from attention_sieve.dashboard.saved_page.data import FORMAT
from attention_sieve.dashboard.standalone import script, theme_style

_HERE: Final = Path(__file__).parent
BEFORE_DATA: Final = '<script type="application/json" id="page-data">'
BEFORE_DRAWN: Final = '<script type="application/json" id="page-drawn">'
"""Of the attention in texts, nearly all of a page: the script runs before that is read, and draws the grid at once."""
DRAWN: Final = "drawn"
AFTER_DATA: Final = "</script>"


def page_html(data: Mapping[str, Any]) -> str:
    """The page, equal for equal data: its content policy names its only script and its only style by their hashes."""
    parts = [script([grid.SOURCE, arcs.SOURCE, venn.SOURCE]), _read("page.js")]
    code = "\n".join(["(() => {", '"use strict";', *parts, "})();"])
    style = theme_style() + joined("switch.css") + _read("page.css")
    sentences = [f"<p>{escape(sentence)}</p>" for sentence in data["sentences"]]
    notes = [f'<p class="note">{escape(note)}</p>' for note in data["notes"]]
    made = ("The command that makes this page, from its texts as a file:", data["command"])
    checked = ("To compute all its numbers again and compare them:", "attention-sieve check page.html")
    if not data["command"]:
        made = ("The model was in the memory of a program, which made this page with:", "attention_sieve.save_page")
        checked = (
            "To compute its numbers again, from the folder of the saved model:",
            f"{checked[1]} --checkpoint FOLDER",
        )
    commands = [f"<p>{escape(says)}</p>\n<pre><code>{escape(words)}</code></pre>" for says, words in (made, checked)]
    return Template(_read("page.html")).substitute(
        title=escape(data["title"]),
        program=escape(data["program"]),
        sentences="\n".join([*sentences, *notes]),
        commands="\n".join(commands),
        style=style,
        style_hash=_hash(style),
        data=_json({name: value for name, value in data.items() if name != DRAWN}),
        drawn=_json(data[DRAWN]),
        script=code,
        script_hash=_hash(code),
    )


def read_page(content: bytes, name: str) -> tuple[dict[str, Any], str]:
    """The data of a page, and the whole of it.

    Raises: AnalysisError for something else, a damaged page, and one of a newer format.
    """
    name = shortened(name)
    html = content.decode("utf-8", "replace")
    if BEFORE_DATA not in html:
        raise AnalysisError(f"{name} is no page of Attention Sieve. Give a file that attention-sieve page has written.")
    data, drawn = (_read_json(html, before) for before in (BEFORE_DATA, BEFORE_DRAWN))
    if not isinstance(data, dict) or not isinstance(data.get("format"), int) or drawn is None:
        raise AnalysisError(f"{name} is damaged: its data are not whole. Get the page again from where it was made.")
    if data["format"] > FORMAT:
        raise AnalysisError(
            f"{name} was written by Attention Sieve {shortened(str(data.get('program')))} in format {data['format']}, "
            f"and {__version__} reads formats up to {FORMAT}. Install a newer version."
        )
    return data | {DRAWN: drawn}, html


def _json(value: Any) -> str:
    """For an element: in JSON, < occurs in strings alone; escaped, no string can end the element, or begin another."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _read_json(html: str, before: str) -> Any:
    """The value in an element; None if it is not whole."""
    written, is_whole, _ = html.partition(before)[2].partition(AFTER_DATA)
    try:
        return parse_json(written) if is_whole else None
    except ValueError:
        return None


def _read(name: str) -> str:
    return (_HERE / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
