"""Sentences of the page Claims."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import Head, head_names
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER
from attention_sieve.core.checkpoints.find import BUNDLED
from attention_sieve.core.claims.judge import DRAWS, FEWEST_FOR_INTERVAL, FEWEST_RANKED, HOLDING, ClaimFinding
from attention_sieve.core.claims.places import Place
from attention_sieve.core.claims.probe import PROBES, ClaimSettings
from attention_sieve.core.claims.tables import FEWEST_OF_LOCAL, control_name, counts, joint_results, notes
from attention_sieve.core.roles.hypotheses import FEWEST
from attention_sieve.core.roles.measures import USUAL_TAU
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts
from attention_sieve.dashboard.plain import plain

NUMBERS: Final = {
    "tau": f"{USUAL_TAU['share']:g}",
    "draws": f"{DRAWS:,}",
    "times": f"{LEAST_TIMES:g}",
    "few": str(FEWEST),
    "for_interval": str(FEWEST_FOR_INTERVAL),
    "few_local": str(FEWEST_OF_LOCAL),
    "fewest": str(FEWEST_RANKED),
    "probed": ", ".join(PROBES),
    "number": str(ClaimSettings.number),
}
"""Numbers in `method.md`."""
SEE: Final = (
    "Papers claim that certain heads have a certain role. Write such a claim, and each head that it names is tested: "
    "by its score, against permuted keys and against distance alone, beside random sets of as many heads."
)
CLAIM_HELP: Final = (
    "Heads, counted from 0, and a role, such as “L16 H19, L11 H15 are retrieval heads”. Or scores by head, as papers "
    'publish them: {"16-19": 0.8, "11-15": [0.5, 0.7]}; of a list the mean counts. Choose their role beside it.'
)
EXAMPLES: Final = {
    BUNDLED: "L1 H8, L2 H8, L4 H9 are amod heads",
    SAMPLE_DECODER: "L18 H6, L17 H3 are induction heads",
}
"""By the name of a checkpoint."""
ANY_EXAMPLE: Final = "L0 H0, L0 H1 are previous-token heads"
ROLE_HELP: Final = "Needed for scores by head, which name none, and for roles that you wrote on *Roles*."
ON_CORPUS_HELP: Final = (
    f"Otherwise a claim about {', '.join(PROBES)} is tested on probe texts that are made for the role. Claims about "
    "other roles are always tested on the corpus of the sidebar."
)
MOST_NAMED: Final = 12
"""Heads that a sentence names."""
MOST_IN_FINDING: Final = 3
"""Heads that the finding names."""
ELSEWHERE_SEE: Final = (
    "The same heads on other texts, and in other checkpoints that have such heads. What has been computed before is "
    "here at once."
)
IN_TABLE: Final = {
    "verdict": "by all tests of the row, corrected over the heads of the claim",
    "fails": "the tests that the head does not pass, with their p-values after the correction",
    "head": "layer and head, from 0",
    "claimed": "score in the claim",
    "score": "mean score over the texts",
    "interval": "confidence interval of the mean",
    "odds": "evidence for the mean being above tau; shares below 0 count as 0",
    "permuted keys": "mean score with the keys of every row of attention in random order",
    "rank": "of all heads of the checkpoint",
}


def finding(claim_finding: ClaimFinding) -> str:
    """For how many heads the claim holds, in a sentence."""
    heads, verdicts = claim_finding.claim.heads, claim_finding.verdicts
    held = [head for head, verdict in zip(heads, verdicts, strict=True) if verdict in HOLDING]
    names = f": {head_names(held)}" if 0 < len(held) <= MOST_IN_FINDING else ""
    verb, role = "passes" if len(held) == 1 else "pass", plain(role_title(claim_finding.claim.role))
    return f"**{len(held):,} of {counted(len(heads), 'head')}** {verb} every test of the role **{role}**{names}."


def summary(finding: ClaimFinding) -> str:
    """Verdicts, and the heads of each."""
    of_heads = list(zip(finding.claim.heads, finding.verdicts, strict=True))
    told = (
        f"**{verdict}** for {count:,}{_named([head for head, each in of_heads if each == verdict])}"
        for verdict, count in counts(finding).items()
    )
    return f"{'; '.join(told)}."


def _named(heads: Sequence[Head]) -> str:
    return f" ({head_names(heads)})" if 0 < len(heads) <= MOST_NAMED else ""


def tested_on(finding: ClaimFinding, texts: str) -> str:
    criterion, scores = finding.settings.role_settings.criterion, finding.settings.role_settings.scores
    scale = "share above chance" if scores.scale == "share" else "times uniform attention"
    n_texts = int(finding.n_texts.max())
    return (
        f"On {counted(n_texts, 'text')} ({plain(texts)}); {scale}, tau {criterion.tau:g}, alpha {criterion.alpha:g}. "
        + " ".join((*joint_results(finding), *notes(finding)))
    )


def ranking(finding: ClaimFinding, name: str) -> ScatterTexts:
    return ScatterTexts(
        title="Claimed and measured scores",
        x="claimed score",
        y="mean score over the texts",
        reading=("A dot is a head of the claim.", "If both rankings agreed, dots would rise from left to right."),
        description=f"Claimed against measured scores of {counted(len(finding.claim.heads), 'head')} of {name}.",
    )


def columns(finding: ClaimFinding) -> dict[str, str]:
    if finding.probed.fixed is not None:
        by_distance = {
            control_name(finding): "mean score where copies of the same tokens have a fixed period: a head that passes "
            f"only there, with at least {LEAST_TIMES:g} times the score, looks at a distance"
        }
    else:
        by_distance = {
            "joined": "attention to what the role joins, times uniform attention",
            control_name(finding): "attention to others of the same texts at the same distance, times uniform "
            f"attention, and the p-value of the difference; what the role joins has to get {LEAST_TIMES:g} times as "
            "much",
        }
    return {**IN_TABLE, **by_distance}


def table_of(places: Sequence[Place]) -> pd.DataFrame:
    """Where a claim holds, as it is read; the first place is that of the page."""
    rows = [{"where": place_name(place.checkpoint, place.texts, places[0])} | _of_place(place) for place in places]
    return pd.DataFrame(rows).fillna("").replace("", None).dropna(axis="columns", how="all").fillna("")


def _of_place(place: Place) -> dict[str, str]:
    finding = place.finding
    if finding is None:
        return {"holds for": plain(place.why_not)}
    rulers, ranked = finding.verdicts.count("only as a positional ruler"), finding.spearman
    untested = finding.verdicts.count(HOLDING[1])
    return {
        "number of texts": f"{finding.n_texts.max():,}",
        "holds for": f"{len(place.held):,} of {len(finding.claim.heads):,}{_named(place.held)}",
        "only as a ruler": f"{rulers:,}" if rulers else "",
        "not tested against a ruler": f"{untested:,}" if untested else "",
        "ranking": "" if ranked is None else _ranking(*ranked[:3]),
    }


def _ranking(value: float, low: float, high: float) -> str:
    return f"{value:z.2f}" if np.isnan(low) else f"{value:z.2f} [{low:z.2f}, {high:z.2f}]"


def place_name(checkpoint: str, texts: str, here: Place) -> str:
    return plain(texts if checkpoint == here.checkpoint else checkpoint)
