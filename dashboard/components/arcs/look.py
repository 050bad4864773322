"""The settings of the arcs in the form of the link, which the component and the session share."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Final

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
