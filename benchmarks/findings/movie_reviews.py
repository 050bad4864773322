"""Which heads of a small classifier matter: figures from 500 held-out movie snippets.

The sample checkpoint is the bundled one (6 layers x 12 heads), fine-tuned on 2,000 other snippets. Changes by single
heads, and by all but one of a layer, are tested as by `ablate`. Every other interval is of 95%: percentiles over 1,000
resamples of the snippets that are judged; the checkpoint, the orders of removal and the trained gates stay as they are.
Results are cached in the store: a second run prints at once, and an interrupted run continues. A number of snippets can
be given, for a short trial.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.importance.agreement import agreements
from attention_sieve.core.importance.effects import Draws, effects
from attention_sieve.core.importance.measures import damage
from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.pruning.curves import removal_order
from attention_sieve.core.importance.question import gated_question
from attention_sieve.core.importance.verdicts import ALPHA, Changes, changes, verdicts
from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.statistics.means import adjusted
from benchmarks.shared.markdown import header
from benchmarks.shared.reviews import (
    FEW,
    GATE_EPOCHS,
    Importance,
    Order,
    Reviews,
    ablated,
    alone_by_half,
    cheap_measures,
    curve_outcomes,
    importances,
    judged_alone,
    of_few_texts,
    read_reviews,
    trained,
)

SCORE_NAMES: Final = ("accuracy", "loss")
SWAPS: Final = 20
WITHIN: Final = {"accuracy": 0.01, "loss": 0.02}
"""How much worse the score may get: 1 point of accuracy, or nats."""
RANDOM_DRAWS: Final = 3
PENALTIES: Final = (0.01, 0.03, 0.1)
SHARES_KEPT: Final = (0.5, 0.25, 0.1)
BY_ABLATION: Final = "ablation, by loss"
CHEAP: Final = "gradient per text"
Curves = dict[str, list[Float[np.ndarray, "text step part"]]]
"""Outcomes by order, of each draw."""
Done = TypeVar("Done")


def main() -> None:
    import torch

    torch.set_num_threads(1)
    reviews = read_reviews(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    draws = Draws([None] * len(reviews.texts))
    print(f"{len(reviews.texts)} snippets held out, {len(reviews.training.texts):,} to train on.")
    outcomes = timed("ablations", lambda: ablated(reviews))
    report_effects(reviews, outcomes)
    report_agreement(reviews, outcomes, draws)
    report_functions(reviews, outcomes)
    full = np.stack([of_text.full for of_text in outcomes])
    curves = report_curves(reviews, partial(importances, n_random=RANDOM_DRAWS), full, draws)
    report_gates(reviews, curves, draws)
    report_alone(reviews, full)
    report_curves(reviews, of_few_texts, full, draws)
    reviews.inference.close()


def timed(what: str, work: Callable[[], Done]) -> Done:
    """Run a function, and print on standard error how long it took."""
    start = time.perf_counter()
    done = work()
    print(f"{what}: {(time.perf_counter() - start) / 60:.1f} min", file=sys.stderr, flush=True)
    return done


def report_effects(reviews: Reviews, outcomes: list[TextOutcomes]) -> None:
    """How many heads change a score, compared with the number found under the null hypothesis."""
    documents, full = [None] * len(outcomes), np.stack([of_text.full for of_text in outcomes])
    draws = Draws(documents)
    header(
        "score",
        "all heads on",
        "heads that change it (p < .05, corrected)",
        "of these better without",
        "p < .01, uncorrected",
        "in each half alone; in both",
        "with outcomes swapped at random",
    )
    for name in SCORE_NAMES:
        score = reviews.score(name)
        found = effects(outcomes, score, documents)
        differs = found.p_adjusted < ALPHA
        helps = differs & (score.sign * found.delta < 0)
        halves = [changed_in_half(reviews, outcomes, name, side) for side in (0, 1)]
        alike = (halves[0] & halves[1]).sum()
        swapped = [n_after_swap(outcomes, score, seed) for seed in range(SWAPS)]
        print(
            f"| {name} | {with_interval(score.of(full), draws.scores(score, full))} | {differs.sum()} of {differs.size}"
            f" | {helps.sum()} | {(found.p < 0.01).sum()} | {halves[0].sum()}, {halves[1].sum()}; {alike} | "
            f"{np.mean(swapped):.2f} (most {max(swapped)}) |"
        )
        print(f"largest changes of {name}: {extremes(found.delta, found.low, found.high)}", file=sys.stderr)


def changed_in_half(reviews: Reviews, outcomes: list[TextOutcomes], name: str, side: int) -> np.ndarray:
    """Heads that change a score on one half of the texts alone."""
    places = np.flatnonzero(reviews.half == side).tolist()
    of_half = effects([outcomes[place] for place in places], reviews.score(name, places), [None] * len(places))
    return of_half.p_adjusted < ALPHA


def n_after_swap(outcomes: list[TextOutcomes], score: Score, seed: int) -> int:
    """How many heads the same test finds if the two outcomes of each text are swapped at random."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(len(outcomes), 1, 1))
    full, without = (np.stack([getattr(of_text, name) for of_text in outcomes]) for name in ("full", "without"))
    by_head = changes(score, full, without, [None] * len(outcomes))
    # A swap per text is the same for all heads, whose outcomes belong together. It turns the sign of a mean's change.
    swapped = signs * by_head.by_unit
    p = verdicts(Changes(delta=swapped.mean(axis=0), by_unit=swapped, differs=by_head.differs)).p
    return int((adjusted(p.ravel(), "bh") < ALPHA).sum())


def report_alone(reviews: Reviews, full: Float[np.ndarray, "text part"]) -> None:
    """Each layer with its best head alone."""
    best = timed("choice of heads alone", lambda: alone_by_half(reviews))
    outcomes = timed("heads alone", lambda: judged_alone(reviews, best))
    print(f"\nHeads left alone are chosen by the loss of {FEW} snippets of one half, and judged on the other half.")
    header("layer", "head alone", "accuracy, points", "p, corrected", "loss, nats", "p, corrected")
    found = []
    for score in map(reviews.score, SCORE_NAMES):
        by_layer = changes(score, full, outcomes, [None] * len(full))
        tested = verdicts(by_layer)
        found.append((by_layer.delta, tested.low, tested.high, adjusted(tested.p, "bh")))
    for layer, of_layer in enumerate(best.T):
        cells = [" / ".join(dict.fromkeys(head_name(layer, int(head)) for head in of_layer))]
        for (delta, low, high, p), unit, digits in zip(found, (100, 1), (1, 3)):
            cells.append(signed(unit * delta[layer], unit * low[layer], unit * high[layer], digits))
            cells.append(f"{p[layer]:.3f}")
        print(f"| {layer} | {' | '.join(cells)} |")


def report_agreement(reviews: Reviews, outcomes: list[TextOutcomes], draws: Draws) -> None:
    """Spearman's correlation of every measure with ablation."""
    measures = timed("cheap measures", lambda: cheap_measures(reviews))
    of = {name: agreements(measures, damage(outcomes, reviews.score(name)), draws) for name in reversed(SCORE_NAMES)}
    header("measure", "Spearman with ablation by loss", "by accuracy", "layers where the first is above 0")
    for place, measure in enumerate(measures):
        cells = []
        for one in (of_score[place] for of_score in of.values()):
            cells.append(signed(float(one.spearman[0]), float(one.low[0]), float(one.high[0]), 2))
        above = (of["loss"][place].low[1:] > 0).sum()
        print(f"| {measure.name} | {' | '.join(cells)} | {above} of {reviews.shape[0]} |")


def report_curves(
    reviews: Reviews,
    orders_of: Callable[[Reviews, list[int]], dict[Order, Importance]],
    full: Float[np.ndarray, "text part"],
    draws: Draws,
) -> Curves:
    """Number of heads that each order can remove, and the remaining accuracy along its curve."""
    counts, n_heads = reviews.counts, reviews.n_heads
    print(f"\nSteps: {', '.join(map(str, counts))} of {n_heads} heads removed; a count is that of the last step before")
    print(f"the score is worse by more. Random orders: the mean of {RANDOM_DRAWS} draws.")
    header(
        "order",
        "heads removable within 1 point of accuracy",
        "within 0.02 nats of loss",
        "accuracy with half of the heads, %",
        "with a quarter, %",
    )
    by_half = [orders_of(reviews, np.flatnonzero(reviews.half == side).tolist()) for side in (0, 1)]
    curves: Curves = {}
    for name in dict.fromkeys(name for name, _ in by_half[0]):
        pairs = [(by_half[0][order], by_half[1][order]) for order in by_half[0] if order[0] == name]
        curves[name] = timed(
            f"curve of {name}", lambda pairs=pairs: [curve_outcomes(reviews, pair, full) for pair in pairs]
        )
        print(f"| {name} | {' | '.join(along_curve(reviews, curves[name], draws))} |", flush=True)
    return curves


def along_curve(reviews: Reviews, of_draws: list[np.ndarray], draws: Draws) -> list[str]:
    """The cells of one order."""
    counts, accuracy = reviews.counts, reviews.score("accuracy")
    cells = [removable(reviews.score(score), of_draws, counts, draws, WITHIN[score]) for score in SCORE_NAMES]
    values = 100 * np.mean([accuracy.of(one) for one in of_draws], axis=0)
    drawn = 100 * np.mean([draws.scores(accuracy, one) for one in of_draws], axis=0)
    for removed in (reviews.n_heads // 2, reviews.n_heads * 3 // 4):
        step = int(np.flatnonzero(counts == removed)[0])
        cells.append(with_interval(values[step], drawn[:, step], 1))
    return cells


def removable(score: Score, of_draws: list[np.ndarray], counts: np.ndarray, draws: Draws, within: float) -> str:
    """The number of heads before the first step at which the score is worse by more."""

    def count(scores: Float[np.ndarray, "*corpus step"]) -> np.ndarray:
        damage = score.sign * (scores - scores[..., :1])
        return counts[np.cumprod(damage <= within + 1e-9, axis=-1).sum(axis=-1) - 1]

    value = count(np.mean([score.of(one) for one in of_draws], axis=0))
    drawn = count(np.mean([draws.scores(score, one) for one in of_draws], axis=0))
    low, high = np.quantile(drawn, [ALPHA / 2, 1 - ALPHA / 2])
    return f"{value} ({low:.0f}-{high:.0f})"


def report_gates(reviews: Reviews, curves: Curves, draws: Draws) -> None:
    """Heads that trained gates keep, and the scores with them, compared with orders that keep as many heads."""
    n_heads, counts, full = reviews.n_heads, reviews.counts, curves[BY_ABLATION][0][:, 0]
    print(f"\nGates alone, trained for {GATE_EPOCHS:g} epochs on the training snippets and judged on those held out.")
    header(
        "penalty",
        "heads kept",
        "accuracy, %",
        "change, points",
        "loss",
        "with open gates set to 1, %",
        f"as many heads by {BY_ABLATION}, %",
        "at random, %",
    )
    for penalty in PENALTIES:
        gates = timed(f"gates at {penalty:g}", lambda penalty=penalty: trained(reviews, penalty))
        settings = np.stack([gates.gate, (gates.gate > 0).astype(float)])
        both = np.stack(reviews.asked(gated_question("labels", settings)))
        accuracy, loss = (reviews.score(name) for name in SCORE_NAMES)
        drawn = draws.scores(accuracy, both[:, 0])
        change = drawn - draws.scores(accuracy, full)
        along = [
            100 * np.interp(n_heads - gates.n_open, counts, np.mean([accuracy.of(one) for one in curves[name]], axis=0))
            for name in (BY_ABLATION, "random")
        ]
        value = 100 * float(accuracy.of(both[:, 0]))
        print(
            f"| {penalty:g} | {gates.n_open} of {n_heads} | {with_interval(value, 100 * drawn, 1)} | "
            f"{signed(value - 100 * float(accuracy.of(full)), *quantiles(100 * change), 1)} | "
            f"{loss.of(both[:, 0]):.3f} | {100 * accuracy.of(both[:, 1]):.1f} | {along[0]:.1f} | {along[1]:.1f} |",
            flush=True,
        )


def report_functions(reviews: Reviews, outcomes: list[TextOutcomes]) -> None:
    """How many heads with each role are kept, compared with random removal."""
    from scipy.stats import hypergeom

    from attention_sieve.dashboard.samples import read_sample

    measures = reviews.inference.ask(reviews.engine, SCORES, read_sample("both")).results
    scored = role_scores(measures, ScoreSettings())
    tests = role_tests(scored.scores, ROLES, Criterion(), scored.uniform)
    n_texts, n_heads = len(outcomes), reviews.n_heads
    ones = {measure.name: measure for measure in cheap_measures(reviews)}
    orders: dict[str, Importance] = {
        BY_ABLATION: damage(outcomes, reviews.score("loss")).values(n_texts),
        CHEAP: ones[CHEAP].values(n_texts),
    }
    print("\nRoles over the sample texts (tau 3). By chance: mean and 95% range over all ways to remove as many heads.")
    header(
        "heads kept",
        "role",
        "heads with it",
        f"kept by {BY_ABLATION}",
        f"by {CHEAP}",
        "by chance",
        "chance of none",
    )
    for share in SHARES_KEPT:
        n_kept = round(share * n_heads)
        for role in (*COARSE_ROLES, "none"):
            holds = tests.holds[[ROLES.index(one) for one in COARSE_ROLES]]
            has = ~holds.any(axis=0) if role == "none" else holds[COARSE_ROLES.index(role)]
            left = [removal_order(importance)[n_heads - n_kept :] for importance in orders.values()]
            kept = [int(has[heads[:, 0], heads[:, 1]].sum()) for heads in left]
            chance = hypergeom(n_heads, int(has.sum()), n_kept)
            low, high = chance.ppf([ALPHA / 2, 1 - ALPHA / 2])
            by_chance = f"{chance.mean():.1f} ({low:.0f}-{high:.0f}) | {100 * chance.pmf(0):.0f}%"
            print(f"| {n_kept} | {role} | {has.sum()} | {kept[0]} | {kept[1]} | {by_chance} |")


def quantiles(drawn: Float[np.ndarray, " corpus"]) -> tuple[float, float]:
    low, high = np.quantile(drawn, [ALPHA / 2, 1 - ALPHA / 2])
    return float(low), float(high)


def with_interval(value: float, drawn: Float[np.ndarray, " corpus"], digits: int = 3) -> str:
    low, high = quantiles(drawn)
    return f"{value:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def signed(value: float, low: float, high: float, digits: int) -> str:
    return f"{value:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def extremes(delta: Importance, low: Importance, high: Importance) -> str:
    """The largest changes in both directions."""
    order = np.argsort(delta, axis=None)
    heads = [tuple(int(axis) for axis in np.unravel_index(place, delta.shape)) for place in [*order[:3], *order[-3:]]]
    return ", ".join(f"{head_name(*head)} {signed(delta[head], low[head], high[head], 3)}" for head in heads)


if __name__ == "__main__":
    main()
