"""Overlaps of roles: a Venn diagram of two to four roles next to the exact combinations; both select heads."""

import json
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import streamlit as st

from attention_sieve.dashboard.components.selection import push
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.roles.combinations import NO_ROLE, code, exact_name, heads_phrase, ordered, total

_FILES: Final = Path(__file__).parent
_GEOMETRY: Final[dict[str, Any]] = json.loads((_FILES / "regions.json").read_text("utf-8"))
_mount = st.components.v2.component(
    "attention_sieve.role_venn",
    html=(_FILES / "venn.html").read_text("utf-8"),
    css=(_FILES / "venn.css").read_text("utf-8"),
    js=(_FILES / "venn.js").read_text("utf-8"),
    isolate_styles=True,
)


def role_venn(
    *,
    key: str,
    roles: Sequence[str],
    combinations: Mapping[frozenset[str], int],
    untested: Collection[str] = (),
    label: str,
    caption: str = "Exact combinations, most common first",
    none: str = NO_ROLE,
    selected: Sequence[str] | None = None,
    reset: Hashable = None,
    on_change: Callable[[tuple[str, ...] | None], None] | None = None,
) -> tuple[str, ...] | None:
    """Draw the overlaps and return the combination the reader has selected.

    Two to four roles are drawn as outlines and as a table; any other number as the table alone.

    Args:
        key: The view's own key.
        roles: The roles that are counted.
        combinations: How many heads hold exactly which of these roles; the empty set counts heads without a role.
        untested: Roles that could not be tested, which have no count.
        label: What the diagram shows, for screen readers.
        caption: Title of the table.
        none: What heads without any of these roles are called.
        selected: The initial combination, also taken whenever `reset` changes. Ignored on every other run.
        reset: Any value; a new one makes the view take `selected`.
        on_change: Called with the combination before the run that follows a click.

    Returns: the roles of the selected combination in the order of `roles`, empty for heads without a role; None when
        nothing is selected.
    """
    initial = _exact(selected, roles)
    rev, pushed = push(key, "region", None if initial is None else list(initial), reset)
    pushed_roles = _exact(pushed, roles)

    def handle_change() -> None:
        if on_change is not None:
            on_change(selected_combination(st.session_state.get(key), roles))

    state = _mount(
        key=key,
        data={
            "geometry": _GEOMETRY.get(str(len(roles))),
            "roles": list(roles),
            "looks": [_look(role) for role in roles],
            "totals": [total(role, combinations, untested) for role in roles],
            "heads": sum(combinations.values()),
            "rows": _rows(roles, combinations, none),
            "none": none,
            "label": label,
            "caption": caption,
            "key": key,
            "rev": rev,
            "region": None if pushed_roles is None else code(roles, pushed_roles),
        },
        default={"region": None if initial is None else list(initial)},
        on_region_change=handle_change,
    )
    return selected_combination(state, roles)


def selected_combination(state: object, roles: Sequence[str]) -> tuple[str, ...] | None:
    """The combination in the state of a view; None if there is none, or if it has other roles.

    Args:
        state: What the browser sent, possibly for an earlier set of roles.
        roles: The roles that are counted now.
    """
    return _exact(state.get("region") if isinstance(state, Mapping) else None, roles)


def _exact(combination: object, roles: Sequence[str]) -> tuple[str, ...] | None:
    if not isinstance(combination, list | tuple) or any(role not in roles for role in combination):
        return None
    return tuple(role for role in roles if role in combination)


def _rows(roles: Sequence[str], combinations: Mapping[frozenset[str], int], none: str) -> list[dict[str, Any]]:
    rows = []
    for combination in ordered(roles, combinations):
        name = exact_name(combination.roles) if combination.roles else none
        label = f"{name}: {heads_phrase(combination.heads)}"
        rows.append({"code": code(roles, combination.roles), "heads": combination.heads, "name": name, "label": label})
    return rows


def _look(role: str) -> dict[str, str]:
    look = LOOKS[role]
    return {"label": look.label, "letter": look.letter, "color": look.color, "ink": look.ink}
