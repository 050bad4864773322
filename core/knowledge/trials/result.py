"""Results of a trial as one row of a Parquet file: numbers that any program can read, and arrays as lists."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Kind, head_name
from attention_sieve.core.commands import write_whole
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.labels import BaselinePredictions
from attention_sieve.core.knowledge.reconstruction import Reconstruction, gain, ranking
from attention_sieve.core.knowledge.report import Selectivity, TaskReport
from attention_sieve.core.knowledge.trials.trial import FORMAT, Trial, trial_of
from attention_sieve.core.knowledge.vectors import Pooling

TrialStage = Literal["heads", "controls", "together"]
STAGES: Final[tuple[TrialStage, ...]] = ("heads", "controls", "together")
"""Stages of a trial: probes of each head and layer; control task and code length; probes of the best heads together."""
PLACES: Final = ("layer", "head", "strength", "validation", "accuracy", "low", "high")
"""Arrays of a report with an entry for each head and each layer."""
STEPS: Final = ("n_heads", "strength", "validation", "accuracy", "low", "high")
"""Arrays of a reconstruction with an entry for each number of heads."""
CONTROLS: Final = tuple(field.name for field in fields(Selectivity))
COUNTS: Final = ("task", "n_train", "n_validation", "n_test", "n_unsolved")
FACTS: Final = ("fingerprint", "dtype", "kind", "task_sha256", "source", "uniform_bits")
LISTS: Final = ("classes", "notes", "stages")


@dataclass(frozen=True, eq=False, kw_only=True)
class TrialResult:
    """Probing results of one checkpoint for one task."""

    trial: Trial
    fingerprint: str
    dtype: str
    kind: Kind
    pooling: Pooling
    task_sha256: str
    source: str
    classes: tuple[str, ...]
    """Empty for a regression."""
    notes: tuple[str, ...]
    """Why the results are weak, in sentences."""
    report: TaskReport
    stages: tuple[TrialStage, ...]
    """Stages computed so far; the following fields belong to later stages."""
    selectivity: Selectivity | None = None
    """None for a regression, as are bits."""
    bits: Float[np.ndarray, " place"] | None = None
    """Online code length of the training labels."""
    uniform_bits: float = np.nan
    together: Reconstruction | None = None

    @property
    def n_heads_of_layer(self) -> int:
        """Number of heads of a layer, which is how many the paper concatenates."""
        return min(int(self.report.head.max()) + 1, len(ranking(self.report)))


def write_result(path: Path, result: TrialResult) -> None:
    """Write a result as a file of one row, which gets its final name once it is complete.

    Raises: AnalysisError if that fails.
    """
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: pa.array([value]) for name, value in _row(result).items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda part: parquet.write_table(table, part, compression="zstd"))
    except OSError as error:
        raise AnalysisError(
            f"{path} cannot be written ({error.strerror or error}). Free some space on the disk."
        ) from None


def read_result(path: Path) -> TrialResult | None:
    """Read the result in a file; None if it does not exist, is damaged or has another format."""
    import pyarrow as pa
    from pyarrow import parquet

    if not os.path.isfile(path):
        return None
    try:
        table = parquet.read_table(path)
        if table.num_rows != 1 or table["format"][0].as_py() != FORMAT:
            return None
        return _result({name: _value(column[0]) for name, column in zip(table.column_names, table.columns)})
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, AnalysisError):
        return None  # it is then recomputed


def fingerprint_of(path: Path) -> str | None:
    """Fingerprint of the checkpoint of a row, without reading the rest; None if the file is not such a row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return str(pq.read_table(path, columns=["fingerprint"])["fingerprint"][0].as_py())
    except (OSError, pa.ArrowException, KeyError, IndexError):
        return None


def _value(scalar: Any) -> Any:
    import pyarrow as pa

    if not isinstance(scalar, pa.ListScalar):
        return scalar.as_py()
    values = scalar.values
    return values.to_pylist() if pa.types.is_string(values.type) else values.to_numpy(zero_copy_only=False)


def _row(result: TrialResult) -> dict[str, Any]:
    """Columns of a row: the trial, single numbers, then arrays with prefixes such as `place_` and `step_`."""
    report = result.report
    row: dict[str, Any] = {"format": FORMAT}
    row |= asdict(result.trial)
    row |= {name: getattr(result, name) for name in FACTS}
    row |= {"pooling_read": result.pooling, "is_regression_read": report.is_regression}
    row |= {name: list(getattr(result, name)) for name in LISTS}
    row |= {name: getattr(report, name) for name in COUNTS} | _numbers(result)
    row |= {f"place_{name}": getattr(report, name) for name in PLACES}
    row |= {"place_predicted": _small(report.predicted), "gold": _small(report.gold)}
    row |= {
        "baseline_name": [baseline.name for baseline in report.baselines],
        "baseline_score": np.array([baseline.score for baseline in report.baselines]),
        "baseline_predicted": _small(np.stack([baseline.predicted for baseline in report.baselines])),
        "baseline_p": report.p_values.ravel(),
    }
    if result.selectivity is not None and result.bits is not None:
        row |= {f"control_{name}": getattr(result.selectivity, name) for name in CONTROLS}
        row |= {"place_bits": result.bits}
    if (together := result.together) is not None:
        row |= {f"step_{name}": getattr(together, name) for name in STEPS}
        row |= {
            "step_predicted": _small(together.predicted),
            "ranked": np.array(together.heads, np.int32).ravel(),
            "together_unsolved": together.n_unsolved,
        }
    return row


def _numbers(result: TrialResult) -> dict[str, Any]:
    report = result.report
    head, layer = report.best_head, report.best_layer
    numbers = {
        "best_head": head_name(*report.head_at(head)),
        "best_head_accuracy": float(report.accuracy[head]),
        "best_layer": int(report.layer[layer]),
        "best_layer_accuracy": float(report.accuracy[layer]),
        "last_layer_accuracy": float(report.accuracy[-1]),
    }
    if (together := result.together) is None:
        return numbers
    gained = gain(together, report, result.n_heads_of_layer)
    return numbers | {
        "together_heads": gained.n_heads,
        "together_accuracy": together.estimate(gained.n_heads).value,
        "gain": gained.percent,
        "gain_low": gained.low,
        "gain_high": gained.high,
        "enough": together.enough,
    }


def _small(values: Float[np.ndarray, "..."]) -> np.ndarray:
    return np.asarray(values, np.float32).ravel()


def _result(row: Mapping[str, Any]) -> TrialResult:
    selectivity = None
    if "place_bits" in row:
        selectivity = Selectivity(**{name: row[f"control_{name}"] for name in CONTROLS})
    return TrialResult(
        trial=trial_of({field.name: row[field.name] for field in fields(Trial)}),
        **{name: row[name] for name in FACTS},
        classes=tuple(row["classes"]),
        notes=tuple(row["notes"]),
        stages=tuple(row["stages"]),
        pooling=row["pooling_read"],
        report=_report(row),
        selectivity=selectivity,
        bits=row.get("place_bits"),
        together=_together(row),
    )


def _together(row: Mapping[str, Any]) -> Reconstruction | None:
    if "ranked" not in row:
        return None
    return Reconstruction(
        task=row["task"],
        is_regression=row["is_regression_read"],
        heads=tuple((int(layer), int(head)) for layer, head in row["ranked"].reshape(-1, 2)),
        predicted=row["step_predicted"].reshape(-1, row["n_test"]).astype(float),
        gold=row["gold"].astype(float),
        n_choosing=row["n_validation"] or row["n_train"],
        n_unsolved=row["together_unsolved"],
        **{name: row[f"step_{name}"] for name in STEPS},
    )


def _report(row: Mapping[str, Any]) -> TaskReport:
    n_test = row["n_test"]
    baseline_predictions = row["baseline_predicted"].reshape(-1, n_test).astype(float)
    return TaskReport(
        is_regression=row["is_regression_read"],
        **{name: row[name] for name in COUNTS},
        **{name: row[f"place_{name}"] for name in PLACES},
        predicted=row["place_predicted"].reshape(-1, n_test).astype(float),
        gold=row["gold"].astype(float),
        baselines=tuple(
            BaselinePredictions(name=name, score=float(score), predicted=predicted)
            for name, score, predicted in zip(
                row["baseline_name"], row["baseline_score"], baseline_predictions, strict=True
            )
        ),
        p_values=row["baseline_p"].reshape(len(baseline_predictions), -1),
    )
