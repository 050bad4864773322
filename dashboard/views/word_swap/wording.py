"""Sentences of the changed word."""

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Final

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.wording import not_there

if TYPE_CHECKING:
    from attention_sieve.core.comparison.word_swap import Move, WordPair, WordSwap

CHANGE: Final = "Change a word"
CHANGE_HELP: Final = "Puts a second sentence beside yours and shows what each head does differently there."
NOT_OF_PAIRS: Final = "Changes a word of a single text. Put one on screen: this is a pair."
SEE: Final = (
    "Two sentences, one model: the stronger a square's colour, the more of that head's attention goes elsewhere in "
    "(b). Click one to see where."
)
FIRST: Final = "Sentence (a)"
SECOND: Final = "Sentence (b)"
ONE_SENTENCE: Final = "One sentence. Enter runs the model on both."
LOOK: Final = "Look"
LOOK_HELP: Final = "Runs the model on both sentences, as Enter does."
EXAMPLES: Final = "Examples"
WHAT_IS_IT: Final = (
    "A reader takes “it” for the trophy in (a) and for the suitcase in (b). A small model may not: click “it” and "
    "compare where each head looks from there."
)
BACK: Final = "Back to one sentence"
EMPTY: Final = "Sentence (b) is empty. Type (a) again with a word changed, or click an example."
EQUAL: Final = "Both sentences are the same. Change a word in (b), or click an example."
NO_PAIRS: Final = (
    "The decoder and its cross-attention read a source and a target, and a changed word is shown in single sentences. "
    "Choose the encoder beside “Attention” in the sidebar."
)
MOVED: Final = "attention that moves, share of 1"
NOT_TESTED: Final = "This is one pair of sentences; nothing is tested."
NO_HEAD: Final = "Click a head to see its arcs in both sentences."
CONTROLS: Final = "What the pictures of attention show"
MORE: Final = "more in (b)"
LESS: Final = "less in (b)"
GAP: Final = "\N{EN DASH}"
"""In place of a word that only the other sentence has."""
LEAST: Final = 0.01
"""Smallest share of attention of which it is said where it goes."""
OUTPUT: Final = "What changes in the output"
ANGLE: Final = "Angle between the two sentence vectors"
ANGLE_HELP: Final = (
    "Each vector is the mean of the last hidden states over all tokens. 0° is the same direction, 90° a right angle."
)
LIKELIHOOD: Final = "How likely the model finds the words in their places:"
LIKELIHOOD_HELP: Final = (
    "The probability of the word, all its pieces together. A masked language model sees the rest of the sentence, a "
    "causal one only what comes before."
)
ONLY_ENCODER: Final = "The encoder alone predicts nothing."


def several(n_lines: int) -> str:
    return f"Sentence (b) has {n_lines:,} lines. Keep one."


def in_both(pair: "WordPair") -> str:
    if pair.a is None:
        return f"{pair.b.text if pair.b else ''} (only b)"
    if pair.b is None:
        return f"{pair.a.text} (only a)"
    return f"{pair.a.text} → {pair.b.text}" if pair.is_changed else pair.a.text


def side(letter: str, words: Sequence[str]) -> str:
    marked = " … ".join(f":orange-background[**{plain(word)}**]" for word in words)
    return f"**({letter})** {marked or 'lacks a word'}"


def difference(head: Head) -> str:
    return f"**b − a** for {head_name(*head)}"


def no_partner(n_words: int) -> str:
    has = "has no partner" if n_words == 1 else "have no partner"
    return (
        f"{counted(n_words, 'word')} {has} in the other sentence ({GAP}): no difference is shown from there, and "
        "attention to it counts as moved."
    )


def head_moves(head: Head, swap: "WordSwap", move: "Move | None") -> str:
    name, moved = f"**{head_name(*head)}**", float(swap.moved[head])
    if isnan(moved):
        return not_there(head_name(*head), 1)
    if moved < LEAST:
        return f"{name} moves less than 1% of its attention."
    if move is None or move.moved < LEAST:
        return f"{name} moves {_percent(moved)} of its attention on average, only from the words that were changed."
    word, loses, gains = (plain(in_both(swap.words[row])) for row in (move.row, move.loses, move.gains))
    before, after = swap.a[head][move.row], swap.b[head][move.row]
    return (
        f"{name} moves {_percent(moved)} of its attention on average; most from “{word}”, which gives “{gains}” "
        f"{_percent(after[move.gains])} instead of {_percent(before[move.gains])}, and “{loses}” "
        f"{_percent(after[move.loses])} instead of {_percent(before[move.loses])}."
    )


def left_out(n_shown: int, n_words: int) -> str:
    return f"These are the first {n_shown} changed places; {n_words:,} more are left out."


def _percent(share: float) -> str:
    return f"{100 * float(share):.0f}%"
