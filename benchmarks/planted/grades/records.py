"""What is kept of the grading of one planted model, as a file of JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float
from pydantic import TypeAdapter

from benchmarks.planted.truth import SetEffect, Truth

Verdict = Literal["yes", "no", "not enough"]
Outcome = Literal["right", "wrong", "not enough", "not graded"]
ByHead = tuple[tuple[float, ...], ...]
"""A number of each head: layers by heads."""


@dataclass(frozen=True)
class Statement:
    """A statement that the program makes about one head, and whether it is true."""

    about: str
    """What makes it: *claim*, *roles*, *copying*, *name*, *link*."""
    states: str
    """What is stated of the head: mostly the name of a role."""
    texts: str
    """On which texts."""
    layer: int
    head: int
    truth: bool | None
    """None where design and attention, as measured by plain transformers, do not agree: then it is not graded."""
    verdict: Verdict
    score: float | None = None
    """By which it is decided; None where there is no number."""

    @property
    def outcome(self) -> Outcome:
        """Whether the verdict is the truth."""
        if self.truth is None:
            return "not graded"
        if self.verdict == "not enough":
            return "not enough"
        return "right" if (self.verdict == "yes") == self.truth else "wrong"


@dataclass(frozen=True)
class Refusal:
    """What the program does not say of a model, and why, in its own words."""

    asked: str
    reason: str


@dataclass(frozen=True)
class MeasureValues:
    """The importance of all heads by one measure of the program."""

    measure: str
    values: ByHead
    is_signed: bool
    """Whether its sign says if the loss rises or falls without the head."""


@dataclass(frozen=True)
class DirectEffects:
    """How far the program's direct effects on logits are from those by hooks on plain transformers."""

    greatest_difference: float
    """In logits, over all heads and positions that are compared."""
    greatest: float
    """The greatest direct effect of a head, in logits."""


@dataclass(frozen=True)
class ModelGrades:
    """All that the program says of one planted model, beside the truth."""

    truth: Truth
    statements: tuple[Statement, ...]
    refusals: tuple[Refusal, ...]
    measures: tuple[MeasureValues, ...]
    measured_sets: tuple[SetEffect, ...]
    """Rise of the loss without sets of heads, as the program measures it."""
    direct: DirectEffects | None
    """None for encoders, of which the program measures none."""
    seconds: float
    """Processor time."""

    @staticmethod
    def read(file: Path) -> "ModelGrades":
        """The grades of one file."""
        return TypeAdapter(ModelGrades).validate_json(file.read_text("utf-8"))

    def write(self, file: Path) -> None:
        """Write a file that is whole or not there."""
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)), "utf-8")
        part.replace(file)


def by_head(values: Float[np.ndarray, "layer head"]) -> ByHead:
    """An array as it is kept."""
    return tuple(tuple(map(float, row)) for row in values)
