"""Heads that stand in for one another: those that look at the same, switched off together."""

from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import head_name, head_names
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS, BACKUP_COLUMNS, backup_table
from attention_sieve.core.importance.backups import BackupFinding
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.importance.references import damage_beside
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import from_list, halves
from attention_sieve.dashboard.wording import at_most

PICKER_WIDTH: Final = 280
TAB: Final = "Backups"
SEE: Final = (
    "A head whose work another one does as well seems not to matter: switch it off alone, and little changes. Here "
    "heads that look at the same are switched off together."
)
OF_VECTORS: Final = (
    "A change of the text vector does not say whether heads stand in for one another. Choose predicted words or "
    "labelled texts under *Heads matter for*."
)
DOING: Final = "Switching off heads that look at the same"
SET: Final = "Heads that stand in for one another"
TOGETHER: Final = "all together"
TABLE: Final = "All sets in a table"
NONE_ALIKE: Final = "No two heads look at the same, so none is known that could stand in for another."


def backups(importance: Importance) -> None:
    st.markdown(SEE)
    material = importance.material
    if material.metric.metric == "output":
        st.info(OF_VECTORS)
        return
    found = find(material.visit, BACKUP_ANALYSIS, material.settings, material.inputs, doing=DOING)
    if found is None:
        return
    finding = found.finding
    facts = importance.computed_by("ablate", *material.options, "--backups=backups.parquet") | finding.facts
    st.markdown(summary(finding))
    if finding.redundant:
        _one_set(importance, finding, facts)
    if finding.sets and finding.without_verdict:
        st.info(finding.without_verdict)
    if finding.sets:
        with st.expander(TABLE):
            table("sets of heads", backup_table(finding), facts, BACKUP_COLUMNS)


def _one_set(importance: Importance, finding: BackupFinding, facts: dict[str, str]) -> None:
    """One set that stands in for itself: what each of its heads does alone, and all together."""
    left, right = halves()
    names = {head_names(finding.sets[place]): place for place in finding.redundant}
    with right:
        index = finding.redundant[0]
        if len(names) > 1:
            index = from_list(SET, names, key="backups", start=next(iter(names)), width=PICKER_WIDTH)
        st.caption(numbers(finding, index))
    damages = {head_name(*head): float(finding.alone[head]) for head in finding.sets[index]}
    damages[TOGETHER] = float(finding.effects.together[index])
    title = page_wording.damage_title(page_wording.SCORE_NAMES[importance.ablation.score.name])
    with left:
        chart("heads alone and together", damage_beside(damages, TOGETHER, title), facts)


def summary(finding: BackupFinding) -> str:
    """What is lost together, and alone, by the heads that stand in for one another and matter most."""
    n_sets, n_redundant = len(finding.sets), len(finding.redundant)
    if not n_sets:
        return NONE_ALIKE
    if not n_redundant:
        return (
            f"{counted(n_sets, 'set')} of heads that look at the same: none does clearly more damage together than its "
            "heads do alone."
        )
    most, score = finding.redundant[0], finding.score.name
    together, alone = finding.effects.together[most], max(0, finding.effects.most_alone[most])
    n_further = n_redundant - 1
    does = "does" if n_further == 1 else "do"
    stand = "stand" if np.isfinite(finding.effects.p[most]) else "may stand"  # without a test
    further = f" So {does} {counted(n_further, 'further set')} of {n_sets}." if n_further else ""
    return (
        f"Without **{head_names(finding.sets[most])}** together the {page_wording.SCORE_NAMES[score]} "
        f"{page_wording.worse(score)} by {together:.2g}, without one of them alone {at_most(alone, together)}: they "
        f"{stand} in for one another.{further}"
    )


def numbers(finding: BackupFinding, index: int) -> str:
    """What goes beyond the damage of each head alone."""
    effects = finding.effects
    interval = page_wording.interval(float(effects.low[index]), float(effects.high[index]), ".2g")
    return f"Together minus the sum of each alone: {effects.beyond[index]:.2g}{interval}."
