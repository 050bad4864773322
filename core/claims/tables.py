"""The table of a tested claim, its metadata, and what became of it in sentences."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.claims.judge import FEWEST_FOR_INTERVAL, FEWEST_RANKED, ClaimFinding, Failed, Verdict
from attention_sieve.core.roles.hypotheses import FEWEST, corrected
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.roles.uncertainty.anytime import as_odds, odds
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.texts.equal import equal_texts
from attention_sieve.core.usage import HEAD_COLUMNS
from attention_sieve.core.wording import p_value

if TYPE_CHECKING:
    import pandas as pd

MOST_SAID: Final = 20
"""Heads on which the summary has a line each."""
FEWEST_OF_LOCAL: Final = 30
"""With fewer texts, a test at 0.05 of scores that are skewed to the left errs in .07 to .13 of cases."""
COLUMNS: Final = {
    **HEAD_COLUMNS,
    "verdict": f"{'; '.join(get_args(Verdict))}: by all tests of the row, each at level alpha",
    "failed": f"tests that the head fails ({', '.join(get_args(Failed))}), with semicolons between; empty if none",
    "claimed": "score of the head in the claim; empty where the claim is a sentence",
    "n_texts": "number of different texts to which the role applies; equal texts count once",
    "n_documents": "number of their documents, which are then the units of tests, intervals and evidence; empty where "
    "no document is known",
    "mean": "mean of the head's score for the role, on the scale of the settings",
    "low": "lower end of the confidence interval of the mean",
    "high": "upper end of this interval",
    "rank": "rank of the mean among all heads of the checkpoint, from 1",
    "p": "one-sided p-value of the mean being above tau and clearly above that of uniform attention",
    "p_adjusted": "p after correction over the heads of the claim",
    "constant": f"whether the score is constant, so that it has no p and its mean decides, over {FEWEST} texts or more",
    "permuted": "mean score with the keys of every row of attention in random order",
    "p_permuted": "p-value of mean being above permuted, paired by text, after the same correction",
    "compared": "what is compared with positional, in the same unit: on probe texts of induction and duplicate mean; "
    "otherwise the attention to what a role joins, for roles that join tokens, as a multiple of uniform attention",
    "positional": "what a look at fixed distances would explain: on probe texts of induction and duplicate the mean "
    "score where the copies of the same tokens have a fixed period; otherwise the attention between others at the same "
    "distance, as a multiple of uniform attention; empty where nothing is compared",
    "p_positional": "corrected p-value of the difference, paired by text: of positional being above compared on probe "
    f"texts, otherwise of compared being above positional; it also has to be {LEAST_TIMES:g} times as high",
    "evidence": "betting evidence (e-value) for the mean being above tau, where a share below 0 counts as 0: what a "
    "stake of 1 has grown to; 20 is 20 : 1; it stays valid when texts are added, and is not corrected over heads",
}


def claim_table(finding: ClaimFinding) -> "pd.DataFrame":
    """A row per head of the claim, in its order, with COLUMNS."""
    import pandas as pd  # the first page does without

    claim, tests = finding.claim, finding.tests
    layers, heads = np.array(claim.heads).T
    criterion, distance = finding.settings.role_settings.criterion, finding.distance
    n_documents = tests.texts.ravel() if finding.probed.document is not None else [None] * len(heads)
    values = {
        "layer": layers,
        "head": heads,
        "verdict": finding.verdicts,
        "failed": ["; ".join(names) for names in finding.failed],
        "claimed": np.full(len(heads), np.nan) if claim.scores is None else claim.scores,
        "n_texts": finding.n_texts,
        "n_documents": pd.array(n_documents, "Int64"),
        "mean": tests.mean.ravel(),
        "low": tests.low.ravel(),
        "high": tests.high.ravel(),
        "rank": finding.ranks.astype(int),
        "p": tests.p_role.ravel(),
        "p_adjusted": tests.p_adjusted.ravel(),
        "constant": tests.constant.ravel(),
        "permuted": finding.permuted_mean,
        "p_permuted": corrected(finding.permuted.p, criterion).ravel(),
        "compared": distance.own.ravel(),
        "positional": distance.beside.ravel(),
        "p_positional": distance.p.ravel(),
        "evidence": as_odds(finding.evidence),
    }
    return pd.DataFrame({column: values[column] for column in COLUMNS})


def claim_facts(finding: ClaimFinding) -> Mapping[str, str]:
    """Metadata of files: the role, the settings, and what is found of all heads of the claim together."""
    settings, names = finding.settings, ("spearman", "spearman low", "spearman high", "spearman p")
    spearman = {} if finding.spearman is None else dict(zip(names, map("{:.6g}".format, finding.spearman), strict=True))
    random_sets = {} if np.isnan(finding.p_random_sets) else {"p random sets": f"{finding.p_random_sets:.6g}"}
    return {
        "role": role_title(finding.claim.role),
        "seed": str(settings.seed),
        "equal texts left out": str(finding.probed.n_equal),
        **settings.role_settings.facts,
        **random_sets,
        **spearman,
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
            *(_head_sentence(finding, row) for row in shown.itertuples()),
            *([f"The table has the other {n - MOST_SAID:,} heads, which score lower."] if n > MOST_SAID else []),
            *joint_results(finding),
            *notes(finding),
        )
    )


def counts(finding: ClaimFinding) -> dict[Verdict, int]:
    """Number of heads by verdict, of each that there is."""
    return {verdict: finding.verdicts.count(verdict) for verdict in get_args(Verdict) if verdict in finding.verdicts}


def control_name(finding: ClaimFinding) -> str:
    """What the control of distance is."""
    return "at a fixed period" if finding.probed.fixed is not None else "others at the same distance"


def reasons(finding: ClaimFinding, row: Any) -> str:
    """Which tests a head fails, with their p-values; of a row of the table."""
    times = f"only {row.compared / row.positional:.1f} times" if row.compared < LEAST_TIMES * row.positional else ""
    is_ruler = finding.probed.fixed is not None
    detail: dict[Failed, list[str]] = {
        "tau": [_p(row.p_adjusted)],
        "uniform attention": [_p(row.p_adjusted)],
        "permuted keys": [_p(row.p_permuted)],
        "distance": [] if is_ruler else [times, _p(row.p_positional)],
        "too few texts for a constant score": [],
    }
    told = {name: " and ".join(filter(None, detail[name])) for name in finding.failed[row.Index]}
    return ", ".join(f"{name} {said}".strip() for name, said in told.items())


def _p(p: float) -> str:
    return "" if np.isnan(p) else p_value(p)


def notes(finding: ClaimFinding) -> list[str]:
    """What a reader of the verdicts has to know of the texts, in sentences."""
    probed, n_units = finding.probed, int(finding.tests.texts.max())
    unit = "texts" if probed.document is None else "documents"
    said = list[str]()
    if note := equal_texts(probed.n_equal, probed.n_equal + len(probed.scored.scores)):
        said.append(note)
    if n_units < FEWEST:
        said.append(f"These are {n_units} {unit}, fewer than {FEWEST}: others may well give other verdicts. Give more.")
    if finding.claim.role == "local" and n_units < FEWEST_OF_LOCAL:
        said.append(
            f"Scores of local are skewed to the left: over fewer than {FEWEST_OF_LOCAL} {unit}, a test at 0.05 errs in "
            "about 1 of 10 cases. The odds hold whatever the skew: 20 : 1 is as much as p = 0.05."
        )
    if probed.are_made:
        said.append("If the heads were chosen on these probe texts, test them with another seed.")
    else:
        said.append(
            "If the heads were chosen on these very texts, test them on others: the best of many heads without the "
            "role can seem to hold it in every third case."
        )
        said.append(
            "Documents are unknown, so that texts count as independent; sentences of a few documents make a claim hold "
            "too often."
            if probed.document is None
            else f"The texts are from {n_units:,} documents, which are the units of intervals, tests and odds."
        )
    if finding.settings.role_settings.scores.scale == "share":
        said.append("For odds, shares below 0 count as 0.")
    return said


def joint_results(finding: ClaimFinding) -> list[str]:
    """What is found of all heads of a claim together, in sentences."""
    said = list[str]()
    if not np.isnan(finding.p_random_sets):
        said.append(f"A random set of as many heads scores as high or higher with {p_value(finding.p_random_sets)}.")
    if finding.spearman is not None:
        value, low, high, p = finding.spearman
        spread = f" [{low:z.2f}, {high:z.2f}] over heads"
        if np.isnan(low):
            spread = f" (no interval over fewer than {FEWEST_FOR_INTERVAL} heads)"
        said.append(
            f"The ranking of the claim agrees with the measured one by Spearman's {value:z.2f}{spread}; rankings in "
            f"random order agree as much with {p_value(p)}."
        )
    elif finding.claim.scores is not None:
        said.append(f"There is no ranking to compare: it takes {FEWEST_RANKED} heads whose scores differ.")
    return said


def _head_sentence(finding: ClaimFinding, row: Any) -> str:
    role_settings = finding.settings.role_settings
    scale = "share above chance" if role_settings.scores.scale == "share" else "score"
    failed = reasons(finding, row)
    unit = scale if finding.probed.fixed is not None else "times uniform attention"
    by_distance = [_p(row.p_positional)] if _p(row.p_positional) else []
    control = ", ".join(
        (
            f"{scale} {row.compared:z.2f}" if unit == scale else f"{row.compared:z.2f} {unit}",
            f"{control_name(finding)} {row.positional:z.2f}",
            *by_distance,
        )
    )
    parts = (
        f"{scale} {row.mean:z.2f} [{row.low:z.2f}, {row.high:z.2f}], tau {role_settings.criterion.tau:g}",
        *(["constant, so that the mean decides"] if row.constant and not failed else []),
        *([_p(row.p_adjusted)] if _p(row.p_adjusted) else []),
        f"evidence {odds(finding.evidence[row.Index])}",
        ", ".join(filter(None, (f"permuted keys {row.permuted:z.2f}", _p(row.p_permuted)))),
        *([] if np.isnan(row.positional) else [control]),
        f"rank {row.rank} of {finding.n_heads:,}",
    )
    why = f" ({'' if row.verdict == 'no test' else 'failing '}{failed})" if failed else ""
    return f"{head_name(row.layer, row.head)} {row.verdict}{why}: {'; '.join(parts)}."
