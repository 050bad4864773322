"""The data of a saved page: what its script draws, and what it was made of."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pandas as pd

from attention_sieve import __version__
from attention_sieve.core.comparison.finding import COMPARISON_COLUMNS, RoleComparison, compared
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleFinding
from attention_sieve.core.roles.hypotheses import few_texts, n_holding, tested_roles
from attention_sieve.core.roles.roles import combinations, role_title, shown_roles_of_all
from attention_sieve.core.roles.sieves import telling_head
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.components.grid import grid_data, sieves_in
from attention_sieve.dashboard.components.venn import venn_data
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.files.provenance import text_object
from attention_sieve.dashboard.saved_page.asked import TEXTS_FILE
from attention_sieve.dashboard.saved_page.content import Content, Found
from attention_sieve.dashboard.standalone.linked_text import difference_data, text_data

FORMAT: Final = 1
"""Of the data; raise it when a program that knows the earlier one would misread it."""
DIGITS: Final = 9
"""Significant digits of the numbers in tables: those of single precision."""
MOST_VENN: Final = 4
ON_WORDS: Final = (
    "The two tokenizers split this text differently, so the difference is between words: to a word, the sum over its "
    "pieces; from a word, their mean. All special tokens together are the word [special]."
)


def page_data(content: Content) -> dict[str, Any]:
    """What a page holds, as JSON: numbers that were computed, and words made of them."""
    asked, found = content.asked, content.found
    names = [wording.model_name(checkpoint.name) for checkpoint in asked.checkpoints]
    first: RoleFinding = found[0].finding
    roles = first.tests.roles
    coarse, fine = shown_roles_of_all([each.finding.tests.mean for each in found], roles)
    tables = [ROLE_ANALYSIS.table(each.finding) for each in found]
    comparison = None if len(found) == 1 else compared((each.finding for each in found), [asked.dtype])
    sentences = [_summary(content, each, coarse) for each in found]
    if comparison is not None:
        changed = comparison.changed
        each_named = [f"{name}: {sentence}" for name, sentence in zip(names, sentences)]
        sentences = [_changes(int(changed.sum()), changed.size, names, comparison), *each_named]
    return {
        "format": FORMAT,
        "program": __version__,
        "title": f"Attention heads of {names[0]}" if len(names) == 1 else f"{names[1]} compared with {names[0]}",
        "sentences": sentences,
        "notes": [note for note in (first.note, few_texts(len(first.counted.scores))) if note],
        "names": names,
        "asked": asdict(asked),
        "facts": {"program": f"Attention Sieve {__version__}", **asked.facts},
        "command": asked.command,
        "texts": {"file": TEXTS_FILE, "objects": [text_object(text) for text in asked.texts]},
        "roles": list(map(role_title, roles)),
        "shown": {"coarse": [roles.index(role) for role in coarse], "fine": [roles.index(role) for role in fine]},
        "grids": [_grid(content, number, table, coarse) for number, table in enumerate(tables)],
        "drawn": _drawn(content, names),
        "first": [list(head) for head in asked.chosen or [telling_head(found[0].drawn[0])]],
        "overlaps": [_overlaps(each, name, coarse) for each, name in zip(found, names)],
        "tables": [
            *(
                []
                if comparison is None
                else [_table(f"{names[1]} minus {names[0]}", "comparison", comparison.table, COMPARISON_COLUMNS)]
            ),
            *(_table(f"Roles in {name}", "roles", table, ROLE_ANALYSIS.columns) for name, table in zip(names, tables)),
        ],
    }


def _changes(n_changed: int, n_heads: int, names: Sequence[str], comparison: RoleComparison) -> str:
    tests = comparison.tests
    return (
        f"From {names[0]} to {names[1]}, {n_changed} of {n_heads} heads gain or lose a role. "
        f"{comparison.sizes.sentence} (paired t-test, alpha {tests.alpha:g}, correction {tests.correction})."
    )


def _summary(content: Content, found: Found, coarse: tuple[str, ...]) -> str:
    tests, scale = found.finding.tests, found.finding.scored.scale
    counts = _counts(found, coarse)
    n_any = sum(n_heads for roles, n_heads in counts.items() if roles)
    lengths = wording.token_range(content.n_tokens)
    at_tau = wording.at_tau(tests.settings.tau, scale)
    n_texts = len(found.finding.counted.scores)
    return wording.roles_summary(
        n_any, sum(counts.values()), n_holding(tests, coarse), n_texts, lengths, at_tau
    ).replace("**", "")


def _counts(found: Found, of: tuple[str, ...]) -> dict[frozenset[str], int]:
    """Number of heads for each exact combination of roles."""
    tests = found.finding.tests
    by_roles = combinations(tests.holds, tests.roles, of)
    return {roles: n for roles, heads in by_roles.items() if (n := len(set(heads) - set(found.removed)))}


def _overlaps(found: Found, name: str, coarse: tuple[str, ...]) -> dict[str, Any]:
    roles = tested_roles(found.finding.tests, coarse)[:MOST_VENN]
    overlaps = Overlaps(roles=roles, combinations=_counts(found, roles))
    tests = found.finding.tests
    return {
        "data": venn_data(overlaps, f"{wording.OVERLAPS} in {name}"),
        "heads": [
            {"roles": [role for role in roles if role in held], "heads": sorted(map(list, heads))}
            for held, heads in combinations(tests.holds, tests.roles, roles).items()
        ],
    }


def _grid(content: Content, number: int, table: pd.DataFrame, coarse: tuple[str, ...]) -> dict[str, Any]:
    found, asked = content.found[number], content.asked
    name = wording.model_name(asked.checkpoints[number].name)
    finding: RoleFinding = found.finding
    tests, criterion, scale = finding.tests, asked.settings.criterion, finding.scored.scale
    uniform, greatest = finding.counted.mean_references()
    reference = content.found[0].finding.tests.holds
    grid = RoleGrid(
        label=f"Heads of {name}",
        roles=tests.roles,
        scores=tests.mean,
        holds=tests.holds,
        tau=criterion.tau,
        shown=coarse,
        off=asked.off,
        held_before=reference if number else None,
        before=f"against {wording.model_name(asked.checkpoints[0].name)}",
        filled=wording.filled_by_test(criterion.tau, scale),
        scale=scale,
        uniform=uniform,
        greatest=greatest,
        p_values=tests.p_adjusted,
        p_name=f"p ({criterion.correction})",
        stability=table["stability"].to_numpy().reshape(tests.mean.shape),
        n_shared=found.n_shared,
    )
    return grid_data(grid)


def _drawn(content: Content, names: list[str]) -> list[dict[str, Any]]:
    """Each text that is drawn, with its attention under each checkpoint, and how they differ."""
    scores = content.asked.settings.scores
    return [
        {
            "sides": [
                text_data(
                    looked := found.drawn[position], text, sieves_in(looked, text, scores.roles, scores.direction), name
                )
                for found, name in zip(content.found, names)
            ],
            "difference": _difference(text, [found.drawn[position] for found in content.found]),
        }
        for position, text in enumerate(content.asked.drawn)
    ]


def _difference(text: Text, looked: Sequence[TextAttention]) -> dict[str, Any] | None:
    """How the attention under the second checkpoint differs; None for one, and for texts without common words."""
    if len(looked) == 1 or (data := difference_data(text, (looked[0], looked[1]))) is None:
        return None
    return data | {"note": ON_WORDS if data["sides"] else ""}


def _table(title: str, kind: str, table: pd.DataFrame, columns: Mapping[str, str]) -> dict[str, Any]:
    values = {name: [_value(value) for value in table[name].tolist()] for name in table.columns}
    return {"title": title, "kind": kind, "columns": dict(columns), "values": values}


def _value(value: Any) -> Any:
    """A value of a table for JSON: null where there is none, and infinity as a word."""
    if not isinstance(value, float):
        return value.item() if isinstance(value, np.generic) else value
    if math.isfinite(value):
        return float(f"{value:.{DIGITS}g}")
    return None if math.isnan(value) else str(value)
