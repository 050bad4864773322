"""A text as it is shown: the attention of every head in it, their scores for every role, and the head to show first."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head, PassSettings, highest_head
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText, TextAttention, window_at
from attention_sieve.core.roles.hypotheses import Criterion, text_roles
from attention_sieve.core.roles.measures import RoleScores, RoleSet, ScoreSettings, role_scores
from attention_sieve.core.roles.question import with_what_decides
from attention_sieve.core.roles.record import DIRECTIONS
from attention_sieve.core.roles.sieves import sieve_cells
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedText:
    """Attention and scores of a text, with some heads off or none."""

    text_attention: TextAttention
    scored: RoleScores
    """Of this one text."""

    @property
    def scores(self) -> Float[np.ndarray, "role layer head"]:
        """Scores by role; NaN where a role does not apply."""
        return self.scored.scores[0]

    def roles(self, criterion: Criterion) -> Bool[np.ndarray, "role layer head"]:
        """Which head plays which role in this text: by its scores alone, as one text allows no test."""
        return text_roles(self.scores, self.scored.uniform[0], criterion)


def pass_text(
    checkpoint: Checkpoint, text: Text, prepared: PassText, of_pass: PassSettings, settings: ScoreSettings
) -> PassedText:
    """Attention and scores of a text in one pass; of a long text, the attention of its first window."""
    from attention_sieve.core.roles.scores import score_batch  # imports torch, which pages do without

    roles = RoleSet(settings.roles)
    (prepared,) = with_what_decides(roles, [prepared], [text], settings.parses)
    batch = score_batch(checkpoint, [prepared], of_pass, {0: window_at(checkpoint, prepared)}, roles=roles)
    return PassedText(text_attention=batch.maps[0], scored=role_scores(batch.texts, settings))


def telling_head(text_attention: TextAttention) -> Head:
    """The head that attends to related words most, beyond what it gives to other words at the same distance.

    Each word counts with the related word for which a head's attention, less its mean attention between words at the
    same distance, is greatest; the head with the greatest sum is chosen, the first in case of a tie. A head that always
    looks one word back, or that spreads its attention evenly, has a sum of 0. In a text without relations all words
    count as related.
    """
    text, window, attention = text_attention.text, text_attention.window, text_attention.attention
    is_query = text.queries.segments[slice(*window.queries)] != SPECIAL
    is_key = text.keys.segments[slice(*window.keys)] != SPECIAL
    queries, keys = np.nonzero(is_query[:, None] & is_key)
    related = sieve_cells("syntactic", text, text_attention.causal, DIRECTIONS, window)[queries, keys]
    if not related.any():
        related = np.ones(len(queries), dtype=bool)
    best = np.full(attention.shape[:3], -np.inf)
    for distance in sorted(set((keys - queries)[related].tolist())):  # np.unique would import numpy.ma
        is_at_distance = keys - queries == distance
        at_distance = attention[:, :, queries[is_at_distance], keys[is_at_distance]]
        gains = (at_distance - at_distance.mean(axis=-1, keepdims=True))[..., related[is_at_distance]]
        rows = queries[is_at_distance & related]  # no query has two keys at one distance
        best[:, :, rows] = np.maximum(best[:, :, rows], gains)
    sums = np.where(np.isfinite(best), best, 0).sum(axis=-1)
    sums[np.isnan(attention).any(axis=(2, 3))] = -np.inf  # removed from the checkpoint
    return highest_head(sums)
