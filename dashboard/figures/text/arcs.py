"""The attention of some heads in one text, as the page and the file of arcs draw it: its two sides, maps of heads, the
arcs as an SVG file; and one empty square of attention enlarged, with its words, which explains the squares of a
grid."""

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.record import template_mask
from attention_sieve.core.surface.per_text import key_kinds
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LESS, MORE, head_color
from attention_sieve.dashboard.figures.figure import percent
from attention_sieve.dashboard.figures.sheet import MARGIN, PAGE, SHEET, Block, Size, TextStyle, legend, sheet, write

_KINDS: Final = ("first", "separator", "punctuation", "other")
"""In the order of KEY_KINDS."""
CROSS: Final = ("target", "source")
"""Names of queries and keys in cross-attention."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Side:
    """The tokens on one side of the view: those that attend, or those attended to."""

    tokens: Sequence[str]
    """Tokens as shown; may contain any text."""
    special: Bool[np.ndarray, " token"]
    """True for tokens that the tokenizer, or a chat template, added."""
    segments: Int[np.ndarray, " token"]
    """0 or 1; -1 for special tokens."""
    words: Int[np.ndarray, " token"]
    """Number of the token's word in the whole text; -1 for special tokens."""
    kinds: Sequence[str] = ()
    """What each token is to whoever looks at it: "first", "separator", "punctuation" or "other", as in
    `attention_sieve.dashboard.figures.appearance.TARGETS`; empty where that is not known."""
    name: str = ""
    """Name of the text, such as `source`, if queries and keys are of two texts."""
    start: int = 0
    """Position of the first of these tokens in the whole text."""
    n_whole: int | None = None
    """Number of tokens of the whole text; None if these are all."""

    def __post_init__(self) -> None:
        n_tokens = len(self.tokens)
        if not n_tokens:
            raise ValueError("Arcs need at least one token on each side, got none.")
        for field in ("special", "segments", "words"):
            if (shape := getattr(self, field).shape) != (n_tokens,):
                raise ValueError(f"{field} needs one value for each of {n_tokens} tokens, got shape {shape}.")
        if not 0 <= self.start <= self.length - n_tokens:
            raise ValueError(f"{n_tokens} tokens from {self.start} on do not lie in a text of {self.length}.")

    @classmethod
    def of(cls, text: TokenizedText, name: str = "") -> "Side":
        special = (text.segments == SPECIAL) | template_mask(text)
        fields = {"tokens": text.tokens, "special": special, "segments": text.segments, "words": text.words}
        return cls(**fields, kinds=_kinds(text), name=name)

    @property
    def length(self) -> int:
        return len(self.tokens) if self.n_whole is None else self.n_whole

    @property
    def is_part(self) -> bool:
        return self.length > len(self.tokens)

    def part(self, start: int, stop: int) -> "Side":
        """The tokens at positions `start` to `stop - 1` of the whole text; a window's side of the view."""
        if not self.start <= start < stop <= self.start + len(self.tokens):
            raise ValueError(
                f"Tokens {start} to {stop - 1} are not among {self.start} to {self.start + len(self.tokens) - 1}."
            )
        selection = slice(start - self.start, stop - self.start)
        return replace(
            self,
            tokens=self.tokens[selection],
            special=self.special[selection],
            segments=self.segments[selection],
            words=self.words[selection],
            kinds=self.kinds[selection],
            start=start,
            n_whole=self.length,
        )


def _kinds(text: TokenizedText) -> tuple[str, ...]:
    """What each token is; a text without a token before it begins with one that heads rest on all the same."""
    kinds = [_KINDS[number] for number in key_kinds(text).argmax(axis=1)]
    return (_KINDS[0] if kinds[0] == _KINDS[-1] else kinds[0], *kinds[1:])


def sides(text_attention: TextAttention) -> tuple[Side, Side]:
    """The window's queries and keys; the same object twice where they are the same tokens."""
    text, window = text_attention.text, text_attention.window
    if text.queries is text.keys:
        queries = Side.of(text.queries).part(*window.queries)
        return queries, queries if window.keys == window.queries else Side.of(text.keys).part(*window.keys)
    target, source = CROSS
    return Side.of(text.queries, target).part(*window.queries), Side.of(text.keys, source).part(*window.keys)


@dataclass(frozen=True)
class Signs:
    """What the two colours of a difference mean, which is the compared attention minus the reference."""

    more: str = "more attention"
    less: str = "less attention"


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionMaps:
    """Attention of some heads in one text, or the difference of two maps of one head.

    Raises: ValueError for inconsistent shapes, or a difference of several heads.
    """

    queries: Side
    """The tokens that attend: those of a text, or of a window into it."""
    keys: Side
    """The tokens attended to; the same object where these are the queries."""
    attention: Float[np.ndarray, "chosen query key"]
    """Rows sum to 1, or to less where the keys are part of a text or a sink takes a part; those without a query or a
    head are 0. Of a difference, between -1 and 1."""
    heads: Sequence[Head]
    """In the order of their colours."""
    causal: bool = False
    """Whether a query sees only itself and the tokens before it."""
    signs: Signs | None = None
    """Of a difference; None for attention."""
    label: str
    """What they show, for screen readers."""

    def __post_init__(self) -> None:
        n_heads, n_queries, n_keys = shape = (len(self.heads), len(self.queries.tokens), len(self.keys.tokens))
        if self.attention.shape != shape:
            raise ValueError(
                f"{n_heads} heads, {n_queries} queries and {n_keys} keys need attention of shape {shape}, "
                f"got {self.attention.shape}."
            )
        if self.signs is not None and n_heads > 1:
            raise ValueError(f"A difference of attention is drawn for one head at a time, got {n_heads}.")


DEFAULT_SHARE: Final = 0.5
LEAST_DIFFERENCE: Final = 0.005
"""Minimum difference of two weights that is drawn; smaller ones are rounded to 0.00."""
SIGNS: Final = {"\n": "↵", "\r": "↵", "\t": "⇥"}
UNSEEN_CATEGORIES: Final = {"Cc", "Cs", "Zl", "Zp"}
BIDI_CONTROLS: Final = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
LONGEST_LABEL: Final = 18
ABOVE, COLUMN = 24, 144
"""Pixels above the rows for their headings, and beside the arcs for the tokens."""
SPAN: Final = PAGE - 2 * MARGIN - 2 * COLUMN
NARROW: Final = 0.62
"""Scale of the picture in one column, which makes tokens of the highest rows 6 points large."""
TALLEST: Final = 840
"""Height in pixels of the rows on one printed page; longer texts exceed it."""
LOWEST_ROW, HIGHEST_ROW = 11, 22
ROUNDING: Final = 1e-6
"""Tolerance for comparing shares, because sums of weights have rounding errors."""


def top_share(
    attention: Float[np.ndarray, "*rows key"], share: float, total: float | None = None
) -> Bool[np.ndarray, "*rows key"]:
    """The smallest set of keys that together get at least a share of each query's attention.

    Args:
        attention: rows that sum to 1, or to 0 if a query attends to no key that is shown.
        share: part of each row's attention, above 0 and at most 1.
        total: total attention of a query, if some of it goes to keys outside the row; None for the sum of the row. A
            row that does not reach the share keeps every key.

    Returns: True for the kept keys; of equal weights the earlier key is kept first; a weight of 0 is never kept.
    """
    if not 0 < share <= 1:
        raise ValueError(f"The share must be above 0 and at most 1, got {share}.")
    order = np.argsort(-attention, axis=-1, kind="stable")
    sorted_attention = np.take_along_axis(attention, order, axis=-1)
    sum_before = np.cumsum(sorted_attention, axis=-1, dtype=np.float64) - sorted_attention
    target = share * (attention.sum(axis=-1, keepdims=True, dtype=np.float64) if total is None else total)
    kept = np.zeros(attention.shape, dtype=bool)
    np.put_along_axis(kept, order, (sum_before < target - ROUNDING) & (sorted_attention > 0), axis=-1)
    return kept


def strongest_links(attention: Float[np.ndarray, "*rows key"], count: int) -> Bool[np.ndarray, "*rows key"]:
    """The keys with the largest weights of each query, which are at least 0.

    Returns: True for the kept keys; of equal weights the earlier key is kept first; a weight of 0 is never kept.
    """
    if count < 1:
        raise ValueError(f"At least 1 link of each query is drawn, got {count}.")
    order = np.argsort(-attention, axis=-1, kind="stable")
    kept = np.zeros(attention.shape, dtype=bool)
    np.put_along_axis(kept, order[..., :count], True, axis=-1)
    return kept & (attention > 0)


def visible(token: str) -> str:
    """A token with visible characters only: signs for line ends, tabs and outer blanks, without bidirectional
    controls."""
    if not token:
        return "∅"
    text = "".join(_sign(character) for character in token)
    inner = text.strip(" ")
    if not inner:
        return "␣" * len(text)
    leading, _, trailing = text.partition(inner)
    return "␣" * len(leading) + inner + "␣" * len(trailing)


def _sign(character: str) -> str:
    if character in SIGNS:
        return SIGNS[character]
    is_noncharacter = ord(character) & 0xFFFE == 0xFFFE
    if is_noncharacter or character in BIDI_CONTROLS or unicodedata.category(character) in UNSEEN_CATEGORIES:
        return "\N{REPLACEMENT CHARACTER}"
    return character


def arcs_svg(
    maps: AttentionMaps,
    *,
    share: float = DEFAULT_SHARE,
    strongest: int | None = None,
    title: str,
    caption: Sequence[str],
    size: Size = SHEET,
) -> str:
    """Attention arcs of one text for a file: queries left, keys right, one colour per head, white background.

    Of a difference, two colours: one for more attention, one for less.

    Args:
        maps: what is drawn, with one row for each query and each key.
        share: part of each query's attention that is drawn, heaviest arcs first; of a difference, part of the sum of
            its absolute differences.
        strongest: number of links of each query and head that are drawn instead of a share; None for the share.
    """
    queries, keys = maps.queries, maps.keys
    n_rows = max(len(queries.tokens), len(keys.tokens))
    scale = 1 if size.width == PAGE else NARROW
    span = SPAN if size.width == PAGE else size.room / NARROW - 2 * COLUMN
    row = min(max(TALLEST / n_rows, LOWEST_ROW) / scale, HIGHEST_ROW)
    drawn, end, letters = ET.Element("g"), COLUMN + span, round(0.6 * row, 1)
    write(drawn, COLUMN - 8, ABOVE - 8, _heading("from", "query", queries), TextStyle(13, "end", "600"))
    write(drawn, end + 8, ABOVE - 8, _heading("to", "key", keys), TextStyle(13, weight="600"))
    _arcs(drawn, maps, _kept(maps, share, strongest), (row, span))
    for index, token in enumerate(queries.tokens):
        write(drawn, COLUMN - 8, ABOVE + row * (index + 0.7), visible(_label(token)), TextStyle(letters, "end"))
    for index, token in enumerate(keys.tokens):
        write(drawn, end + 8, ABOVE + row * (index + 0.7), visible(_label(token)), TextStyle(letters))
    strokes = (
        [
            (f"{head_name(*maps.heads[0])}: + {maps.signs.more}", _sign_stroke(1)),
            (f"\N{MINUS SIGN} {maps.signs.less}", _sign_stroke(-1)),
        ]
        if maps.signs
        else [(head_name(*head), _stroke(number)) for number, head in enumerate(maps.heads)]
    )
    signs = [
        (ET.Element("line", {"x1": "0", "x2": "18", "y1": "9", "y2": "9", "stroke-width": "5"} | stroke), name)
        for name, stroke in strokes
    ]
    picture = Block(drawn, end + COLUMN, ABOVE + row * n_rows)
    blocks = [legend(signs, picture.width * scale), picture]
    return sheet(visible(title), blocks, caption=[*_window_line(maps), *map(visible, caption)], size=size)


def _heading(direction: str, axis: str, side: Side) -> str:
    return f"{side.name}, {'queries' if axis == 'query' else 'keys'}" if side.name else f"{direction} ({axis})"


def _kept(maps: AttentionMaps, share: float, strongest: int | None) -> Bool[np.ndarray, "chosen query key"]:
    sizes = np.abs(maps.attention) if maps.signs else maps.attention
    if strongest is None:
        kept = top_share(sizes, share, 1.0 if maps.keys.is_part and not maps.signs else None)
    else:
        kept = strongest_links(sizes, strongest)
    return kept & (sizes > (LEAST_DIFFERENCE if maps.signs else 0))


def _window_line(maps: AttentionMaps) -> list[str]:
    """Caption line on what a window leaves out; none for whole texts."""
    if not maps.queries.is_part and not maps.keys.is_part:
        return []
    spans = [
        f"{name} {side.start:,} to {side.start + len(side.tokens) - 1:,} of {side.length:,}"
        for name, side in (("queries", maps.queries), ("keys", maps.keys))
    ]
    if maps.signs:
        return [f"Window: {', '.join(spans)}."]
    outside = max(0.0, 1 - float(maps.attention.sum(axis=-1, dtype=np.float64).mean()))
    return [f"Window: {', '.join(spans)}; on average {percent(outside, 0)} of the attention leaves it."]


def _stroke(order: int) -> dict[str, str]:
    """Colour of a head; dashes distinguish it from an earlier head of the same colour."""
    dashes = {"stroke-dasharray": "7 3"} if order >= len(HEAD_COLORS) else {}
    return {"stroke": head_color(order)} | dashes


def _sign_stroke(weight: float) -> dict[str, str]:
    """Colour of a difference; dashes for negative ones."""
    return {"stroke": MORE} if weight > 0 else {"stroke": LESS, "stroke-dasharray": "7 3"}


def _arcs(
    drawn: ET.Element, maps: AttentionMaps, kept: Bool[np.ndarray, "chosen query key"], steps: tuple[float, float]
) -> None:
    """Draw arcs between rows of a height, across a width."""
    (row, span), start = steps, COLUMN
    end = start + span
    group = ET.SubElement(drawn, "g", {"fill": "none"})
    # Heavy arcs last, so that they are on top.
    for head, query, key in sorted(np.argwhere(kept).tolist(), key=lambda index: abs(maps.attention[tuple(index)])):
        weight = float(maps.attention[head, query, key])
        from_y, to_y = ABOVE + row * (query + 0.5), ABOVE + row * (key + 0.5)
        bends = f"{start + span * 0.4:g} {from_y:g} {start + span * 0.6:g} {to_y:g}"
        curve, size = f"M{start} {from_y:g}C{bends} {end:g} {to_y:g}", abs(weight)
        look = {"stroke-width": f"{0.8 + 3.2 * size:.2f}", "stroke-opacity": f"{0.1 + 0.85 * size:.2f}"}
        stroke = _sign_stroke(weight) if maps.signs else _stroke(head)
        ET.SubElement(group, "path", {"d": curve} | stroke | look)


def _label(token: str) -> str:
    widths = np.cumsum([2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in token])
    if not token or widths[-1] <= LONGEST_LABEL:
        return token
    return token[: np.searchsorted(widths, LONGEST_LABEL)] + "…"


CELL: Final = 22
"""Pixels of one field of the enlarged square."""
ABOVE_SQUARES, BESIDE = 84, 92
"""Pixels for the words across the top, and down the side."""


def square_key_svg(
    tokens: Sequence[str],
    rows: Collection[int],
    columns: Collection[int],
    attention: Float[np.ndarray, "query key"],
) -> str:
    """Draw the square, filled by attention, with some rows and columns marked and the fields where they meet outlined.

    Fields have a number, row by row, by which their component fills them with another head.
    """
    side = CELL * len(tokens)
    width, height = BESIDE + side + 2, ABOVE_SQUARES + side + 2
    svg = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", width=f"{width}", height=f"{height}")
    svg.set("viewBox", f"0 0 {width} {height}")
    for row in rows:
        _rect(svg, BESIDE, ABOVE_SQUARES + CELL * row, side, CELL, fill="currentColor", opacity="0.1")
    for column in columns:
        _rect(svg, BESIDE + CELL * column, ABOVE_SQUARES, CELL, side, fill="currentColor", opacity="0.1")
    for number, share in enumerate(attention.ravel().tolist()):
        row, column = divmod(number, len(tokens))
        x, y = BESIDE + CELL * column, ABOVE_SQUARES + CELL * row
        looks = {"fill": "currentColor", "opacity": f"{share**0.5:.2f}", "data-field": f"{number}"}
        _rect(svg, x, y, CELL, CELL, **looks)
    for number in range(len(tokens) + 1):
        at = CELL * number
        path = f"M{BESIDE},{ABOVE_SQUARES + at}h{side}M{BESIDE + at},{ABOVE_SQUARES}v{side}"
        ET.SubElement(svg, "path", d=path, stroke="currentColor", opacity="0.25", fill="none")
    for number, token in enumerate(tokens):
        middle = CELL * number + CELL / 2
        across, down = BESIDE + middle + 5, ABOVE_SQUARES - 6
        _word(svg, token, BESIDE - 8, ABOVE_SQUARES + middle + 5, is_marked=number in rows, **{"text-anchor": "end"})
        _word(svg, token, across, down, is_marked=number in columns, transform=f"rotate(-90 {across} {down})")
    for row in rows:
        for column in columns:
            x, y = BESIDE + CELL * column, ABOVE_SQUARES + CELL * row
            _rect(svg, x, y, CELL, CELL, fill="none", stroke="currentColor", **{"stroke-width": "3"})
    return ET.tostring(svg, encoding="unicode")


def _rect(svg: ET.Element, x: float, y: float, width: float, height: float, **looks: str) -> None:
    ET.SubElement(svg, "rect", {"x": f"{x}", "y": f"{y}", "width": f"{width}", "height": f"{height}", **looks})


def _word(svg: ET.Element, token: str, x: float, y: float, *, is_marked: bool, **place: str) -> None:
    looks = {"font-size": "14", "font-weight": "700" if is_marked else "400", "fill": "currentColor"}
    word = ET.SubElement(svg, "text", {"x": f"{x}", "y": f"{y}", **looks, **place})
    word.text = visible(token)
