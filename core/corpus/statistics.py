"""Sufficient statistics of a corpus: what pages show about millions of texts, in a few megabytes.

For each series of numbers, such as the scores, they contain the sums of each cell in each stratum, optionally with a
histogram and with the wealth of bets. Strata are all texts, those of a data set, of a language, and of a range of
lengths. Statistics of two shards are merged without reading their texts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.corpus.manifest import FORMAT, check_format
from attention_sieve.core.corpus.texts.inputs import CorpusText
from attention_sieve.core.errors import AnalysisError, first_line
from attention_sieve.core.json_values import parse_json, typed_json
from attention_sieve.core.pauses import pause
from attention_sieve.core.roles.hypotheses import clearly_above
from attention_sieve.core.statistics.evidence import STAKES, log_wealth
from attention_sieve.core.statistics.series import BINS, TAUS, Series, Sums, counts_of, merged, no_sums, sums_of

StratumKind = Literal["all", "data set", "language", "length"]
STRATUM_KINDS: Final[tuple[StratumKind, ...]] = ("all", "data set", "language", "length")
LENGTHS: Final = (8, 16, 32, 64, 128)
"""Upper bound of each length in tokens, special tokens included; one more stratum has all longer texts."""
AT_ONCE: Final = 128
"""Texts whose bets are computed at once: few enough for a processor's cache."""
PARTS: Final = ("n", "total", "squares", "least", "greatest")
TOKENS: Final = "tokens"
"""Series of the numbers of tokens of the texts."""
HISTOGRAM: Final = "histogram"
WEALTH: Final = "wealth"


@dataclass(frozen=True)
class Stratum:
    """A subset of the texts with statistics of its own."""

    kind: StratumKind
    name: str = ""

    @property
    def order(self) -> tuple[int, int, str]:
        """Sort key: by kind, then by name; lengths from the shortest."""
        index = LENGTH_NAMES.index(self.name) if self.kind == "length" else 0
        return STRATUM_KINDS.index(self.kind), index, self.name

    @property
    def title(self) -> str:
        """Display name."""
        if self.kind == "all":
            return "all texts"
        return f"{self.name} tokens" if self.kind == "length" else f"{self.kind} {self.name}"


LENGTH_NAMES: Final = (
    *(f"{low + 1} to {high}" for low, high in zip((0, *LENGTHS), LENGTHS)),
    f"more than {LENGTHS[-1]}",
)
EVERYTHING: Final = Stratum("all")


def groups_of(
    texts: Sequence[CorpusText], n_tokens: Int[np.ndarray, " text"]
) -> dict[tuple[Stratum, ...], Int[np.ndarray, " row"]]:
    """Rows of the texts by the strata that they belong to, in the order of these strata.

    Args:
        texts: texts of a shard.
        n_tokens: number of tokens of each; 0 for a text that is left out, which belongs to no stratum.
    """
    lengths = np.searchsorted(np.array(LENGTHS), n_tokens)
    groups: dict[tuple[Stratum, ...], list[int]] = {}
    for row, (text, length) in enumerate(zip(texts, lengths.tolist(), strict=True)):
        if n_tokens[row]:
            parts = (
                Stratum("data set", text.dataset),
                Stratum("language", text.language),
                Stratum("length", LENGTH_NAMES[length]),
            )
            strata = (EVERYTHING, *(stratum for stratum in parts if stratum.name))
            groups.setdefault(strata, []).append(row)
    ordered = sorted(groups, key=lambda strata: [stratum.order for stratum in strata])
    return {strata: np.array(groups[strata]) for strata in ordered}


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistics:
    """Statistics of the series of a corpus; the first axis of every array is the stratum."""

    strata: tuple[Stratum, ...]
    sums: Mapping[str, Sums]
    """Sums by name of the series."""
    histograms: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Counts, "stratum *cell bin", of the series with a histogram."""
    wealth: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Logarithms, "stratum threshold stake *cell", of the series with bets: by TAUS, then against uniform
    attention."""


def statistics_of(series: Mapping[str, Series], groups: Mapping[tuple[Stratum, ...], np.ndarray]) -> Statistics:
    """The statistics of a shard; each text is processed once, however many strata it belongs to.

    Args:
        groups: rows of the texts that belong to the same strata, from `groups_of`; at least one group.

    Raises: AnalysisError for an infinite number, and for a negative one in a series with bets.
    """
    by_group = ((strata, _row_statistics(series, rows)) for strata, rows in groups.items())
    by_stratum = (replace(statistics, strata=(stratum,)) for strata, statistics in by_group for stratum in strata)
    return reduce(merged_statistics, by_stratum)


def merged_statistics(a: Statistics, b: Statistics) -> Statistics:
    """Merge the statistics of two sets of texts.

    Raises: AnalysisError if their series or numbers of heads differ.
    """
    shapes = [{name: sums.n.shape[1:] for name, sums in statistics.sums.items()} for statistics in (a, b)]
    if shapes[0] != shapes[1]:
        raise AnalysisError(
            "Two shards contain different statistics, or different numbers of heads. Merge only shards of one "
            "checkpoint, computed with the same settings."
        )
    strata = tuple(sorted({*a.strata, *b.strata}, key=lambda stratum: stratum.order))
    full_a, full_b = _expanded(a, strata), _expanded(b, strata)
    return Statistics(
        strata=strata,
        sums={name: merged(sums, full_b.sums[name]) for name, sums in full_a.sums.items()},
        histograms={name: counts + full_b.histograms[name] for name, counts in full_a.histograms.items()},
        wealth={name: wealth + full_b.wealth[name] for name, wealth in full_a.wealth.items()},
    )


def _row_statistics(series: Mapping[str, Series], rows: np.ndarray) -> Statistics:
    """The statistics of some rows as one stratum."""
    return Statistics(
        strata=(EVERYTHING,),
        sums={name: sums_of(numbers.values[rows]).at(None) for name, numbers in series.items()},
        histograms={
            name: counts_of(numbers.values[rows], numbers.bins)[None]
            for name, numbers in series.items()
            if numbers.bins is not None
        },
        wealth={
            name: _wealth(numbers.values[rows], numbers.uniform[rows])[None]
            for name, numbers in series.items()
            if numbers.uniform is not None
        },
    )


def _wealth(
    values: Float[np.ndarray, "text *cell"], uniform: Float[np.ndarray, "text *_"]
) -> Float[np.ndarray, "threshold stake *cell"]:
    """Wealth after bets on some texts, by TAUS, then against being clearly above uniform attention."""
    wealths = []
    for start in range(0, max(1, len(values)), AT_ONCE):
        pause()
        batch = slice(start, start + AT_ONCE)
        # Where a role does not apply there is no score to bet on, so any threshold will do.
        against_uniform = clearly_above(np.where(np.isnan(uniform[batch]), 1, uniform[batch]))
        wealths.append(log_wealth(values[batch], [*TAUS, against_uniform]))
    return np.sum(wealths, axis=0)


def _expanded(statistics: Statistics, strata: tuple[Stratum, ...]) -> Statistics:
    """The same statistics with rows for further strata, which have no texts."""
    if statistics.strata == strata:
        return statistics
    indices = [strata.index(stratum) for stratum in statistics.strata]
    return Statistics(
        strata=strata,
        sums={name: _expanded_sums(sums, indices, len(strata)) for name, sums in statistics.sums.items()},
        histograms={
            name: _expanded_array(array, indices, len(strata)) for name, array in statistics.histograms.items()
        },
        wealth={name: _expanded_array(array, indices, len(strata)) for name, array in statistics.wealth.items()},
    )


def _expanded_sums(sums: Sums, indices: Sequence[int], n_strata: int) -> Sums:
    expanded = no_sums((n_strata, *sums.n.shape[1:]))
    for target, source in zip(expanded.parts, sums.parts, strict=True):
        target[indices] = source
    return expanded


def _expanded_array(array: np.ndarray, indices: Sequence[int], n_strata: int) -> np.ndarray:
    expanded = np.zeros((n_strata, *array.shape[1:]), array.dtype)
    expanded[indices] = array
    return expanded


def write_statistics(path: Path, statistics: Statistics, facts: Mapping[str, Any]) -> None:
    """Write statistics as safetensors; equal numbers give equal bytes.

    Args:
        facts: their origin, as JSON values.

    Raises: OSError.
    """
    from safetensors.numpy import save

    tensors: dict[str, np.ndarray] = {}
    for name, sums in statistics.sums.items():
        tensors |= {f"{name}.{part}": np.ascontiguousarray(array) for part, array in zip(PARTS, sums.parts)}
    for name, counts in statistics.histograms.items():
        tensors[f"{name}.{HISTOGRAM}"] = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
    for name, wealth in statistics.wealth.items():
        tensors[f"{name}.{WEALTH}"] = np.ascontiguousarray(wealth)
    metadata = {"format": FORMAT, "strata": [[stratum.kind, stratum.name] for stratum in statistics.strata], **facts}
    # A single entry, because the order of several is undefined.
    path.write_bytes(save(tensors, {"corpus": json.dumps(metadata, sort_keys=True)}))


@dataclass(frozen=True)
class _Strata:
    """The strata of a file, as its metadata give them."""

    strata: tuple[tuple[StratumKind, str], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class StatisticsFile:
    """A file of statistics, which is read on demand."""

    path: Path
    metadata: str
    """What the file says about itself, as JSON."""
    strata: tuple[Stratum, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """Origin of the statistics."""
        return {name: fact for name, fact in parse_json(self.metadata).items() if name not in ("format", "strata")}

    def read(self, strata: Sequence[Stratum] | None = None, *, without: Sequence[str] = ()) -> Statistics:
        """The statistics of some strata, or of all.

        Args:
            strata: strata of the file; None for all.
            without: HISTOGRAM, WEALTH or both, to skip reading them.

        Raises: AnalysisError for a damaged file.
        """
        from safetensors import SafetensorError

        try:
            rows = None if strata is None else [self.strata.index(stratum) for stratum in strata]
            arrays = dict(self._arrays(rows, without))
            names = sorted({name.rpartition(".")[0] for name in arrays})
            _check(arrays, names, len(self.strata if strata is None else strata))
            return Statistics(
                strata=self.strata if strata is None else tuple(strata),
                sums={name: Sums(**{part: arrays[f"{name}.{part}"] for part in PARTS}) for name in names},
                histograms={
                    name: arrays[key].astype(np.int64) for name in names if (key := f"{name}.{HISTOGRAM}") in arrays
                },
                wealth={name: arrays[key] for name in names if (key := f"{name}.{WEALTH}") in arrays},
            )
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:  # TypeError: formats numpy lacks
            raise damaged(self.path, error) from None

    def _arrays(self, rows: list[int] | None, without: Sequence[str]) -> Iterable[tuple[str, np.ndarray]]:
        from safetensors import safe_open

        with safe_open(self.path, "np") as file:
            names = file.keys()
            for name in names:
                if name.rpartition(".")[2] in without:
                    continue
                if rows is None:
                    yield name, file.get_tensor(name)
                else:
                    array = file.get_slice(name)
                    yield name, np.concatenate([array[row : row + 1] for row in rows])


def _check(arrays: Mapping[str, np.ndarray], names: Sequence[str], n_strata: int) -> None:
    """Raise ValueError for arrays that are not the statistics of numbers, and KeyError for missing ones."""
    for name in names:
        n, total, squares, least, greatest = (arrays[f"{name}.{part}"] for part in PARTS)
        shape = (n_strata, *n.shape[1:])
        counts = arrays.get(f"{name}.{HISTOGRAM}", np.zeros((*shape, BINS), np.int64))
        wealth = arrays.get(f"{name}.{WEALTH}")
        shapes = [(array, shape) for array in (n, total, squares, least, greatest)] + [(counts, (*shape, BINS))]
        if wealth is not None:
            shapes.append((wealth, (n_strata, len(TAUS) + 1, len(STAKES), *shape[1:])))
        if differing := [array.shape for array, expected in shapes if array.shape != expected]:
            raise ValueError(f"an array of {name!r} has the shape {differing[0]}")
        if {n.dtype.kind, counts.dtype.kind} - {"i", "u"} or min(n.min(initial=0), squares.min(initial=0)) < 0:
            raise ValueError(f"a count of {name!r} is no whole number from 0")
        numbers = (total, squares, *(np.where(n > 0, extreme, 0) for extreme in (least, greatest)))
        if not all(np.isfinite(array).all() for array in (*numbers, 0 if wealth is None else wealth)):
            raise ValueError(f"a sum of {name!r} is not finite")


def open_statistics(path: Path) -> StatisticsFile:
    """Open a file of statistics.

    Raises: AnalysisError for one that is missing, damaged, or of a newer version of the program.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise AnalysisError(f"There is no file {path}. Run the corpus, then merge it.")
    try:
        with safe_open(path, "np") as file:
            metadata = (file.metadata() or {}).get("corpus", "")
        check_format(path, metadata, FORMAT)
        strata = tuple(Stratum(*stratum) for stratum in typed_json(metadata, _Strata).strata)
        if list(strata) != sorted(set(strata), key=lambda stratum: stratum.order):
            raise ValueError("its strata are not in order")
    except (OSError, ValueError, SafetensorError) as error:
        raise damaged(path, error) from None
    return StatisticsFile(path=path, metadata=metadata, strata=strata)


def damaged(path: Path, error: BaseException) -> AnalysisError:
    """The error for a file of results that cannot be read."""
    return AnalysisError(f"{path} is damaged ({first_line(error)}). Run the corpus again to compute it.")
