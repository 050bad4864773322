"""The words of the lessons: a Markdown file per lesson and language, and a file of short phrases per language.

The file of a lesson begins with its `title` and `claim` between two lines of `---`. Then each step has a section: its
name after `##`, and its text, in which `@{name}` is replaced by a value computed from the current checkpoint. A section
"NAME, none" replaces the section NAME if the checkpoint has no such head; "NAME, paper" asks the same on the printed
sheet, on which nothing can be clicked. The section `check` ends with its options,
`- [x]` before the correct one and `- [ ]` before the others, and with an explanation after `>`.

`NAME.notes.md` beside it has what a teacher reads: `minutes`, and the sections `aim`, `needs` and `mistakes`.

To add a language, copy the folder `texts/en` and translate its files: the code finds all languages there. A file, a
section or a phrase that is not translated yet is in English.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import streamlit as st
import yaml

from attention_sieve.dashboard import link
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.frame import Prose

TEXTS: Final = Path(__file__).with_name("texts")
ENGLISH: Final = "en"
LANGUAGE: Final = "language"
"""Key and query parameter of the language of the lessons."""
CHECK: Final = "check"
"""Name of the last step of every lesson."""
WITHOUT: Final = ", none"
"""Suffix of the name of a section for a checkpoint that has no such head."""
PAPER: Final = ", paper"
"""Suffix of the name of a section for the printed sheet."""
NOTES: Final = ".notes.md"
"""Ends the name of the file of a teacher's notes on a lesson."""
TEACHER_SECTIONS: Final = ("aim", "needs", "mistakes")
PHRASES: Final = "phrases.yaml"
TERMS: Final = "terms.yaml"
RIDDLE: Final = "riddle.yaml"
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_OPTION: Final = re.compile(r"^- \[([x ])\] (.+)$", re.MULTILINE)
_ANSWER: Final = re.compile(r"^> (.+)$", re.MULTILINE)
_NUMBER: Final = re.compile(r"\d")
_FORMATTED: Final = re.compile(
    r"(?P<name>.* \()?(?P<number>\d{1,3}(?:,\d{3})*(?:\.\d+)?|\d+(?:\.\d+)?)(?:(?P<percent>%)|(?P<unit>°|\s:\s1))?"
    r"(?P<end>(?(name)\)))"
)
"""A number, or a name with a number in parentheses."""


@dataclass(frozen=True)
class Quiz:
    """The question at the end of a lesson."""

    text: str
    options: tuple[str, ...]
    right: int
    """Index of the correct option."""
    afterwards: str


@dataclass(frozen=True)
class LessonTexts:
    title: str
    claim: str
    sections: Mapping[str, Prose]
    question: Quiz


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
    # In Python alone, a file takes 20 ms, for which the first visit would wait.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    by_name: dict[str, str] = yaml.load(path.read_bytes(), loader) if path.is_file() else {}
    return by_name


def language() -> str:
    """The reader's."""
    return str(st.session_state.get(LANGUAGE) or ENGLISH)


def read_language() -> None:
    """Read the language of the lessons from the link, and write it there unless it is English."""
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


def read_words(
    path: Path, expected: Mapping[str, Set[str]], otherwise: Mapping[str, Prose] | None = None
) -> LessonTexts:
    """Read and check a lesson's file.

    Args:
        expected: names of the sections of the lesson except `check`, and the values that each may use.
        otherwise: sections in English, for those that are not translated yet.

    Raises: ValueError with the problem: a missing or unknown section, an unknown value, a number that is written
        instead of computed, or a question without exactly one correct option.
    """
    _, head, body = path.read_text("utf-8").split("---\n", 2)
    about: dict[str, Any] = yaml.safe_load(head)
    parts = _SECTION.split(body)
    sections = {name.strip(): text.strip() for name, text in zip(parts[1::2], parts[2::2])}
    question = _question(path, sections.pop(CHECK, ""))
    sections = {name: text.template for name, text in (otherwise or {}).items()} | sections
    if problem := _problem(sections, expected) or _number_in(about["claim"], question.text, *sections.values()):
        raise ValueError(f"{path}: {problem}")
    return LessonTexts(
        title=about["title"],
        claim=about["claim"],
        sections={name: Prose(text) for name, text in sections.items()},
        question=question,
    )


@dataclass(frozen=True)
class TeacherNotes:
    """What a teacher reads beside the texts of a lesson; Markdown."""

    minutes: int
    aim: str
    needs: str
    mistakes: str
    """A list: what a class often says, and what to say then."""


@cache
def read_teacher_notes(language: str, name: str) -> TeacherNotes:
    """Notes on the lesson with this name of a file.

    Raises: ValueError for a missing or unknown section, or a number: it would have to be computed.
    """
    path = text_file(language, f"{name}{NOTES}")
    _, head, body = path.read_text("utf-8").split("---\n", 2)
    parts = _SECTION.split(body)
    sections = {title.strip(): text.strip() for title, text in zip(parts[1::2], parts[2::2])}
    if problem := _problem(sections, dict.fromkeys(TEACHER_SECTIONS, frozenset())) or _number_in(*sections.values()):
        raise ValueError(f"{path}: {problem}")
    return TeacherNotes(minutes=int(yaml.safe_load(head)["minutes"]), **sections)


def text_file(language: str, name: str) -> Path:
    """A file of texts in a language, or in English where it is not translated yet."""
    own = TEXTS / language / name
    return own if own.is_file() else TEXTS / ENGLISH / name


def _problem(sections: Mapping[str, str], expected: Mapping[str, Set[str]]) -> str:
    if missing := [name for name in expected if name not in sections]:
        return f"the section {missing[0]!r} is missing"
    if unknown := [name for name in sections if name not in expected]:
        return f"the lesson has no step {unknown[0]!r}"
    for name, text in sections.items():
        if not Prose(text).is_valid():
            return f"an @ in {name!r} begins no value"
        if undefined := set(Prose(text).get_identifiers()) - set(expected[name]):
            return f"the section {name!r} names {min(undefined)!r}, which its step does not compute"
    return ""


def _number_in(*texts: str) -> str:
    """The problem with a number in a text, if there is one: every number must be computed from the checkpoint."""
    text_with_number = next((text for text in texts if _NUMBER.search(Prose.pattern.sub("", text))), None)
    return (
        ""
        if text_with_number is None
        else f"a number is written in {text_with_number[:40]!r}; name what the step computes instead"
    )


def _question(path: Path, section: str) -> Quiz:
    options = _OPTION.findall(section)
    signs = [sign for sign, _ in options]
    afterwards = _ANSWER.findall(section)
    if signs.count("x") != 1 or len(signs) < 2 or len(afterwards) != 1:
        raise ValueError(f"{path}: the section 'check' needs two options or more, one of them right, and one line of >")
    return Quiz(
        text=section.split("- [", 1)[0].strip(),
        options=tuple(text for _, text in options),
        right=signs.index("x"),
        afterwards=afterwards[0],
    )
