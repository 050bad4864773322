"""Training and test texts of a probe, and checks of their number and size; does not import torch.

A word's candidates are numbered: ROOT_CANDIDATE, then the words of the text from 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float16, Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.relations import ROOT, Dependencies
from attention_sieve.core.texts.tokens import FIRST_WORD

ROOT_CANDIDATE: Final = 0
"""Candidate for words without a head; word i of a text, counted from 0, is candidate i + 1."""
NO_CANDIDATE: Final = -1
"""Marks a candidate that is unknown, or that a probe cannot predict."""
PUNCTUATION: Final = "punct"
"""Relation that does not count in attachment scores."""
LEAST_TEXTS: Final = 2
"""Minimum number of texts for an interval."""
FEW_WORDS: Final = 5_000
"""Minimum number of training words for a meaningful probe."""
FEW_TEST_TEXTS: Final = 20
"""Minimum number of test texts for a meaningful interval."""
BUDGET_BYTES: Final = 1024 * 2**20
"""Default memory limit for attention."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedWords:
    """The words of one text that have tokens, and the attention between them; truncated words are left out."""

    attention: Float16[np.ndarray, "layer head axis axis"]
    """From and to CLS_WORD, OTHER_SPECIAL and these words, as in attention_sieve.core.texts.tokens.WordMap."""
    places: Int[np.ndarray, " passed"]
    """Index of these words among all words of the text, sorted."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeText:
    """One text, prepared for a probe."""

    passed: PassedWords
    heads: Int[np.ndarray, " word"]
    """Candidate that is each word's head, of all words of the text."""
    counts: Bool[np.ndarray, " word"]
    """Whether a word counts in attachment scores: punctuation does not, nor do words that have no tokens or whose head
    has none."""
    rows: Int[np.ndarray, " passed"]
    """Row of each passed word in WordVectors.table; all 0 for a probe without words."""

    @property
    def candidates(self) -> Int[np.ndarray, " candidate"]:
        """Candidates that a probe can predict: ROOT and the words with tokens."""
        return np.append(ROOT_CANDIDATE, self.passed.places + 1)

    @property
    def targets(self) -> Int[np.ndarray, " passed"]:
        """Index among `candidates` of each passed word's head; NO_CANDIDATE where the head has no tokens."""
        indices = np.full(len(self.heads) + 1, NO_CANDIDATE)
        indices[self.candidates] = np.arange(len(self.candidates))
        return indices[self.heads[self.passed.places]]

    @property
    def n_learned(self) -> int:
        """Number of training words, punctuation included: words with tokens whose heads have tokens."""
        return int((self.targets != NO_CANDIDATE).sum())


def attention_bytes(n_words: Sequence[int], n_layers: int, n_heads: int) -> int:
    """Size of the attention of texts with these numbers of words, in bytes."""
    return sum(np.dtype(np.float16).itemsize * n_layers * n_heads * (n + FIRST_WORD) ** 2 for n in n_words)


def check_fits(n_words: Sequence[int], n_layers: int, n_heads: int, budget: int = BUDGET_BYTES) -> None:
    """Raise if the attention exceeds the memory limit.

    Raises: AnalysisError with the texts to leave out.
    """
    n_bytes = attention_bytes(n_words, n_layers, n_heads)
    if n_bytes <= budget:
        return
    sizes = [attention_bytes([n], n_layers, n_heads) for n in n_words]
    n_first = int(np.searchsorted(np.cumsum(sizes), budget, side="right"))
    n_short = int(np.searchsorted(np.cumsum(sorted(sizes)), budget, side="right"))
    raise AnalysisError(
        f"The attention of {len(n_words):,} texts takes {n_bytes / 2**20:,.0f} MB of memory, and at most "
        f"{budget / 2**20:,.0f} MB may be used. Leave out all from text {n_first + 1:,} on, or those of "
        f"{sorted(n_words)[n_short]:,} words and more."
    )


def split(n_texts: int, share: float, seed: int) -> tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]:
    """Random split into indices of training texts and of a share of test texts, each sorted.

    Raises: AnalysisError for a share out of range, or if either part would have fewer than LEAST_TEXTS texts.
    """
    if not 0 < share < 1:
        raise AnalysisError(f"The test split is {share:g}. Give one between 0 and 1.")
    n_test = round(share * n_texts)
    if min(n_test, n_texts - n_test) < LEAST_TEXTS:
        raise AnalysisError(
            f"Of {_texts(n_texts)}, {n_texts - n_test} would be for training and {n_test} for testing. Give more "
            f"texts, or another share, so that each has at least {LEAST_TEXTS}."
        )
    order = np.random.default_rng(seed).permutation(n_texts)
    return np.sort(order[n_test:]), np.sort(order[:n_test])


def probe_texts(
    passed: Mapping[int, PassedWords],
    trees: Mapping[int, Dependencies],
    rows: Mapping[int, Int[np.ndarray, " _"]],
    indices: Iterable[int],
) -> list[ProbeText]:
    """Prepare the texts with some indices for a probe; texts that were skipped as too long are left out. Rows are those
    of all words of a text in WordVectors.table.
    """
    return [_probe_text(passed[index], trees[index], rows[index]) for index in indices if index in passed]


def _probe_text(passed: PassedWords, tree: Dependencies, rows: Int[np.ndarray, " word"]) -> ProbeText:
    heads = np.where(tree.heads == ROOT, ROOT_CANDIDATE, tree.heads + 1)
    has_tokens = np.zeros(len(heads) + 1, bool)
    has_tokens[ROOT_CANDIDATE] = has_tokens[passed.places + 1] = True
    is_punctuation = np.array([relation == PUNCTUATION for relation in tree.relations], bool)
    counting = ~is_punctuation & has_tokens[1:] & has_tokens[heads]
    return ProbeText(passed=passed, heads=heads, counts=counting, rows=rows[passed.places])


def little_data(n_words: int, n_train: int, n_test: int) -> list[str]:
    """Warnings about little training or test data: numbers of training words, and of texts."""
    warnings = []
    if n_words < FEW_WORDS:
        warnings.append(
            f"There are only {n_words:,} words in {_texts(n_train)} for training, too few for a good probe: scores "
            "depend strongly on the choice of texts. Clark et al. used 36,160 sentences; give a few thousand."
        )
    if n_test < FEW_TEST_TEXTS:
        warnings.append(
            f"There {'is' if n_test == 1 else 'are'} only {_texts(n_test)} to test on, so the interval is unreliable "
            f"and may be far too narrow. Give at least {FEW_TEST_TEXTS}, preferably several hundred."
        )
    return warnings


def n_left_out(texts: Sequence[ProbeText]) -> int:
    """Number of words excluded from training and test because they or their heads have no tokens."""
    return sum(len(text.heads) - text.n_learned for text in texts)


def left_out(n_words: int) -> str | None:
    """A remark if words were excluded; else None."""
    if not n_words:
        return None
    return (
        f"{n_words:,} word{' is' if n_words == 1 else 's are'} used for neither training nor testing: words that were "
        "truncated or have no token of this checkpoint, and words whose head is one of these."
    )


def _texts(number: int) -> str:
    return f"{number:,} text" + ("" if number == 1 else "s")
