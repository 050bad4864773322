"""Training of a probe: its loss, and its score on validation texts, by epoch."""

from functools import cache
from typing import Final

import pandas as pd

from attention_sieve.core.tree_probes.probe import ProbeTraining
from attention_sieve.dashboard.figures.axes import learning_curve, round_ends, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, of_kind, template

LOSS_HEIGHT: Final = 150
GAP: Final = 34
"""Pixels between the two panels."""
SCORE_HEIGHT: Final = 110
HEIGHT: Final = LOSS_HEIGHT + GAP + SCORE_HEIGHT


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
    spec = _spec(max(1, *(epoch.number for epoch in epochs)), round_ends(losses)[1])
    return Figure(spec, pd.DataFrame(values, columns=["kind", "epoch", "value"]), _description(training))


@cache
def _spec(last: int, most_loss: float) -> Spec:
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
        scale=alt.Scale(domain=[0, 1], range=[HEIGHT, HEIGHT - SCORE_HEIGHT], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format="%", orient="left", grid=True),
    )
    best = of_kind("best").mark_rule(aria=False, color=INK, strokeDash=[2, 3])
    trained = of_kind("loss").encode(x=x, y=loss)
    held_out, scores = of_kind("validation loss").encode(x=x, y=loss), of_kind("score").encode(x=x, y=score)
    upper = alt.layer(
        *learning_curve(trained, False, tooltips("epoch", ("value", "loss", ".3~g"))),
        *learning_curve(held_out, True, tooltips("epoch", ("value", "validation loss", ".3~g"))),
    )
    lower = alt.layer(*learning_curve(scores, True, tooltips("epoch", ("value", "validation UAS", ".1%"))))
    best = best.encode(x=x, y=alt.YValue(0), y2=alt.Y2Value(HEIGHT))
    return template(
        alt.layer(best, upper, lower).resolve_scale(y="independent"),
        title="Learning curve",
        reading=("blue, round: training texts; orange, square: validation texts", "dotted line: the epoch kept"),
        height=HEIGHT,
    )


def _description(training: ProbeTraining) -> str:
    first, best = training.epochs[0], training.epochs[training.best]
    return (
        f"Loss of a word on {counted(training.n_held_out, 'text')} of the validation split, from "
        f"{first.held_out_loss:.3g} nats at first to {best.held_out_loss:.3g} after {counted(best.number, 'epoch')}, "
        f"which is kept, of {len(training.epochs) - 1:,}; UAS of these texts then {best.held_out_score:.1%}. "
        f"Trained on {counted(training.n_texts, 'text')}."
    )
