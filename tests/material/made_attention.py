"""Attention between joined words for results that are made by hand: nothing that could be compared, or as given."""

import numpy as np


def along_no_tree(predicted):
    """Arrays of WordPredictions by name, all unknown; predicted is [direction layer head word]."""
    return {
        name: np.full(np.shape(predicted)[1:], np.nan, np.float32) for name in ("to_head", "from_head", "from_others")
    }


def to_no_antecedent(choices):
    """Arrays of MentionChoices by name, all unknown; choices are [layer head mention]."""
    return {name: np.full(np.shape(choices), np.nan, np.float32) for name in ("to_antecedents", "from_others")}
