"""What belongs together in a view of arcs: how it is drawn, its sieves and grid, and what is asked in it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.attention.settings import Head

Controls = Literal["with", "without", "alone"]


@dataclass(frozen=True)
class Group:
    """Views of the same text that highlight, pin and scroll together and share switches and slider.

    If one has too many links to draw, all are limited to the share that it can draw.
    """

    name: str
    text: str | None = None
    """What the views have in common where their tokens differ, place by place; None for the tokens."""


@dataclass(frozen=True, kw_only=True)
class ArcStyle:
    controls: Controls = "with"
    """Whether the switches are above the picture, left out, or shown alone: one view of a group can hold the switches
    for the others."""
    dashed: Collection[Head] = ()
    """Chosen heads whose links are dashed."""
    group: Group | None = None
    height: int | None = None
    """Maximum height of the rows in pixels, beyond which they scroll; None for that of windows and long texts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Overlay:
    """Sieves that the reader can lay over the arcs."""

    roles: Sequence[str] = ()
    """Those to choose from; the chosen one is always offered."""
    chosen: tuple[str, Bool[np.ndarray, "query key"]] | None = None
    """Name of a role and its sieve."""


@dataclass(frozen=True)
class GridBeside:
    """The grid of heads beside a view: there the arrow keys move to the next head or layer."""

    key: str
    frame: str
    """Name of the text in the grid, whose patterns are previewed."""


@dataclass(frozen=True, kw_only=True)
class AskedLink:
    """From which token a lesson asks where a head looks, and the reader's guess."""

    head: Head
    query: int
    """Position of the token that looks, in the whole text."""
    guess: int | None = None
    """Position of the guessed token, in the answer."""
    take: Callable[[int], None] | None = None
    """Takes the position of a guessed token; None in the answer."""
    label: str = ""
    """Label of the button that makes the pinned token the guess."""

    @property
    def is_answered(self) -> bool:
        """Whether the links are shown."""
        return self.take is None


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked of the reader: about a pinned token, or for the link of a lesson."""

    about_query: str
    """Label of a button beside a pinned query; empty for no button."""
    about_key: str
    """Label of a button beside a pinned key; empty for no button."""
    take: Callable[[str, int], None]
    """Called with "from" or "to" and the position of the pinned token in the whole text, before the run that follows a
    click on that button; while a link is asked for, also after Enter on a key."""
    link: AskedLink | None = None
    """The link that a lesson asks for, of a text that is whole; until it is answered, the attention is 0."""


AS_USUAL: Final = ArcStyle()
