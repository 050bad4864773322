"""A sentence on the head chosen last."""

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.question import PassedText
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.inspect import wording
from attention_sieve.dashboard.views.text.simple_patterns import strongest_link


def says(visit: Visit, screen: PassedText, tested: Corpus | None, heads: list[Head]) -> str:
    """A sentence on the head chosen last: what it does over the corpus where that is known, or else in the text."""
    if not heads or heads[-1] in visit.removed:
        return ""
    if tested is not None and first_screen_is_drawn():
        # These import pandas, for which the first grid does not wait.
        from attention_sieve.dashboard.views.descriptions.sentences import kept_descriptions
        from attention_sieve.dashboard.views.descriptions.wording import does

        described = kept_descriptions(visit, tested.tests)
        if described is not None:
            sentence = plain(does(described.heads[heads[-1]]))
            return sentence[0].upper() + sentence[1:]
    return in_text(screen, heads[-1])


def in_text(screen: PassedText, head: Head) -> str:
    """What a head does in the text on screen; empty where no link between two of its words stands out."""
    linked = strongest_link(screen.text_attention, head)
    if linked is None or not linked.stands_out:
        return ""
    return wording.in_text(plain(linked.query.text), plain(linked.key.text), linked.share)
