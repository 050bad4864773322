"""Effect of switching off each head on two sets of texts: one dot per head, and how well the sets agree."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.agreement import Correlation, TwoSets, two_sets
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.finding import AblationFinding
from attention_sieve.core.importance.labels import read_labels
from attention_sieve.core.texts.text import SUFFIXES, Text
from attention_sieve.dashboard import controls, public
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.figures.figure import counted, drawable, head_rows
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.files.provenance import THEN
from attention_sieve.dashboard.samples import VARIED, read_sample
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts, find
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.material import Importance, Material, of_texts
from attention_sieve.dashboard.views.pickers import from_list

NAME_LENGTH: Final = 40
KEY: Final = "second set"
UPLOAD_KEY: Final = "second texts"
TABLE_KEY: Final = "second table"
WIDTH: Final = 280
SINGLE_SAMPLES: Final = {name: kind for name, kind in controls.SAMPLES.items() if kind != "both"}
TAB: Final = "Two sets of texts"
SEE: Final = (
    "Does a head that matters on one set of texts matter on another? Each dot is a head: what switching it off does on "
    "the texts of this page, and on a second set."
)
SECOND: Final = "Second set"
UPLOAD: Final = "a file"
UPLOADER: Final = "Texts of the second set"
WAIT: Final = "Upload the second set of texts, in any format that the sidebar accepts."
TABLE_UPLOADER: Final = "A second labelled table, with the same columns"
WAIT_TABLE: Final = "Upload a second table with the same columns, such as one from another source."
SAME: Final = "All texts of this page are also in the second set, so there is nothing to compare. Choose another set."
MICHEL_2: Final = "Corresponds to Figure 2 of Michel et al. (2019)."
TABLE: Final = "All heads in a table"
FIRST_SET: Final = "this page"
ALL_ON: Final = "all heads on"


@dataclass(frozen=True, eq=False, kw_only=True)
class Sets:
    """Two disjoint sets of texts."""

    first: Material
    second: Material
    second_name: str
    n_shared: int
    """Texts of the page that are also in the second set."""


def two_sets_of_texts(importance: Importance) -> None:
    st.markdown(SEE)
    sets = second_set(importance.material)
    if sets is None:
        return
    if sets.n_shared:
        st.caption(shared(sets.n_shared, len(importance.material.inputs)))
    first, second = (
        find(of_set.visit, ABLATION_ANALYSIS, of_set.settings, of_set.inputs) for of_set in (sets.first, sets.second)
    )
    if first is None or second is None:
        return
    ask_about_long_texts(second.too_long if not importance.found.too_long else ())
    both = (first.finding, second.finding)
    key = (sets.first.key, first.positions, sets.second.key, second.positions)
    comparison = memory().get_or_put("two sets", key, lambda: _compared(both))
    n_texts = (len(first.positions), len(second.positions))
    st.markdown(summary(comparison, int((~np.isnan(comparison.changes[0])).sum()), n_texts))
    _draw(importance, sets, comparison, (both[0].effects.full, both[1].effects.full), n_texts)


def _compared(both: tuple[AblationFinding, AblationFinding]) -> TwoSets:
    documents = [finding.documents for finding in both]
    draws = [Draws(of_set, seed=seed) for seed, of_set in enumerate(documents)]
    return two_sets([finding.measure for finding in both], draws, documents)


def _draw(
    importance: Importance, sets: Sets, comparison: TwoSets, full: tuple[float, float], n_texts: tuple[int, int]
) -> None:
    sign, name = importance.ablation.score.sign, page_wording.SCORE_NAMES[importance.ablation.score.name]
    x, y = (score + sign * change for score, change in zip(full, comparison.changes))
    second_name = drawable(sets.second_name, NAME_LENGTH)
    pearson = comparison.pearson.value
    correlation = "" if np.isnan(pearson) else f" Pearson's correlation {pearson:.2f}."
    words = ScatterTexts(
        title=f"{name[:1].upper()}{name[1:]} without each head",
        x=f"{FIRST_SET} ({counted(n_texts[0], 'text')})",
        y=f"{second_name} ({counted(n_texts[1], 'text')})",
        reading=("dot: a head switched off; star: all heads on",),
        description=f"Heads by {name} without them, on the texts of this page and on {second_name}.{correlation}",
    )
    figure = head_scatter(x, y, words, importance.heads, (*full, ALL_ON))
    facts = {**importance.facts, "second set": sets.second_name, "second set texts": str(n_texts[1])}
    facts["corpus texts"] = str(n_texts[0])
    if sets.first.table is None:  # labels of either set are a part of a table, or of another one
        lines = (
            of_set.line("ablate", *of_set.options, texts=f"{name}.jsonl", output=f"{name}.parquet")
            for name, of_set in (("first", sets.first), ("second", sets.second))
        )
        facts["command"] = THEN.join(lines)
    chart("heads on two sets of texts", figure, facts, MICHEL_2, selects=True)
    with st.expander(TABLE):
        rows = head_rows(*x.shape).assign(first=x.ravel(), second=y.ravel())
        rows = rows.assign(first_change=(x - full[0]).ravel(), second_change=(y - full[1]).ravel())
        table("heads on two sets of texts", rows, facts)


def second_set(material: Material) -> Sets | None:
    """Let the reader choose the second set; None until there is one.

    Raises: AnalysisError if the second set cannot be read, or if both sets hold the same texts.
    """
    selection = _labelled(material) if material.metric.metric == "labels" else _texts(material)
    if selection is None:
        return None
    second, name = selection
    second_texts = {item.text.segments for item in second.inputs}
    remaining = tuple(item for item in material.inputs if item.text.segments not in second_texts)
    if not remaining:
        raise AnalysisError(SAME)
    n_shared = len(material.inputs) - len(remaining)
    return Sets(first=replace(material, inputs=remaining), second=second, second_name=name, n_shared=n_shared)


def _texts(material: Material) -> tuple[Material, str] | None:
    choice = material.visit.choice
    options: dict[str, str] = {name: name for name in SINGLE_SAMPLES if name != choice.corpus}
    start = [name for name in options if SINGLE_SAMPLES[name] != VARIED][-1]  # the sample texts, unless on the page
    name = from_list(SECOND, {**options, UPLOAD: UPLOAD}, key=KEY, start=start, width=WIDTH)
    texts: tuple[Text, ...]
    if name == UPLOAD:
        st.file_uploader(
            UPLOADER,
            type=SUFFIXES,
            key=UPLOAD_KEY,
            max_upload_size=public.upload_megabytes(),
        )
        controls.column_pickers(UPLOAD_KEY)
        texts = controls.uploaded_texts(UPLOAD_KEY)
        if not texts:
            st.info(WAIT)
            return None
        name = st.session_state[UPLOAD_KEY].name
    else:
        texts = read_sample(SINGLE_SAMPLES[name])
    usable = frame.readable(choice, material.visit.engine, texts)
    if not usable:
        return None
    return replace(material, inputs=of_texts(usable)), name


def _labelled(material: Material) -> tuple[Material, str] | None:
    """A second labelled table with the same column names."""
    table = st.file_uploader(
        TABLE_UPLOADER, type=["csv", "tsv", "gz"], key=TABLE_KEY, max_upload_size=public.upload_megabytes()
    )
    if table is None:
        st.info(WAIT_TABLE)
        return None
    if material.table is None:
        raise RuntimeError("The metric labels has no table.")
    visit, first = material.visit, material.table.data
    checkpoint = visit.inference.checkpoint(visit.engine)
    labels = read_labels(checkpoint, table.name, table.getvalue(), first.text_columns, first.label_column)
    return replace(material, inputs=labels.items), table.name


def shared(n_shared: int, n_first: int) -> str:
    return (
        f"{counted(n_shared, 'text')} of this page {'is' if n_shared == 1 else 'are'} also in the second set and "
        f"{'counts' if n_shared == 1 else 'count'} only there, so that the sets have no text in common. "
        f"{counted(n_first - n_shared, 'text')} are left for the first set."
    )


def summary(pair: TwoSets, n_heads: int, n_texts: tuple[int, int]) -> str:
    sets = f"{counted(n_texts[0], 'text')} against {counted(n_texts[1], 'text')}"
    if pair.pearson.value != pair.pearson.value:
        return (
            f"{counted(n_heads, 'head')}, {sets}: in one of the sets all heads change the score by the same amount, "
            "so there is no correlation."
        )
    start = (
        f"{counted(n_heads, 'head')}, {sets}: Pearson's correlation of the changes is **{_interval(pair.pearson)}**, "
        f"that of their ranks (Spearman) {_interval(pair.spearman)}."
    )
    if any(within != within for within in pair.within):
        return start
    return (
        f"{start} For comparison, the two halves of one set: {pair.within[0]:.2f} (first) and {pair.within[1]:.2f} "
        "(second). Only a correlation well below these is more than chance between texts."
    )


def _interval(correlation: Correlation) -> str:
    return f"{correlation.value:.2f}{page_wording.interval(correlation.low, correlation.high, '.2f')}"
