"""Probes of trees: their UAS against fixed offsets and random weights, as bars with intervals, and their training."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal

import pandas as pd

from attention_sieve.core.tree_probes.probe import LEVEL, AttachmentScore, ProbeTraining
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import learning_curve, round_ends, shares_axis, tooltips
from attention_sieve.dashboard.figures.figure import GREY, INK, Figure, Spec, alt, counted, rows_of, template

ROW: Final = 34
"""Height of one bar in pixels."""
Group = Literal["probe", "random weights", "fixed offset"]
LOOKS: Final[dict[Group, str]] = {"probe": HEAD_COLORS[0], "random weights": HEAD_COLORS[1], "fixed offset": GREY}


_share = partial(shares_axis, title="UAS (share of words)")


@dataclass(frozen=True)
class NamedScore:
    name: str
    group: Group
    score: AttachmentScore


def probe_scores(scores: Sequence[NamedScore]) -> Figure:
    """A bar for each score with its interval.

    Source: Clark et al. 2019, Table 3, drawn.
    """
    bars = pd.DataFrame(
        {
            "name": [bar.name for bar in scores],
            "group": [bar.group for bar in scores],
            "uas": [bar.score.share for bar in scores],
            "low": [bar.score.low for bar in scores],
            "high": [bar.score.high for bar in scores],
            "label": [f"{bar.score.share:.1%}" for bar in scores],
        }
    )
    data = pd.concat([bars.assign(kind=kind) for kind in ("bar", "interval", "label")])
    return Figure(_scores_spec(len(scores)), data, _scores_description(scores))


@cache
def _scores_spec(n_rows: int) -> Spec:
    axis = alt.Axis(labelLimit=220, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("name:N", title=None, sort=None, axis=axis)
    tooltip = tooltips(("name", "probe"), ("uas", "UAS", ".1%"), ("low", "interval from", ".1%"), ("high", "to", ".1%"))
    colors = alt.Scale(domain=list(LOOKS), range=list(LOOKS.values()))
    bar = rows_of("bar").mark_bar(height=alt.RelativeBandSize(0.6))
    bar = bar.encode(
        y=y,
        x=_share("uas"),
        color=alt.Color("group:N", scale=colors, legend=None),
        tooltip=tooltip,
    )
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2)
    interval = interval.encode(y=y, x=_share("low"), x2=alt.X2("high"), tooltip=tooltip)
    label = rows_of("label").mark_text(color=INK, align="left", dx=6, fontSize=11)
    return template(
        alt.layer(bar, interval, label.encode(y=y, x=_share("high"), text=alt.Text("label:N"))),
        title="Share of correct syntactic heads",
        reading=("blue: probe; orange: on random weights; grey: fixed offset", "line: interval"),
        height=ROW * n_rows,
    )


def _scores_description(scores: Sequence[NamedScore]) -> str:
    score = scores[0].score
    parts = [f"{bar.name} {bar.score.share:.1%} ({bar.score.low:.1%} to {bar.score.high:.1%})" for bar in scores]
    return (
        f"Share of {score.n_words:,} words of {counted(score.n_texts, 'text')} whose head is predicted correctly, "
        f"with {LEVEL:.0%} intervals: {'; '.join(parts)}."
    )


LOSS_HEIGHT: Final = 150
GAP: Final = 34
"""Pixels between the two panels."""
SCORE_HEIGHT: Final = 110
CURVE_HEIGHT: Final = LOSS_HEIGHT + GAP + SCORE_HEIGHT


def probe_curve(training: ProbeTraining) -> Figure:
    """Loss per word over epochs, below it UAS on the validation texts, and the selected epoch."""
    epochs = training.epochs
    values = [
        *(("loss", epoch.number, epoch.loss) for epoch in epochs if epoch.loss is not None),
        *(("validation loss", epoch.number, epoch.held_out_loss) for epoch in epochs),
        *(("score", epoch.number, epoch.held_out_score) for epoch in epochs),
        ("best", training.best, None),
    ]
    losses = (loss for epoch in epochs for loss in (epoch.loss, epoch.held_out_loss) if loss is not None)
    spec = _curve_spec(max(1, *(epoch.number for epoch in epochs)), round_ends(losses)[1])
    return Figure(spec, pd.DataFrame(values, columns=["kind", "epoch", "value"]), _curve_description(training))


@cache
def _curve_spec(last: int, most_loss: float) -> Spec:
    x = alt.X(
        "epoch:Q",
        title="epoch",
        scale=alt.Scale(domain=[0, last], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    loss = alt.Y(
        "value:Q",
        title="−ln p of its head (nats)",
        scale=alt.Scale(domain=[0, most_loss], range=[LOSS_HEIGHT, 0], nice=False),
        axis=alt.Axis(tickCount=5),
    )
    score = alt.Y(
        "value:Q",
        title="correct heads (UAS)",
        scale=alt.Scale(domain=[0, 1], range=[CURVE_HEIGHT, CURVE_HEIGHT - SCORE_HEIGHT], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format="%", orient="left", grid=True),
    )
    best = rows_of("best").mark_rule(color=INK, strokeDash=[2, 3])
    trained = rows_of("loss").encode(x=x, y=loss)
    held_out, scores = rows_of("validation loss").encode(x=x, y=loss), rows_of("score").encode(x=x, y=score)
    upper = alt.layer(
        *learning_curve(trained, False, tooltips("epoch", ("value", "loss", ".3~g"))),
        *learning_curve(held_out, True, tooltips("epoch", ("value", "validation loss", ".3~g"))),
    )
    lower = alt.layer(*learning_curve(scores, True, tooltips("epoch", ("value", "validation UAS", ".1%"))))
    best = best.encode(x=x, y=alt.YValue(0), y2=alt.Y2Value(CURVE_HEIGHT))
    return template(
        alt.layer(best, upper, lower).resolve_scale(y="independent"),
        title="Learning curve",
        reading=("blue, round: training texts; orange, square: validation texts", "dotted line: the epoch kept"),
        height=CURVE_HEIGHT,
    )


def _curve_description(training: ProbeTraining) -> str:
    first, best = training.epochs[0], training.epochs[training.best]
    return (
        f"Loss of a word on {counted(training.n_held_out, 'text')} of the validation split, from "
        f"{first.held_out_loss:.3g} nats at first to {best.held_out_loss:.3g} after {counted(best.number, 'epoch')}, "
        f"which is kept, of {len(training.epochs) - 1:,}; UAS of these texts then {best.held_out_score:.1%}. "
        f"Trained on {counted(training.n_texts, 'text')}."
    )
