"""Widgets for the settings of one page, which are kept in the link and while the reader is on other pages; and how a
page is laid out."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.grid_container import GridContainer

from attention_sieve.core.command_lines import options_of
from attention_sieve.dashboard import state

NARROWEST: Final = 360
"""Pixels of half a page: a grid of 12 heads and the switches of the arcs fit into it."""
NARROWEST_ARCS: Final = 300
"""Pixels of a picture of arcs whose switches stand elsewhere."""


def first_screen() -> tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]:
    """Two halves of a first screen, and what follows: below the first half, or last where the page is too narrow."""
    with st.container(key="first halves"):
        grid = st.grid(2, min_column_width=NARROWEST, gap="medium")
    return grid.cell(), grid.cell(), grid.cell()


def halves() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Two halves side by side, or one below the other where the page is too narrow."""
    grid = st.grid(2, min_column_width=NARROWEST, gap="medium")
    return grid.cell(), grid.cell()


def thirds(level: Literal["top", "bottom"] = "bottom") -> tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator]:
    """Three pictures side by side, or fewer where the page is too narrow.

    Args:
        level: edge at which they are aligned; "bottom" where the last rows of each belong together.
    """
    grid = st.grid(3, min_column_width=NARROWEST_ARCS, gap="medium", vertical_alignment=level)
    return grid.cell(), grid.cell(), grid.cell()


def map_and_arcs(key: str) -> tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator, DeltaGenerator]:
    """A map of heads and three pictures of arcs side by side, or two in a row where the page is too narrow.

    Args:
        key: of their container, by which `dashboard/web/room.css` gives the map more room.
    """
    with st.container(key=key):
        grid = st.grid(2, min_column_width=NARROWEST_ARCS, gap="medium")
    return grid.cell(), grid.cell(), grid.cell(), grid.cell()


Value = TypeVar("Value")


def one_of(
    label: str, options: Mapping[str, Value], *, key: str, start: str | None = None, help: str | None = None
) -> Value:
    """Choose one of a few values, whose names are shown side by side; by default `start`, or else the first.

    Args:
        key: of the choice in the session and in the link, which hold its name.
        start: name of the first choice.
    """
    names = list(options)
    name = st.segmented_control(
        label,
        names,
        default=names[0] if start is None else start,
        key=key,
        help=help,
        required=True,
        bind="query-params",
        persist_state="session",
    )
    return options[str(name)]


def from_list(
    label: str,
    options: Mapping[str, Value],
    *,
    key: str,
    start: str | None = None,
    help: str | None = None,
    width: int | Literal["stretch"] = "stretch",
) -> Value:
    """Choose one of many values from a drop-down list; by default `start`, or else the first.

    Args:
        key: of the choice in the session and in the link, which hold its name.
        start: name of the first choice; if it changes, a choice that the reader has not changed follows.
        width: of the list, in pixels.
    """
    names = list(options)
    state.follow(key, names[0] if start is None else start)
    name = st.selectbox(
        label,
        names,
        index=0 if start is None else names.index(start),
        key=key,
        help=help,
        bind="query-params",
        persist_state="session",
        width=width,
    )
    return options[name]


def some_of(label: str, names: Sequence[str], *, key: str, every: str) -> list[str]:
    """Choose some of several names; all of them while none is picked, when `every` is the placeholder."""
    picked = st.multiselect(label, names, key=key, placeholder=every, bind="query-params", persist_state="session")
    return picked or list(names)


def toggle(label: str, *, key: str, start: bool = False, help: str | None = None, disabled: bool = False) -> bool:
    """A switch, off at first or as `start` says."""
    return st.toggle(label, start, key=key, help=help, disabled=disabled, bind="query-params", persist_state="session")


def as_help(sentence: str) -> str:
    """The sentence of an option or a column, as it is shown on request."""
    return f"{sentence[0].upper()}{sentence[1:]}."


def numbers(
    grid: GridContainer,
    fields: Mapping[str, tuple[str, float]],
    usual: object,
    *,
    prefix: str = "",
    empty: str | None = None,
) -> dict[str, Any]:
    """Values of the fields of settings that are numbers, by name, each from a cell of a grid, with its sentence.

    Args:
        fields: label and step of each; a value is whole where its step is.
        usual: the settings at first; if they change, a value that the reader has not changed follows.
        prefix: of the name of each in the session and in the link.
        empty: shown where a number that may be missing is None.
    """
    values, options = {}, options_of(usual)
    for name, (label, step) in fields.items():
        start, (_, sentence) = getattr(usual, name), options[name]
        state.follow(f"{prefix}{name}", start)
        values[name] = grid.cell().number_input(
            label,
            value=start,
            step=step,
            format="%d" if isinstance(step, int) else "%g",
            key=f"{prefix}{name}",
            help=as_help(sentence),
            placeholder=empty,
            bind="query-params",
            persist_state="session",
        )
    return values
