"""Texts with gold mentions for the descriptions of heads: the reader's own or the examples."""

from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.coreference.finding import CoreferenceFinding
from attention_sieve.dashboard.samples import mention_sample
from attention_sieve.dashboard.views.asking import find, kept_finding
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.grammar.coreference.choices import kept_own_mentions


def known_mentions(visit: Visit, *, may_ask: bool) -> tuple[str, CoreferenceFinding] | None:
    """Name and finding of the reader's texts of the page Grammar if that is kept; else of the example texts.

    Args:
        may_ask: whether to run a pass over the example texts if needed.

    Returns: None if a pass is needed but not allowed or stopped, and for attention between two texts.
    """
    settings = COREFERENCE_ANALYSIS.settings
    if visit.settings.kind not in COREFERENCE_ANALYSIS.question(settings).kinds:
        return None
    if (own_mentions := kept_own_mentions(visit)) is not None:
        return own_mentions
    find_or_read = find if may_ask else kept_finding
    found = find_or_read(visit, COREFERENCE_ANALYSIS, settings, mention_sample())
    return None if found is None else (wording.EXAMPLE_TEXTS, found.finding)
