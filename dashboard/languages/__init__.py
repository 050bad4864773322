"""The reader's language: what is said in it, by name, and how it writes numbers. Each language is a folder here.

To add a language, copy the folder `en` and translate its files: the code finds all languages here. A file, a section or
a phrase that is not translated yet is in English. `dashboard/views/lessons/content.py` says what the files of lessons
look like.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

import streamlit as st

from attention_sieve.dashboard import link
from attention_sieve.dashboard.plain import plain

TEXTS: Final = Path(__file__).parent
ENGLISH: Final = "en"
LANGUAGE: Final = "language"
"""Key and query parameter of the language."""
PHRASES: Final = "phrases.toml"
TERMS: Final = "terms.toml"
RIDDLE: Final = "riddle.toml"
_FORMATTED: Final = re.compile(
    r"(?P<name>.* \()?(?P<number>\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?)(?:(?P<percent>%)|(?P<unit>°|\s:\s1))?"
    r"(?P<end>(?(name)\)))"
)
"""A number, or a name with a number in parentheses."""


class Prose(Template):
    """A page's long text, with `@{name}` where a number belongs: `$` is taken by TeX."""

    delimiter = "@"


def languages() -> list[str]:
    """Languages with texts, English first."""
    names = sorted(folder.name for folder in TEXTS.iterdir() if (folder / PHRASES).is_file())
    return sorted(names, key=lambda name: name != ENGLISH)


@cache
def phrases(language: str, file: str = PHRASES) -> Mapping[str, str]:
    """Short phrases of a file, by name: of the panel and the page, or of the riddle."""
    own = _named(language, file)
    return own if language == ENGLISH else {**phrases(ENGLISH, file), **own}


@cache
def translated_terms(language: str) -> Mapping[str, str]:
    """What terms of `dashboard/glossary.py` mean in a language other than English, by term."""
    return _named(language, TERMS)


def _named(language: str, file: str) -> dict[str, str]:
    path = TEXTS / language / file
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


def language() -> str:
    """The reader's."""
    return str(st.session_state.get(LANGUAGE) or ENGLISH)


def read_language() -> None:
    """Read the language from the link, and write it there unless it is English."""
    if (asked := link.take(LANGUAGE)) is not None:
        if asked in languages():
            st.session_state[LANGUAGE] = asked
        else:
            link.say(say(language(), "no_such_language", asked=link.quoted(asked)))
    link.put([LANGUAGE], {} if language() == ENGLISH else {LANGUAGE: language()})


def say(language: str, name: str, file: str = PHRASES, /, **values: object) -> str:
    shown = {key: localized(str(value), language) for key, value in values.items()}
    return Prose(phrases(language, file)[name]).substitute(shown)


def localized(value: str, language: str) -> str:
    """A formatted value as its language writes numbers: a number, a percentage, or a name with its share behind it.

    What is no number stays as it is: words of a text are data.
    """
    form = None if language == ENGLISH else _FORMATTED.fullmatch(value)
    if form is None:
        return value
    signs = phrases(language)
    written = str.maketrans({".": signs["decimal_sign"], ",": signs["group_sign"]})
    unit = signs["percent_sign"] if form["percent"] else form["unit"] or ""
    return f"{form['name'] or ''}{form['number'].translate(written)}{unit}{form['end']}"


def shown(value: str, language: str) -> str:
    """A value as the text of a lesson shows it: numbers as its language writes them, words as text."""
    return plain(localized(value, language))


def percent_of(share: float, language: str) -> str:
    return localized(f"{100 * share:.0f}%", language)


def text_file(language: str, name: str) -> Path:
    """A file of texts in a language, or in English where it is not translated yet."""
    own = TEXTS / language / name
    return own if own.is_file() else TEXTS / ENGLISH / name
