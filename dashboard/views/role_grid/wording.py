"""Numbers in the prose on how roles are computed."""

from typing import Final

from attention_sieve.core.copying.finding import CopySettings
from attention_sieve.core.copying.writes import SAMPLE
from attention_sieve.core.descriptions.accuracies import LEAST_CASES, MARGIN, MOSTLY
from attention_sieve.core.descriptions.describe import LEAST_TEXTS as LEAST_OF_LENGTH
from attention_sieve.core.descriptions.describe import OTHERWISE
from attention_sieve.core.roles import hypotheses
from attention_sieve.core.roles.controls import SEEDS
from attention_sieve.core.roles.hypotheses import CONSTANT_SPREAD, LEAST_GAIN
from attention_sieve.core.roles.matched_pairs import MOST_OTHERS
from attention_sieve.core.roles.measures import USUAL_TAU
from attention_sieve.core.roles.record import LOCAL_RADIUS
from attention_sieve.core.roles.uncertainty import intervals
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.statistics.evidence import STAKES
from attention_sieve.core.texts.relations import RELATIONS
from attention_sieve.dashboard.figures.figure import percent
from attention_sieve.dashboard.wording import CHOSEN_BEFORE

NUMBERS: Final = {
    "radius": str(LOCAL_RADIUS),
    "relations": ", ".join(RELATIONS),
    "spread": f"{CONSTANT_SPREAD:g}",
    "fewest": str(hypotheses.FEWEST),
    "least_times": f"{LEAST_TIMES:g}",
    "stakes": str(len(STAKES)),
    "least_stake": f"{STAKES[0]:g}",
    "most_stake": f"{STAKES[-1]:g}",
    "gain": percent(LEAST_GAIN),
    "share_tau": f"{USUAL_TAU['share']:g}",
    "sample": str(SAMPLE),
    "times": f"{CopySettings.times:g}",
    "rise": f"{CopySettings.rise:g}",
    "seeds": str(len(SEEDS)),
    "resamples": str(hypotheses.RESAMPLES),
    "most_others": str(MOST_OTHERS),
    "certain": percent(hypotheses.CERTAIN),
    "t_resamples": str(intervals.RESAMPLES),
    "least_texts": str(intervals.LEAST_TEXTS),
    "mostly": f"{100 * MOSTLY:g}%",
    "margin": f"{100 * MARGIN:g}",
    "least_by_length": str(2 * LEAST_OF_LENGTH),
    "otherwise": f"{100 * OTHERWISE:g}%",
    "least_cases": str(LEAST_CASES),
    "chosen_before": CHOSEN_BEFORE,
}
"""Numbers in `method.md`."""
