"""The key-matched control in the tooltips of maps with one number per head."""

from typing import Final

from attention_sieve.core.statistics.cases import KeyMatched
from attention_sieve.dashboard.figures.head_map import Detail, percents
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
        ("attention to the right word", percents(control.to_right[part], NOT_COMPARED)),
        ("from other words to the same word", percents(control.from_others[part], NOT_COMPARED)),
        ("p of this, corrected", control.p_values[part]),
        (FROM_EVERYWHERE, [["yes" if mark else "no" for mark in row] for row in is_marked.tolist()]),
    ]
