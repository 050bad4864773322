"""Grammar: what each head finds of a sentence's structure, in three sections of which one is open."""

from dashboard.components.terms import sentence
from dashboard.views import frame
from dashboard.views.parsers import wording
from dashboard.views.parsers.coreference import section as coreference
from dashboard.views.parsers.probes import section as probes
from dashboard.views.parsers.relations import section as relations


def show() -> None:
    """Draw the page."""
    frame.head("Grammar")
    sentence(wording.SEE, key="see grammar")
    frame.tabs(
        "parsing section",
        {
            wording.RELATIONS: relations.show_section,
            wording.COREFERENCE: coreference.show_section,
            wording.PROBES: probes.show_section,
        },
    )
