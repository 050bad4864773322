"""What the page Laboratory measures: the heads of each saved step of a run, over probe texts."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from attention_sieve.cache.answers import FindingRequest
from attention_sieve.core.attention.settings import highest_head
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS
from attention_sieve.core.importance.backups import BackupFinding
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.laboratory.outcomes import CopyScore, copy_score
from attention_sieve.core.laboratory.question import COPIED_TOKENS
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.dashboard.figures.laboratory import Strongest
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.asking import ask, find
from attention_sieve.dashboard.views.corpus import Corpus, Found, judged
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.laboratory import wording
from attention_sieve.dashboard.views.toy import ROLES, SCORES

MOST_STEPS: Final = 40
"""Number of saved steps that the figure draws at most."""


def roles_at(visit: Visit) -> Corpus | None:
    """The roles of heads; None where the reader has stopped the work."""
    found = find(visit, ROLE_ANALYSIS, RoleSettings(SCORES), visit.texts)
    return None if found is None else judged(found, visit.choice)


def copies_at(visit: Visit) -> CopyScore | None:
    """How well the model continues repetitions; None where the reader has stopped the work."""
    answers = ask(visit, COPIED_TOKENS, visit.texts)
    return None if answers is None else copy_score(answers.results)


def backups_at(visit: Visit) -> BackupFinding | None:
    """Which heads stand in for one another for the loss of all tokens; None where the reader has stopped the work."""
    found = find(visit, BACKUP_ANALYSIS, BACKUP_ANALYSIS.settings, tuple(map(LabelledText, visit.texts)))
    return None if found is None else found.finding


def drawn_steps(saved: Sequence[int]) -> list[int]:
    """The saved steps of which the figure draws heads: evenly spaced where there are many."""
    places = np.linspace(0, len(saved) - 1, min(len(saved), MOST_STEPS)).round().astype(int)
    return [saved[place] for place in places]


@in_its_place
def strongest_heads(visits: Mapping[int, Visit]) -> Strongest | None:
    """The strongest head of each role at some steps; None where the reader has stopped the work.

    Args:
        visits: of each step.
    """
    requests = [
        FindingRequest(visit.engine, ROLE_ANALYSIS, visit.texts, RoleSettings(SCORES), visit.settings, "truncate")
        for visit in visits.values()
    ]
    inference = next(iter(visits.values())).inference
    kept = [inference.kept_finding(request) for request in requests]
    found: Sequence[Found] | None = [each for each in kept if each is not None]
    if None in kept:
        found = with_progress(
            tuple(requests),
            lambda report: [inference.find(request, report) for request in requests],
            wording.MEASURING,
        )
    if found is None:
        return None
    means = np.stack([each.finding.tests.mean for each in found])
    heads = [[highest_head(of_role) for of_role in of_step] for of_step in means]
    shares = means.max(axis=(2, 3))
    return Strongest(roles=ROLES, steps=list(visits), shares=shares, heads=heads)
