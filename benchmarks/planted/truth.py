"""What is known about each head of a planted model, as it stands in `truth.json` beside the model's weights."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter

Head = tuple[int, int]
"""Layer and head, both from 0."""

Host = Literal["gpt2", "bert", "llama"]
LooksAt = Literal[
    "previous",
    "next",
    "ruler",
    "duplicate",
    "induction",
    "sink",
    "uniform",
    "own segment",
    "delimiter",
    "syntactic",
    "retrieval",
    "backup",
    "backup induction",
    "half induction",
    "nothing",
]

FILE: Final = "truth.json"


@dataclass(frozen=True)
class HeadTruth:
    """What one head looks at, what it adds to the residual stream, and whether the task fails without it."""

    layer: int
    head: int
    looks_at: LooksAt
    """*nothing*: no function, such as random weights. *backup*: the first token while the main head acts, and
    while that is off what that one looks at."""
    offset: int
    """Tokens back from the query (next: -1); 0 where the head does not look at a fixed distance."""
    writes: str
    """*token*, *negative token*, *previous token*, *nothing*, ..."""
    needed: bool
    attention: float | None = None
    """Measured on the texts of the task: the part that it gives to what it looks at, from 0 to 1; of heads that spread
    theirs, the part shared with an even one; of a backup, while the main head is off. None where no text tells."""

    @property
    def place(self) -> Head:
        """Layer and head."""
        return self.layer, self.head


@dataclass(frozen=True)
class Task:
    """Texts of one length, and what is predicted where."""

    kind: Literal["next token", "masked"]
    tokens: tuple[tuple[int, ...], ...]
    """Token ids of each text, special tokens included."""
    scored: tuple[tuple[int, ...], ...]
    """Positions of each text whose logits predict the targets; in a masked task these hold the mask token."""
    targets: tuple[tuple[int, ...], ...]
    """Token id that is right at each scored position."""
    segments: tuple[tuple[int, ...], ...] | None = None
    """Segment (token type) of each token, for encoders whose texts have two."""


@dataclass(frozen=True)
class Backup:
    """A head that does the work of another one only when that one is off."""

    main: Head
    backup: Head


@dataclass(frozen=True)
class SetEffect:
    """What becomes of the loss when several heads are off at once."""

    heads: tuple[Head, ...]
    rise: float
    """Rise of the loss, in nats per scored token."""


@dataclass(frozen=True)
class Effects:
    """The loss of the task, and its rise when outputs of heads are set to zero, in nats per scored token."""

    loss: float
    single: tuple[tuple[float, ...], ...]
    """Rise without one head: layers by heads."""
    sets: tuple[SetEffect, ...]


@dataclass(frozen=True)
class Truth:
    """All that is known about a planted model."""

    name: str
    seed: int
    host: Host
    family: str
    noise: str
    """*none*, *gaussian 1* (least) to *gaussian 5*, *uniform* or *trained*."""
    heads: tuple[HeadTruth, ...]
    """One for every head, by layer, then head."""
    task: Task
    needed: tuple[Head, ...]
    """Heads without which, alone, the task fails."""
    harmful: tuple[Head, ...]
    """Heads without which, alone, the loss is lower."""
    redundant_sets: tuple[tuple[Head, ...], ...]
    """Sets of which each proper subset can go without damage, but not all together."""
    backups: tuple[Backup, ...]
    effects: Effects

    @staticmethod
    def read(folder: Path) -> "Truth":
        """The truth that was written beside a model.

        Args:
            folder: A planted model.

        Raises:
            pydantic.ValidationError: The file is not such a table.
        """
        return TypeAdapter(Truth).validate_json((folder / FILE).read_text(encoding="utf-8"))

    def write(self, folder: Path) -> None:
        """Writes the truth beside a model.

        Args:
            folder: A planted model.
        """
        (folder / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")
