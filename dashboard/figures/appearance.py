"""Colours, letters, marks and names of roles, chosen heads and the scales of scores, defined only here."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.rules import written_role

_WHITE = "#FFFFFF"
_BLACK = "#000000"


@dataclass(frozen=True)
class RoleLook:
    """How one role is drawn. The letter stands in for the colour wherever colours cannot be told apart."""

    name: str
    """The role as `attention_sieve.core.roles.roles` names it."""
    letter: str
    """One letter, different for every role."""
    color: str
    ink: str
    """Text on that fill, black or white, at least 4.5:1."""
    label: str
    shape: str = ""
    """Mark, to distinguish roles without colours: a Vega symbol, or its outline as an SVG path. Empty where none is
    drawn."""

    @property
    def lettered(self) -> str:
        return f"{self.label} ({self.letter})"

    @property
    def lines(self) -> list[str]:
        return [self.label, f"({self.letter})"]


PENTAGON: Final = "M0,-1L.95,-.31L.59,.81L-.59,.81L-.95,-.31Z"
STAR: Final = "M0,-1L.25,-.34L.95,-.31L.4,.13L.59,.81L0,.42L-.59,.81L-.4,.13L-.95,-.31L-.25,-.34Z"
HEXAGON: Final = "M0,-1L.87,-.5L.87,.5L0,1L-.87,.5L-.87,-.5Z"
HOURGLASS: Final = "M-.9,-1L.9,-1L.2,0L.9,1L-.9,1L-.2,0Z"
HOUSE: Final = "M0,-1L1,-.1L.65,-.1L.65,1L-.65,1L-.65,-.1L-1,-.1Z"
BOW_TIE: Final = "M-1,-.9L0,-.2L1,-.9L1,.9L0,.2L-1,.9Z"
CROSSING: Final = "M-.9,-1L0,-.25L.9,-1L1,-.9L.25,0L1,.9L.9,1L0,.25L-.9,1L-1,.9L-.25,0L-1,-.9Z"
FLAG: Final = "M-.8,-1L.9,-.45L-.4,.1L-.4,1L-.8,1Z"

WRITTEN_SHAPES: Final = ("arrow", "stroke", "wedge", "triangle")
"""Marks of written roles, by their letters."""


class _Looks(dict[str, RoleLook]):
    """The looks of all roles by name; a written role, whose name holds it all, brings its own."""

    def __missing__(self, name: str) -> RoleLook:
        role = written_role(name)
        shape = WRITTEN_SHAPES[ord(role.letter) % len(WRITTEN_SHAPES)]
        return RoleLook(name, role.letter, role.colour, ink_on(role.colour), role.name, shape)


LOOKS: Final[dict[str, RoleLook]] = _Looks(
    (look.name, look)
    for look in (
        RoleLook("local", "L", "#0072B2", _WHITE, "local", "circle"),
        RoleLook("syntactic", "S", "#E69F00", _BLACK, "syntactic", "square"),
        RoleLook("delimiter", "D", "#007A5E", _WHITE, "delimiter", "triangle-up"),
        RoleLook("block", "B", "#CC79A7", _BLACK, "block", "diamond"),
        # A first token is to a checkpoint without delimiters what [CLS] is to others, and so is its colour.
        RoleLook("sink", "F", "#009E73", _BLACK, "first-token sink", HEXAGON),
        # A finer role has the hue of its parent and another lightness, which is visible with any colour blindness.
        RoleLook("delimiter:cls", "C", "#009E73", _BLACK, "delimiter: CLS", "cross"),
        RoleLook("delimiter:sep", "E", "#56BFA0", _BLACK, "delimiter: SEP", "triangle-down"),
        RoleLook("syntactic:nsubj", "N", "#7A4A00", _WHITE, "syntactic: nsubj", "triangle-left"),
        RoleLook("syntactic:dobj", "O", "#B86F00", _BLACK, "syntactic: dobj", "triangle-right"),
        RoleLook("syntactic:amod", "A", "#F2B84B", _BLACK, "syntactic: amod", PENTAGON),
        RoleLook("syntactic:advmod", "V", "#FFDD9B", _BLACK, "syntactic: advmod", STAR),
        RoleLook("previous", "P", "#56B4E9", _BLACK, "previous token", HOURGLASS),
        RoleLook("induction", "I", "#F0E442", _BLACK, "induction", BOW_TIE),
        RoleLook("duplicate", "U", "#882255", _WHITE, "duplicate token", HOUSE),
        RoleLook("retrieval", "R", "#7B4FA3", _WHITE, "retrieval", FLAG),
        RoleLook("template", "T", "#5F5F5F", _WHITE, "chat template", CROSSING),
    )
)
TARGETS: Final[dict[str, tuple[str, str]]] = {
    "first": ("first token", LOOKS["sink"].color),
    "separator": ("[SEP]", LOOKS["delimiter:sep"].color),
    "punctuation": ("punctuation", "#D55E00"),
    "previous": ("previous", LOOKS["previous"].color),
    "next": ("next", LOOKS["local"].color),
    "grammar": ("grammar", LOOKS["syntactic"].color),
    "segment": ("own segment", LOOKS["block"].color),
    "other": ("other", "currentColor"),
}
"""Name and colour of what a link goes to; a role that looks there has the same colour, and "other" that of the text.

Source: Okabe and Ito, Color Universal Design, 2008, but for the paler green of the second of two special tokens.
"""
COLUMN_LOOKS: Final[dict[str, RoleLook]] = {
    look.name: look
    for look in (
        RoleLook("looks", "L", "#0072B2", _WHITE, "looks"),
        RoleLook("writes", "W", "#E69F00", _BLACK, "writes"),
        RoleLook("matters", "M", "#CC79A7", _BLACK, "matters"),
    )
}
"""Sets of heads of the analysis of copying."""

HEAD_COLORS: Final = (
    "#1177CC",
    "#DD5500",
    "#118844",
    "#CC1177",
    "#8855FF",
    "#997700",
    "#CC6688",
    "#667788",
)
"""Colours of chosen heads in the order they were chosen; each has at least 3:1 on white and on near-black."""

WORD_COLORS: Final = ("#0072B2", "#D55E00", "#009E73", "#C2609A")
"""Colours of the links of several words, distinguishable with every common colour blindness; each has at least 3:1 on
white and on near-black.

Source: Okabe and Ito, Color Universal Design, 2008; the last one darkened.
"""

MIDDLE_LUMINANCE: Final = 0.179
"""Luminance of a fill on which black and white text have the same contrast."""
MORE: Final = "#D4480C"
LESS: Final = "#1177CC"
"""Ends of the scale of differences, above and below 0; 0 has the colour of the background. Distinguishable with every
common colour blindness, and each at least 3:1 on white and on near-black."""
MUTED: Final = "#7A7A7A"
MUTED_PART: Final = 0.25
"""The end below 0 where only what is above it is of interest: grey, and so much of it over the background."""
AMOUNT: Final = "#8B5FBF"
"""End of the scale of values that are never below 0; a hue unlike those of MORE and LESS."""


def head_color(order: int) -> str:
    """Colour of the chosen head with index `order`; after the last colour, the colours repeat."""
    return HEAD_COLORS[order % len(HEAD_COLORS)]


def mixed(color: str, part: float, background: str = _WHITE) -> str:
    """A colour of a scale: part of the way, 0 to 1, from the background to the scale's end."""
    ends = zip(_channels(background), _channels(color))
    return "#" + "".join(f"{round(start + (end - start) * part):02X}" for start, end in ends)


def ink_on(color: str) -> str:
    """Black or white, whichever has more contrast on this fill: at least 4.5:1.

    Source: relative luminance and contrast of WCAG 2.2.
    """
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in np.array(_channels(color)) / 255]
    return _BLACK if float(np.dot(linear, (0.2126, 0.7152, 0.0722))) > MIDDLE_LUMINANCE else _WHITE


def _channels(color: str) -> list[int]:
    return [int(color[start : start + 2], 16) for start in (1, 3, 5)]


HIGHEST_TAU: Final[dict[Scale, float]] = {"score": 10.0, "share": 1.0}
"""Largest tau that can be chosen."""


@dataclass(frozen=True)
class ScaleWords:
    """Names of scores on a scale."""

    short: str
    """Short name, for use near the name of the scale."""
    rest: str
    """Rest of the full name."""
    unit: str
    """Unit of a score; "" for none."""

    @property
    def noun(self) -> str:
        return self.short + self.rest

    @property
    def nouns(self) -> str:
        return f"{self.short}s{self.rest}"

    def title(self, before: str = "", after: str = "") -> str:
        """Title of an axis or column, such as "mean score (× uniform)"."""
        return f"{before}{self.noun}{after}" + (f" ({self.unit})" if self.unit else "")


WORDS: Final[dict[Scale, ScaleWords]] = {
    "score": ScaleWords("score", "", "× uniform"),
    "share": ScaleWords("share", " above chance", ""),
}
