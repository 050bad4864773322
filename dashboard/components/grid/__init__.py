"""The grid of roles: all heads of a checkpoint, in which the reader chooses heads."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.hypotheses import CERTAIN, RESAMPLES, Criterion
from attention_sieve.core.roles.question import PassedText
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.components.choosing import choose, heads_data, heads_source
from attention_sieve.dashboard.components.grid.patterns import Patterns
from attention_sieve.dashboard.components.source import Selection, base64_of, look_data
from attention_sieve.dashboard.components.terms.sieve_pictures import Sieves
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.roles.grid import FAINT, STABLE, RoleGrid
from attention_sieve.dashboard.glossary import TERMS

SOURCE: Final = heads_source("role_grid", "grid/grid.css", "later.js", "grid/patterns.js", "grid/grid.js")
_mount: Final = SOURCE.registered()


@dataclass(frozen=True, eq=False, kw_only=True)
class GridOnText:
    """What a grid shows of the text on screen."""

    sieves: Sieves | None = None
    """Shown in the legend; None for none."""
    frame: str | None = None
    """Name of the arcs of the same text, which then preview the heads of `patterns`."""
    patterns: Patterns | None = None
    """Attention of every head, which the cells then show instead of roles."""


WITHOUT_TEXT: Final = GridOnText()


def role_grid(grid: RoleGrid, selection: Selection[list[Head]], on_text: GridOnText = WITHOUT_TEXT) -> list[Head]:
    """Draw the grid and return the heads of it that the reader has chosen, in the order they were chosen.

    Args:
        grid: What to draw; the tooltip lists all of its roles.
        selection: The chosen heads; one grid on a page keeps one key.
    """
    return choose(_mount, selection, grid_data(grid, on_text))


def grid_data(grid: RoleGrid, on_text: GridOnText = WITHOUT_TEXT) -> dict[str, Any]:
    """What the script of the grid reads, but for the chosen heads."""
    sieves, patterns, highlight = on_text.sieves, on_text.patterns, grid.highlight
    n_layers, n_heads = grid.scores.shape[1:]
    return {
        **heads_data((n_layers, n_heads), grid.label),
        "roles": [look_data(LOOKS[role]) for role in grid.roles],
        "means": [TERMS.get(role) for role in grid.roles],
        "pictures": [sieves and sieves.picture(role) for role in grid.roles],
        "shown": grid.corners,
        "scores": base64_of(grid.scores.astype("<f4")),
        "uniform": None if grid.uniform is None else base64_of(grid.uniform.astype("<f4")),
        "greatest": None if grid.greatest is None else base64_of(grid.greatest.astype("<f4")),
        "positional": [] if grid.positional is None else np.flatnonzero(grid.positional).tolist(),
        "states": base64_of(_states(grid)),
        "compared": grid.held_before is not None,
        "p": None if grid.p_values is None else base64_of(grid.p_values.astype("<f4")),
        "before": grid.before,
        "off": sorted(list(head) for head in grid.off),
        "removed": np.argwhere(grid.removed).tolist(),
        "p_name": grid.p_name,
        "odds": grid.odds,
        "stays": None if grid.stability is None else base64_of(np.rint(grid.stability * RESAMPLES).astype("u1")),
        "resamples": RESAMPLES,
        "certain": CERTAIN,
        "faint": FAINT,
        "stable": STABLE,
        "tau": float(grid.tau),
        "noun": WORDS[grid.scale].short,
        "filled": grid.filled,
        "sentences": grid.sentences,
        "frame": on_text.frame,
        "patterns": None if patterns is None else patterns.data(),
        "highlight": None if highlight is None else sorted(list(head) for head in highlight),
        "shared": grid.n_shared,
        "across": grid.layers_across,
    }


def grid_of_text(passed: PassedText, criterion: Criterion, label: str, n_shared: int) -> RoleGrid:
    """Roles by the scores on a text, which no test can confirm; `n_shared` neighbouring heads share keys and values."""
    scored = passed.scored
    return RoleGrid(
        label=label,
        roles=scored.roles,
        scores=passed.scores,
        holds=passed.roles(criterion),
        tau=criterion.tau,
        filled=wording.filled_by_text(criterion.tau, criterion.rule, scored.scale),
        scale=scored.scale,
        uniform=scored.uniform[0],
        greatest=scored.greatest[0],
        n_shared=n_shared,
    )


def _states(grid: RoleGrid) -> np.ndarray:
    """State of each role and head: 0 none, 1 held or gained, 2 lost, 3 kept."""
    states = grid.holds.astype(np.uint8)
    return states if grid.held_before is None else states + 2 * grid.held_before.astype(np.uint8)
