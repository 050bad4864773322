"""How many heads hold each role over the example pairs, beside what chance gives.

For the bundled checkpoint, at the usual tau: by the rule of this program, and by that of the paper, which does not ask
for more than uniform attention scores. Then each syntactic role's heads beside pairs of words at the same distance that
no relation joins. The numbers are those of the command `controls` with `--pairs`, of the same pairs.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import control_passes, counts_of
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, role_tests
from attention_sieve.core.roles.matched_pairs import matched_tests
from attention_sieve.core.roles.measures import ScoreSettings, TextMeasures, role_scores
from attention_sieve.core.roles.question import MATCHED_PAIRS, SCORES
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.samples import read_sample
from benchmarks.shared.markdown import header, row

SETTINGS: Final = ScoreSettings()
CRITERION: Final = Criterion()
PAPER: Final = replace(CRITERION, rule="paper")
AT: Final = [ROLES.index(role) for role in COARSE_ROLES]


def main() -> None:
    texts, checkpoint = read_sample("pairs"), load_checkpoint(find_checkpoint(BUNDLED))
    measured = results(checkpoint, SCORES, texts)
    print(f"Heads with each role, of {measured[0].measures[0].size}, over {len(texts)} pairs at tau {CRITERION.tau:g}:")
    header("", *COARSE_ROLES, *(f"{role}, by the paper's rule" for role in COARSE_ROLES))
    row("the checkpoint", *counts(measured))
    for one in control_passes(checkpoint.files, texts):
        of_control = checkpoint if one.files == checkpoint.files else load_checkpoint(one.files)
        row(one.name, *counts(results(of_control, ROLE_ANALYSIS.question(one.settings), one.texts)))
    report_pairs(checkpoint, texts, tests_of(measured, CRITERION))


def counts(measured: Sequence[TextMeasures]) -> list[int]:
    """Heads by COARSE_ROLES, by this program's rule and by the paper's."""
    return [int(n) for rule in (CRITERION, PAPER) for n in counts_of(tests_of(measured, rule), "none").heads[AT]]


def tests_of(measured: Sequence[TextMeasures], criterion: Criterion) -> HeadTests:
    scored = role_scores(measured, SETTINGS)
    return role_tests(scored.scores, ROLES, criterion, scored.uniform)


def report_pairs(checkpoint: Checkpoint, texts: Sequence[Text], tests: HeadTests) -> None:
    """The heads with the role syntactic, beside pairs of words at the same distance."""
    matched = matched_tests(results(checkpoint, MATCHED_PAIRS, texts), SETTINGS.direction, CRITERION)
    positional = matched.positional(tests)[ROLES.index("syntactic")]
    header("head with the role syntactic", "score", "score of unrelated words at the same distance", "positional")
    for layer, head in np.argwhere(tests.holds[ROLES.index("syntactic")]).tolist():
        score, other = (means[0, layer, head] for means in (matched.related, matched.unrelated))
        row(head_name(layer, head), f"{score:.1f}", f"{other:.1f}", "yes" if positional[layer, head] else "no")


if __name__ == "__main__":
    main()
