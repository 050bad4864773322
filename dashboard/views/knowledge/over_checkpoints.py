"""What several checkpoints know about a task: maps on one scale, and scores from one checkpoint to the next."""

import numpy as np
import streamlit as st

from attention_sieve.core.checkpoints.saved_runs import steps_of_one_run
from attention_sieve.core.knowledge.trials.result import TrialResult
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.knowledge.estimates import CheckpointScores, scores_of_checkpoints
from attention_sieve.dashboard.figures.knowledge.words import score_name
from attention_sieve.dashboard.offers import runs_here
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import Probing, above_baselines
from attention_sieve.dashboard.views.pickers import halves


def checkpoints(probing: Probing) -> None:
    # Random weights come first: they stand for the checkpoint before training.
    ordered = sorted(probing.subjects, key=lambda subject: subject.random_weights is None)
    results = {
        subject.label: result for subject in ordered if (result := probing.of(subject, probing.task)) is not None
    }
    if len(results) < 2:
        st.info(wording.ONE_CHECKPOINT)
        return
    left, right = halves()
    with left:
        label = st.select_slider(
            wording.SHOWN_CHECKPOINT,
            list(results),
            value=probing.subjects[0].label,
            key="knowledge checkpoint",
            help=wording.SHOWN_HELP,
            persist_state="session",
        )
        _map(probing, results, label)
    with right:
        trained = [subject.label for subject in ordered if subject.random_weights is None and subject.label in results]
        steps = steps_of_one_run(trained, runs_here())
        scores = [_scores(label, results[label]) for label in (results if steps is None else trained)]
        name = score_name(probing.shown.report.is_regression)
        figure = scores_of_checkpoints(scores, steps, name)
        chart("scores of checkpoints", figure, probing.facts)


def _scores(label: str, result: TrialResult) -> CheckpointScores:
    report, together = result.report, result.together
    return CheckpointScores(
        label=label,
        best_head=report.estimate(report.best_head),
        best_layer=report.estimate(report.best_layer),
        together=None if together is None else together.estimate(result.n_heads_of_layer),
    )


def _map(probing: Probing, results: dict[str, TrialResult], label: str) -> None:
    all_values = [above_baselines(result.report) for result in results.values()]
    values, report = above_baselines(results[label].report), results[label].report
    title = score_name(True) if report.is_regression else wording.ABOVE
    signed = any(np.nanmin(grid, initial=0) < 0 for grid in all_values)
    picture = HeadMap(
        title=title,
        label=f"{title} of the heads of {label}, {probing.task.name}",
        values=values,
        bound=round_bound(max(float(np.nanmax(np.abs(grid), initial=0)) for grid in all_values)),
        signed=signed,
        low_label=wording.WORSE if signed else "",
        high_label=wording.BETTER,
        details=[(score_name(report.is_regression), report.grid(report.accuracy))],
    )
    show_head_map(
        picture,
        head_selection("knowledge of checkpoint", probing.heads, (label, probing.task.digest, state.n_pushed())),
        file="knowledge of a checkpoint",
        facts={**probing.facts, "shown checkpoint": label},
        paper=wording.JO_MYAENG,
    )
