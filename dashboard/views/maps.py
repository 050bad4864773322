"""Maps of all heads on a page, with their files: a click chooses heads, for every page."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import partial

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard import state
from attention_sieve.dashboard.components.head_map import head_map
from attention_sieve.dashboard.components.selection import Selection
from attention_sieve.dashboard.figures.head_map import HeadMap, head_map_svg
from attention_sieve.dashboard.files.downloads import drawing_downloads


def head_selection(
    key: str, heads: list[Head], reset: Hashable, on_change: Callable[[list[Head]], None] = state.choose_heads
) -> Selection[list[Head]]:
    """The chosen heads in one of the views of heads; a click chooses heads for every page."""
    return Selection(key, heads, reset, on_change)


def show_head_map(
    picture: HeadMap, selection: Selection[list[Head]], *, file: str, facts: Mapping[str, str], paper: str = ""
) -> list[Head]:
    """Draw one number per head, with its files.

    Args:
        paper: the sentence that names the paper's figure it corresponds to, if there is one to name.

    Returns: the heads that are chosen now.
    """
    picture = replace(picture, layers_across=state.layers_across())
    heads = head_map(picture, selection)
    title = picture.title[:1].upper() + picture.title[1:]
    drawing_downloads(file, title, facts, partial(head_map_svg, picture), paper=paper)
    return heads
