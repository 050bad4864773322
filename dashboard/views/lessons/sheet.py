"""Worksheet of a lesson: its predictions and its question, with space to write, on one page."""

import re
from html import escape
from typing import Final

from dashboard.views.frame import Prose
from dashboard.views.lessons.content import Question, say
from dashboard.views.lessons.plans import LESSONS, words_of

BLANK: Final = "____"
"""Replaces values that the page computes; the reader writes them down."""
_STYLE: Final = """
@page { size: A4; margin: 16mm; }
body { max-width: 178mm; margin: 0 auto; font: 11pt/1.4 sans-serif; color: #000; background: #fff; }
h1 { font-size: 17pt; margin: 0 0 2mm; }
.name { float: right; }
section { margin-top: 7mm; break-inside: avoid; }
.line { border-bottom: .3mm solid #000; height: 8mm; }
ul { list-style: none; padding: 0; }
"""


def sheet(lesson: int, language: str) -> str:
    """Worksheet of a lesson: an HTML page without scripts that prints on one side of A4.

    Args:
        lesson: number, from 1.
        language: of its texts.
    """
    words = words_of(lesson, language)
    parts = [
        f'<p class="name">{_text(say(language, "sheet_name"))} ____________________</p>',
        f"<h1>{lesson}. {_text(words.title)}</h1><p>{_text(words.claim)}</p>",
        *(_prediction(words.sections[step.name], language) for step in LESSONS[lesson - 1] if step.asks),
        _question(words.question, language),
    ]
    head = f'<meta charset="utf-8"><title>{_text(words.title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="{escape(language)}"><head>{head}</head><body>{"".join(parts)}</body></html>'


def _prediction(prompt: Prose, language: str) -> str:
    blanks = prompt.substitute(dict.fromkeys(prompt.get_identifiers(), BLANK))
    line = '<div class="line"></div>'
    return (
        f"<section><p>{_text(blanks)}</p><p>{_text(say(language, 'sheet_guess'))}</p>{line}"
        f"<p>{_text(say(language, 'sheet_answer'))}</p>{line}{line}</section>"
    )


def _question(question: Question, language: str) -> str:
    options = "".join(f"<li>☐ {_text(option)}</li>" for option in question.options)
    title = _text(say(language, "sheet_check"))
    return f"<section><p><b>{title}</b> {_text(question.text)}</p><ul>{options}</ul></section>"


def _text(markdown: str) -> str:
    """Markdown as plain text in HTML: these texts contain no markup but asterisks."""
    return escape(re.sub(r"\*+", "", markdown))
