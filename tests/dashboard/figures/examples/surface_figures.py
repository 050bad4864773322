"""The figures of the page Where heads look, drawn of random statistics."""

from collections.abc import Callable
from functools import partial

import numpy as np
from drawn import Drawn

from attention_sieve.core.surface.per_text import SHARES
from attention_sieve.core.surface.statistics import HeadStatistics
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.surface.function_grid import Function, function_grid
from attention_sieve.dashboard.figures.surface.gradient_lines import agreement_lines, gradient_lines
from attention_sieve.dashboard.figures.surface.scatter import PANELS, entropy_panel, share_scatter

LAYERS, HEADS, TEXTS = 3, 4, 5
NAMES = (*SHARES, "entropy", "cls entropy")
UNIFORM = np.array([2.75, 2.75, 1.5])
ORDER = np.array([[0.1, 0.9, 0.5, np.nan], [0.4, 0.3, 0.2, 0.1], [0.5, 0.5, 0.6, 0.5]])
DOES = {
    (0, 1): [Function("positional", "−1", "97% of queries")],
    (1, 3): [Function("syntactic", "nsubj", "by the sieve"), Function("rare", "", "66% of texts")],
}


def some_statistics(without: tuple[str, ...] = (), shape: tuple[int, int] = (LAYERS, HEADS)) -> HeadStatistics:
    random = np.random.default_rng(4)
    mean = random.random((len(NAMES), *shape))
    for name in without:
        mean[NAMES.index(name)] = np.nan
    n_texts = np.arange(len(NAMES)) + TEXTS
    return HeadStatistics(names=NAMES, mean=mean, low=mean - 0.1, high=mean + 0.1, n_texts=n_texts)


def figures(statistics: HeadStatistics) -> dict[str, Callable[[], Figure]]:
    nothing = np.full(LAYERS, np.nan)
    drawers = {name: partial(share_scatter, statistics, panel, [(1, 2)]) for name, panel in PANELS.items()}
    return {
        **drawers,
        "entropy": lambda: entropy_panel(statistics, "entropy", UNIFORM, 3.0, []),
        "cls entropy": lambda: entropy_panel(statistics, "cls entropy", nothing, 3.0, []),
        "gradients": lambda: gradient_lines(
            {"[SEP]": np.array([3e-4, 2e-4, 1e-5]), "other": np.array([1e-4, 5e-5, 2e-5])}
        ),
        "agreement": lambda: agreement_lines({"attention": np.array([0.25, 0.5, 0.125]), "outputs": nothing}),
        "functions": lambda: function_grid(DOES, ORDER, "confidence", [(2, 2)], is_ordered=True),
        "no functions": lambda: function_grid({}, ORDER, "confidence"),
        "no agreement": lambda: agreement_lines({"attention": nothing}),
    }


FIGURES = Drawn(figures(some_statistics()))
EMPTY = Drawn({f"{name}, not applicable": draw for name, draw in figures(some_statistics(NAMES)).items()})
