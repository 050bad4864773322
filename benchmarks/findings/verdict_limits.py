"""Where the test of a change has to stay silent, and where no test of a sample can hold its level.

Both by simulation with heads that do not matter. Documents of several texts: one more text is right in 30% of them, and
three fewer in 10%, so that in few documents all changes may have one size, as those of single texts have by definition.
Rare large changes to one side: 2% of texts change by 20 times as much as the others; a sample may have none of them.
"""

from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.importance.verdicts import ALPHA, LEAST_UNITS
from attention_sieve.core.statistics.means import adjusted
from benchmarks.findings.verdicts import N_HEADS, NO_VERDICT, Values, p_values, share, student
from benchmarks.shared.markdown import header, row

N_DOCUMENTS: Final = (20, 50, 100, 300, 500)
N_CORPORA: Final = 50
HEADS_OF_A_MODEL: Final = 72
N_TEXTS: Final = (100, 200, 500)
RARE: Final = 0.02
TIMES: Final = 20


def main() -> None:
    print(
        f"Documents of five texts, {N_CORPORA} corpora of {HEADS_OF_A_MODEL} heads: share of corpora in which some head"
    )
    print(f"has p <= {ALPHA}, uncorrected and corrected; *as of one size*: if changes that look so were tested so.\n")
    header("documents", "heads with a verdict", "some head", "some head, corrected", "as of one size", "corrected")
    for n_documents in N_DOCUMENTS:
        chance = np.random.default_rng(n_documents)
        corpora = [of_documents(chance, (n_documents, HEADS_OF_A_MODEL)) for _ in range(N_CORPORA)]
        p = np.stack([p_values(values) for values in corpora])
        as_one = np.stack([_as_of_one_size(values) for values in corpora])
        row(n_documents, f"{(~np.isnan(p)).mean():.2f}", *_any(p), *_any(as_one))
    print(f"\nRare large changes to one side, {N_HEADS:,} heads: share with p <= {ALPHA}:\n")
    header("texts", "this test", "Student's t", "samples without a large change")
    for n_texts in N_TEXTS:
        values = with_outliers(np.random.default_rng(n_texts), (n_texts, N_HEADS))
        row(n_texts, share(p_values(values)), share(student(values)), f"{(1 - RARE) ** n_texts:.3f}")
    print(f"\nA verdict needs at least {LEAST_UNITS} texts, or documents, that change.")


def of_documents(chance: np.random.Generator, shape: tuple[int, int]) -> Values:
    return chance.choice([0.0, 1.0, -3.0], p=[0.6, 0.3, 0.1], size=shape)


def with_outliers(chance: np.random.Generator, shape: tuple[int, int]) -> Values:
    return chance.normal(size=shape) + TIMES * ((chance.random(shape) < RARE) - RARE)


def _as_of_one_size(values: Values) -> Float[np.ndarray, " head"]:
    """P-values of the heads whose changes have one size, by chance; NaN for others."""
    p, is_one = np.full(values.shape[1], np.nan), ~((values > 0).any(axis=0) & (values < 0).any(axis=0))
    if is_one.any():
        p[is_one] = p_values(values[:, is_one], one_size=True)
    return p


def _any(p: Float[np.ndarray, "corpus head"]) -> tuple[str, str]:
    """Share of corpora in which some head is significant, uncorrected and corrected."""
    if np.isnan(p).all():
        return NO_VERDICT, NO_VERDICT
    corrected = np.stack([adjusted(of_corpus, "bh") for of_corpus in p])
    return f"{(p <= ALPHA).any(axis=1).mean():.2f}", f"{(corrected <= ALPHA).any(axis=1).mean():.2f}"


if __name__ == "__main__":
    main()
