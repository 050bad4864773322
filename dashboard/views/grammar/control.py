"""The key-matched control in the tooltips of maps with one number per head."""

from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.statistics.cases import KeyMatched
from attention_sieve.dashboard.figures.head_map import Detail
from attention_sieve.dashboard.wording import FROM_EVERYWHERE

NOT_COMPARED: Final = "not compared"


def control_details(control: KeyMatched, *part: int) -> list[Detail]:
    """Lines of a tooltip: the attention to the right word, that of other words, and whether the head looks
    there from everywhere.

    Args:
        control: of every head, perhaps with further axes before.
        part: index into these axes.
    """
    is_marked = control.from_everywhere[part]
    return [
        ("attention to the right word", _shares(control.to_right[part])),
        ("from other words to the same word", _shares(control.from_others[part])),
        ("p of this, corrected", control.p_values[part]),
        (FROM_EVERYWHERE, [["yes" if mark else "no" for mark in row] for row in is_marked.tolist()]),
    ]


def _shares(values: Float[np.ndarray, "layer head"]) -> list[list[str]]:
    return [[NOT_COMPARED if np.isnan(value) else f"{value:.1%}" for value in row] for row in values.tolist()]
