"""The figures of gates, drawn of a made-up sweep."""

from dataclasses import replace

import numpy as np
from drawn import Drawn

from attention_sieve.core.importance.gates.hard_concrete import densities, gates_of
from attention_sieve.core.importance.pruning.curves import Curve
from attention_sieve.dashboard.figures.importance.gates import gate_densities, gate_scores

LOG_ALPHA = np.array([[-3.0, 0.4, 2.5]])
PENALTIES = (0.01, 0.1)
CURVE = Curve(
    order="gates",
    draw=0,
    n_removed=np.array([0, 3, 8]),
    score=np.array([0.8, 0.78, 0.6]),
    delta=np.array([0.0, -0.02, -0.2]),
    low=np.array([0.0, -0.06, -0.28]),
    high=np.array([0.0, 0.01, -0.12]),
    drawn=np.array([[0.0, -0.06, -0.28], [0.0, 0.01, -0.12]]),
    by_unit=np.array([[0.8, 0.74, 0.52], [0.8, 0.82, 0.68]]),
    differs=np.array([[False, True, True], [False, True, True]]),
)
BESIDE = [
    replace(CURVE, order=order, draw=draw, n_removed=np.array([0, 6, 12]), score=np.array([0.8, middle, 0.5]))
    for order, draw, middle in (("flap", 0, 0.75), ("random", 0, 0.7), ("random", 1, 0.6))
]
GATES, POINTS = gates_of(LOG_ALPHA), np.linspace(0, 1, 11)
FIGURES = Drawn(
    {
        "gate scores": lambda: gate_scores(CURVE, PENALTIES, 12, "accuracy"),
        "gate scores beside pruning": lambda: gate_scores(CURVE, PENALTIES, 12, "accuracy", BESIDE),
        "gate densities": lambda: gate_densities(
            ["L0 H0", "L0 H1", "L0 H2"], GATES.p_zero[0], GATES.p_one[0], POINTS, densities(LOG_ALPHA[0], POINTS)
        ),
    }
)
