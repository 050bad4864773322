"""What chance would give: how many heads hold each role where nothing can be learned from the texts.

Three controls, each of which takes something else away: random weights of the same shape have learned nothing; permuted
keys keep how sharply a head attends, but not where; shuffled words keep the words of a text, but not its order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Int

from core.roles.hypotheses import Criterion, role_tests
from core.roles.measures import ScoreSettings, TextMeasures, role_scores
from core.roles.roles import ROLES
from core.texts.text import Text

Control = Literal["none", "random weights", "permuted keys", "shuffled words"]
SEEDS: Final = (0, 1, 2)
"""Of the random weights."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleCounts:
    """Number of heads that hold each role."""

    control: Control
    """"none" for the checkpoint and the texts as they are."""
    seed: int
    """Of what is random in the control; 0 for "none"."""
    heads: Int[np.ndarray, " role"]
    """By ROLES."""
    n_heads: int
    """Number of heads that could hold it."""


def role_counts(
    texts: Sequence[TextMeasures], settings: ScoreSettings, criterion: Criterion, control: Control, seed: int = 0
) -> RoleCounts:
    """Count the heads that hold each role, from what was measured of each text."""
    scored = role_scores(texts, settings)
    tests = role_tests(scored.scores, ROLES, criterion, scored.uniform)
    return RoleCounts(control=control, seed=seed, heads=tests.holds.sum(axis=(1, 2)), n_heads=tests.holds[0].size)


def shuffled_words(text: Text, seed: int) -> Text:
    """The same text with the words of each segment in random order, without the trees that came with it.

    Words are split at spaces; a sign of punctuation moves with the word that it is written with.
    """
    random = np.random.default_rng([seed, len(text.segments[0])])
    return Text(tuple(" ".join(random.permutation(segment.split()).tolist()) for segment in text.segments))
