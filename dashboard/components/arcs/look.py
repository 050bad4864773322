"""What belongs together in a view of arcs: its settings in the form of the link, which the component and the session
share, how it is drawn, its sieves and grid, and what is asked in it."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.roles import BY_NAME
from attention_sieve.core.roles.rules import MOST_BYTES, PREFIX
from attention_sieve.dashboard.figures.text.arcs import Side

LONGEST: Final = 2 * MOST_BYTES
"""Maximum length of a setting, in characters: a written role is its own name."""
_PATTERNS: Final = {
    "view": re.compile("matrix"),
    "rows": re.compile("words"),
    "colours": re.compile("words"),
    "specials": re.compile("hidden"),
    "sieve": re.compile("|".join((*map(re.escape, BY_NAME), f"{PREFIX}[A-Za-z0-9_-]+"))),
    "segments": re.compile("[AB]-[AB]"),
    "strongest": re.compile("[123]"),
    "share": re.compile(r"1|0\.(05|[1-9]5?)"),
    "pin": re.compile(r"(from|to)-[0-9]{1,6}"),
    "hidden": re.compile(r"[0-9]{1,3}-[0-9]{1,3}(,[0-9]{1,3}-[0-9]{1,3})*"),
}


@dataclass(frozen=True, kw_only=True)
class ArcSettings:
    """The settings of the arcs. Each field is a query parameter, and empty by default."""

    view: str = ""
    """`matrix` instead of arcs."""
    rows: str = ""
    """`words` instead of word pieces."""
    colours: str = ""
    """`words` gives the links of each word their own colour."""
    specials: str = ""
    """`hidden` hides special tokens."""
    sieve: str = ""
    """The role whose sieve is laid over the links."""
    segments: str = ""
    """Only links from one segment to another: `A-B`."""
    strongest: str = ""
    """Number of strongest links drawn for each word: 1, 2 or 3, whatever their share."""
    share: str = ""
    """Top share of each query's attention that is drawn: 0.05 to 1 in steps of 0.05."""
    pin: str = ""
    """The pinned token: `from-5` or `to-5`, by its position in the whole text, 0-based."""
    hidden: str = ""
    """Chosen heads whose links are hidden: `3-7,2-5`."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """The query parameters: settings that differ from the default."""
        return {name: value for name, value in asdict(self).items() if value}

    @property
    def top_share(self) -> float | None:
        return float(self.share) if self.share else None

    @property
    def n_strongest(self) -> int | None:
        """Number of links drawn for each query; None where they are drawn by share."""
        return int(self.strongest) if self.strongest else None

    def on(self, queries: Side, keys: Side) -> "ArcSettings":
        """The settings without a pin or segments that these tokens lack."""
        return replace(
            self,
            pin=self.pin if _is_on(self.pin, queries, keys) else "",
            segments=self.segments if self.segments in _pairs(queries, keys) else "",
        )


NAMES: Final = tuple(field.name for field in fields(ArcSettings))


def read_look(values: Mapping[str, object]) -> ArcSettings:
    """Read settings from values by name; invalid ones are left out."""
    return ArcSettings(**{name: _fitting(name, values.get(name)) for name in NAMES})


def _fitting(name: str, value: object) -> str:
    fits = isinstance(value, str) and len(value) <= LONGEST and _PATTERNS[name].fullmatch(value)
    return str(value) if fits else ""


def _is_on(pin: str, queries: Side, keys: Side) -> bool:
    side, _, position = pin.partition("-")
    tokens = queries if side == "from" else keys
    return bool(position) and 0 <= int(position) - tokens.start < len(tokens.tokens)


def _pairs(queries: Side, keys: Side) -> set[str]:
    """The pairs of segments to choose from; none if each side has only one."""
    from_, to = ([letter for number, letter in enumerate("AB") if number in side.segments] for side in (queries, keys))
    return {f"{query}-{key}" for query in from_ for key in to} if len(from_) > 1 or len(to) > 1 else set()


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
    grammar: Bool[np.ndarray, "query key"] | None = None
    """Links that a syntactic relation joins, which have a colour of their own; None where they are not known."""


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
