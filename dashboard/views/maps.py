"""Views of all heads on a page, with their files: a click chooses heads, for every page."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import nullcontext

from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard import state
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.grid import role_grid
from attention_sieve.dashboard.components.grid.patterns import Patterns
from attention_sieve.dashboard.components.head_map import head_map
from attention_sieve.dashboard.components.terms.sieve_pictures import Sieves
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.head_map import HeadMap
from attention_sieve.dashboard.figures.head_map_svg import head_map_svg
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.roles.grid_svg import grid_svg
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.downloads import drawing_downloads


def show_head_map(
    picture: HeadMap,
    *,
    key: str,
    file: str,
    heads: Sequence[Head],
    reset: Hashable,
    facts: Mapping[str, str],
    on_change: Callable[[list[Head]], None] = state.choose_heads,
    paper: str = "",
) -> list[Head]:
    """Draw one number per head, with its files.

    Args:
        picture: what to draw.
        key: of the view.
        file: name of the files.
        heads: the chosen heads, which the view takes whenever `reset` changes.
        reset: any value.
        facts: where the numbers come from, written into the files.
        on_change: takes the heads that a click chose.
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.

    Returns: the heads that are chosen now.
    """
    chosen_heads = head_map(picture, key=key, chosen=heads, reset=reset, on_change=on_change)
    title = provenance.titled(picture.title[:1].upper() + picture.title[1:], facts)
    drawing_downloads(
        file,
        title,
        facts,
        lambda: head_map_svg(picture, title=title, caption=provenance.caption(facts)),
        paper=paper,
    )
    return chosen_heads


def show_role_grid(
    grid: RoleGrid,
    *,
    key: str,
    file: str,
    heads: Sequence[Head],
    reset: Hashable,
    facts: Mapping[str, str],
    highlight: Collection[Head] | None = None,
    sieves: Sieves | None = None,
    frame: str | None = None,
    patterns: Patterns | None = None,
    title: str = "",
    files: DeltaGenerator | None = None,
) -> list[Head]:
    """Draw the grid of roles, with its files.

    Args:
        grid: what to draw.
        key: of the view.
        file: name of the files.
        heads: the chosen heads, which the view takes whenever `reset` changes.
        reset: any value.
        facts: where the roles come from, written into the files.
        highlight: heads that stay bright while the others are dimmed; None keeps all bright.
        sieves: of the text on screen; None where there is none.
        frame: what the arcs of the same text are called.
        patterns: what every head does in that text, which the cells then show in place of roles.
        title: of its files, before the checkpoint and the texts; by default the number of heads.
        files: container for the files; below the grid by default.

    Returns: the heads that are chosen now.
    """
    chosen_heads = role_grid(
        grid,
        key=key,
        chosen=heads,
        reset=reset,
        highlight=highlight,
        sieves=sieves,
        frame=frame,
        patterns=patterns,
        on_change=state.choose_heads,
    )
    if first_screen_is_drawn():
        if grid.shown is not None:
            facts = {**facts, "shown roles": ", ".join(grid.shown)}
        titled = provenance.titled(title or f"Roles of {counted(int((~grid.removed).sum()), 'head')}", facts)
        caption = provenance.caption(facts)
        with files or nullcontext():
            drawing_downloads(file, titled, facts, lambda: grid_svg(grid, title=titled, caption=caption))
    return chosen_heads
