"""The page of an analysis, from its value: the finding and its picture, its settings as controls, and its table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, log10
from types import NoneType
from typing import Any, Final, Generic, Literal, get_args, get_origin

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.grid_container import GridContainer

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.answering import Analysis, Finding, Settings
from attention_sieve.core.command_lines import given_options, options_of, parts_of
from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import state, wording
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import call
from attention_sieve.dashboard.plain import show_error
from attention_sieve.dashboard.views import charts, frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts, find, policy
from attention_sieve.dashboard.views.frame import Notes, Visit
from attention_sieve.dashboard.views.pickers import as_help, from_list, numbers, one_of, toggle

OF_THE_TESTS: Final = ("alpha", "correction")
"""Settings that the reader chooses for all pages, under *Test settings*."""
NARROWEST: Final = 200
"""Minimum width of a control in pixels."""
SIDE_BY_SIDE: Final = 3
"""Most values of a setting that are shown side by side, and not in a list."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs:
    """What an analysis reads in place of the texts of the corpus."""

    read: tuple[Any, ...]
    """As the analysis takes them."""
    facts: Mapping[str, str]
    """Where they come from: "corpus", and what else files say of them."""
    options: Sequence[str]
    """With which the command reads them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Analysed(Generic[Settings, Finding]):
    """What an analysis finds in the texts of a page, or in other inputs."""

    visit: Visit
    analysis: Analysis[Any, Any, Any, Settings, Finding]
    settings: Settings
    found: CorpusFinding[Finding]
    inputs: Inputs | None = None

    @property
    def finding(self) -> Finding:
        """Over the texts that were not left out."""
        return self.found.finding

    def facts(self, *options: str) -> dict[str, str]:
        """Provenance of files; `options` are those of the command that are no fields of the settings."""
        visit, analysis, inputs = self.visit, self.analysis, self.inputs
        given = [*options, *given_options(self.settings, analysis.settings)]
        if inputs is None:
            texts = visit.texts
            line = provenance.command(analysis.command, visit.choice, visit.engine, texts, *given, too_long=policy())
        else:
            given += [] if analysis.too_long else [f"--too-long={policy()}"]
            line = {"command": call(analysis.command, visit.choice, visit.engine, *inputs.options, *given)}
        return {
            **provenance.engine_facts(visit.choice, visit.engine),
            **({"corpus": visit.choice.corpus} if inputs is None else inputs.facts),
            "corpus texts": str(len(self.found.positions)),
            **analysis.facts(self.finding, self.settings),
            **line,
        }


def analysis_page(
    title: str,
    see: str,
    analysis: Analysis[Any, Any, Any, Settings, Finding],
    headline: Callable[[Finding], tuple[str, str]],
    draw: Callable[[Analysed[Settings, Finding]], None],
    notes: Notes,
) -> None:
    """Draw the page of an analysis of the corpus: what it finds first, then its settings and its table, folded away.

    Args:
        title, see, notes: as for `attention_sieve.dashboard.views.frame.page`.
        headline: the finding and its numbers, as for `attention_sieve.dashboard.views.frame.say_finding`.
        draw: draws its pictures.
    """
    frame.page(title, see, partial(_draw, analysis, headline, draw), notes)


def _draw(
    analysis: Analysis[Any, Any, Any, Settings, Finding],
    headline: Callable[[Finding], tuple[str, str]],
    draw: Callable[[Analysed[Settings, Finding]], None],
) -> None:
    visit = frame.visit()
    if visit is None:
        return
    places = frame.places()
    with places.sections:
        of_tests = {name: getattr(visit.choice.criterion, name) for name in OF_THE_TESTS}
        usual = _replaced(analysis.settings, of_tests)
        settings = chosen_settings(usual, analysis.name)
    with places.finding:
        found = analysed(visit, analysis, settings)
        if found is None:
            return
        frame.say_finding(*headline(found.finding))
    with places.picture:
        draw(found)
    with places.sections, st.expander(wording.ALL_ROWS):
        charts.table(analysis.name.replace("_", " "), analysis.table(found.finding), found.facts(), analysis.columns)


def analysed(
    visit: Visit,
    analysis: Analysis[Any, Any, Any, Settings, Finding],
    settings: Settings,
    inputs: Inputs | None = None,
    *,
    asks: bool = True,
    doing: str = wording.SCORING,
) -> Analysed[Settings, Finding] | None:
    """What an analysis finds in the corpus, or in other inputs; None as for `find`.

    Args:
        asks: whether to ask about texts that are too long; not where the page has done so.
        doing: as for `find`.

    Raises: AnalysisError of any stage.
    """
    found = find(visit, analysis, settings, None if inputs is None else inputs.read, doing=doing)
    if found is None:
        return None
    state.remember_off(visit.choice)
    if asks and analysis.too_long is None:
        ask_about_long_texts(found.too_long)
    return Analysed(visit=visit, analysis=analysis, settings=settings, found=found, inputs=inputs)


def chosen_settings(
    usual: Settings, key: str, folded: DeltaGenerator | None = None, labels: Mapping[str, str] | None = None
) -> Settings:
    """Settings from a control for each of their annotated fields, with its sentence. A value out of its range is said
    to be so, and leaves the settings as they were before.

    Args:
        usual: the settings at first; if they change, a value that the reader has not changed follows.
        key: first word of the name of each control in the session and in the link.
        folded: where the controls stand; None for an expander of their own, if there are any.
        labels: of the fields that are offered; None for all but those of the tests, under their own names.
    """
    labels, values = _own_names(usual) if labels is None else labels, dict[str, Any]()
    if labels:
        with folded or st.expander(wording.SETTINGS):
            values = _values(usual, key, st.grid(3, min_column_width=NARROWEST, vertical_alignment="bottom"), labels)
    in_force = f"{key} settings in force"
    try:
        settings = _replaced(usual, values)
    except AnalysisError as error:
        show_error(error)
        st.caption(wording.EARLIER_SETTINGS)
        return _replaced(usual, st.session_state.get(in_force, {}))
    st.session_state[in_force] = values
    return settings


def _own_names(settings: Any) -> dict[str, str]:
    names = {name: name.replace("_", " ").capitalize() for name in options_of(settings) if name not in OF_THE_TESTS}
    for part in parts_of(settings).values():
        names |= _own_names(part)
    return names


def _replaced(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Settings, and those within them, with the values of fields by their names."""
    some: Any = settings
    own = {name: value for name, value in values.items() if name in options_of(settings)}
    return replace(some, **own, **{name: _replaced(part, values) for name, part in parts_of(settings).items()})


def _values(usual: Any, key: str, grid: GridContainer, labels: Mapping[str, str]) -> dict[str, Any]:
    values = {name: _value(usual, name, labels[name], key, grid) for name in options_of(usual) if name in labels}
    for part in parts_of(usual).values():
        values |= _values(part, key, grid, labels)
    return values


def _value(usual: Any, name: str, label: str, key: str, grid: GridContainer) -> Any:
    """The value of one field: a number, a switch, a value of a Literal, characters, or a range of whole numbers."""
    (hint, sentence), start = options_of(usual)[name], getattr(usual, name)
    kind = get_args(hint)[0] if NoneType in get_args(hint) else hint
    if kind in (int, float):
        step = 1 if kind is int else 10.0 ** (floor(log10(abs(start))) - 1) if start else 0.01
        return numbers(grid, {name: (label, step)}, usual, prefix=f"{key} ", empty=wording.USUAL)[name]
    key, help_text = f"{key} {name}", as_help(f"off: {sentence}" if start is True else sentence)
    in_link: dict[str, Any] = {"help": help_text, "bind": "query-params", "persist_state": "session"}
    with grid.cell():
        if get_origin(kind) is Literal:
            options = {} if kind is hint else {wording.USUAL: None}
            options |= {str(value): value for value in get_args(kind)}
            pick = one_of if len(options) <= SIDE_BY_SIDE else from_list
            return pick(label, options, key=key, start=wording.USUAL if start is None else str(start), help=help_text)
        if kind == tuple[str, ...]:
            return tuple(st.text_input(label, "".join(start), key=key, **in_link))
        if kind is bool:
            state.follow(key, start)
            return toggle(label, key=key, start=start, help=help_text)
        ends: dict[str, int] = dict(zip((f"{key} from", f"{key} to"), start, strict=True))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            for end, at in ends.items():
                state.follow(end, at)
                side = label if end.endswith(" from") else wording.RANGE_TO
                ends[end] = st.number_input(side, value=at, step=1, key=end, **in_link)
        return tuple(ends.values())
