"""How sure the changes are: tests of the differences, and whether other texts would give the same labels."""

from collections.abc import Hashable, Iterator
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool

from cache.store.recent import Recent
from core.comparison.transitions import changed_heads
from core.roles.roles import ROLES
from core.roles.uncertainty.stability import CERTAIN, resamples, stability
from dashboard.figures.compare.score_changes import score_change_scatter
from dashboard.views.charts import chart
from dashboard.views.compare import wording
from dashboard.views.compare.numbers import Compared, Focus, divergence_of_heads, paired, shift

STAYS_BYTES: Final = 2**20
_stays: Final[Recent[Hashable, Bool[np.ndarray, "role layer head"]]] = Recent(STAYS_BYTES)


def how_sure(focus: Focus) -> None:
    """What the tests say, in a list, and every pair of scores."""
    st.markdown("\n".join(f"- {sentence}" for sentence in _sentences(focus)))
    figure = score_change_scatter(paired(focus.pair, focus.chosen), focus.coarse, focus.chosen.scale)
    chart("all scores", figure, focus.facts)


def _sentences(focus: Focus) -> Iterator[str]:
    pair, criterion, scale = focus.pair, focus.chosen.criterion, focus.chosen.scale
    tests, places = paired(pair, focus.chosen), [ROLES.index(role) for role in focus.coarse]
    effects = np.abs(tests.effect[places])
    effects = effects[~np.isnan(effects)]
    yield wording.n_differ(
        int(tests.differs[places].sum()),
        int((tests.texts[places] >= 2).sum()),
        criterion.alpha,
        focus.chosen.correction,
        float(np.median(effects)) if effects.size else None,
        scale,
    )
    holds = [of_one.holds for of_one in pair.tests]
    changed = changed_heads(holds[0], holds[1], ROLES, focus.coarse)
    moved = (holds[0] != holds[1])[places]
    in_both = (_stay(focus, 0) & _stay(focus, 1))[places]
    yield wording.n_stable(int((changed & (in_both | ~moved).all(axis=0)).sum()), int(changed.sum()), pair.n_texts)
    for role in (*focus.coarse, *(role for role in ("delimiter:sep",) if role in focus.fine)):
        of_role = shift(pair, focus.chosen, role)
        yield wording.shift(role, of_role.overall, of_role.p, of_role.texts)
    divergence = divergence_of_heads(pair)
    if divergence is not None and divergence.max() > 0:
        per_layer = divergence.mean(axis=1)
        yield wording.moved(float(divergence.mean()), int(per_layer.argmax()))


def _stay(focus: Focus, side: int) -> Bool[np.ndarray, "role layer head"]:
    """Whether each label of one checkpoint stays in nearly all corpora that are drawn anew from the texts."""
    pair: Compared = focus.pair
    key = (pair.scored.key, side, focus.chosen.criterion)
    stays = _stays.get(key)
    if stays is None:
        of_side = pair.scored.sides[side]
        stays = stability(pair.tests[side], resamples(of_side.scores, of_side.uniform)) >= CERTAIN
        _stays.put(key, stays, stays.nbytes)
    return stays
