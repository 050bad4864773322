"""The table of a tested claim, its metadata, and what became of it in sentences."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.claims.judge import FEWEST_RANKED, ClaimFinding, Verdict
from attention_sieve.core.claims.probe import OF_COPIES
from attention_sieve.core.roles.hypotheses import corrected
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.roles.uncertainty.anytime import as_odds, odds

if TYPE_CHECKING:
    import pandas as pd

MOST_SAID: Final = 20
"""Heads on which the summary has a line each."""
COLUMNS: Final = {
    "layer": "index of the layer, from 0",
    "head": "index of the head, from 0",
    "verdict": f"{', '.join(get_args(Verdict))}: by all tests of the row, each at level alpha",
    "claimed": "score of the head in the claim; empty where the claim is a sentence",
    "n_texts": "number of texts to which the role applies",
    "mean": "mean of the head's score for the role, on the scale of the settings",
    "low": "lower end of the confidence interval of the mean",
    "high": "upper end of this interval",
    "rank": "rank of the mean among all heads of the checkpoint, from 1",
    "p": "one-sided p-value of the mean being above tau and clearly above that of uniform attention",
    "p_adjusted": "p after correction over the heads of the claim",
    "permuted": "mean score with the keys of every row of attention in random order",
    "p_permuted": "p-value of mean being above permuted, paired by text, after the same correction",
    "positional": "what a look at fixed distances would explain: for induction and duplicate the mean score on texts "
    "whose copies have a fixed period, for syntactic roles, and written ones that join tokens, the attention between "
    "unrelated words at the same distance as a multiple of uniform attention; empty for other roles, and for induction "
    "and duplicate on texts of your own",
    "p_positional": "for induction and duplicate p_adjusted on the texts with a fixed period; for syntactic and "
    "written roles the corrected p-value of related words scoring higher",
    "evidence": "betting evidence (e-value) for the mean being above tau, where a share below 0 counts as 0: what a "
    "stake of 1 has grown to; 20 is 20 : 1; it stays valid when texts are added, and is not corrected over heads",
}


def claim_table(finding: ClaimFinding) -> "pd.DataFrame":
    """A row per head of the claim, in its order, with COLUMNS."""
    import pandas as pd  # the first page does without

    claim, tests = finding.claim, finding.tests
    layers, heads = np.array(claim.heads).T
    criterion = finding.settings.of_role.criterion
    values = {
        "layer": layers,
        "head": heads,
        "verdict": finding.verdicts,
        "claimed": np.full(len(heads), np.nan) if claim.scores is None else claim.scores,
        "n_texts": tests.texts.ravel(),
        "mean": tests.mean.ravel(),
        "low": tests.low.ravel(),
        "high": tests.high.ravel(),
        "rank": finding.ranks.astype(int),
        "p": tests.p_role.ravel(),
        "p_adjusted": tests.p_adjusted.ravel(),
        "permuted": finding.permuted_mean,
        "p_permuted": corrected(finding.permuted.p, criterion).ravel(),
        "positional": finding.positional_mean,
        "p_positional": finding.p_positional,
        "evidence": as_odds(finding.evidence),
    }
    return pd.DataFrame({column: values[column] for column in COLUMNS})


def claim_facts(finding: ClaimFinding) -> Mapping[str, str]:
    """Metadata of files: the role, the settings, and what is found of all heads of the claim together."""
    settings, names = finding.settings, ("spearman", "spearman low", "spearman high", "spearman p")
    found = {} if finding.spearman is None else dict(zip(names, map("{:.6g}".format, finding.spearman), strict=True))
    of_sets = {} if np.isnan(finding.p_random_sets) else {"p random sets": f"{finding.p_random_sets:.6g}"}
    return {
        "role": role_title(finding.claim.role),
        "seed": str(settings.seed),
        **settings.of_role.facts,
        **of_sets,
        **found,
    }


def claim_summary(finding: ClaimFinding) -> str:
    """What became of a claim, in sentences: of each head, then of all together."""
    told = ", ".join(f"{verdict} for {count:,}" for verdict, count in counts(finding).items())
    role, n = role_title(finding.claim.role), len(finding.claim.heads)
    table = claim_table(finding)
    shown = table if n <= MOST_SAID else table.nlargest(MOST_SAID, "mean")
    return "\n".join(
        (
            f"That {n:,} {'head has' if n == 1 else 'heads have'} the role {role}: {told}.",
            *(_of_head(finding, row) for row in shown.itertuples()),
            *([f"The table has the other {n - MOST_SAID:,} heads, which score lower."] if n > MOST_SAID else []),
            *of_all_heads(finding),
        )
    )


def counts(finding: ClaimFinding) -> dict[Verdict, int]:
    """Number of heads by verdict, of each that there is."""
    return {each: finding.verdicts.count(each) for each in get_args(Verdict) if each in finding.verdicts}


def control_name(role: str) -> str:
    """What the control of distance of a role is."""
    return "at a fixed period" if role in OF_COPIES else "other words at the same distance"


def of_all_heads(finding: ClaimFinding) -> list[str]:
    """What is found of all heads of a claim together, in sentences."""
    said = list[str]()
    if not np.isnan(finding.p_random_sets):
        said.append(f"A random set of as many heads scores as high or higher with p = {finding.p_random_sets:.2g}.")
    if finding.spearman is not None:
        value, low, high, p = finding.spearman
        said.append(
            f"The ranking of the claim agrees with the measured one by Spearman's {value:z.2f} "
            f"[{low:z.2f}, {high:z.2f}] over texts; rankings in random order agree as much with p = {p:.2g}."
        )
    elif finding.claim.scores is not None:
        said.append(f"There is no ranking to compare: it takes {FEWEST_RANKED} heads whose scores differ.")
    return said


def _of_head(finding: ClaimFinding, row: Any) -> str:
    of_role, role = finding.settings.of_role, finding.claim.role
    scale = "share above chance" if of_role.scores.scale == "share" else "score"
    control = f"{control_name(role)} {row.positional:z.2f}{'' if role in OF_COPIES else ' times uniform attention'}"
    parts = (
        f"{scale} {row.mean:z.2f} [{row.low:z.2f}, {row.high:z.2f}], tau {of_role.criterion.tau:g}",
        *([] if np.isnan(row.p_adjusted) else [f"p {row.p_adjusted:.2g}"]),
        f"evidence {odds(finding.evidence[row.Index])}",
        f"permuted keys {row.permuted:z.2f}",
        *([] if np.isnan(row.positional) else [control]),
        f"rank {row.rank} of {finding.n_heads:,}",
    )
    return f"{head_name(row.layer, row.head)} {row.verdict}: {'; '.join(parts)}."
