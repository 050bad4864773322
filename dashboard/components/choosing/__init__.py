"""Shared by all views of heads: a grid of layers and heads, in which some can be chosen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.components.source import Selection, Source, as_text, joined, late_choice, push, selected
from attention_sieve.dashboard.figures.figure import SHARED


def heads_source(name: str, style: str, *scripts: str) -> Source:
    """Source of a component that draws heads: the shared grid, then a style sheet and scripts of its own."""
    return Source(
        name=name,
        html=joined("choosing/choosing.html"),
        css=joined("view.css", "terms/term.css", "choosing/choosing.css", style),
        js=joined("page.js", "terms/term.js", "choosing/choosing.js", *scripts),
    )


def heads_data(shape: tuple[int, int], label: str) -> dict[str, Any]:
    """What all views of heads are sent; `shape` is the number of layers, and of heads in each."""
    layers, heads = shape
    return {"layers": layers, "heads": heads, "label": label, "sharing": SHARED}


def choose(mount: Callable[..., Any], selection: Selection[list[Head]], data: Mapping[str, Any]) -> list[Head]:
    """Mount a view of heads and return the chosen ones that it has, in the order they were chosen.

    Args:
        data: `heads_data`, and what its cells show; `shared` says how many neighbouring heads share keys and values.
    """
    key, on_change, layers, heads = selection.key, selection.on_change, data["layers"], data["heads"]
    initial = [list(head) for head in _within(selection.initial, layers, heads)]
    rev, pushed = push(key, "chosen", initial, selection.reset)

    def handle_change() -> None:
        state = st.session_state.get(key)
        late = late_choice(key, "chosen", rev)
        if on_change is None:
            return
        if selected(state, "chosen", rev) is not None:
            on_change(chosen_heads(state, layers, heads, rev))
        elif late is not None:
            on_change(_within(late, layers, heads))

    state = mount(
        key=key,
        data=as_text({**data, "key": key, "rev": rev, "chosen": pushed}),
        default={"chosen": initial},
        on_chosen_change=handle_change,
    )
    return chosen_heads(state, layers, heads, rev, pushed)


def chosen_heads(
    state: object, layers: int, heads: int, rev: int = 0, pushed: Sequence[Sequence[int]] = ()
) -> list[Head]:
    """The heads in the state of a view that a checkpoint of this shape has; anything else is left out.

    Args:
        state: What the browser sent, possibly for an earlier checkpoint.
        rev: How often heads have been pushed.
        pushed: The heads that were pushed last, used if the state has none since.
    """
    selection = selected(state, "chosen", rev)
    return _within(pushed if selection is None else selection, layers, heads)


def _within(values: object, layers: int, heads: int) -> list[Head]:
    values = values if isinstance(values, list | tuple) else ()
    pairs = [tuple(pair) for pair in values if isinstance(pair, list | tuple) and len(pair) == 2]
    # JSON has one type of number and True is an int, so the type is checked exactly.
    inside = [
        (layer, head)
        for layer, head in pairs
        if type(layer) is int and type(head) is int and 0 <= layer < layers and 0 <= head < heads
    ]
    return list(dict.fromkeys(inside))
