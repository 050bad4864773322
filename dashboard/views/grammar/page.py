"""Grammar: how well heads find the structure of a sentence, in three sections, one shown at a time."""

from functools import partial
from importlib import import_module

from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.grammar import wording


def show() -> None:
    frame.head("Grammar")
    frame.tabs("grammar section", {title: partial(_section, name) for title, name in wording.SECTIONS.items()})


def _section(name: str) -> None:
    """Draw a section, for whose modules readers of the others do not wait."""
    section = import_module(f"attention_sieve.dashboard.views.grammar.{name}.section")
    frame.section(section.wording.SEE, section.draw, section.NOTES)
