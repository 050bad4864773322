"""The table of every head's accuracy at antecedent selection."""

import numpy as np
import pandas as pd

from core.coreference.accuracy import BASELINES, GROUPS, CoreferenceScores


def coreference_table(scores: CoreferenceScores) -> pd.DataFrame:
    """One row per group of mentions, layer and head.

    Columns: group (all, or a type of mention), layer, head, cases, documents (with cases), accuracy, low, high,
    design_effect, then of the baselines `nearest mention`, `same head word` and `random mention` the accuracy, and
    p_nearest, p_same_head (see core.statistics.cases.Judgement).
    """
    judged = scores.judgement
    group, layer, head = (axis.ravel() for axis in np.indices(judged.accuracy.shape))
    nearest, same_head = BASELINES
    return pd.DataFrame(
        {
            "group": np.array(GROUPS)[group],
            "layer": layer,
            "head": head,
            "cases": judged.n_cases[group],
            "documents": scores.n_documents[group],
            "accuracy": judged.accuracy.ravel(),
            "low": judged.low.ravel(),
            "high": judged.high.ravel(),
            "design_effect": judged.design_effect.ravel(),
            nearest: judged.baselines[0][group],
            same_head: judged.baselines[1][group],
            "random mention": scores.chance[group],
            "p_nearest": judged.p_values[0].ravel(),
            "p_same_head": judged.p_values[1].ravel(),
        }
    )
