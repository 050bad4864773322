"""The roles of heads over texts or over a corpus of any size, and the tabs in which the page draws either."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations as pairs_of
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Int
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.card import role_card
from attention_sieve.core.roles.hypotheses import HeadTests, tested_roles
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.roles import combinations, role_title, shown_roles
from attention_sieve.core.roles.tables import head_table
from attention_sieve.core.statistics.by_role import overlap
from attention_sieve.dashboard import link
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.components.venn import exact_combination, role_venn
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.roles.combinations import NO_ROLE as NO_HELD
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.distributions import Violins
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.roles.layers import heads_per_layer
from attention_sieve.dashboard.figures.roles.p_values import p_value_against_score, p_value_scatter
from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg
from attention_sieve.dashboard.files.downloads import drawing_downloads, table_downloads
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.pickers import from_list, one_of, some_of, toggle
from attention_sieve.dashboard.views.role_grid.grid import number_columns
from attention_sieve.dashboard.views.roles import wording
from attention_sieve.dashboard.views.roles.chance import Controlled

EXPLAINED: Final = {
    "stability": st.column_config.NumberColumn(format="percent", help=wording.STABILITY),
    "rests_on_first": st.column_config.CheckboxColumn(shared_wording.RESTS_ON_FIRST, help=wording.RESTS_HELP),
}
"""Columns that only tables of texts have."""

REGION: Final = "region"
VENN_ROLES: Final = "venn roles"
MOST_VENN: Final = 4
NO_ROLE: Final = "none"
"""Value in the link for heads without a role."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TestedRoles:
    """Which heads hold which roles, and what else the page shows of them, wherever they come from."""

    tests: HeadTests
    scale: Scale
    n_texts: int
    """Number of texts that the tests are over."""
    lengths: str
    """Their numbers of tokens, in words."""
    n_short: Int[np.ndarray, " role"] | None
    """Number of texts on which no attention can reach tau; None where it was not counted."""
    untested: Mapping[str, str]
    """Reason for each role that could not be tested."""
    heads: list[Head]
    """The chosen heads; at first the one with the most roles."""
    reset: Hashable
    """Changes whenever the grid has to take over the chosen heads."""
    facts: dict[str, str]
    """Provenance of files."""
    control_facts: dict[str, str]
    """Of those on the controls."""
    grid: Callable[[], RoleGrid]
    """The grid of all roles."""
    distribution: Callable[[Violins], Figure]
    """The scores of a role."""
    rows: Callable[[], pd.DataFrame]
    """The table: a row per role, layer and head."""
    tabs: str
    """Key of the tabs in the session and in the link."""
    views: Mapping[str, Callable[["TestedRoles"], None]]
    """Draws each tab that roles from elsewhere do not have, by its title."""
    random: Callable[[], Controlled | None] = lambda: None
    """The heads of random weights over the same texts, computed unless that is kept."""
    control: Callable[[], tuple[Controlled, ...]] = tuple
    """Draws a button to count what chance gives, unless that is kept; all controls, or none."""
    note: str | None = None
    """A further sentence about the texts."""
    removed: tuple[Head, ...] = ()
    """Heads that do not count."""
    remarks: Callable[["TestedRoles"], None] = lambda _: None
    """Says below the grid what is known of roles from there alone."""
    offer: Callable[[list[Head], DeltaGenerator], None] = lambda heads, links: None
    """Offers what can be done with the chosen heads, beside the downloads of the grid or at the foot of the page."""

    @cached_property
    def coarse_and_fine(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The roles that apply."""
        return shown_roles(self.tests.mean, self.tests.roles)

    @property
    def n_heads(self) -> int:
        """Number of heads that count."""
        return self.tests.holds[0].size - len(self.removed)

    @property
    def coarse(self) -> tuple[str, ...]:
        return self.coarse_and_fine[0]


def _counts(shown: TestedRoles, roles: tuple[str, ...]) -> dict[frozenset[str], int]:
    heads_by_roles = combinations(shown.tests.holds, shown.tests.roles, roles).items()
    counts = {held: len(set(heads) - set(shown.removed)) for held, heads in heads_by_roles}
    return {held: n_heads for held, n_heads in counts.items() if n_heads}


def venn_roles(shown: TestedRoles) -> tuple[str, ...]:
    """The roles of the Venn diagram: those that the reader has picked, if they are two or more, else the first four."""
    tested = tested_roles(shown.tests, shown.coarse)
    picked = tuple(role for role in tested if role in st.session_state.get(VENN_ROLES, ()))
    return picked if len(picked) > 1 else tested[:MOST_VENN]


def combined(shown: TestedRoles) -> None:
    """Draw the overlaps; the selected combination is stored in the session and in the link."""
    tested, diagram = tested_roles(shown.tests, shown.coarse), st.container()
    st.multiselect(
        "Roles in the diagram",
        tested,
        format_func=role_title,
        key=VENN_ROLES,
        max_selections=MOST_VENN,
        placeholder="the first four; pick two to four",
        bind="query-params",
        persist_state="session",
    )
    roles = venn_roles(shown)
    none = NO_HELD if roles == tested else "none of these"
    overlaps = Overlaps(roles=roles, combinations=_counts(shown, roles), none=none)
    with diagram:
        choice = Selection("venn", _selected(overlaps.combinations), roles, on_change=_select)
        region = role_venn(overlaps, choice, shared_wording.OVERLAPS)
    _select(region)
    link.put([REGION], {} if region is None else {REGION: ",".join(region) or NO_ROLE})
    drawing_downloads("overlap", shared_wording.OVERLAPS, shown.facts, partial(venn_svg, overlaps))


def selected_region(shown: TestedRoles) -> tuple[str, ...] | None:
    """The combination of roles in the link on a first visit, else the one that was selected last."""
    roles = venn_roles(shown)
    return exact_combination(_selected(_counts(shown, roles)), roles)


def _select(region: tuple[str, ...] | None) -> None:
    st.session_state[REGION] = region


def _selected(counts: Mapping[frozenset[str], int]) -> tuple[str, ...] | None:
    if (requested := link.take(REGION)) is not None:
        roles = () if requested == NO_ROLE else tuple(requested.split(","))
        st.session_state[REGION] = roles if frozenset(roles) in counts else None
        if frozenset(roles) not in counts:
            link.say(wording.no_such_region(link.quoted(requested)))
    return st.session_state.get(REGION)


def per_layer(shown: TestedRoles) -> None:
    tests = shown.tests
    n_present = (~np.isnan(tests.mean)).any(axis=0).sum(axis=1)
    n_holding = tests.holds.sum(axis=2)
    majority_layers = {
        role: np.flatnonzero(2 * n_holding[tests.roles.index(role)] > n_present).tolist() for role in shown.coarse
    }
    st.markdown(wording.most_of_layers({role: layers for role, layers in majority_layers.items() if layers}))
    chart("roles per layer", heads_per_layer(tests, shown.coarse), shown.facts)


def p_values(shown: TestedRoles) -> None:
    figures = {"mean score": p_value_against_score, "heads in order": p_value_scatter}
    figure = one_of("Across", figures, key="p across")
    chart("p-values", figure(shown.tests, shown.coarse, shown.scale), shown.facts)


def distributions(shown: TestedRoles) -> None:
    roles = {role_title(name): name for name in shown.tests.roles}
    layers = {"all": None, **{str(layer): layer for layer in range(shown.tests.mean.shape[1])}}
    with st.container(horizontal=True):
        role = from_list("Role", roles, key="distribution role")
        layer = from_list("Layer", layers, key="distribution layer")
    chart("score distributions", shown.distribution(Violins(role, layer, shown.scale)), shown.facts)


def overlaps(shown: TestedRoles) -> None:
    st.markdown(wording.OVERLAP)
    pairs = [(*names, overlap(shown.tests.holds, shown.tests.roles, *names)) for names in pairs_of(shown.coarse, 2)]
    table = pd.DataFrame(
        {
            "first": [role_title(first) for first, _, _ in pairs],
            "second": [role_title(second) for _, second, _ in pairs],
            "heads with both": [shared.both for *_, shared in pairs],
            "of first": [shared.share_first for *_, shared in pairs],
            "of second": [shared.share_second for *_, shared in pairs],
            "of either": [shared.share_union for *_, shared in pairs],
        }
    )
    share = st.column_config.NumberColumn(format="percent")
    columns = dict.fromkeys(("of first", "of second", "of either"), share)
    st.dataframe(table, hide_index=True, column_config=columns)
    table_downloads("overlaps", table, shown.facts)


def table(shown: TestedRoles) -> None:
    """Draw the table, of which the reader may choose rows; it is also offered as a section of a model card."""
    rows = shown.rows()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles, numbers = (list(map(str, rows[name].unique())) for name in ("role", "layer"))
        chosen_roles = some_of("Roles", titles, key="table roles", every="all roles")
        layers = some_of("Layers", numbers, key="table layers", every="all layers")
        only_held = toggle("Only roles that are held", key="table held")
    is_selected = rows["role"].isin(chosen_roles) & rows["layer"].astype(str).isin(layers)
    rows = rows[is_selected & (rows["holds"] | (not only_held))]
    st.dataframe(rows, hide_index=True, column_config={**number_columns(), **EXPLAINED})
    table_downloads("roles", rows, shown.facts, card=partial(role_card, head_table(shown.tests)))
