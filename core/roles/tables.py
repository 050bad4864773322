"""Scores and tests as tables with named columns, and reading tables of scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Int

from attention_sieve.core.errors import PROGRAM, AnalysisError, first_line, shortened
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.controls import RoleCounts
from attention_sieve.core.roles.finding import RoleFinding
from attention_sieve.core.roles.hypotheses import HeadTests, tests_of
from attention_sieve.core.roles.matched_pairs import MatchedTests
from attention_sieve.core.roles.measures import WRITTEN, RoleScores
from attention_sieve.core.roles.roles import coarse_roles, role_title
from attention_sieve.core.roles.uncertainty.anytime import as_odds
from attention_sieve.core.usage import HEAD_COLUMNS

EQUAL_TO: Final = "equal_to"
SCORE_COLUMNS: Final = {
    "text": "index of the text in the file, from 0",
    "role": "name of the role",
    **HEAD_COLUMNS,
    "score": "sieve bias score, which is 1 for uniform attention, or with --scale share the share above chance; empty "
    "where the role does not apply to the text",
    "uniform": "score of uniform attention on the same text",
    "greatest": "greatest possible score on the same text",
    "tokens": "number of tokens of the text, special tokens included",
    EQUAL_TO: "index of the first text that is equal to it, its own where no earlier one is; equal texts count once in "
    "roles and compare",
}
READ_COLUMNS: Final = {
    "text": int,
    "role": str,
    "layer": int,
    "head": int,
    "score": float,
    "uniform": float,
    "greatest": float,
}
"""Those that are read again, and what they hold; EQUAL_TO is, too, where a file has it."""
MOST_ROWS_PER_BYTE: Final = 10
"""Limit for a table of scores, which takes some bytes a row; a constant column could hold millions in a few bytes."""
TEST_FIELDS: Final = (
    "texts",
    "mean",
    "std",
    "low",
    "high",
    "t",
    "p",
    "p_uniform",
    "p_role",
    "p_adjusted",
    "holds",
    "constant",
)
EVIDENCE_FIELDS: Final = ("texts", "mean", "std", "evidence", "holds")
MUST_AGREE: Final = {
    "texts sha256": "of other texts",
    "direction": "in two directions",
    "block entropy": "with and without block entropy",
    "scale": "on two scales",
}
"""Metadata that must agree for scores to be comparable -> how two files differ, for messages."""
SCORE_ALIKE: Final = "Score the same file of texts with the same settings under both checkpoints."


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreTable:
    """Scores read from a file."""

    texts: tuple[int, ...]
    """Index of each text in the scored input."""
    numbers: Int[np.ndarray, " text"]
    """Of the texts, as of `text_numbers`; all differ in a file that says nothing of it."""
    scored: RoleScores
    facts: Mapping[str, str]
    """Metadata of the file, such as checkpoint and settings; may be empty."""


def score_table(finding: RoleFinding, prepared: Mapping[int, PassText]) -> pd.DataFrame:
    """A row per text, role, layer and head, with SCORE_COLUMNS; NaN where not applicable."""
    scored, shape = finding.scored, finding.scored.scores.shape
    n_tokens = np.array([text.n_tokens for text in prepared.values()])
    equal_to = np.array(list(prepared))[finding.numbers]
    index = pd.MultiIndex.from_product(
        [list(prepared), list(map(role_title, scored.roles)), range(shape[2]), range(shape[3])],
        names=list(SCORE_COLUMNS)[:4],
    )
    columns = {
        "score": scored.scores,
        "uniform": np.broadcast_to(scored.uniform[..., None], shape),
        "greatest": np.broadcast_to(scored.greatest[..., None], shape),
        "tokens": np.broadcast_to(n_tokens[:, None, None, None], shape),
        EQUAL_TO: np.broadcast_to(equal_to[:, None, None, None], shape),
    }
    table = pd.DataFrame({name: column.ravel() for name, column in columns.items()}, index=index).reset_index()
    return table.astype(dict.fromkeys(("score", "uniform", "greatest"), np.float64))


def read_score_table(path: Path) -> ScoreTable:
    """Read a table of scores, sorted by text.

    Raises: AnalysisError for a file that is not a table of scores.
    """
    table = _csv(path) if path.suffix.lower() == ".csv" else _parquet(path)
    missing = [name for name in READ_COLUMNS if name not in table]
    if missing or table.empty:
        lacking = f"lacks the column {missing[0]}" if missing else "has no rows"
        raise AnalysisError(f"{path} {lacking}. Make one with: {PROGRAM} score")
    if not pd.api.types.is_float_dtype(table["score"]):
        raise AnalysisError(f"The scores in {path} are {table['score'].dtype}, not numbers. Score the texts again.")
    keys = table[["role", "layer", "head"]].astype({"role": str})
    names = tuple(keys["role"].unique())
    shape = (table["text"].nunique(), len(names), table["layer"].nunique(), table["head"].nunique())
    facts = {name: fact for name, fact in table.attrs.items() if isinstance(fact, str)}
    values = ["score", "uniform", "greatest"]
    numbers = _numbers(table, path)
    table = table[["text", *values]].join(keys)
    if len(table) != np.prod(shape) or table.duplicated(["text", "role", "layer", "head"]).any():
        raise AnalysisError(
            f"{path} does not hold one score for every text, role, layer and head. Score the texts again."
        )
    wide = table.pivot(index="text", columns=["role", "layer", "head"], values=values)
    wide = wide.sort_index(axis=1).reindex(columns=names, level="role")
    scores, uniform, greatest = (wide[name].to_numpy().reshape(shape) for name in values)
    scored = RoleScores(
        roles=names,
        scores=scores,
        uniform=uniform[..., 0],
        greatest=greatest[..., 0],
        scale="share" if facts.get("scale") == "share" else "score",
    )
    return ScoreTable(texts=tuple(wide.index), numbers=numbers, scored=scored, facts=facts)


def _numbers(table: pd.DataFrame, path: Path) -> Int[np.ndarray, " text"]:
    """The number of each text of a table, in the order of the texts; all differ in one without EQUAL_TO."""
    numbers = table.groupby("text")[EQUAL_TO if EQUAL_TO in table else "text"].first().to_numpy()
    if numbers.dtype.kind not in "iu":
        raise AnalysisError(f"{EQUAL_TO} in {path} is {numbers.dtype}, not the index of a text. Score the texts again.")
    return numbers


def _parquet(path: Path) -> pd.DataFrame:
    """Read those columns of a table of scores that a file has, if they hold only numbers and names."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        n_rows, n_bytes = file.metadata.num_rows, path.stat().st_size
        if n_rows > MOST_ROWS_PER_BYTE * n_bytes:
            raise AnalysisError(
                f"{path} says that it has {n_rows:,} rows in {n_bytes:,} bytes, which no scores have. Score the texts "
                "again."
            )
        columns = [field for field in file.schema_arrow if field.name in {*READ_COLUMNS, EQUAL_TO}]
        nested = [field for field in columns if pa.types.is_nested(field.type)]
        if nested:
            raise AnalysisError(
                f"The column {nested[0].name} of {path} is of type {str(nested[0].type)[:50]}, which holds several "
                f"values in a row. Make a table of scores with: {PROGRAM} score"
            )
        return pd.read_parquet(path, columns=[field.name for field in columns])
    except FileNotFoundError:
        raise _no_file(path) from None
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:  # TypeError: metadata of something else
        raise _format_error(path, "Parquet file", error) from None


def _csv(path: Path) -> pd.DataFrame:
    """Read those columns of a table of scores that a file has; the others hold what is known of it, in every row."""
    try:
        first = pd.read_csv(path, nrows=1, dtype=str, keep_default_na=False)
        kinds = {name: kind for name, kind in (READ_COLUMNS | {EQUAL_TO: int}).items() if name in first}
        table = pd.read_csv(path, usecols=list(kinds), dtype=kinds)
    except FileNotFoundError:
        raise _no_file(path) from None
    except (OSError, ValueError) as error:
        raise _format_error(path, "CSV file of scores", error) from None
    table.attrs = {name: first[name][0] for name in first if name not in SCORE_COLUMNS} if len(first) else {}
    return table


def _no_file(path: Path) -> AnalysisError:
    return AnalysisError(f"There is no file {shortened(str(path))}. Write one with: {PROGRAM} score")


def _format_error(path: Path, expected: str, error: Exception) -> AnalysisError:
    return AnalysisError(
        f"{shortened(str(path))} is not a {expected} ({first_line(error)}). Make one with: {PROGRAM} score"
    )


def on_same_texts(a: ScoreTable, b: ScoreTable) -> tuple[ScoreTable, ScoreTable]:
    """Restrict two tables of scores to their common texts, with roles in the same order.

    Raises: AnalysisError if their metadata show different texts or settings, if a role is in one table only, or if they
        have no text in common.
    """
    for fact, difference in MUST_AGREE.items():
        values = [side.facts[fact] for side in (a, b) if fact in side.facts]
        if len(set(values)) > 1:
            raise AnalysisError(
                f"The two files hold scores {difference} ({values[0][:20]} and {values[1][:20]}). {SCORE_ALIKE}"
            )
    written = {name for side in (a, b) for name in side.facts if name.startswith(WRITTEN)}
    if changed := [name for name in sorted(written) if len({side.facts.get(name) for side in (a, b)}) > 1]:
        raise AnalysisError(f"The two files hold scores of different rules for {changed[0]}. {SCORE_ALIKE}")
    if unmatched := set(a.scored.roles) ^ set(b.scored.roles):
        raise AnalysisError(f"Only one of the two files holds scores for {', '.join(sorted(unmatched))}. {SCORE_ALIKE}")
    common = sorted(set(a.texts) & set(b.texts))
    if not common:
        raise AnalysisError(f"The two files have no text in common. {SCORE_ALIKE}")
    return _cut(a, common, a.scored.roles), _cut(b, common, a.scored.roles)


def _cut(table: ScoreTable, texts: Sequence[int], roles: tuple[str, ...]) -> ScoreTable:
    scored = table.scored
    rows, columns = np.isin(table.texts, texts), [scored.roles.index(role) for role in roles]
    arrays = {name: getattr(scored, name)[rows][:, columns] for name in ("scores", "uniform", "greatest")}
    cut = replace(scored, roles=roles, **arrays)
    return replace(table, texts=tuple(texts), numbers=table.numbers[rows], scored=cut)


def head_table(tests: HeadTests, fields: Sequence[str] = TEST_FIELDS) -> pd.DataFrame:
    """A row per role, layer and head; of evidence EVIDENCE_FIELDS, and the number in "34 : 1" for the evidence."""
    if tests.evidence is None:
        return by_head(tests.roles, {name: getattr(tests, name) for name in fields})
    columns = {name: getattr(tests, name) for name in EVIDENCE_FIELDS}
    return by_head(tests.roles, columns | {"evidence": as_odds(tests.evidence)})


def counts_table(counts: Sequence[RoleCounts], positional: Mapping[str, int] | None = None) -> pd.DataFrame:
    """Heads with a role, a row per control, seed and role; `positional` ones do not beat pairs at their distance."""
    rows = [
        (count.control, count.seed, role_title(role), int(n_held), count.n_heads)
        for count in counts
        for role, n_held in zip(count.roles, count.heads, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["control", "seed", "role", "heads", "of"])
    if positional is not None:
        by_title = {role_title(role): n_heads for role, n_heads in positional.items()}
        table["positional"] = table["role"].map(by_title).where(table["control"] == "none").astype("Int64")
    return table


def matched_table(tests: HeadTests, matched: MatchedTests) -> pd.DataFrame:
    """Table of scores of pairs and of others at the same distance, by role, layer and head.

    "related" is the mean score of the pairs that a role joins, "control" that of the pairs that it does not join.
    """
    syntactic = tests_of(tests, matched.roles)
    columns = {
        "texts": matched.texts,
        "related": matched.related,
        "control": matched.unrelated,
        "p_control": matched.p,
        "p_control_adjusted": matched.p_adjusted,
        "holds": syntactic.holds,
        "positional": matched.positional(tests)[[tests.roles.index(role) for role in matched.roles]],
    }
    return by_head(matched.roles, columns)


def counts_by_control(table: pd.DataFrame) -> str:
    """The counts of coarse roles as text: a row per role, a column per control, the mean where it has several seeds."""
    coarse = table[table["role"].isin(coarse_roles(tuple(table["role"].unique())))]
    means = coarse.pivot_table(index="role", columns="control", values="heads", sort=False)
    return means.round(1).rename_axis(index=None, columns=None).to_string()


def by_head(roles: tuple[str, ...], columns: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Table with one row per role, layer and head, from arrays over these axes."""
    _, n_layers, n_heads = next(iter(columns.values())).shape
    titles = list(map(role_title, roles))
    index = pd.MultiIndex.from_product([titles, range(n_layers), range(n_heads)], names=["role", "layer", "head"])
    return pd.DataFrame({name: column.ravel() for name, column in columns.items()}, index=index).reset_index()
