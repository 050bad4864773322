"""What chance would give: how many heads hold each role where nothing can be learned from the texts.

Three controls, each of which takes something else away: random weights of the same shape have learned nothing; permuted
keys keep how sharply a head attends, but not where; shuffled words keep the words of a text, but not its order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np
from jaxtyping import Int

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.prepare import with_relations
from core.passes.texts import PassText
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


def with_permuted_keys(
    checkpoint: Checkpoint,
    texts: Sequence[Text],
    prepared: Sequence[PassText],
    settings: PassSettings,
    seed: int,
) -> Iterator[list[tuple[int, TextMeasures]]]:
    """Measure texts with the keys of every row of attention in random order.

    Args:
        checkpoint: loaded.
        texts: one or more.
        prepared: the same, for the pass.
        settings: which attention, and which heads are off.
        seed: of the orders; the same texts have the same orders.

    Yields: index of the text and what was measured, batch by batch.
    """
    from core.passes.batches import BATCH_TOKENS, plan_batches
    from core.roles.permuted_keys import PermutedKeys
    from core.roles.scores import score_batch

    attention = checkpoint.attentions[settings.kind]
    parsed = with_relations(prepared, texts)
    batches = plan_batches([text.n_tokens for text in parsed], BATCH_TOKENS[checkpoint.device])
    for number, batch in enumerate(batches):
        of_batch, seed_of_batch = [parsed[row] for row in batch.positions], seed * len(batches) + number
        permuted = partial(PermutedKeys, texts=of_batch, attention=attention, seed=seed_of_batch)
        scores = score_batch(checkpoint, of_batch, settings, control=permuted)
        yield list(zip(batch.positions, scores.of_texts(), strict=True))
