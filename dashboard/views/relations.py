"""What the heads of a checkpoint find of syntactic relations in the corpus, as several pages ask for it."""

from dataclasses import replace

import streamlit as st

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.finding import ByArgmax, RelationFinding
from attention_sieve.core.relations.settings import USUAL_CASES, RelationSettings
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.frame import Visit


def relation_finding(visit: Visit, settings: RelationSettings) -> CorpusFinding[RelationFinding] | None:
    """How well the heads find relations in the corpus; None where the reader has to do something first.

    The least number of cases and the margin select among accuracies, which a click on them need not compute again.

    Raises: AnalysisError of any stage.
    """
    usual = RELATION_ANALYSIS.settings
    found = find(visit, RELATION_ANALYSIS, replace(settings, least_cases=usual.least_cases, margin=usual.margin))
    return found and replace(found, finding=replace(found.finding, settings=settings))


def argmax_heads(visit: Visit) -> ByArgmax | None:
    """Heads by the rule of the paper; None if the texts do not have its relations, which the page says."""
    try:
        found = relation_finding(visit, RelationSettings(alpha=visit.choice.criterion.alpha, least_cases=None))
    except AnalysisError as error:
        show_error(error)
        return None
    if found is None:
        return None
    argmax, least = found.finding.by_argmax, found.finding.least_cases
    if argmax is None:
        st.info(wording.NO_RULE_RELATION)
    elif least < USUAL_CASES:
        st.info(wording.few_cases(least, USUAL_CASES))
    return argmax
