"""The figure of a claim, of made scores."""

import numpy as np
from drawn import Drawn

from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.claims.judge import ClaimFinding, judge
from attention_sieve.core.claims.probe import ClaimSettings, ProbedRole
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import RoleScores, Scale, ScoreSettings
from attention_sieve.dashboard.figures.claim import MOST, claim_strips

TEXTS = 30


def made_claim(means: list[float], fixed: float | None = None, scale: Scale = "share") -> ClaimFinding:
    """A claim about heads with these mean scores, judged; `fixed` is their score at a fixed period."""
    random, n_heads = np.random.default_rng(0), len(means)

    def scored(values: np.ndarray) -> RoleScores:
        uniform = np.full((TEXTS, 1, 1), 1.0 if scale == "score" else 0.0)
        made = values.reshape(TEXTS, 1, 1, n_heads)
        return RoleScores(roles=("induction",), scores=made, uniform=uniform, greatest=20 + uniform, scale=scale)

    scores = np.array(means) + random.normal(0, 0.02, (TEXTS, n_heads))
    claim = Claim(tuple((0, head) for head in range(n_heads)), "induction", None)
    tau = 0.5 if scale == "share" else 3.0
    of_role = RoleSettings(ScoreSettings(scale=scale, roles=("induction",)), Criterion(tau=tau))
    probed = ProbedRole(
        settings=ClaimSettings(claim=claim, role_settings=of_role),
        scored=scored(scores),
        n_equal=0,
        are_made=fixed is not None,
        document=None,
        permuted=scored(0.1 * scores),
        fixed=None if fixed is None else scored(0 * scores + fixed),
        matched=(),
    )
    return judge(claim, probed)


FIGURES = Drawn(
    {
        "shares": lambda: claim_strips(made_claim([0.7, 0.3, 0.55], fixed=0.2)),
        "scores": lambda: claim_strips(made_claim([6.0, 2.0], scale="score")),
        "many heads": lambda: claim_strips(made_claim(np.linspace(0.1, 0.9, MOST + 6).tolist(), fixed=0.1)),
    }
)
