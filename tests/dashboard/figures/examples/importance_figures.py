"""The figures of the page Importance, drawn of made-up numbers."""

import numpy as np
from drawn import Drawn

from attention_sieve.core.importance.pruning.curves import Curve, kept_functions
from attention_sieve.core.importance.pruning.over_steps import StepCurve
from attention_sieve.dashboard.figures.importance.curves import pruning_curves
from attention_sieve.dashboard.figures.importance.functions import functions_kept
from attention_sieve.dashboard.figures.importance.histogram import score_histogram
from attention_sieve.dashboard.figures.importance.over_steps import relative_score, score_over_steps
from attention_sieve.dashboard.figures.importance.references import damage_beside

SCORES = np.array([[0.9, 0.85, np.nan], [0.91, 0.9, 0.2]])
REFERENCES = {"the median head": 0.002, "L0 H1": -0.01, "all of layer 0": 0.2}
COUNTS = np.array([0, 1, 2, 3, 6])


def curve(order, draw=0, seed=0, known=True):
    score = 0.9 - np.linspace(0, 0.4, len(COUNTS)) * (1 + np.random.default_rng(seed).random())
    delta = score - score[0]
    spread = np.full(len(COUNTS), 0.02 if known else np.nan)
    of_units = np.random.default_rng(seed).normal(size=(120 if known else 4, len(COUNTS)))
    return Curve(
        order=order,
        draw=draw,
        n_removed=COUNTS,
        score=score,
        delta=delta,
        low=delta - spread,
        high=delta + spread,
        drawn=np.tile(delta, (3, 1)) if known else np.full((3, len(COUNTS)), np.nan),
        by_unit=score + 0.1 * (of_units - of_units.mean(axis=0)),
        differs=np.tile(delta != 0, (len(of_units), 1)),
    )


ORDER = np.argwhere(np.ones((2, 3)))
HAS = np.array([[True, False, True], [False, False, True]])
RANDOM = [curve("random", draw, draw) for draw in range(3)]
STEPS = [StepCurve(step=step, curve=curve("flap", seed=seed)) for seed, step in enumerate((0, 20, 40))]
FIGURES = Drawn(
    {
        "histogram": lambda: score_histogram(SCORES, 0.9, "accuracy"),
        "references": lambda: damage_beside(REFERENCES, "L0 H1", "loss of accuracy"),
        "curves": lambda: pruning_curves([curve("ablation"), curve("flap", seed=1), *RANDOM], 6, "accuracy", "flap"),
        "first curve": lambda: pruning_curves([curve("ablation", known=False)], 6, "accuracy", "ablation"),
        "functions": lambda: functions_kept(
            kept_functions({"local": HAS, "rare": ~HAS}, ORDER, COUNTS.tolist(), HAS | True), 6
        ),
        "over steps": lambda: score_over_steps(STEPS, 6, "accuracy", 3),
        "over steps, shares": lambda: relative_score(STEPS, 6),
        "one step": lambda: score_over_steps([StepCurve(step=7, curve=curve("flap", known=False))], 6, "loss", 2),
        "random alone": lambda: pruning_curves(RANDOM, 6, "accuracy", "random"),
    }
)
