"""The texts of a probe: which are learned from, what is known of each, and whether there are enough; no torch.

A word's candidates are numbered as in core.attachment: ROOT_CANDIDATE, then the words of the text from 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float16, Int

from core.attachment import LEAST_TEXTS, NO_CANDIDATE, ROOT_CANDIDATE, counts, root_first
from core.errors import AnalysisError
from core.parses import Dependencies
from core.words import FIRST_WORD

FEW_WORDS: Final = 5_000
"""Words to learn from below which a probe says little about a checkpoint."""
FEW_TEST_TEXTS: Final = 20
"""Texts to test on below which an interval says little."""
BUDGET_BYTES: Final = 1024 * 2**20
"""Of attention in memory at most, unless said otherwise."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedWords:
    """The words of one text that have tokens, which words beyond a cut have not, and the attention between them."""

    attention: Float16[np.ndarray, "layer head axis axis"]
    """From and to CLS_WORD, OTHER_SPECIAL and these words, as in core.words.WordMap."""
    places: Int[np.ndarray, " passed"]
    """Of these words among all of the text, in order."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeText:
    """One text as a probe takes it."""

    passed: PassedWords
    heads: Int[np.ndarray, " word"]
    """Candidate that is each word's head, of all words of the text."""
    counts: Bool[np.ndarray, " word"]
    """Whether a word counts in attachment scores: punctuation does not, nor a word without tokens, or whose head has
    none."""
    rows: Int[np.ndarray, " passed"]
    """Row of each passed word in WordVectors.table; all 0 where words play no part."""

    @property
    def candidates(self) -> Int[np.ndarray, " candidate"]:
        """Those that a probe can name: ROOT and the passed words."""
        return np.append(ROOT_CANDIDATE, self.passed.places + 1)

    @property
    def targets(self) -> Int[np.ndarray, " passed"]:
        """Place among `candidates` of each passed word's head; NO_CANDIDATE where the head has no tokens."""
        places = np.full(len(self.heads) + 1, NO_CANDIDATE)
        places[self.candidates] = np.arange(len(self.candidates))
        return places[self.heads[self.passed.places]]

    @property
    def n_learned(self) -> int:
        """Words that can be learned from, punctuation included: those that have tokens, as their heads have."""
        return int((self.targets != NO_CANDIDATE).sum())


def attention_bytes(n_words: Sequence[int], n_layers: int, n_heads: int) -> int:
    """Memory that the attention of texts of so many words takes."""
    return sum(np.dtype(np.float16).itemsize * n_layers * n_heads * (n + FIRST_WORD) ** 2 for n in n_words)


def check_fits(n_words: Sequence[int], n_layers: int, n_heads: int, budget: int = BUDGET_BYTES) -> None:
    """Refuse what takes more memory than there may be.

    Raises: AnalysisError that says which texts to leave out.
    """
    needed = attention_bytes(n_words, n_layers, n_heads)
    if needed <= budget:
        return
    sizes = [attention_bytes([n], n_layers, n_heads) for n in n_words]
    n_first = int(np.searchsorted(np.cumsum(sizes), budget, side="right"))
    n_short = int(np.searchsorted(np.cumsum(sorted(sizes)), budget, side="right"))
    raise AnalysisError(
        f"The attention of {len(n_words):,} texts takes {needed / 2**20:,.0f} MB of memory, and at most "
        f"{budget / 2**20:,.0f} MB may be used. Leave out all from text {n_first + 1:,} on, or those of "
        f"{sorted(n_words)[n_short]:,} words and more."
    )


def split(n_texts: int, share: float, seed: int) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """Places of the texts to learn from and of those to test on, each in order.

    Args:
        n_texts: all.
        share: of them to test on.
        seed: of the choice.

    Raises: AnalysisError for a share out of range, and where either part would have fewer than LEAST_TEXTS.
    """
    if not 0 < share < 1:
        raise AnalysisError(f"The share to test on is {share:g}. Give one between 0 and 1.")
    n_test = round(share * n_texts)
    if min(n_test, n_texts - n_test) < LEAST_TEXTS:
        raise AnalysisError(
            f"Of {_texts(n_texts)} {n_test} would be tested on and {n_texts - n_test} learned from. Give more texts, "
            f"or another share, so that each has at least {LEAST_TEXTS}."
        )
    order = np.random.default_rng(seed).permutation(n_texts)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def probe_texts(
    passed: Mapping[int, PassedWords],
    trees: Mapping[int, Dependencies],
    rows: Mapping[int, Int[np.ndarray, " _"]],
    places: Iterable[int],
) -> list[ProbeText]:
    """The texts at some places as a probe takes them; those that were not passed, being too long, are left out.

    Args:
        passed: by place.
        trees: of the same texts.
        rows: of all their words in WordVectors.table.
        places: which texts, in order.
    """
    return [_probe_text(passed[place], trees[place], rows[place]) for place in places if place in passed]


def _probe_text(passed: PassedWords, tree: Dependencies, rows: Int[np.ndarray, " word"]) -> ProbeText:
    heads = root_first(tree)
    has_tokens = np.zeros(len(heads) + 1, bool)
    has_tokens[ROOT_CANDIDATE] = has_tokens[passed.places + 1] = True
    counting = counts(tree) & has_tokens[1:] & has_tokens[heads]
    return ProbeText(passed=passed, heads=heads, counts=counting, rows=rows[passed.places])


def few_words(n_words: int, n_texts: int) -> str | None:
    """A sentence where there is little to learn from."""
    if n_words >= FEW_WORDS:
        return None
    return (
        f"There are only {n_words:,} words in {_texts(n_texts)} to learn from, which teach a probe little: scores "
        "depend much on which texts these are. Clark et al. took 36,160 sentences; give a few thousand."
    )


def few_test_texts(n_texts: int) -> str | None:
    """A sentence where there is little to test on."""
    if n_texts >= FEW_TEST_TEXTS:
        return None
    return (
        f"There {'is' if n_texts == 1 else 'are'} only {_texts(n_texts)} to test on, from which an interval says "
        f"little: it may be far too narrow. Give at least {FEW_TEST_TEXTS}, better some hundred."
    )


def n_left_out(texts: Sequence[ProbeText]) -> int:
    """Words that are neither learned from nor tested on, as they, or their heads, have no tokens."""
    return sum(len(text.heads) - text.n_learned for text in texts)


def left_out(n_words: int) -> str | None:
    """A sentence where words were left out."""
    if not n_words:
        return None
    return (
        f"{n_words:,} word{' is' if n_words == 1 else 's are'} neither learned from nor tested on: words beyond the "
        "cut of a text, or of no token that the checkpoint knows, and words whose head is one of these."
    )


def _texts(number: int) -> str:
    return f"{number:,} text" + ("" if number == 1 else "s")
