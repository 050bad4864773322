"""A text as it is shown: the attention of every head in it, and their scores for every role."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText, TextAttention, window_at
from attention_sieve.core.roles.hypotheses import Criterion, text_roles
from attention_sieve.core.roles.measures import RoleScores, RoleSet, ScoreSettings, role_scores
from attention_sieve.core.roles.question import with_what_decides
from attention_sieve.core.texts.text import Text


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
