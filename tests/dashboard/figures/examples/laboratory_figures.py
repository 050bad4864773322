"""The figure of the laboratory, drawn of made numbers."""

import numpy as np
from drawn import Drawn

from attention_sieve.core.running import ValidationResult
from attention_sieve.dashboard.figures.laboratory import NO_HEADS, Strongest, formation

ROLES = ("previous", "induction", "duplicate")
STEPS = (0, 15, 30)


def some_strongest(steps=STEPS) -> Strongest:
    shares = np.linspace(-0.02, 0.95, 3 * len(steps)).reshape(len(steps), 3)
    heads = [[(0, step % 4), (1, 1), (1, 2)] for step in steps]
    return Strongest(roles=ROLES, steps=steps, shares=shares, heads=heads)


MEASURED = [ValidationResult(step, 4.85 - step / 10, step / 40, None) for step in STEPS]
FIGURES = Drawn(
    {
        "formation": lambda: formation(MEASURED, some_strongest(), 15, 60, 128),
        "formation, begun": lambda: formation(MEASURED[:1], some_strongest(STEPS[:1]), 0, 60, 128),
        "formation, losses alone": lambda: formation(MEASURED, NO_HEADS, 15, 60, 128),
        "formation, no heads": lambda: formation([], some_strongest(()), 0, 1, 128),
    }
)
