"""Grammar: how well heads find the structure of a sentence, in three sections, one shown at a time."""

from typing import Final

from dashboard.components.terms import sentence
from dashboard.views import frame
from dashboard.views.parsers import wording
from dashboard.views.parsers.coreference import section as coreference
from dashboard.views.parsers.probes import section as probes
from dashboard.views.parsers.relations import section as relations

SECTIONS: Final = (relations, coreference, probes)


def show() -> None:
    """Draw the page."""
    frame.head("Grammar")
    sentence(wording.SEE, key="see grammar")
    frame.tabs(
        "parsing section",
        {section.wording.TITLE: section.show_section for section in SECTIONS},
    )
