"""The roles of the heads of two checkpoints on the same texts, compared: for page, command, call and saved page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.answering import Reading, Watch, find_in
from attention_sieve.core.comparison.differences import ROUNDING, PairedTests, paired_tests
from attention_sieve.core.comparison.sizes import LEAST_DIFFERENCE, DifferenceSizes, difference_sizes, is_large
from attention_sieve.core.comparison.transitions import changed_heads, check_heads
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleFinding, RoleSettings
from attention_sieve.core.roles.roles import shown_roles_of_all
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import HEAD_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

COMPARISON_COLUMNS: Final = {
    "role": "name of the role",
    **HEAD_COLUMNS,
    "texts": "number of different texts with a score under both checkpoints; equal texts count once",
    "mean_a": "mean score under the reference",
    "mean_b": "mean score under the compared checkpoint",
    "difference": "mean of b - a, in which differences up to rounding count as 0: in float32 those up to 0.00001 of "
    "1 + the score, so that p may differ from that of the scores in files",
    "t": "paired t-test, two-sided; empty for fewer than two texts and for constant differences",
    "p": "p-value of this test",
    "p_adjusted": "p after correction",
    "wilcoxon_p": "p-value of the Wilcoxon signed-rank test, two-sided",
    "effect": "Cohen's d of the paired differences",
    "large": "whether the difference is at least the least difference, up or down",
    "holds_a": "whether the head has the role under the reference",
    "holds_b": "whether the head has the role under the compared checkpoint",
}
"""What each column of the table holds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleComparison:
    """Roles under two checkpoints of one shape, and tests of how the scores differ."""

    sides: tuple[RoleFinding, RoleFinding]
    """Under the reference, and under the compared checkpoint."""
    tests: PairedTests
    least_difference: float
    """Of two means that counts as large."""

    @property
    def sizes(self) -> DifferenceSizes:
        """How large the differences of all roles are.

        Raises: AnalysisError as `is_large`.
        """
        return difference_sizes(self.tests, self.least_difference)

    @property
    def holds(self) -> tuple[Bool[np.ndarray, "role layer head"], Bool[np.ndarray, "role layer head"]]:
        """Which head has which role under each."""
        return self.sides[0].tests.holds, self.sides[1].tests.holds

    @property
    def changed(self) -> Bool[np.ndarray, "layer head"]:
        """Which heads gain or lose a coarse role that applies under either."""
        coarse, _ = shown_roles_of_all([side.tests.mean for side in self.sides], self.tests.roles)
        return changed_heads(*self.holds, self.tests.roles, coarse)

    @property
    def table(self) -> "pd.DataFrame":
        """A row per role, layer and head, with COMPARISON_COLUMNS."""
        from attention_sieve.core.roles.tables import by_head  # imports pandas, which the first page does without

        _, _, _, *tested, large, holds_a, holds_b = COMPARISON_COLUMNS
        columns = {name: getattr(self.tests, name) for name in tested}
        columns[large] = is_large(self.tests, self.least_difference)
        return by_head(self.tests.roles, columns | dict(zip((holds_a, holds_b), self.holds)))

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {"least difference": f"{self.least_difference:g}"}


def compared(
    sides: Iterable[RoleFinding], dtypes: Iterable[str], least_difference: float | None = None
) -> RoleComparison:
    """Compare what was found on the same texts, by the criterion of the first.

    Args:
        sides: under the reference, and under the compared checkpoint, with the same roles in the same order.
        dtypes: number formats of both passes; the least precise one decides which differences are rounding. One that is
            unknown counts as float32.
        least_difference: of two means that counts as large; None for the usual one of the scale.

    Raises: AnalysisError as `paired_tests`.
    """
    a, b = sides
    tests = paired_tests(
        a.counted.scores,
        b.counted.scores,
        a.scored.roles,
        a.tests.settings,
        rounding=max(ROUNDING.get(dtype, ROUNDING["float32"]) for dtype in dtypes),
    )
    least = LEAST_DIFFERENCE[a.scored.scale] if least_difference is None else least_difference
    return RoleComparison(sides=(a, b), tests=tests, least_difference=least)


def compare_in(
    readings: Sequence[Reading[Text]], settings: RoleSettings, watch: Watch, least_difference: float | None = None
) -> RoleComparison:
    """Compare two checkpoints on the same prepared texts, the reference first.

    Raises: AnalysisError for checkpoints of different shapes, and as `find_in`.
    """
    layers = [reading.checkpoint.attentions[reading.pass_settings.kind] for reading in readings]
    a, b = ((1, layer.n_layers, layer.n_heads) for layer in layers)
    check_heads(a, b)
    sides = [find_in(ROLE_ANALYSIS, reading, settings, watch) for reading in readings]
    return compared(sides, [reading.checkpoint.dtype for reading in readings], least_difference)


def facts_of_both(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, str]:
    """Metadata of a comparison: what is known of both sides, and, named after its side, where they differ."""
    names = [name for name in {**a, **b} if name not in COMPARISON_COLUMNS]
    shared = {name: a[name] for name in names if a.get(name) == b.get(name)}
    own = {
        f"{name} {side}": facts[name]
        for name in names
        for side, facts in (("a", a), ("b", b))
        if name not in shared and name in facts
    }
    return own | shared
