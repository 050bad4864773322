"""Sentences of the page Laboratory."""

from collections.abc import Sequence
from math import isnan, log
from typing import Final

from attention_sieve.core.attention.settings import Head, head_names
from attention_sieve.core.laboratory import settings
from attention_sieve.core.laboratory.sequences import VOCABULARY
from attention_sieve.core.probe_texts.make import ProbeKind
from attention_sieve.core.roles.measures import USUAL_TAU
from attention_sieve.dashboard.controls import N_PROBES
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.wording import at_most

NUMBERS: Final = {
    "layers": str(settings.N_LAYERS),
    "heads": str(settings.N_HEADS),
    "width": str(settings.WIDTH),
    "parameters": "74,048",
    "vocabulary": str(len(VOCABULARY)),
    "length": str(settings.LENGTH),
    "least": str(settings.DRAWN[0]),
    "most": str(settings.DRAWN[1]),
    "fixed": str(settings.FIXED),
    "batch": str(settings.BATCH),
    "rate": f"{settings.LEARNING_RATE:g}",
    "probes": str(N_PROBES),
    "tau": f"{USUAL_TAU['share']:g}",
    "example": "repeats-drawn/checkpoint-150",
}
"""Numbers in `method.md`; a test counts the parameters of the model."""
SEE: Final = (
    "A small model learns here, in about half a minute, to continue sequences that repeat. Move through its training, "
    "and see when a head begins to look at the token before, and when the induction heads appear that build on it."
)
PERIODS: Final = "Period of the sequences"
PERIODS_HELP: Final = (
    "Drawn: each sequence repeats after another number of tokens, so a head has to find the earlier copy. Fixed, the "
    f"control: every sequence repeats after {settings.FIXED} tokens, so looking back a fixed distance is enough."
)
OPTIONS: Final[dict[str, settings.Periods]] = {"drawn": "drawn", "fixed (control)": "fixed"}
SEED: Final = "Seed"
SEED_HELP: Final = "For the first weights and the sequences: the same seed gives the same model."
TRAIN: Final = "Train"
NO_RUN: Final = "No model has been trained here yet. Press Train: it takes about half a minute."
NONE_OFFERED: Final = (
    "Whoever runs it can offer a model that was trained elsewhere: see “For a class” in `dashboard/README.md`."
)
RUN: Final = "Model"
AT: Final = "Training step"
AT_HELP: Final = "The saved steps of the training; step 0 is the model with random weights."
GAPS: Final = "Probe texts"
GAPS_HELP: Final = (
    "Texts over which heads are measured. With gaps drawn, a copy is at another distance each time; with a fixed "
    "period, always at the same, so a head that looks back that far passes for an induction head."
)
KINDS: Final[dict[str, ProbeKind]] = {"gaps drawn": "repeats", "fixed period": "fixed-repeats"}
PATTERNS: Final = "Patterns"
PATTERNS_HELP: Final = "Where each head looks in one probe text: rows look at columns, darker for more attention."
MEASURING: Final = "Measuring the heads of the saved steps"
OFF: Final = "Switch off"
OFF_HELP: Final = "The output of these heads is set to 0, in the grid and in the numbers beside."
COPIED: Final = "Loss of copied tokens"
COPIED_HELP: Final = "In nats, over the copied tokens of the probe texts; lower is better."
PREDICTED: Final = "Copied tokens predicted"
PREDICTED_HELP: Final = "Share of the copied tokens to which the model gives the highest probability."
RISE: Final = "rise of the loss of copied tokens without each head, in nats"
WORSE: Final = "loss rises"
BETTER: Final = "loss falls"
IN_INSPECT: Final = "Inspect this step"
IN_COMPARE: Final = "Compare with step 0"
PLAY: Final = "Play"
STOP_FILM: Final = "Stop the film"
FILM_FILE: Final = "Film as GIF"
ANOTHER: Final = "Train another model"
CARRY: Final = 0.5
"""Share of what there is to lose, up to the loss of a guess, that heads carry together."""
LITTLE: Final = 0.1
"""Share of what heads carry together that one of them may cost to be little."""
NO_COPIES_DRAWN: Final = "No head looks mostly at the copies where gaps are drawn."
NO_COPIES: Final = "No head looks mostly at the copies, on either kind of probe text."


def named(periods: settings.Periods, seed: int) -> str:
    return f"repeats-{periods}" + (f"-seed-{seed}" if seed else "")


def finding(n_copying: int, losses: tuple[float, float, float]) -> str:
    """What the copying rests on, in at most 20 words.

    Args:
        n_copying: number of heads with the induction role where gaps are drawn.
        losses: of copied tokens, in nats: with all heads on, without the one of them that costs most, without all.
    """
    loss, without_one, without_all = losses
    one, together = without_one - loss, without_all - loss
    if not n_copying:
        return NO_COPIES_DRAWN
    if together < CARRY * (log(len(VOCABULARY)) - loss):
        return f"{_heads(n_copying, 'looks', 'look')} at the copies, but the model does not yet rest on that."
    if n_copying == 1:
        return "One head carries the copying: without it the model hardly copies."
    if one > LITTLE * together:
        return f"{n_copying} heads carry the copying, and without one of them it is clearly worse."
    return f"{n_copying} heads carry the copying, so losing one costs little."


def losses(n_copying: int, losses: tuple[float, float, float]) -> str:
    """The numbers behind it; arguments as of `finding`."""
    loss, without_one, without_all = losses
    alone = f"Loss of copied tokens: {loss:.2f} nats"
    if not n_copying:
        return f"{alone}; a guess: {log(len(VOCABULARY)):.2f}."
    if n_copying == 1:
        return f"{alone}; without it {without_all:.2f}."
    return f"{alone}; without one of them at most {without_one:.2f}, without all {without_all:.2f}."


def verdict(n_drawn: int, n_rulers: int) -> str:
    """What the heads that look at copies are.

    Args:
        n_drawn: number of heads with the induction role where gaps are drawn.
        n_rulers: number of heads that have it only with a fixed period; one at least, or a head of the others.
    """
    found = f"{_heads(n_drawn, 'finds', 'find')} the copies where gaps are drawn, too: **induction heads**."
    if not n_rulers:
        return found
    rulers = (
        f"{_heads(n_rulers, 'looks', 'look')} at the copies only with a fixed period, and not where gaps are drawn: "
        "what passes for an induction head is a **ruler**, which looks back a fixed distance."
    )
    return f"{found} {rulers}" if n_drawn else rulers


def stand_ins(heads: Sequence[Head], together: float, most_alone: float, p: float) -> str:
    """Which heads stand in for one another.

    Args:
        together: rise of the loss without all of them, in nats a token.
        most_alone: without the one of them that costs most.
        p: of the test of what goes beyond; NaN where there are too few texts for one.
    """
    stand = "may stand" if isnan(p) else "stand"
    return (
        f"{head_names(heads)} {stand} in for one another: without all of them the loss rises by {together:.2g} nats, "
        f"without one of them {at_most(max(0, most_alone), together)}."
    )


def _heads(number: int, one: str, many: str) -> str:
    return f"{counted(number, 'head')} {one if number == 1 else many}"


def frame(step: int, loss: float | None) -> str:
    """Above a frame of the film."""
    return f"step {step:,}" if loss is None else f"step {step:,}, loss of validation texts {loss:.2f}"
