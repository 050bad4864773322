"""The words of the lessons: a Markdown file per lesson, in the folder of each language.

The file of a lesson begins with its `title` and `claim`, as TOML between two lines of `+++`. Then each step has a
section: its name after `##`, and its text, in which `@{name}` is replaced by a value computed from the current
checkpoint. A section "NAME, none" replaces the section NAME if the checkpoint has no such head; "NAME, paper" asks the
same on the printed sheet, on which nothing can be clicked. The section `check` ends with its options, `- [x]` before
the correct one and `- [ ]` before the others, and with an explanation after `>`.

`NAME.notes.md` beside it has what a teacher reads: `minutes`, and the sections `aim`, `needs` and `mistakes`.
"""

import re
import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from attention_sieve.dashboard.languages import Prose, text_file

CHECK: Final = "check"
"""Name of the last step of every lesson."""
WITHOUT: Final = ", none"
"""Suffix of the name of a section for a checkpoint that has no such head."""
PAPER: Final = ", paper"
"""Suffix of the name of a section for the printed sheet."""
NOTES: Final = ".notes.md"
"""Ends the name of the file of a teacher's notes on a lesson."""
TEACHER_SECTIONS: Final = ("aim", "needs", "mistakes")
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_OPTION: Final = re.compile(r"^- \[([x ])\] (.+)$", re.MULTILINE)
_ANSWER: Final = re.compile(r"^> (.+)$", re.MULTILINE)
_NUMBER: Final = re.compile(r"\d")


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
    _, head, body = path.read_text("utf-8").split("+++\n", 2)
    about = tomllib.loads(head)
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
    _, head, body = path.read_text("utf-8").split("+++\n", 2)
    parts = _SECTION.split(body)
    sections = {title.strip(): text.strip() for title, text in zip(parts[1::2], parts[2::2])}
    if problem := _problem(sections, dict.fromkeys(TEACHER_SECTIONS, frozenset())) or _number_in(*sections.values()):
        raise ValueError(f"{path}: {problem}")
    return TeacherNotes(minutes=tomllib.loads(head)["minutes"], **sections)


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
