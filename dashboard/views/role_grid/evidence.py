"""Chart of how the evidence for a head's roles grows with the texts."""

from collections.abc import Mapping, Sequence

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.uncertainty.anytime import needed_evidence, role_evidence
from attention_sieve.core.statistics.evidence import evidence_path
from attention_sieve.dashboard.figures.roles.evidence import evidence_by_texts
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.corpus import Corpus


def evidence_chart(tested: Corpus, head: Head, roles: Sequence[str], facts: Mapping[str, str]) -> None:
    """Draw how the evidence for a head's roles has grown; nothing if a test decides."""
    if tested.bets is None or tested.tests.evidence is None:
        return
    layer, number = head
    rows = [tested.tests.roles.index(role) for role in roles]
    settings, bets = tested.tests.settings, tested.bets
    of_head = bets.scores[:, rows, layer : layer + 1, number : number + 1]
    path = role_evidence(of_head, settings, bets.uniform[:, rows, layer : layer + 1], evidence_path)[..., 0, 0]
    needed = needed_evidence(tested.tests.evidence, settings)
    name = head_name(*head)
    chart(f"evidence {name}", evidence_by_texts(path, roles, needed, settings.alpha, name), facts)
