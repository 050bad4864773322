"""What the page Grammar says above its sections, or in several of them."""

from typing import Final

from attention_sieve.core.statistics.cases import KeyMatched
from attention_sieve.core.texts.tokens import FromWord
from attention_sieve.dashboard.figures.head_map import Detail, percents
from attention_sieve.dashboard.wording import FROM_EVERYWHERE, NOT_SETTLED, beside_others

SECTIONS: Final = {"Relations": "relations", "Coreference": "coreference", "Probes": "tree_probes"}
"""Package of each section by its title."""
CROSS: Final = (
    "Cross-attention links the words of two texts, but a dependency tree joins words of one. Choose encoder or decoder "
    "under Attention in the sidebar."
)
FROM_WORD: Final = "Attention from a word with several pieces"
FROM_MEAN: Final = "mean of its pieces"
FROM_FIRST: Final = "its first piece"
FROM_WORDS: Final[dict[str, FromWord]] = {FROM_MEAN: "mean", FROM_FIRST: "first"}
FROM_WORD_HELP: Final = (
    "The paper uses the mean over a word's pieces, its code for relations the first piece. Attention to a word is "
    "always the sum over its pieces."
)
RANDOM_WEIGHTS: Final = "Compare with random weights"
NOT_COMPARED: Final = "not compared"


def beside(control: KeyMatched, right_gets: str) -> str:
    """The attention of the best head to what is right beside that of other words; empty if it is not known."""
    others = beside_others(float(control.to_right), float(control.from_others))
    if not others:
        return ""
    if control.from_everywhere:
        return f"Such a head **{FROM_EVERYWHERE}**: {others}."
    return f"{right_gets} {others}{'' if control.beats else NOT_SETTLED}."


def control_details(control: KeyMatched, *part: int) -> list[Detail]:
    """Lines of the tooltip of a map on the key-matched control; `part` is an index into axes before layer and head."""
    is_marked = control.from_everywhere[part]
    return [
        ("attention to the right word", percents(control.to_right[part], NOT_COMPARED)),
        ("from other words to the same word", percents(control.from_others[part], NOT_COMPARED)),
        ("p of this, corrected", control.p_values[part]),
        (FROM_EVERYWHERE, [["yes" if mark else "no" for mark in row] for row in is_marked.tolist()]),
    ]
