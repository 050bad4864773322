"""Worksheet of a lesson: its predictions, with what to draw them in, and its question, on one page."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.text import read_typed
from attention_sieve.dashboard.languages import Prose, localized, say
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons.answers import word_names
from attention_sieve.dashboard.views.lessons.computation import StepInputs, StepResult
from attention_sieve.dashboard.views.lessons.content import PAPER
from attention_sieve.dashboard.views.lessons.plans import LESSONS, Step, words_of
from attention_sieve.dashboard.views.lessons.sentences import NEAR

BLANK: Final = "____"
"""Replaces values that the page computes; the reader writes them down."""
DRAWN: Final = ("word", "head")
"""What is drawn into a picture on paper, so that it needs no line to be written on."""
MOST_CELL: Final = 8.5
WIDTH: Final = 165
HEIGHT: Final = 90
"""Largest size of a cell, and of the whole grid, in mm."""
FAINTEST: Final = 0.05
"""Smallest attention that leaves a spot on paper."""
_STYLE: Final = """
@page { size: A4; margin: 14mm; }
body { max-width: 178mm; margin: 0 auto; font: 10pt/1.3 sans-serif; color: #000; background: #fff; }
h1 { font-size: 15pt; margin: 0 0 2mm; }
.name { float: right; }
section { margin-top: 4mm; break-inside: avoid; }
.notes { list-style: disc; padding-left: 5mm; margin: 1mm 0; }
.line { border-bottom: .3mm solid #000; height: 6.5mm; }
ul { list-style: none; padding: 0; }
blockquote { margin: 2mm 0; font-size: 13pt; font-weight: bold; }
table { border-collapse: collapse; }
.words { margin: 2mm 0; font-size: 10.5pt; line-height: 1.25; }
.words td { padding: 0 3mm; }
.words td:first-child { width: 60mm; text-align: right; }
.words td:last-child { padding-left: 35mm; }
.framed { border: .5mm solid #000; padding: 0 1.5mm; font-weight: bold; }
.grid th { padding: 0 1mm; font-size: 7.5pt; font-weight: normal; }
.grid td { padding: .4mm; }
.grid svg { display: block; width: var(--size); height: var(--size); border: .1mm solid #999; }
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class SheetMaterial:
    """What a checkpoint gives for a prediction on paper."""

    sentence: str
    text_attention: TextAttention
    result: StepResult


def material_of(visit: Visit, lesson: int) -> dict[str, SheetMaterial]:
    """What the sheet of a lesson needs of the checkpoint, by step: of the steps that ask about a sentence.

    Raises: AnalysisError if the checkpoint cannot be loaded, or cannot read the sentence.
    """
    material, sentence = {}, NEAR.sentence
    settings = PassSettings(visit.settings.kind)
    for step in LESSONS[lesson - 1]:
        sentence = str(step.puts.get("text", sentence))
        if not step.asks or step.page != "inspect":
            continue
        (text,) = read_typed(sentence)
        text_attention, _ = visit.inference.look(visit.engine, text, settings)
        result = step.finds(StepInputs(visit=visit, text_attention=text_attention, typed=sentence))
        material[step.name] = SheetMaterial(sentence=sentence, text_attention=text_attention, result=result)
    return material


def sheet(lesson: int, language: str, material: Mapping[str, SheetMaterial]) -> str:
    """Worksheet of a lesson: an HTML page without scripts that prints on one side of A4.

    Args:
        material: of `material_of`; without a step's, its values are left open, and nothing is drawn.
    """
    words = words_of(lesson, language)
    options = "".join(f"<li>☐ {_text(option)}</li>" for option in words.question.options)
    title = _text(say(language, "sheet_check"))
    parts = [
        f'<p class="name">{_text(say(language, "sheet_name"))} ____________________</p>',
        f"<h1>{lesson}. {_text(words.title)}</h1><p>{_text(words.claim)}</p>",
        *(
            _prediction(words.sections[step.name + PAPER], step, language, material.get(step.name))
            for step in LESSONS[lesson - 1]
            if step.asks
        ),
        f"<section><p><b>{title}</b> {_text(words.question.text)}</p><ul>{options}</ul></section>",
    ]
    head = f'<meta charset="utf-8"><title>{_text(words.title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="{escape(language)}"><head>{head}</head><body>{"".join(parts)}</body></html>'


def notes_sheet(title: str, language: str, paragraphs: Sequence[str]) -> str:
    """The notes on a lesson for its teacher: an HTML page without scripts that prints on one side of A4.

    Args:
        paragraphs: in Markdown: sentences, of which the first words may be bold, and lists.
    """
    parts = [f"<h1>{_text(title)}</h1>", *map(_paragraph, paragraphs)]
    head = f'<meta charset="utf-8"><title>{_text(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="{escape(language)}"><head>{head}</head><body>{"".join(parts)}</body></html>'


def _paragraph(markdown: str) -> str:
    """A paragraph and the list that may follow it; a bold beginning stays bold."""
    lines = [line for line in markdown.split("\n") if line.strip()]
    items = "".join(f"<li>{_bold(line[2:])}</li>" for line in lines if line.startswith("- "))
    said = " ".join(line for line in lines if not line.startswith("- "))
    return f"<p>{_bold(said)}</p>{f'<ul class=notes>{items}</ul>' if items else ''}"


def _bold(markdown: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(markdown)).replace("*", "").replace("\\", "")


def _prediction(prompt: Prose, step: Step, language: str, material: SheetMaterial | None) -> str:
    values = dict.fromkeys(prompt.get_identifiers(), BLANK)
    values |= {name: localized(value, language) for name, value in (material.result.values if material else {}).items()}
    line = '<div class="line"></div>'
    guess = "" if step.asks in DRAWN and material else f"<p>{_text(say(language, 'sheet_guess'))}</p>{line}"
    return (
        f"<section><p>{_text(prompt.substitute(values))}</p>{_drawn(step, material, language)}{guess}"
        f"<p>{_text(say(language, 'sheet_answer'))}</p>{line}</section>"
    )


def _drawn(step: Step, material: SheetMaterial | None, language: str) -> str:
    """The sentence, and what to draw in: both columns of its words, or the grid; or else a ranking to read."""
    if material is None:
        return ""
    sentence = f"<blockquote>{escape(material.sentence)}</blockquote>"
    if step.asks == "word":
        return sentence + _columns(material)
    if step.asks == "head":
        return sentence + _grid(material.text_attention.attention)
    if not material.result.ranking:
        return ""
    items = (
        f"<li>{escape(name)} <b>{localized(f'{value:.2f}', language)}</b></li>"
        for name, value in material.result.ranking
    )
    return f"{sentence}<ol>{''.join(items)}</ol>"


def _columns(material: SheetMaterial) -> str:
    """Both columns of words, one line each, with the query framed."""
    queries, keys = (
        word_names(text) for text in (material.text_attention.text.queries, material.text_attention.text.keys)
    )
    rows = []
    for row in range(max(len(queries), len(keys))):
        query, key = (escape(names[row]) if row < len(names) else "" for names in (queries, keys))
        framed = " class=framed" if row == material.result.query else ""
        rows.append(f"<tr><td><span{framed}>{query}</span> •</td><td>• {key}</td></tr>")
    return f'<table class="words">{"".join(rows)}</table>'


def _grid(attention: Float[np.ndarray, "layer head query key"]) -> str:
    """A small picture of what each head looks at: darker for more attention."""
    n_layers, n_heads = attention.shape[:2]
    size = min(MOST_CELL, WIDTH / n_heads, HEIGHT / n_layers)
    top = "".join(f"<th>H{head}</th>" for head in range(n_heads))
    rows = [
        f"<tr><th>L{layer}</th>{''.join(f'<td>{_picture(of_head)}</td>' for of_head in of_layer)}</tr>"
        for layer, of_layer in enumerate(np.nan_to_num(attention))
    ]
    return f'<table class="grid" style="--size: {size:.2f}mm"><tr><th></th>{top}</tr>{"".join(rows)}</table>'


def _picture(attention: Float[np.ndarray, "query key"]) -> str:
    n_queries, n_keys = attention.shape
    spots = "".join(
        f'<rect x="{key}" y="{query}" width="1" height="1" opacity="{attention[query, key]:.2f}"/>'
        for query, key in np.argwhere(attention >= FAINTEST)
    )
    return f'<svg viewBox="0 0 {n_keys} {n_queries}" preserveAspectRatio="none">{spots}</svg>'


def _text(markdown: str) -> str:
    """Markdown as plain text in HTML: these texts contain no markup but asterisks."""
    return escape(re.sub(r"\*+", "", markdown))
