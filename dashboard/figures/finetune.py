"""Progress of a fine-tuning run: its loss, and its performance on validation texts."""

from functools import cache
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from attention_sieve.core.finetuning.chance import against_chance
from attention_sieve.core.running import Progress
from attention_sieve.dashboard.figures.axes import learning_curve, round_ends, steps_position, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, rows_of, template

Measure = Literal["accuracy", "correlation"]

LOSS_HEIGHT: Final = 170
GAP: Final = 34
"""Pixels between the two panels."""
HELD_OUT_HEIGHT: Final = 120
HEIGHT: Final = LOSS_HEIGHT + GAP + HELD_OUT_HEIGHT
TICK: Final = 8
"""Height in pixels of the mark of a saved checkpoint."""
NOTHING: Final = "No steps yet."


def training_curve(progress: Progress) -> Figure:
    """Loss over steps, below it accuracy or correlation on the validation texts, and where checkpoints were saved.

    Dashed: what one and the same answer gets for all validation texts, if the run has recorded it.

    Returns: the figure; a loss or a measure that is not a finite number is left out and counted in the description.
    """
    measure = _measure(progress)
    rows = [
        *(("loss", step, loss) for step, loss in progress.losses),
        *(("validation loss", report.step, report.loss) for report in progress.held_out),
        *(("measure", report.step, getattr(report, measure)) for report in progress.held_out),
    ]
    points = pd.DataFrame(rows, columns=["kind", "step", "value"]).astype({"step": int, "value": float})
    finite = np.isfinite(points["value"])
    fixed = _fixed_rows(progress, points[finite], measure)
    data = pd.concat([points[finite], fixed])
    losses = data[data["kind"].isin(["loss", "validation loss", "loss of one answer"])]["value"]
    spec = _spec(measure, _last(progress), round_ends(losses)[1])
    return Figure(spec, data, _description(progress, points, measure))


def _measure(progress: Progress) -> Measure:
    if progress.held_out:
        return "correlation" if all(report.accuracy is None for report in progress.held_out) else "accuracy"
    return "correlation" if progress.validation is not None and progress.validation.majority is None else "accuracy"


def _last(progress: Progress) -> int:
    """The step at which the run ends, or 1 before that is known."""
    return max(1, progress.steps, progress.step)


def _fixed_rows(progress: Progress, points: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    """Rows other than measurements: the steps of the run, chance, the last interval, saved checkpoints."""
    rows: list[dict[str, Any]] = [{"kind": "span", "step": 0, "end": _last(progress)}]
    rows += [{"kind": "saved", "step": step} for step in progress.saved]
    validation, beside = progress.validation, against_chance(progress)
    if measure == "correlation":
        rows.append({"kind": "chance", "value": 0.0, "label": "chance: 0"})
    elif validation is not None and validation.majority is not None:
        label = f"most frequent class: {validation.majority:.2g}"
        rows.append({"kind": "chance", "value": validation.majority, "label": label})
    if validation is not None and validation.mean_loss is not None:
        label = f"always the mean: {validation.mean_loss:.2g}"
        rows.append({"kind": "loss of one answer", "value": validation.mean_loss, "label": label})
    if beside is not None and beside.value is not None:
        low, high = beside.interval
        rows.append({"kind": "interval", "step": beside.step, "value": low, "high": high})
    if not len(points):
        rows.append({"kind": "note", "value": 1.0, "label": NOTHING})
    return pd.DataFrame(rows)


@cache
def _spec(measure: Measure, last: int, most_loss: float) -> Spec:
    # Marks have no names for screen readers: a kind may have no marks, and the description is complete.
    x = steps_position("step", "training step", last)
    span = rows_of("span").mark_rule(color=INK, strokeOpacity=0.4)
    saved = rows_of("saved").mark_rule(color=INK, strokeWidth=3)
    axis = span.encode(x=x, x2=alt.X2("end"), y=alt.YValue(LOSS_HEIGHT))
    ticks = saved.encode(
        x=x, y=alt.YValue(HEIGHT - TICK), y2=alt.Y2Value(HEIGHT), tooltip=tooltips(("step", "saved at step"))
    )
    return template(
        alt.layer(axis, _losses(x, most_loss), _measures(x, measure), ticks).resolve_scale(y="independent"),
        title="Fine-tuning so far",
        reading=(
            "blue, round: training texts; orange, square: validation texts",
            "dashed, level: always the same answer; vertical: 95% interval",
            "short bars on the axis: saved checkpoints",
        ),
        height=HEIGHT,
    )


def _losses(x: "alt.X", most: float) -> "alt.LayerChart":
    """The upper panel."""
    scale = alt.Scale(domain=[0, most], range=[LOSS_HEIGHT, 0], nice=False)
    loss = alt.Y("value:Q", title="loss", scale=scale, axis=alt.Axis(tickCount=5))
    trained, held_out = rows_of("loss").encode(x=x, y=loss), rows_of("validation loss").encode(x=x, y=loss)
    note = rows_of("note").mark_text(color=INK, fontSize=11, align="left", baseline="top", dy=12)
    return alt.layer(
        *learning_curve(trained, False, _at_step("training loss")),
        *learning_curve(held_out, True, _at_step("validation loss")),
        *_one_answer("loss of one answer", loss),
        note.encode(x=alt.XValue(8), y=loss, text=alt.Text("label:N")),
    )


def _measures(x: "alt.X", measure: Measure) -> "alt.LayerChart":
    """The lower panel."""
    lowest = -1 if measure == "correlation" else 0
    ticks = [-1, -0.5, 0, 0.5, 1] if lowest else [0, 0.25, 0.5, 0.75, 1]
    y = alt.Y(
        "value:Q",
        title=measure,
        scale=alt.Scale(domain=[lowest, 1], range=[HEIGHT, HEIGHT - HELD_OUT_HEIGHT], nice=False),
        axis=alt.Axis(values=ticks, format=".2~f", orient="left", grid=True),
    )
    measured = rows_of("measure").encode(x=x, y=y)
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2)
    return alt.layer(
        *_one_answer("chance", y),
        interval.encode(x=x, y=y, y2=alt.Y2("high")),
        *learning_curve(measured, True, _at_step(f"validation {measure}")),
    )


def _one_answer(kind: str, y: "alt.Y") -> "list[alt.Chart]":
    """The line of what one and the same answer for all texts gets, and its label."""
    label = rows_of(kind).mark_text(color=INK, fontSize=11, align="right", baseline="bottom", dx=-6, dy=-2)
    return [
        rows_of(kind).mark_rule(color=INK, strokeDash=[2, 3]).encode(y=y),
        label.encode(x=alt.XValue("width"), y=y, text=alt.Text("label:N")),
    ]


def _at_step(name: str) -> "list[alt.Tooltip]":
    return tooltips(("step", "step", ",d"), ("value", name, ".3~g"))


def _description(progress: Progress, points: pd.DataFrame, measure: Measure) -> str:
    finite = points[np.isfinite(points["value"])]
    losses, measures = finite[finite["kind"] == "loss"], finite[finite["kind"] == "measure"]
    steps = f"step {progress.step:,} of {progress.steps:,}" if progress.steps else f"step {progress.step:,}"
    sentences = [f"Loss and validation {measure} over training steps, at {steps}."]
    if not len(finite):
        sentences = [f"{NOTHING} {sentences[0]}"]
    if len(losses):
        first, last = (f"{loss.value:.3g} at step {loss.step:,}" for loss in losses.iloc[[0, -1]].itertuples())
        sentences.append(f"Training loss {first}, {last}.")
    if len(measures):
        best, last = measures.loc[measures["value"].idxmax()], measures.iloc[-1]
        sentences.append(
            f"Validation {measure} {last['value']:.3g} at step {last['step']:,}, best {best['value']:.3g} at step "
            f"{best['step']:,}."
        )
    if (beside := against_chance(progress)) is not None:
        sentences.append(f"{beside.in_words}.")
    sentences.append(f"{counted(len(progress.saved), 'checkpoint')} saved.")
    if missing := len(points) - len(finite):
        sentences.append(f"{counted(missing, 'value')} that cannot be drawn left out.")
    return " ".join(sentences)
