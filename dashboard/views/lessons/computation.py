"""What the computation of a lesson's step works with, and what it gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.dashboard.components.arcs.look import AskedLink
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.frame import Visit

Guess = Head | int | None
"""A head, a token position or a number; None if the reader has not guessed."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StepInputs:
    visit: Visit
    text_attention: TextAttention | None = None
    """Attention of the text on screen, on pages with a text."""
    tested: Corpus | None = None
    """The corpus and its tests, on the page Roles."""
    others: tuple[Engine, ...] = ()
    """The checkpoints compared with that of the visit."""
    typed: str = ""
    """The text on screen."""

    @property
    def attention(self) -> TextAttention:
        assert self.text_attention is not None, "only steps on pages with a text ask for its attention"
        return self.text_attention


@dataclass(frozen=True)
class Phrase:
    """A phrase of the lessons' language, and its values."""

    name: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class StepResult:
    values: Mapping[str, str]
    """Values in the text of the step, formatted."""
    section: Literal["", "none"] = ""
    """`none` selects the text for a checkpoint without such a head."""
    heads: tuple[Head, ...] = ()
    """Heads to show in the grid and the arcs."""
    ranking: tuple[tuple[str, float], ...] = ()
    """What the checkpoint makes of the text: sentences with their similarity, or predictions with their probability."""
    is_prediction: bool = False
    answer: int | None = None
    """The number, of a question about a number."""
    most: int | None = None
    """The largest number that such a guess can be."""
    query: int | None = None
    """The token of which the step asks, or says, at which word the first of these heads looks most."""
    of_guess: Callable[[Guess], str] = str
    """Describes a guess: its name, and how close it is."""
    is_right: Callable[[Guess], bool] = lambda guess: False
    is_close: Callable[[Guess], bool] = lambda guess: False
    """Whether a guess that is not right is at least near."""
    doing: Callable[[Guess], Phrase | None] = lambda guess: None
    """Says what a wrong guess does, or how it is wrong."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What a step shows beside the grid of its page."""

    asked: AskedLink | None = None
    """The link that it asks for or answers, in the arcs."""
    instead: Callable[[], None] | None = None
    """Draws something else in the place of the arcs."""


Finds = Callable[[StepInputs], StepResult]


def replace_values(
    result: StepResult, values: Mapping[str, str], *, heads: tuple[Head, ...] | None = None
) -> StepResult:
    """The result with further values, and with other heads to show unless these are None."""
    return replace(result, values={**result.values, **values}, heads=result.heads if heads is None else heads)
