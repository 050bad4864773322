"""Grammar: how well heads find the structure of a sentence, in three sections, one shown at a time."""

from typing import Final

from attention_sieve.dashboard.components.terms import sentence
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.grammar import wording
from attention_sieve.dashboard.views.grammar.coreference import section as coreference
from attention_sieve.dashboard.views.grammar.relations import section as relations
from attention_sieve.dashboard.views.grammar.tree_probes import section as probes

SECTIONS: Final = (relations, coreference, probes)


def show() -> None:
    """Draw the page."""
    frame.head("Grammar")
    sentence(wording.SEE, key="see grammar")
    frame.tabs(
        "grammar section",
        {section.wording.TITLE: section.show_section for section in SECTIONS},
    )
