"""The figures that compare importance, drawn of random numbers."""

import numpy as np
from drawn import Drawn

from attention_sieve.core.importance.agreement import Agreement
from attention_sieve.core.statistics.by_role import compare_by_role
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.importance.agreement import agreement_dots, layer_agreement
from attention_sieve.dashboard.figures.role_superiority import role_superiority

SHAPE = (3, 4)
CHANCE = np.random.default_rng(4)
HEADS, OTHERS = CHANCE.normal(size=SHAPE), CHANCE.normal(size=SHAPE)
HOLED = np.where(np.arange(12).reshape(SHAPE) == 5, np.nan, HEADS)
NOTHING = np.full(SHAPE, np.nan)
ROLES = ("local", "syntactic", "delimiter", "block")
WORDS = ScatterTexts(
    title="A title", x="first number", y="second number", reading=("dot: a head",), description="By two numbers."
)


def agreement(measure, value, half=0.1):
    spearman = np.append(value, CHANCE.uniform(-1, 1, SHAPE[0]))
    return Agreement(measure=measure, spearman=spearman, low=spearman - half, high=spearman + half)


AGREEMENTS = [agreement("confidence", -0.2), agreement("flap", 0.9), agreement("wanda-sp", 0.4, np.nan)]
UNKNOWN = agreement("relevance", np.nan)
MANY = CHANCE.normal(size=(2, 30, 20))


def by_role(importance, some=(1, 2, 3, 0)):
    holds = np.zeros((4, *SHAPE), bool)
    for place, n_heads in enumerate(some):
        holds[place].flat[:n_heads] = True
    return role_superiority(compare_by_role(importance, holds, ROLES))


FIGURES = Drawn(
    {
        "agreement": lambda: agreement_dots([*AGREEMENTS, UNKNOWN]),
        "agreement of nothing": lambda: agreement_dots([]),
        "agreement by layer": lambda: layer_agreement(AGREEMENTS[0]),
        "agreement by layer without intervals": lambda: layer_agreement(AGREEMENTS[2]),
        "scatter": lambda: head_scatter(HOLED, OTHERS, WORDS, [(1, 1), (0, 2)], (0.0, 0.1, "all heads on")),
        "scatter of equal numbers": lambda: head_scatter(np.zeros(SHAPE), np.zeros(SHAPE), WORDS),
        "scatter of nothing": lambda: head_scatter(NOTHING, OTHERS, WORDS),
        "scatter of many": lambda: head_scatter(*MANY, WORDS),
        "roles": lambda: by_role(HOLED),
        "roles of no head": lambda: by_role(HEADS, (0, 0, 0, 12)),
    }
)
