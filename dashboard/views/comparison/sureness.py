"""Certainty of the changes: tests of the differences, and stability of the roles under resampling of the texts."""

from collections.abc import Iterator

import numpy as np
import streamlit as st
from jaxtyping import Bool

from attention_sieve.core.roles.uncertainty.stability import CERTAIN, resamples, stability
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.figures.comparison.score_changes import score_change_scatter
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import (
    CheckpointFocus,
    ComparedCheckpoint,
    divergence_of_heads,
    shift,
)


def how_sure(focus: CheckpointFocus) -> None:
    """Results of the tests as a list, and a scatter plot of all scores."""
    st.markdown("\n".join(f"- {sentence}" for sentence in _sentences(focus)))
    figure = score_change_scatter(focus.compared.tests, focus.coarse, focus.choice.scale)
    chart("all scores", figure, focus.facts)


def _sentences(focus: CheckpointFocus) -> Iterator[str]:
    pair, criterion, scale = focus.pair, focus.choice.criterion, focus.choice.scale
    tests, indices = focus.compared.tests, [focus.pair.roles.index(role) for role in focus.coarse]
    effects = np.abs(tests.effect[indices])
    effects = effects[~np.isnan(effects)]
    yield wording.n_differ(
        int(tests.differs[indices].sum()),
        int((tests.texts[indices] >= 2).sum()),
        criterion.alpha,
        focus.choice.correction,
        float(np.median(effects)) if effects.size else None,
        scale,
    )
    (holds_a, holds_b), changed = focus.compared.holds, focus.compared.changed
    moved = (holds_a != holds_b)[indices]
    in_both = (_is_stable(focus, 0) & _is_stable(focus, 1))[indices]
    yield wording.n_stable(int((changed & (in_both | ~moved).all(axis=0)).sum()), int(changed.sum()), pair.n_texts)
    for role in (*focus.coarse, *(role for role in ("delimiter:sep",) if role in focus.fine)):
        role_shift = shift(pair, focus.choice, role)
        yield wording.shift(role, role_shift.overall, role_shift.p, role_shift.texts)
    divergence = divergence_of_heads(pair)
    if divergence is not None and divergence.max() > 0:
        per_layer = divergence.mean(axis=1)
        yield wording.moved(float(divergence.mean()), int(per_layer.argmax()))


def _is_stable(focus: CheckpointFocus, side: int) -> Bool[np.ndarray, "role layer head"]:
    """Whether each label of one checkpoint stays the same in nearly all resamples of the texts."""
    pair: ComparedCheckpoint = focus.pair
    scores = pair.scored.sides[side]
    return memory().get_or_put(
        "stable in a comparison",
        (pair.scored.key, side, focus.choice.criterion),
        lambda: stability(pair.tests[side], resamples(scores.scores, scores.uniform)) >= CERTAIN,
    )
