"""What a planted head does, as a small value, and what it compares and copies to do it."""

from dataclasses import dataclass
from typing import Final

from benchmarks.planted.stream import Slot
from benchmarks.planted.truth import HeadTruth

SHARP: Final = 60.0
"""Score of the token that a head looks for, in logits of attention; half of it for the first token, where a head looks
that finds nothing."""


@dataclass(frozen=True)
class Term:
    """A part of an attention score: a slot of the query, moved by some tokens, times a slot of the key."""

    key: Slot
    weight: float
    query: Slot | None = None
    """None: the same for each query; then the key's slot is a mark."""
    moved: int = 0
    """Tokens back; only where the query's slot holds the code of a position."""


@dataclass(frozen=True)
class Write:
    """What a head adds to the stream: a slot of the token that it looks at, or a word where that slot is a mark."""

    source: Slot
    target: Slot
    word: str | None = None


@dataclass(frozen=True)
class Function:
    """What one head does."""

    looks_at: str
    """One of LOOKS, or *ruler*, *previous*, *next*, *uniform* or *nothing*."""
    offset: int = 0
    """Tokens back from the query, for rulers."""
    writes: str = "nothing"
    """One of WRITES, *nothing* or *noise*."""
    strength: float = 1.0
    """Factor on what is written; negative: its opposite."""
    says_when_found: bool = False
    """It also marks the query as filled when it looks at a word."""
    backs_up: bool = False
    """It looks at the first token where an earlier head has marked the query as filled."""

    def terms(self) -> tuple[Term, ...]:
        """The parts of its attention score."""
        if self.looks_at in ("uniform", "nothing"):
            return ()
        rest = () if self.looks_at in ("sink", "own segment") else (Term("first", SHARP / 2),)
        off = (Term("first", 3 * SHARP, query="filled"),) if self.backs_up else ()
        if self.looks_at in ("ruler", "previous", "next"):
            return Term("position", SHARP, query="position", moved=self.offset), *rest, *off
        return *LOOKS[self.looks_at], *rest, *off

    def parts(self) -> tuple[Write, ...]:
        """What it adds to the stream."""
        if self.writes in ("nothing", "noise"):
            return ()
        found = (Write("word", "filled"),) if self.says_when_found else ()
        return WRITES[self.writes], *found

    def truth(self, layer: int, head: int, *, is_needed: bool) -> HeadTruth:
        """What is known about the head at a place."""
        looks_at = "induction" if self.looks_at == "pointed" else self.looks_at
        if self.backs_up:
            looks_at = "backup induction" if looks_at == "induction" else "backup"
        writes = f"negative {self.writes}" if self.strength < 0 else self.writes
        return HeadTruth(layer, head, looks_at, self.offset, writes, is_needed)


LOOKS: Final[dict[str, tuple[Term, ...]]] = {
    "duplicate": (
        Term("token", SHARP, query="token"),
        Term("position", -SHARP, query="position"),  # not itself
    ),
    "induction": (Term("previous", SHARP, query="token"),),
    "half induction": (Term("previous", SHARP, query="token"),),
    "pointed": (Term("position", SHARP, query="pointer", moved=-1),),  # the token after the one pointed at
    "sink": (Term("first", SHARP),),
    "own segment": (Term("segment", SHARP, query="segment"),),
    "delimiter": (Term("stop", SHARP),),
    "syntactic": (Term("governor", SHARP, query="governed"),),  # an auxiliary looks at the verb of its class
    "retrieval": (Term("name", SHARP, query="asks"),),
}

WRITES: Final = {
    "token": Write("token", "output"),
    "previous token": Write("token", "previous"),
    "word before": Write("previous", "output"),
    "position": Write("position", "pointer"),
    "class": Write("governed", "governed"),
    "seen": Write("word", "seen"),
    "again": Write("word", "output", word="again"),
    "again where seen": Write("seen", "output", word="again"),
    "constant": Write("first", "output", word="again"),
    "competitor": Write("first", "output", word="?"),
}
