"""Overlaps of roles: a Venn diagram of two to four roles next to the exact combinations; both select heads."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from attention_sieve.dashboard.components.source import Selection, Source, as_text, joined, look_data, push
from attention_sieve.dashboard.figures.roles.combinations import Overlaps, code, exact_name, heads_phrase

_GEOMETRY: Final[dict[str, Any]] = json.loads(joined("venn/regions.json"))
"""By number of roles: outlines of two or three circles or four ellipses, and of their regions."""
SOURCE: Final = Source(
    name="role_venn",
    html=joined("venn/venn.html"),
    css=joined("view.css", "venn/venn.css"),
    js=joined("later.js", "page.js", "venn/venn.js"),
)
_mount: Final = SOURCE.registered()
CAPTION: Final = "Combinations, most common first"


def role_venn(
    overlaps: Overlaps,
    selection: Selection[tuple[str, ...] | None],
    label: str,
    caption: str = CAPTION,
) -> tuple[str, ...] | None:
    """Draw the overlaps and return the combination the reader has selected.

    Two to four roles are drawn as outlines and as a table; any other number as the table alone.

    Args:
        selection: The combination; None for none.

    Returns: the roles of the selected combination in the order of `roles`, empty for heads without a role; None when
        nothing is selected.
    """
    roles = overlaps.roles
    initial = exact_combination(selection.initial, roles)
    rev, pushed = push(selection.key, "region", None if initial is None else list(initial), selection.reset)
    pushed_roles = exact_combination(pushed, roles)

    def handle_change() -> None:
        if selection.on_change is not None:
            selection.on_change(selected_combination(st.session_state.get(selection.key), roles))

    state = _mount(
        key=selection.key,
        data=as_text(
            {
                **venn_data(overlaps, label, caption),
                "key": selection.key,
                "rev": rev,
                "region": None if pushed_roles is None else code(roles, pushed_roles),
            }
        ),
        default={"region": None if initial is None else list(initial)},
        on_region_change=handle_change,
    )
    return selected_combination(state, roles)


def venn_data(overlaps: Overlaps, label: str, caption: str = CAPTION) -> dict[str, Any]:
    """What the script of the diagram reads, but for the selected combination; as `role_venn`."""
    roles = overlaps.roles
    return {
        "geometry": _GEOMETRY.get(str(len(roles))),
        "roles": list(roles),
        "looks": [look_data(overlaps.looks[role]) for role in roles],
        "totals": [overlaps.total(role) for role in roles],
        "heads": sum(overlaps.combinations.values()),
        "rows": _rows(overlaps),
        "none": overlaps.none,
        "label": label,
        "caption": caption,
    }


def selected_combination(state: object, roles: Sequence[str]) -> tuple[str, ...] | None:
    """The combination in the state of a view, which may be of an earlier set of roles; None if it has others."""
    return exact_combination(state.get("region") if isinstance(state, Mapping) else None, roles)


def exact_combination(combination: object, roles: Sequence[str]) -> tuple[str, ...] | None:
    """A combination of some roles, in their order; None for anything else."""
    if not isinstance(combination, list | tuple) or any(role not in roles for role in combination):
        return None
    return tuple(role for role in roles if role in combination)


def _rows(overlaps: Overlaps) -> list[dict[str, Any]]:
    rows = []
    for combination in overlaps.rows:
        name = exact_name(combination.roles, overlaps.looks) if combination.roles else overlaps.none
        label = f"{name}: {heads_phrase(combination.heads)}"
        rows.append(
            {"code": code(overlaps.roles, combination.roles), "heads": combination.heads, "name": name, "label": label}
        )
    return rows
