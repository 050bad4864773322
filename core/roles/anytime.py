"""Roles by evidence that stays valid while texts are added: at any look, and without a rule when to stop."""

import numpy as np
from jaxtyping import Bool, Float

from core.roles.hypotheses import LEAST_GAIN, Criterion
from core.statistics.evidence import e_bh, log_evidence


def role_evidence(
    scores: Float[np.ndarray, "text role layer head"],
    settings: Criterion,
    uniform: Float[np.ndarray, "text role layer"],
) -> Float[np.ndarray, "role layer head"]:
    """Logarithm of the evidence that a head has a role.

    It is evidence against a mean score of at most tau and, by the rule, against one that is not above that of uniform
    attention by LEAST_GAIN of it. The smaller of the two is evidence against "not a role", for which one of the two is
    enough.

    Args:
        scores: sieve bias scores, on the scale "score"; NaN where a role is not applicable to a text.
        settings: tau and the rule.
        uniform: score of uniform attention on each text.

    Returns: log of the evidence, NaN where no text takes part; log(20) is "20 : 1".
    Raises: AnalysisError for a negative score.
    Source: decided here; `core.statistics.evidence` names the method's.
    """
    evidence = log_evidence(scores, settings.tau)
    if settings.rule == "role":
        # Where a role does not apply, there is no score to bet on, and any threshold does.
        threshold = np.where(np.isnan(uniform), 1, uniform)[..., None] * (1 + LEAST_GAIN)
        evidence = np.minimum(evidence, log_evidence(scores, threshold))
    return np.where(np.isnan(scores).all(axis=0), np.nan, evidence)


def holds_by_evidence(
    evidence: Float[np.ndarray, "role layer head"], settings: Criterion
) -> Bool[np.ndarray, "role layer head"]:
    """Roles by e-BH: at most alpha of them are expected to be false, whenever one looks and however heads depend.

    Args:
        evidence: from `role_evidence`.
        settings: alpha, and the tests that are corrected together.
    """
    if settings.family == "all":
        return e_bh(evidence, settings.alpha)
    return np.stack([e_bh(of_role, settings.alpha) for of_role in evidence])
