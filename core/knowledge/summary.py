"""Summaries of the scores of all heads on several tasks, as in the paper."""

from typing import Final, Literal

import numpy as np
from jaxtyping import Float

Group = Literal["surface", "syntactic", "semantic"]
GROUPS: Final[dict[Group, tuple[str, ...]]] = {
    "surface": ("length", "sentence_length", "word_content"),
    "syntactic": (
        "tree_depth", "depth", "tree_depth_matched", "top_constituents", "top_relations", "top_deprels", "bigram_shift",
    ),
    "semantic": (
        "tense", "past_present", "subject_number", "subj_number", "object_number", "obj_number", "odd_man_out",
        "coordination_inversion",
    ),
}  # fmt: skip
"""Names of tasks, in this program, SentEval and elsewhere, by the kind of information they test.

Source: Conneau et al. 2018, where the last three test meaning beyond structure.
"""


def group_of(task: str) -> Group | None:
    """Kind of information that a task tests, by its name; None for any other name."""
    return next((group for group, names in GROUPS.items() if task.lower() in names), None)


def task_similarity(scores: Float[np.ndarray, "task layer head"]) -> Float[np.ndarray, "task other_task"]:
    """Pearson's correlation over the heads between the scores on any two tasks; NaN where one is constant.

    Heads without a score on some task are left out.

    Source: Jo and Myaeng 2020.
    """
    flat = scores.reshape(len(scores), -1).astype(float)
    flat = flat[:, ~np.isnan(flat).any(axis=0)]
    with np.errstate(invalid="ignore"):
        return np.corrcoef(flat)
