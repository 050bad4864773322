"""Sentences about heads that look from one word to another."""

from math import isnan
from typing import Final

from attention_sieve.core.word_links.analysis import LEAST_GAIN
from attention_sieve.core.word_links.habits import FURTHEST, STANDS_OUT
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.plain import plain

NUMBERS: Final = {
    "gain": f"{100 * LEAST_GAIN:.0f}%",
    "least": f"{100 * STANDS_OUT:.0f}",
    "furthest": str(FURTHEST),
}
"""Numbers in `method.md`."""
TITLE: Final = "Links between words"
FROM: Final = "Looking from"
TO: Final = "Looking at"
ANY: Final = "any other word"
SWAP: Final = "Swap"
HINT: Final = (
    "Choose the word that looks, the word that it looks at, or both. Or click a token in the arcs, and then the "
    "button below them."
)
ASK_FROM: Final = "Which heads look from this word?"
ASK_TO: Final = "Which heads look at this word?"
ONE_TEXT: Final = "This is one text only; “Over the corpus” below tests it on others."
AS_SET: Final = "corrected as the test settings say"
BEATS_CHANCE: Final = "clearly more than attention split at random"
IN_VIEW: Final = "You can choose only words in the part of the text that the arcs show."
OVER: Final = "Over the corpus: which heads link such words?"
RELATION: Final = "Joined by the relation"
RELATION_HELP: Final = (
    "As the parser names them: nsubj joins a subject to its verb, dobj an object to its verb, amod an adjective to its "
    "noun. The first of the two is the dependent, the other its head."
)
NO_RELATION: Final = "none: any two such words of a text"
WAY: Final = "Looking"
FROM_DEPENDENT: Final = "from the dependent to its head"
FROM_HEAD: Final = "from the head to its dependent"
TWO_OR_RELATION: Final = "Choose both words above, or a relation that joins them."
BEATS: Final = "clearly more than an even spread would give, and than other words give"
OVER_NOTE: Final = (
    "Upper and lower case are treated alike. *Other words*: the attention between other words of the same texts at "
    "the same distance, which exposes a head that merely looks at a fixed distance. Marked heads give at least "
    f"{100 * LEAST_GAIN:.0f}% more than evenly spread attention would, and significantly more than between such "
    "other words (paired t-test, with the correction of the test settings)."
)


def occurrence(word: str, number: int, n_all: int, segment: str) -> str:
    return f"{word} ({number} of {n_all}{segment and f', in {segment}'})"


def missing(word: str) -> str:
    return f"“{plain(word)}” is not among the words shown. Choose another word."


def by_chance(even: float, chance: float, n_links: int) -> str:
    evenly = f"Evenly spread attention would give it {_percent(even)}"
    if n_links == 1:
        return f"{evenly}."
    return f"{evenly}; attention split at random gives the strongest of {n_links} such links {_percent(chance)}."


def link(query: str, key: str, share: float, by_chance: str) -> str:
    return f"“{plain(query)}” gives {_percent(share)} of its attention to “{plain(key)}”. {by_chance}"


def strongest(head: str, link: str, n_beyond: int, n_heads: int, alpha: float) -> str:
    beyond = f"{n_beyond} of {n_heads} heads {'gives' if n_beyond == 1 else 'give'}"
    return (
        f"Strongest in **{head}**: {link} {beyond} clearly more than a random split (p below {alpha:g}, {AS_SET}). "
        f"{ONE_TEXT}"
    )


def none_beyond_chance(head: str, link: str, alpha: float) -> str:
    return (
        f"No head looks there clearly more than attention split at random would (p below {alpha:g}, {AS_SET}). Closest "
        f"is {head}: {link}"
    )


def entry(head: str, share: float, off: bool, query: str, key: str) -> str:
    """A head of the ranked list; `query` and `key` only where the head chose them among many."""
    words = (f" from “{plain(query)}”" if query else "") + (f" to “{plain(key)}”" if key else "")
    return f"{head}: {_percent(share)}{words}{' (switched off)' if off else ''}"


def map_title(query: str, key: str) -> str:
    words = [word if word == ANY else f"“{word}”" for word in (query, key)]
    return f"% of attention from {words[0]} to {words[1]}"


def pattern(query: str | None, key: str | None, relation: str | None, from_dependent: bool) -> str:
    words = ["any word" if word is None else f"“{word}”" for word in (query, key)]
    direction = "dependent → head" if from_dependent else "head → dependent"
    return f"from {words[0]} to {words[1]}" + (f" ({relation}, {direction})" if relation else "")


def over(title: str, n_pairs: int, n_texts: int) -> str:
    return f"{title[0].upper()}{title[1:]}: {counted(n_pairs, 'pair')} in {counted(n_texts, 'text')}."


def held_out(heads: list[str], share: float, low: float, high: float, even: float, other_share: float) -> str:
    comparison = (
        "" if isnan(other_share) else f", and to other words at the same distance it gives {_percent(other_share)}"
    )
    return (
        f"Best find: **{' or '.join(heads)}**, chosen on one half of the texts, gives the other word {_percent(share)} "
        f"of its attention in the texts of the other half ({_percent(low)} to {_percent(high)}). Evenly spread "
        f"attention would give {_percent(even)}{comparison}."
    )


NOTHING_STANDS_OUT: Final = (
    "Nothing stands out in this text: no head gives a word much more than it usually does at that distance, and than "
    "the text's other words give to the same word."
)
MEASURING: Final = "Measuring what each head usually does"
NEXT_HELP: Final = "The next most surprising link of this text, in another head."


def surprising(head: str, query: str, key: str, share: float, from_others: float, even: float) -> str:
    return (
        f"**_{plain(query)}_ looks at _{plain(key)}_** :small[{head} gives it {_percent(share)}; other words give it "
        f"{_percent(from_others)}, evenly spread {_percent(even)}.]"
    )


def _percent(share: float) -> str:
    return "under 1%" if 0 < share < 0.01 else percent(share, 0)
