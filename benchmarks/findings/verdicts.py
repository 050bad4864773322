"""False positive rate and power of the test of a change.

First by simulation: changes of a head that does not matter, by law and number of texts, then of one that does (its mean
is 3.3 standard errors away from 0, so that a test that knew the variance would find 91%; where most changes are 0, it
turns nine tenths of the others to one side). Then on real changes: those of the loss of the sample checkpoint by each
head over held-out snippets, centred, so that no head matters, and resampled. It is compared with the same test without
its minimum number of changed texts, a minimum that these resamples determine; with Student's t; and with the percentile
bootstrap that this program used before. A number of simulated heads can be given, for a short trial.
"""

import sys
from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.importance.verdicts import ALPHA, LEAST_OF_ONE_SIZE, LEAST_UNITS, Changes, verdicts
from attention_sieve.core.statistics.means import adjusted
from benchmarks.shared.markdown import header, row
from benchmarks.shared.reviews import ablated, read_reviews

N_TEXTS: Final = (20, 30, 64, 100, 200, 500)
N_REDRAWN: Final = (10, 20, 30, 64, 100, 200)
N_HEADS: Final = 4_000
REDRAWS: Final = 100
RESAMPLES: Final = 999
POOL: Final = 200
"""Snippets that are resampled."""
ERRORS: Final = 3.3
TO_ONE_SIDE: Final = 0.9
NO_VERDICT: Final = "no verdict"
FEWEST: Final = 100
"""Verdicts of which a share is given."""
Values = Float[np.ndarray, "text head"]
Draw = Callable[[np.random.Generator, tuple[int, int]], Values]


def lognormal(chance: np.random.Generator, shape: tuple[int, int]) -> Values:
    return chance.lognormal(size=shape) - np.exp(0.5)


def mostly_zero(share_of_others: float, of_others: Draw) -> Draw:
    """All changes are 0, except for the given share."""
    return lambda chance, shape: np.where(chance.random(shape) < share_of_others, of_others(chance, shape), 0)


def ones(chance: np.random.Generator, shape: tuple[int, int]) -> Values:
    return chance.choice([-1.0, 1.0], size=shape)


LAWS: Final[dict[str, Draw]] = {
    "normal": lambda chance, shape: chance.normal(size=shape),
    "lognormal": lognormal,
    "t(3)": lambda chance, shape: chance.standard_t(3, size=shape),
    "exponential": lambda chance, shape: chance.exponential(size=shape) - 1,
    "50% 0, else lognormal": mostly_zero(0.5, lognormal),
    "90% 0, else lognormal": mostly_zero(0.1, lognormal),
    "90% 0, else 1 or -1": mostly_zero(0.1, ones),
}
"""Changes with a mean of 0."""
OF_ONE_SIZE: Final = "90% 0, else 1 or -1"
"""The law of the accuracy of single texts."""
DEVIATION: Final = {"normal": 1, "lognormal": np.sqrt((np.e - 1) * np.e), "t(3)": np.sqrt(3), "exponential": 1}


def main() -> None:
    simulated(int(sys.argv[1]) if len(sys.argv) > 1 else N_HEADS)
    redrawn()


def simulated(n_heads: int) -> None:
    """Rejections where nothing changes, coverage of intervals, and power to either side."""
    print(f"\n{n_heads:,} heads a cell. Found where nothing changes, at p <= {ALPHA}, where no interval covers 0:")
    names = ("law", "texts", "no verdict", "found", "with any number of texts", "Student's t", "percentiles")
    header(*names, "power up", "of t", "power down", "of t")
    for law, draw in LAWS.items():
        for n_texts in N_TEXTS:
            chance = np.random.default_rng(n_texts)
            values = draw(chance, (n_texts, n_heads))
            p = p_values(values, one_size=law == OF_ONE_SIZE)
            cells = [f"{np.isnan(p).mean():.2f}", share(p)]
            cells.append(share(unbounded_p_values(values, one_size=law == OF_ONE_SIZE)))
            cells += [share(test(values)) for test in (student, percentiles)]
            for sign in (1, -1):
                moved = with_effect(law, draw(chance, (n_texts, n_heads)), sign)
                cells += [share(p_values(moved, one_size=law == OF_ONE_SIZE)), share(student(moved))]
            row(law, n_texts, *cells)


def with_effect(law: str, values: Values, sign: int) -> Values:
    """The same changes of a head that matters."""
    if law in DEVIATION:
        return values + sign * ERRORS * DEVIATION[law] / np.sqrt(len(values))
    to_one_side = np.random.default_rng(0).random(values.shape) < TO_ONE_SIDE
    return np.where(to_one_side, sign, -sign) * np.abs(values)


def redrawn() -> None:
    """Real changes of the loss, centred so that no head matters, with resampled texts."""
    import torch

    torch.set_num_threads(1)
    reviews = read_reviews(POOL)
    score = reviews.score("loss")
    outcomes = ablated(reviews)
    full = score.contributions(np.stack([of_text.full for of_text in outcomes]))[..., 0]
    without = score.contributions(np.stack([of_text.without for of_text in outcomes]))[..., 0]
    reviews.inference.close()
    changes = (without - full[:, None, None]).reshape(len(full), -1)
    centred = changes - changes.mean(axis=0)
    skew = (centred**3).mean(axis=0) / centred.std(axis=0) ** 3
    kurtosis = (centred**4).mean(axis=0) / centred.var(axis=0) ** 2 - 3
    print(f"\nChanges of the loss by {centred.shape[1]} heads over {len(full)} snippets: median skewness")
    print(f"{np.median(skew):.1f}, excess kurtosis {np.median(kurtosis):.1f}. Centred, so that no head matters, and")
    print(
        f"redrawn {REDRAWS} times: share of heads with p <= {ALPHA}; of redraws with any head significant, corrected."
    )
    names = ("this test", "with any number of texts", "Student's t", "percentiles")
    header("texts", *names, *(f"any head, {name}" for name in names))
    for n_texts in N_REDRAWN:
        chance = np.random.default_rng(n_texts)
        samples = [centred[chance.integers(len(centred), size=n_texts)] for _ in range(REDRAWS)]
        heads, families = [], []
        for test in (p_values, unbounded_p_values, student, percentiles):
            p = np.stack([test(sample) for sample in samples])
            significant = [(adjusted(of_redraw, "bh") < ALPHA).any() for of_redraw in p]
            heads.append(share(p))
            families.append(NO_VERDICT if np.isnan(p).all() else f"{np.mean(significant):.2f}")
        row(n_texts, *heads, *families)
    print(
        f"\nA verdict needs at least {LEAST_UNITS} texts that change, unless changes are of one size by definition, as"
    )
    print(
        f"those of the accuracy of single texts; with any number of them, the test is computed from {LEAST_OF_ONE_SIZE}"
    )
    print("texts on.")


def p_values(values: Values, least: int = LEAST_UNITS, *, one_size: bool = False) -> Float[np.ndarray, " head"]:
    """The p-values of this program; NaN without a verdict."""
    of_values = Changes(delta=values.mean(axis=0), by_unit=values, differs=values != 0, one_size=one_size)
    return verdicts(of_values, RESAMPLES, least=least).p


def unbounded_p_values(values: Values, *, one_size: bool = False) -> Float[np.ndarray, " head"]:
    """The same test where other changes need no more texts than those of one size."""
    return p_values(values, LEAST_OF_ONE_SIZE, one_size=one_size)


def student(values: Values) -> Float[np.ndarray, " head"]:
    from scipy.stats import ttest_1samp

    is_constant = np.ptp(values, axis=0) == 0
    p = ttest_1samp(np.where(is_constant, np.arange(len(values))[:, None], values), 0).pvalue
    return np.where(is_constant, 1, p)


def percentiles(values: Values) -> Float[np.ndarray, " head"]:
    """The percentile bootstrap: twice the smaller share of resamples with a mean not above, or not below, 0."""
    n_texts = len(values)
    times = np.random.default_rng(0).multinomial(n_texts, np.full(n_texts, 1 / n_texts), size=RESAMPLES)
    means = times.astype(float) @ values
    sides = np.minimum((means <= 0).sum(axis=0), (means >= 0).sum(axis=0))
    return np.minimum(1, 2 * (sides + 1) / (RESAMPLES + 1))


def share(p: Float[np.ndarray, "*test"]) -> str:
    """Share of all tests with a verdict that find a change."""
    is_given = ~np.isnan(p)
    if not is_given.any():
        return NO_VERDICT
    return f"{(p[is_given] <= ALPHA).mean():.3f}" if is_given.sum() >= FEWEST else "too few"


if __name__ == "__main__":
    main()
