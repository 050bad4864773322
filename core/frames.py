"""Results as tables with named columns, and back."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from core.comparison import PairedTests
from core.errors import AnalysisError
from core.hypotheses import HeadTests
from core.roles import ROLES
from core.texts import Text
from core.transitions import Head, RoleChange, Transition

SCORE_COLUMNS: Final = ("text", "role", "layer", "head", "score")
TEST_FIELDS: Final = ("texts", "mean", "std", "low", "high", "t", "p", "p_adjusted", "holds", "constant")
PAIRED_FIELDS: Final = ("texts", "mean_a", "mean_b", "difference", "t", "p", "p_adjusted", "wilcoxon_p", "effect")
CHANGE_FIELDS: Final = ("role", "before", "after", "gained", "lost", "kept", "p")
MUST_AGREE: Final = {
    "texts sha256": "of other texts",
    "direction": "in two directions",
    "block entropy": "with and without block entropy",
}
"""Facts about a file of scores that decide what its scores are, and what two files hold that differ in them."""
SCORE_ALIKE: Final = "Score the same file of texts with the same settings under both checkpoints."


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreTable:
    """Scores as a file holds them."""

    texts: tuple[int, ...]
    """Place of each text among those that were given to be scored."""
    roles: tuple[str, ...]
    scores: Float[np.ndarray, "text role layer head"]
    facts: Mapping[str, str]
    """What the file says about where it comes from; empty where it says nothing."""


def score_table(
    positions: Sequence[int],
    scores: Float[np.ndarray, "text role layer head"],
    facts: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Scores [text role layer head] as rows, texts in order; NaN where not applicable.

    Args:
        positions: of the texts, among those given.
        scores: by ROLES.
        facts: where they come from; kept in a Parquet file, as the table's `attrs`.
    """
    index = pd.MultiIndex.from_product(
        [positions, ROLES, range(scores.shape[2]), range(scores.shape[3])], names=SCORE_COLUMNS[:4]
    )
    table = pd.DataFrame({"score": scores.astype(np.float64).ravel()}, index=index).reset_index()
    table.attrs = dict(facts or {})
    return table


def read_score_table(path: Path) -> ScoreTable:
    """The scores of a file, its texts in order.

    Raises: AnalysisError for a file that is not such a table.
    """
    table = _parquet(path)
    missing = [name for name in SCORE_COLUMNS if name not in table]
    if missing or table.empty:
        lacking = f"lacks the column {missing[0]}" if missing else "has no rows"
        raise AnalysisError(f"{path} {lacking}. Make one with: python -m core score")
    if not pd.api.types.is_float_dtype(table["score"]):
        raise AnalysisError(f"The scores in {path} are {table['score'].dtype}, not numbers. Score the texts again.")
    keys = table[["role", "layer", "head"]].astype({"role": str})
    names = tuple(keys["role"].unique())
    shape = (table["text"].nunique(), len(names), table["layer"].nunique(), table["head"].nunique())
    facts = {name: fact for name, fact in table.attrs.items() if isinstance(fact, str)}
    table = table[["text", "score"]].join(keys)
    if len(table) != np.prod(shape) or table.duplicated(["text", "role", "layer", "head"]).any():
        raise AnalysisError(
            f"{path} does not hold one score for every text, role, layer and head. Score the texts again."
        )
    wide = table.pivot(index="text", columns=["role", "layer", "head"], values="score").sort_index(axis=1)
    scores = wide.reindex(columns=names, level="role").to_numpy().reshape(shape)
    return ScoreTable(texts=tuple(wide.index), roles=names, scores=scores, facts=facts)


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        raise AnalysisError(f"There is no file {path}. Make one with: python -m core score") from None
    except (OSError, ValueError, TypeError) as error:  # TypeError: metadata that are no table's
        reason = str(error).split("\n")[0]
        raise AnalysisError(f"{path} is no Parquet file ({reason}). Make one with: python -m core score") from None


def on_same_texts(a: ScoreTable, b: ScoreTable) -> tuple[ScoreTable, ScoreTable]:
    """Two files of scores, each cut to the texts that both have, and with the roles in one order.

    Raises: AnalysisError for files that were scored on other texts or with other settings, where they say so; for a
        role in one file only; for no text in common.
    """
    for fact, done in MUST_AGREE.items():
        found = [side.facts[fact] for side in (a, b) if fact in side.facts]
        if len(set(found)) > 1:
            raise AnalysisError(
                f"The two files hold scores {done} ({found[0][:20]} and {found[1][:20]}). {SCORE_ALIKE}"
            )
    if alone := set(a.roles) ^ set(b.roles):
        raise AnalysisError(f"Only one of the two files holds scores for {', '.join(sorted(alone))}. {SCORE_ALIKE}")
    both = sorted(set(a.texts) & set(b.texts))
    if not both:
        raise AnalysisError(f"The two files have no text in common. {SCORE_ALIKE}")
    return _cut(a, both, a.roles), _cut(b, both, a.roles)


def _cut(table: ScoreTable, texts: Sequence[int], roles: tuple[str, ...]) -> ScoreTable:
    rows = np.isin(table.texts, texts)
    columns = [table.roles.index(role) for role in roles]
    return replace(table, texts=tuple(texts), roles=roles, scores=table.scores[rows][:, columns])


def texts_sha256(texts: Iterable[Text]) -> str:
    """SHA-256 over texts as they were given, in their order; tells two corpora apart whatever their files' names."""
    written = json.dumps([[text.segments, text.words, *_tree_of(text)] for text in texts])
    return hashlib.sha256(written.encode()).hexdigest()


def _tree_of(text: Text) -> list[object]:
    return [] if text.heads is None else [text.heads, text.relations]


def head_table(tests: HeadTests, fields: Sequence[str] = TEST_FIELDS) -> pd.DataFrame:
    """Tests as rows, by role, layer and head; columns are fields of HeadTests."""
    return _by_head(tests.roles, {name: getattr(tests, name) for name in fields})


def comparison_table(
    tests: PairedTests,
    holds_a: Bool[np.ndarray, "role layer head"],
    holds_b: Bool[np.ndarray, "role layer head"],
) -> pd.DataFrame:
    """Paired tests as rows, by role, layer and head, and whether the head holds the role under either checkpoint."""
    of_tests = {name: getattr(tests, name) for name in PAIRED_FIELDS}
    return _by_head(tests.roles, {**of_tests, "holds_a": holds_a, "holds_b": holds_b})


def _by_head(roles: tuple[str, ...], columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    _, n_layers, n_heads = next(iter(columns.values())).shape
    index = pd.MultiIndex.from_product([roles, range(n_layers), range(n_heads)], names=["role", "layer", "head"])
    return pd.DataFrame({name: column.ravel() for name, column in columns.items()}, index=index).reset_index()


def transition_table(transitions: Sequence[Transition]) -> pd.DataFrame:
    """Transitions as rows: roles before and after, how many heads go that way, and which."""
    rows = [
        (_roles_written(one.before), _roles_written(one.after), len(one.heads), heads_written(one.heads))
        for one in transitions
    ]
    return pd.DataFrame(rows, columns=["before", "after", "heads", "which"])


def role_change_table(changes: Sequence[RoleChange]) -> pd.DataFrame:
    """What becomes of each role's heads, one row a role; p of McNemar's exact test."""
    return pd.DataFrame([[getattr(one, name) for name in CHANGE_FIELDS] for one in changes], columns=CHANGE_FIELDS)


def _roles_written(roles: Collection[str]) -> str:
    known = [role for role in ROLES if role in roles]
    return ", ".join([*known, *sorted(set(roles) - set(known))]) or "no role"


def heads_written(heads: Iterable[Head]) -> str:
    """Heads as a reader sees them: L3 H7, L4 H1."""
    return ", ".join(f"L{layer} H{head}" for layer, head in heads)
