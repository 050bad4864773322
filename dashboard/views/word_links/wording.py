"""Sentences about heads that look from one word to another."""

from typing import Final

from dashboard.plain import plain

TITLE: Final = "Which heads link two words?"
FROM: Final = "Looking from"
TO: Final = "Looking at"
ANY: Final = "any other word"
SWAP: Final = "Swap"
HINT: Final = (
    "Choose the word that looks, the word that it looks at, or both. Or click a token in the arcs above, and then the "
    "button below them."
)
ASK_FROM: Final = "Which heads look from this word?"
ASK_TO: Final = "Which heads look at this word?"
ONE_TEXT: Final = "One text is an example, not a test."
IN_VIEW: Final = "Only words of the part of the text that the arcs show can be chosen."


def occurrence(word: str, number: int, n_all: int, segment: str) -> str:
    """Which of several equal words: "the (2 of 3)", in a pair "the (2 of 3, in A)"."""
    return f"{word} ({number} of {n_all}{segment and f', in {segment}'})"


def missing(word: str) -> str:
    """A word of a link, or of the text before, that is not there to be chosen."""
    return f"“{plain(word)}” is not among the words shown. Choose another word."


def strongest(head: str, query: str, key: str, share: float, even: float, n_above: int, n_heads: int) -> str:
    """The head with the strongest link, and what chance is."""
    above = f"{n_above} of {n_heads} heads give" if n_above > 1 else "No other head gives"
    return (
        f"Strongest in **{head}**: “{plain(query)}” gives {_percent(share)} of its attention to “{plain(key)}”. Evenly "
        f"spread attention would give {_percent(even)}. {above} more than that. {ONE_TEXT}"
    )


def none_above_even(head: str, query: str, key: str, share: float, even: float) -> str:
    """No head has a link that is stronger than under evenly spread attention."""
    return (
        f"No head looks there more than evenly spread attention would. Closest is {head}: “{plain(query)}” gives "
        f"{_percent(share)} of its attention to “{plain(key)}”, evenly spread attention would give {_percent(even)}."
    )


def entry(head: str, share: float, off: bool, query: str, key: str) -> str:
    """A head of the ranked list; `query` and `key` only where the head chose them among many."""
    words = (f" from “{plain(query)}”" if query else "") + (f" to “{plain(key)}”" if key else "")
    return f"{head}: {_percent(share)}{words}{' (switched off)' if off else ''}"


def map_title(query: str, key: str) -> str:
    """What the numbers of the map are."""
    words = [word if word == ANY else f"“{word}”" for word in (query, key)]
    return f"% of attention from {words[0]} to {words[1]}"


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"
