"""Sentences about results that commands, files and pages share."""

from typing import Final

from attention_sieve.core.statistics.means import LEAST_DOCUMENTS

LEAST_P: Final = 0.001
"""A p-value below it is said to be below it."""


def p_number(p: float) -> str:
    """As a table says it below "p": with four decimals where a level of significance may be near."""
    return f"< {LEAST_P:g}" if p < LEAST_P else f"{p:.{4 if p < 0.1 else 2}f}"


def p_value(p: float) -> str:
    """As a sentence says it."""
    return f"p {p_number(p)}" if p < LEAST_P else f"p = {p_number(p)}"


def documents_note(n_known: int | None) -> str:
    """How many documents there are, and what follows for intervals and tests. The number is as of `n_documents`."""
    if n_known is None:
        return (
            "Documents are unknown, so texts are the units of halves, intervals and tests: if several are from one "
            "document, intervals are too narrow and p-values too small. CoNLL-U files name documents in comments "
            '(# newdoc id), files of pairs under "document".'
        )
    if n_known < LEAST_DOCUMENTS:
        return (
            "All texts are from one document, so there are no intervals, tests or held-out accuracies. Give texts of "
            f"at least {LEAST_DOCUMENTS} documents."
        )
    return f"The texts are from {n_known:,} documents, which are the units of halves, intervals and tests."
