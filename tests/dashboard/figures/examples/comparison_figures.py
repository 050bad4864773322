"""The figures of comparisons and of fine-tuning, drawn of random numbers."""

import numpy as np
from drawn import Drawn

from attention_sieve.core.comparison.differences import LayerShift, PairedTests
from attention_sieve.core.comparison.transitions import Transition
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.running import Progress, Validation, ValidationResult
from attention_sieve.dashboard.figures.comparison.checkpoints import role_small_multiples
from attention_sieve.dashboard.figures.comparison.depths import overall_shares, roles_by_depth
from attention_sieve.dashboard.figures.comparison.flow import role_flow
from attention_sieve.dashboard.figures.comparison.shifts import (
    divergence_by_layer,
    roles_gained_and_lost,
    score_change_scatter,
    shift_by_layer,
)
from attention_sieve.dashboard.figures.comparison.steps import roles_over_steps, shift_over_steps
from attention_sieve.dashboard.figures.finetune import training_curve

TEXTS, LAYERS, HEADS = 5, 3, 4
HOSTILE = ("<img src=x onerror=alert(1)>", "'] + alert(2) + ['", '"\\u0022</script>', "a\x00b\udc80")
NAMES = ("pre-trained", *HOSTILE)
NO_ROLE, LOCAL, BOTH = frozenset(), frozenset({"local"}), frozenset({"local", "delimiter"})
BETWEEN = (
    Transition(LOCAL, NO_ROLE, ((0, 2), (1, 0))),
    Transition(NO_ROLE, BOTH, ((1, 2),)),
    Transition(NO_ROLE, NO_ROLE, ((0, 0), (0, 1))),
    Transition(LOCAL, LOCAL, ((1, 1),)),
)
STEPS = (0, 50, 100, 200, 400)
LN_2 = np.log(2)


def some_holds() -> np.ndarray:
    random = np.random.default_rng(5)
    reference = random.random((4, LAYERS, HEADS)) < 0.4
    return np.stack([reference ^ (random.random(reference.shape) < 0.15 * number) for number in range(len(NAMES))])


HOLDS = some_holds()
COUNTS = HOLDS.sum(axis=(2, 3))
GAINED, LOST = (HOLDS[2] & ~HOLDS[0]).sum(axis=2), (HOLDS[0] & ~HOLDS[2]).sum(axis=2)


def some_tests(nothing: bool = False, n_layers: int = LAYERS, n_heads: int = HEADS) -> PairedTests:
    random = np.random.default_rng(6)
    shape = (len(ROLES), n_layers, n_heads)
    a, b = random.gamma(2, 2, shape), random.gamma(2, 2, shape)
    p = random.random(shape) ** 4
    a[ROLES.index("block"), 0, n_heads // 3] = np.nan
    b[ROLES.index("block"), 0, n_heads // 3] = np.nan
    if nothing:
        a, b, p = (np.full(shape, np.nan) for _ in range(3))
    return PairedTests(
        **{"roles": ROLES, "alpha": 0.05, "correction": "bh", "texts": np.full(shape, TEXTS), "differs": p < 0.05},
        **{"mean_a": a, "mean_b": b, "difference": b - a, "low": b - a - 1, "high": b - a + 1, "t": p, "p": p},
        **{"p_adjusted": p, "wilcoxon_p": p, "effect": p},
    )


def some_shift(role: str, *means: float) -> LayerShift:
    mean = np.array(means)
    numbers = {"mean": mean, "low": mean - 0.5, "high": mean + 0.5}
    return LayerShift(role=role, texts=TEXTS, **numbers, overall=-0.8, p=0.001)


def some_divergence() -> np.ndarray:
    divergence = np.random.default_rng(8).random((TEXTS, LAYERS, HEADS)) * LN_2
    divergence[1] = np.nan
    divergence[:, 2, 3] = np.nan
    return divergence


def shares(n_layers: int) -> np.ndarray:
    return np.random.default_rng(n_layers).random((4, n_layers))


def some_progress(**changes: object) -> Progress:
    usual = {
        **{"state": "running", "step": 30, "steps": 90, "seconds_left": 60.0, "saved": (10, 20), "message": ""},
        "losses": ((10, 0.7), (20, float("nan")), (30, 0.4)),
        "held_out": (
            ValidationResult(10, 0.69, 0.5, None),
            ValidationResult(20, 0.6, 0.75, None),
            ValidationResult(30, 0.61, 0.7, None),
        ),
    }
    return Progress(**{**usual, **changes})


REGRESSION = (ValidationResult(10, 2.0, None, -0.25), ValidationResult(20, float("inf"), None, None))
FULL = Drawn(
    {
        "changes": lambda: roles_gained_and_lost(GAINED, LOST, COARSE_ROLES, HEADS),
        "shift": lambda: shift_by_layer([some_shift("delimiter:sep", -1.0, float("nan"), 0.25)]),
        "shifts": lambda: shift_by_layer([some_shift(role, -1.0, 0.0, 2.0) for role in ROLES]),
        "divergence": lambda: divergence_by_layer(some_divergence()),
        "scatter": lambda: score_change_scatter(some_tests(), COARSE_ROLES),
        "scatter of all": lambda: score_change_scatter(some_tests(), ROLES),
        "scatter of shares": lambda: score_change_scatter(some_tests(), COARSE_ROLES, "share"),
        "shift of shares": lambda: shift_by_layer([some_shift("local", -0.1, 0.25)], scale="share"),
        "shift of shares over steps": lambda: shift_over_steps(
            ("a", "b"), (0, 9), np.array([0, 0.1]), "local", scale="share"
        ),
        "flow": lambda: role_flow(BETWEEN, NAMES[:2]),
        "multiples": lambda: role_small_multiples(NAMES, HOLDS, COARSE_ROLES),
        "steps": lambda: roles_over_steps(NAMES, STEPS, COUNTS, COARSE_ROLES, 3),
        "places": lambda: roles_over_steps(NAMES, None, COUNTS, COARSE_ROLES, 1),
        "shift over steps": lambda: shift_over_steps(
            NAMES, STEPS, np.array([0, 0.5, np.nan, -1, -2]), "delimiter:sep", 4
        ),
        "shift over places": lambda: shift_over_steps(NAMES, None, np.array([0, 0.5, np.nan, -1, -2]), "delimiter:sep"),
        "depth": lambda: roles_by_depth(
            NAMES[:2], [shares(6), shares(1)], [np.linspace(0, 1, 6), np.array([0.5])], COARSE_ROLES
        ),
        "shares": lambda: overall_shares(
            NAMES[:2], np.array([[0.5, np.nan, 0, 1], [0.1, 0.2, 0.3, 0.4]]), (12, 72), COARSE_ROLES
        ),
        "training": lambda: training_curve(some_progress(validation=Validation(20, 0.55, None))),
        "regression": lambda: training_curve(some_progress(held_out=REGRESSION, validation=Validation(20, None, 2.5))),
    }
)
NONE = np.zeros((4, 1), dtype=int)
EMPTY = Drawn(
    {
        "changes": lambda: roles_gained_and_lost(NONE, NONE, COARSE_ROLES, 1),
        "shift": lambda: shift_by_layer([some_shift("delimiter:sep", float("nan"))]),
        "divergence": lambda: divergence_by_layer(np.full((2, 1, 1), np.nan)),
        "flow": lambda: role_flow((), NAMES[:2]),
        "scatter": lambda: score_change_scatter(some_tests(nothing=True), COARSE_ROLES),
        "shift over steps": lambda: shift_over_steps(("a", "b"), (0, 9), np.full(2, np.nan), "delimiter:sep"),
        "training": lambda: training_curve(some_progress(step=0, steps=0, losses=(), held_out=(), saved=())),
    }
)
ONE = Drawn(
    {
        "changes": lambda: roles_gained_and_lost(NONE + 1, NONE, COARSE_ROLES, 1),
        "shift": lambda: shift_by_layer([some_shift("local", 0.5)]),
        "divergence": lambda: divergence_by_layer(np.full((1, 1, 1), LN_2)),
        "scatter": lambda: score_change_scatter(some_tests(n_layers=1, n_heads=1), COARSE_ROLES),
        "multiples": lambda: role_small_multiples(("a", "b"), np.ones((2, 4, 1, 1), dtype=bool), COARSE_ROLES),
        "steps": lambda: roles_over_steps(("a",), (0,), np.zeros((1, 4), dtype=int), COARSE_ROLES, 0),
        "places": lambda: roles_over_steps(("a",), None, np.zeros((1, 4), dtype=int), COARSE_ROLES, 0),
    }
)
CASES = {"full": FULL, "empty": EMPTY, "one head": ONE}
