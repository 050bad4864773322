"""How a page is laid out."""

from typing import Final, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

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
