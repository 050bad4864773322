"""The reader's choices: session state, and the query parameters of the link that restores it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote_plus

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Head, Kind, PassSettings, head_name
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.hypotheses import Criterion, Family, Method, Rule
from attention_sieve.core.roles.measures import USUAL_TAU, Scale, ScoreSettings
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, known_roles
from attention_sieve.core.roles.rules import PREFIX
from attention_sieve.core.statistics.means import Correction
from attention_sieve.core.texts.parsers import ENGLISH, parsers_by_language
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import link, wording
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.link import quoted
from attention_sieve.dashboard.plain import plain

HEADS: Final = "head"
"""Query parameter of the chosen heads, as `3-7,2-5`: layer and head, both 0-based."""
CHOSEN_OVER: Final = "head chosen over"
"""Key of the typed text, perhaps still loading, over which the reader chose the heads; None if the page chose them."""
SHOWN: Final = "head shown"
"""Key of a page and the head that it selected itself because the reader had chosen none."""
WITH: Final = "with"
"""Query parameter and key of the checkpoints that are compared with the one of the sidebar."""
OFF: Final = "off"
"""Query parameter of the heads that are switched off, in the same form."""
WINDOW: Final = "window"
"""Query parameter of the part of a long text that is drawn: first query and first key, as `512-0`."""
GUESS: Final = "guess"
"""Key, and query parameter, of the position of the token that a language model has to predict, or after which."""
TOY_STEP: Final = "at"
"""Key and query parameter of the saved step that the page Laboratory shows."""
TOY_OFF: Final = "without"
"""Key and query parameter of the names of the heads that are switched off there."""
TOY_PROBES: Final = "probes"
"""Key and query parameter of the kind of probe texts there."""
LESSON: Final = "lesson"
"""Key, and query parameter, of the number of the lesson that the reader is in, from 1."""
STEP_PAGE: Final = "page of the step"
"""Key of the address of the page of the current lesson step."""
PRESENT: Final = "present"
"""Key, and query parameter, of whether the page is laid out for a projector."""
CLASS: Final = "class"
"""Key, and query parameter, of the code of the class in which the reader's predictions are counted."""
LONGEST_IN_LINK: Final = 4_000
"""Maximum number of characters of typed texts in a link: servers refuse longer links, and mail programs break them."""
MOST_HEADS: Final = 16_384
"""Maximum number of heads that a link may name: no known model has more."""
HEAD_NAME: Final = re.compile("L([0-9]{1,6}) H([0-9]{1,6})")
PAIR: Final = re.compile("([0-9]{1,6})-([0-9]{1,6})")
"""Two numbers of a link: layer and head, or first query and first key."""
WRITES: Final = "writes the next token"
"""Key of whether the checkpoint of the last run is a decoder."""
BASE: Final = "base of the adapter"
"""Key of the name of the base, if the checkpoint of the last run is an adapter; else None."""
LONG: Final = "long texts"
"""Key of whether the texts of the corpus of the last run are long."""
FURTHER: Final = "further roles"
"""Key and query parameter of the roles that the reader added."""
WRITTEN: Final = "role"
"""Key, and query parameter, of the roles that the reader wrote, as `name.name`: their names hold all of them."""
LAYERS_ACROSS: Final = "layers across"
"""Key and query parameter of whether the layers of grids and maps run from left to right."""
TEXT_LANGUAGE: Final = "text language"
"""Key and query parameter of the language of the reader's texts, or of a further parser of it."""
AUTO: Final = "auto"
NO_HEAD: Final = "none"

CORRECTIONS: Final[dict[str, Correction]] = {"Benjamini-Hochberg": "bh", "Holm": "holm", "none": "none"}
METHODS: Final[dict[str, Method]] = {"t-test": "test", "mean alone": "mean"}
RULES: Final[dict[str, Rule]] = {"tau and uniform attention": "role", "tau alone, as in the paper": "paper"}
SCALES: Final[dict[str, Scale]] = {"times uniform attention": "score", "share above chance": "share"}
FAMILIES: Final[dict[str, Family]] = {"heads of a role": "role", "heads of all roles": "all"}
KINDS: Final[dict[str, Kind]] = {"encoder": "encoder", "decoder": "decoder", "cross-attention": "cross"}
"""Names as the page and its link show them."""
TAUS: Final[dict[Scale, str]] = {"score": "tau", "share": "share tau"}
"""Key and query parameter of the threshold on each scale; each is kept when the scale changes."""


@dataclass(frozen=True)
class Choice:
    """The settings that all pages share."""

    checkpoint: str
    device: str
    dtype: str
    kind: Kind
    """Attention of an encoder-decoder; a checkpoint with one stack has only one."""
    off: tuple[Head, ...]
    corpus: str
    """One of controls.CORPORA."""
    criterion: Criterion
    score_settings: ScoreSettings
    """Its roles are the usual ones, and further ones that the reader added."""

    @property
    def roles(self) -> tuple[str, ...]:
        return self.score_settings.roles

    @property
    def scale(self) -> Scale:
        return self.score_settings.scale

    @property
    def correction(self) -> str:
        return next(name for name, correction in CORRECTIONS.items() if correction == self.criterion.correction)

    def pass_settings(self, engine: Engine) -> PassSettings:
        kinds = engine.files.kinds
        return PassSettings(self.kind if self.kind in kinds else kinds[0], self.off)


def is_led() -> bool:
    """Whether a lesson, a class or presenting is on, or the link asks for one."""
    names = (LESSON, PRESENT, CLASS)
    return any(st.session_state.get(name) or name in st.query_params for name in names)


def is_in_lesson() -> bool:
    """Whether the reader is in a lesson; `dashboard/views/lessons/course.py` knows which."""
    return bool(st.session_state.get(LESSON))


def lesson_is_on(page: str) -> bool:
    """Whether the reader is in a lesson, at a step that happens on this page."""
    return is_in_lesson() and st.session_state.get(STEP_PAGE) == page


def is_presenting() -> bool:
    return bool(st.session_state.get(PRESENT))


def choice() -> Choice:
    """The shared choices, from the widgets of the sidebar and of the test settings.

    Raises: AnalysisError for a value of a hand-written link that no widget offers.
    """
    values = st.session_state
    dtype = values.get("dtype", AUTO)
    # A page without tests has no test settings: opened first, it uses the defaults.
    usual = Criterion(tau=USUAL_TAU[scale()]), ScoreSettings(scale=scale())
    criterion, score_settings = _test_settings() if "alpha" in values else usual
    roles = known_roles(
        (*ROLES, *(DECODER_ROLES if values.get(WRITES) else ()), *(values.get(FURTHER) or ()), *written())
    )
    return Choice(
        checkpoint=values["checkpoint"] or "",
        device=values.get("device", AUTO),
        dtype="float32" if dtype == AUTO else dtype,
        kind=KINDS[values.get("attention") or "encoder"],
        off=tuple(sorted(heads_off())),
        corpus=values["corpus"],
        criterion=criterion,
        score_settings=replace(score_settings, roles=roles),
    )


def language() -> str:
    """The language of the reader's texts, or a further parser of it; English until the reader chooses another one."""
    chosen = st.session_state.get(TEXT_LANGUAGE)
    return chosen if chosen in parsers_by_language() else ENGLISH


def parser() -> str | None:
    """The package that parses the reader's texts; None for the English one."""
    return parsers_by_language()[language()]


def usual_scale() -> Scale:
    """The scale of scores until the reader chooses one: shares for decoders, whose first tokens see few others, for
    long texts, on which scores grow with the length, and for claims."""
    values = st.session_state
    return "share" if values.get(WRITES) or values.get(LONG) or values.get("page") == "claims" else "score"


def choose_scale(scale: Scale) -> None:
    st.session_state["scale"] = next(name for name, of_name in SCALES.items() if of_name == scale)


def scale() -> Scale:
    chosen = st.session_state.get("scale")
    return SCALES[chosen] if chosen else usual_scale()


def _test_settings() -> tuple[Criterion, ScoreSettings]:
    values = st.session_state
    criterion = Criterion(
        tau=float(values[TAUS[scale()]]),
        alpha=float(values["alpha"]),
        rule=RULES[values["role rule"]],
        correction=CORRECTIONS[values["correction"]],
        family=FAMILIES[values["family"]],
        ddof=int(values["ddof"]),  # type: ignore[arg-type]
        method=METHODS[values["method"]],
    )
    return criterion, ScoreSettings(direction=values["direction"], block_entropy=values["entropy"], scale=scale())


def _heads_in_link(name: str, value: str) -> tuple[list[Head], list[str]]:
    """The distinct heads in a value such as `3-7,2-5`, and its parts that are no heads; says if there are too many."""
    parts = value.split(",", MOST_HEADS)  # one part more holds all that is beyond the bound
    if len(parts) > MOST_HEADS:
        link.say(wording.too_many_heads(name, MOST_HEADS))
    parts = list(dict.fromkeys(parts[:MOST_HEADS]))
    matches = [PAIR.fullmatch(part) for part in parts]
    return (
        list(dict.fromkeys((int(match[1]), int(match[2])) for match in matches if match)),
        [part for part, match in zip(parts, matches) if not match],
    )


def heads_off() -> list[Head]:
    if (heads := heads_of_link(OFF)) is not None:
        st.session_state[OFF] = heads
    return st.session_state.setdefault(OFF, [])


def heads_of_link(name: str) -> list[Head] | None:
    """The heads that are switched off by a parameter of the link, sorted; None if it has none. Says what is no head."""
    value = link.take(name)
    if value is None:
        return None
    heads, wrong = ([], []) if value == NO_HEAD else _heads_in_link(name, value)
    if wrong:
        link.say(wording.no_head_names(name, quoted(", ".join(wrong))))
    return sorted(heads)


def keep_off(n_layers: int, n_heads: int) -> bool:
    """Drop heads from those switched off that this checkpoint lacks, and say so.

    Returns: whether there were any.
    """
    inside = heads_inside(heads_off(), n_layers, n_heads)
    if is_missing := len(inside) < len(heads_off()):
        switch_off(inside)
    return is_missing


def heads_inside(off: Sequence[Head], n_layers: int, n_heads: int) -> list[Head]:
    """Of the heads that are switched off, those that a checkpoint has; says so of the others."""
    if missing := [head_name(*head) for head in off if not _is_in(head, n_layers, n_heads)]:
        link.say(wording.no_heads_to_switch_off(missing, (n_layers, n_heads)))
    return [head for head in off if _is_in(head, n_layers, n_heads)]


def _is_in(head: Head, n_layers: int, n_heads: int) -> bool:
    return head[0] < n_layers and head[1] < n_heads


def switch_off(heads: Sequence[Head]) -> None:
    st.session_state[OFF] = sorted(set(heads))
    put_off_in_link()


def written() -> tuple[str, ...]:
    """Names of the roles that the reader wrote; on a first visit, those in the link."""
    if (value := link.take(WRITTEN)) is not None:
        asked = () if len(value) > LONGEST_IN_LINK else tuple(PREFIX + name for name in value.split("."))
        try:
            st.session_state[WRITTEN] = checked_written(asked)
        except AnalysisError as error:
            link.say(plain(str(error)))
    roles: tuple[str, ...] = st.session_state.setdefault(WRITTEN, ())
    return roles


def checked_written(names: tuple[str, ...]) -> tuple[str, ...]:
    """Written roles, if pages can tell them apart and a link can hold them.

    Raises: AnalysisError for one that is no role or looks like another, and for too many.
    """
    if not 0 < len(_written_value(names)) <= LONGEST_IN_LINK:
        raise AnalysisError(wording.TOO_MANY_WRITTEN)
    letters = {look.letter: look.label for look in LOOKS.values()}
    for name in known_roles(names):
        look = LOOKS[name]
        if (other := letters.setdefault(look.letter, look.label)) != look.label:
            raise AnalysisError(wording.same_letter(look.letter, look.label, other))
    return names


def write_roles(names: tuple[str, ...]) -> None:
    st.session_state[WRITTEN] = names
    put_written_in_link()


def put_written_in_link() -> None:
    """Write the written roles to the address bar; changing pages clears parameters without a widget."""
    link.put([WRITTEN], {WRITTEN: value} if (value := _written_value(written())) else {})


def _written_value(names: Sequence[str]) -> str:
    return ".".join(name.removeprefix(PREFIX) for name in names)


def remember_off(choice: Choice) -> None:
    """Remember the heads of this checkpoint that are off, so that they can be switched off again."""
    if choice.off:
        st.session_state.setdefault("were off", {})[choice.checkpoint, choice.kind] = choice.off


def were_off(choice: Choice) -> tuple[Head, ...]:
    return st.session_state.get("were off", {}).get((choice.checkpoint, choice.kind), ())


def put_off_in_link() -> None:
    """Write the heads that are off to the address bar; changing pages clears parameters without a widget."""
    link.put([OFF], {OFF: value} if (value := _as_value(heads_off())) else {})


def layers_across() -> bool:
    return bool(st.session_state.get(LAYERS_ACROSS))


def chosen_heads(
    n_layers: int, n_heads: int, otherwise: Head, *, follow: bool = False, anew: bool = False
) -> list[Head]:
    """The chosen heads that this checkpoint has; on a first visit, those in the link.

    Until the reader chooses one, each page shows its own first head, and keeps showing it. The list is empty only if
    the reader cleared the choice.

    Args:
        otherwise: the first head of the page.
        follow: show the head of the previous page instead, if there was one.
        anew: show a new `otherwise` instead of keeping the first head.
    """
    value = link.take(HEADS)
    heads, wrong = ([], []) if value in (None, NO_HEAD) else _heads_in_link(HEADS, value)
    if value is not None:
        st.session_state[HEADS] = [] if value == NO_HEAD else heads or None
    chosen = st.session_state.setdefault(HEADS, None)
    inside = [head for head in chosen or () if _is_in(head, n_layers, n_heads)]
    if not inside and chosen != []:
        page = st.session_state.get("page")
        shown_on, last = st.session_state.get(SHOWN, (None, otherwise))
        stays = (follow or (shown_on == page and not anew)) and _is_in(last, n_layers, n_heads)
        inside = [last if stays else otherwise]
        st.session_state[SHOWN] = page, inside[0]
    shown = [head_name(*head) for head in inside]
    if wrong:
        link.say(wording.no_head_names(HEADS, quoted(", ".join(wrong)), shown))
    if missing := [head_name(*head) for head in heads if not _is_in(head, n_layers, n_heads)]:
        link.say(wording.no_such_heads(missing, (n_layers, n_heads), shown))
    return inside


def choose_heads(heads: list[Head]) -> None:
    st.session_state[HEADS] = heads
    st.session_state[CHOSEN_OVER] = st.session_state.get("text")
    put_in_link(heads)


def forget_heads() -> None:
    """Let the page begin with its own head, as before the reader chose one."""
    st.session_state[HEADS] = None


def push_heads(heads: list[Head]) -> None:
    """Choose heads from outside the grid, which then selects them."""
    choose_heads(heads)
    st.session_state[CHOSEN_OVER] = None
    st.session_state["pushed heads"] = n_pushed() + 1


def n_pushed() -> int:
    """How often heads have been chosen from outside the grid."""
    return st.session_state.get("pushed heads", 0)


def put_in_link(heads: Sequence[Head], name: str = HEADS) -> None:
    """Write heads to the address bar; changing pages clears parameters without a widget."""
    link.put([name], {name: _as_value(heads) or NO_HEAD})


def window_start(text: Text) -> tuple[int, int]:
    """First query and first key of the displayed part of a long text; on a first visit, those in the link.

    A new text starts at (0, 0).
    """
    text_hash, start = st.session_state.get(WINDOW, (None, (0, 0)))
    if text_hash != hash(text):
        start = (0, 0)
    if (value := link.take(WINDOW)) is not None:
        match = PAIR.fullmatch(value)
        start = (int(match[1]), int(match[2])) if match else (0, 0)
        if not match:
            link.say(wording.no_window(quoted(value)))
    move_window(text, start)
    return start


def move_window(text: Text, start: tuple[int, int]) -> None:
    """Display another part of a long text, and write it to the address bar."""
    st.session_state[WINDOW] = (hash(text), start)
    link.put([WINDOW], {} if start == (0, 0) else {WINDOW: _as_value([start])})


def follow(key: str, start: str | float | None) -> None:
    """Update a value that the reader has not changed to a new default. Call it before its widget.

    Args:
        key: of the value in the session.
    """
    at_first = f"{key} at first"
    if st.session_state.get(key) == st.session_state.get(at_first, start) != start:
        st.session_state[key] = start
    st.session_state[at_first] = start


def fits_link(typed: str) -> bool:
    return len(quote_plus(typed)) <= LONGEST_IN_LINK


def _as_value(heads: Sequence[Head]) -> str:
    return ",".join(f"{layer}-{head}" for layer, head in heads)
