"""Sufficient statistics of a corpus: what pages draw of millions of texts, in some megabytes.

Of each series of numbers, such as the scores, they hold the sums of each cell in each stratum, where wanted with a
histogram and with the wealth of bets. Those of two shards are merged without a look at their texts.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from core.corpus.settings import FORMAT
from core.corpus.strata import EVERYTHING, Stratum
from core.errors import AnalysisError, first_line
from core.roles.hypotheses import clearly_above
from core.statistics.evidence import log_wealth
from core.statistics.histogram import Bins, counts_of
from core.statistics.sums import Sums, merged, no_sums, sums_of

TAUS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""Thresholds for which bets are kept; one more is placed against uniform attention on each text."""
AT_ONCE: Final = 128
"""Texts whose bets are settled at once: few enough for a processor's cache."""
PARTS: Final = ("n", "total", "squares", "least", "greatest")
HISTOGRAM: Final = "histogram"
WEALTH: Final = "wealth"


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """Numbers of the same kind, one or an array for each text; NaN where there is none."""

    values: Float[np.ndarray, "text *cell"]
    bins: Bins | None = None
    """Of a histogram; None to keep none."""
    uniform: Float[np.ndarray, "text *of"] | None = None
    """What uniform attention scores, without the axis of heads, where bets are placed on the numbers; else None."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistics:
    """What is known of the series of a corpus; the first axis of every array is that of the strata."""

    strata: tuple[Stratum, ...]
    sums: Mapping[str, Sums]
    """By the name of the series."""
    histograms: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Counts, "stratum *cell bin", of those that have one."""
    wealth: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Logarithms, "stratum threshold stake *cell", of those that are bet on: by TAUS, then against uniform
    attention."""

    def row(self, stratum: Stratum = EVERYTHING) -> int:
        """Place of a stratum on the first axis.

        Raises: AnalysisError where the corpus has no such texts.
        """
        if stratum not in self.strata:
            raise AnalysisError(f"The corpus has no texts of {stratum.title}. Choose another part.")
        return self.strata.index(stratum)


def statistics_of(series: Mapping[str, Series], groups: Mapping[tuple[Stratum, ...], np.ndarray]) -> Statistics:
    """The statistics of a shard: each text is read once, however many strata it belongs to.

    Args:
        series: by name.
        groups: rows of the texts that belong to the same strata, from `core.corpus.strata.groups_of`.

    Raises: AnalysisError for an infinite number, and for a negative one that is bet on.
    """
    total = _empty(series)
    for strata, rows in groups.items():
        of_group = _of_rows(series, rows)
        for stratum in strata:
            total = merged_statistics(total, _in_stratum(of_group, stratum))
    return total


def merged_statistics(a: Statistics, b: Statistics) -> Statistics:
    """The statistics of the texts of both.

    Raises: AnalysisError where they are of other series, or of other numbers of heads.
    """
    shapes = [{name: sums.n.shape[1:] for name, sums in each.sums.items()} for each in (a, b)]
    if shapes[0] != shapes[1]:
        raise AnalysisError(
            "Two shards hold other numbers, or those of other numbers of heads. Merge shards of one checkpoint, scored "
            "with the same settings."
        )
    strata = tuple(sorted({*a.strata, *b.strata}, key=lambda stratum: stratum.order))
    one, other = _over(a, strata), _over(b, strata)
    return Statistics(
        strata=strata,
        sums={name: merged(sums, other.sums[name]) for name, sums in one.sums.items()},
        histograms={name: counts + other.histograms[name] for name, counts in one.histograms.items()},
        wealth={name: wealth + other.wealth[name] for name, wealth in one.wealth.items()},
    )


def _empty(series: Mapping[str, Series]) -> Statistics:
    none = _of_rows(series, np.zeros(0, int))
    return Statistics(
        strata=(),
        sums={name: sums.at(slice(0, 0)) for name, sums in none.sums.items()},
        histograms={name: counts[:0] for name, counts in none.histograms.items()},
        wealth={name: wealth[:0] for name, wealth in none.wealth.items()},
    )


def _of_rows(series: Mapping[str, Series], rows: np.ndarray) -> Statistics:
    """The statistics of some rows as one stratum."""
    binned = {name: each for name, each in series.items() if each.bins is not None}
    bet_on = {name: each for name, each in series.items() if each.uniform is not None}
    return Statistics(
        strata=(EVERYTHING,),
        sums={name: sums_of(each.values[rows]).at(None) for name, each in series.items()},
        histograms={name: counts_of(each.values[rows], each.bins)[None] for name, each in binned.items() if each.bins},
        wealth={name: _wealth(each, rows)[None] for name, each in bet_on.items()},
    )


def _wealth(series: Series, rows: np.ndarray) -> Float[np.ndarray, "threshold stake *cell"]:
    """Wealth after bets on some rows, by TAUS, then against being clearly above uniform attention."""
    if series.uniform is None:
        raise RuntimeError("Bets need what uniform attention scores.")
    starts = range(0, max(1, len(rows)), AT_ONCE)
    parts = [_settled(series.values[some], series.uniform[some]) for some in (rows[at : at + AT_ONCE] for at in starts)]
    return np.sum(parts, axis=0)


def _settled(values: np.ndarray, uniform: np.ndarray) -> Float[np.ndarray, "threshold stake *cell"]:
    # Where a number does not apply there is none to bet on, and any threshold does.
    against_uniform = clearly_above(np.where(np.isnan(uniform), 1, uniform))
    return log_wealth(values, [*TAUS, against_uniform])


def _in_stratum(statistics: Statistics, stratum: Stratum) -> Statistics:
    return Statistics(
        strata=(stratum,), sums=statistics.sums, histograms=statistics.histograms, wealth=statistics.wealth
    )


def _over(statistics: Statistics, strata: tuple[Stratum, ...]) -> Statistics:
    """The same with rows for more strata, which have no texts."""
    if statistics.strata == strata:
        return statistics
    places = [strata.index(stratum) for stratum in statistics.strata]
    return Statistics(
        strata=strata,
        sums={name: _sums_over(sums, places, len(strata)) for name, sums in statistics.sums.items()},
        histograms={name: _placed(each, places, len(strata)) for name, each in statistics.histograms.items()},
        wealth={name: _placed(each, places, len(strata)) for name, each in statistics.wealth.items()},
    )


def _sums_over(sums: Sums, places: Sequence[int], n_strata: int) -> Sums:
    made = no_sums((n_strata, *sums.n.shape[1:]))
    for whole, part in zip(made.parts, sums.parts, strict=True):
        whole[places] = part
    return made


def _placed(array: np.ndarray, places: Sequence[int], n_strata: int) -> np.ndarray:
    made = np.zeros((n_strata, *array.shape[1:]), array.dtype)
    made[places] = array
    return made


def write_statistics(path: Path, statistics: Statistics, facts: Mapping[str, Any]) -> None:
    """Write statistics as safetensors, the same bytes for the same numbers.

    Args:
        path: of the file.
        statistics: of a shard or a corpus.
        facts: where they come from, as JSON can write it.

    Raises: OSError.
    """
    from safetensors.numpy import save

    tensors = dict(_tensors(statistics))
    told = {"format": FORMAT, "strata": [[each.kind, each.name] for each in statistics.strata], **facts}
    # One entry, because the order of several is not defined.
    path.write_bytes(save(tensors, {"corpus": json.dumps(told, sort_keys=True)}))


def _tensors(statistics: Statistics) -> Iterable[tuple[str, np.ndarray]]:
    for name, sums in statistics.sums.items():
        yield from ((f"{name}.{part}", np.ascontiguousarray(array)) for part, array in zip(PARTS, sums.parts))
    for name, counts in statistics.histograms.items():
        yield f"{name}.{HISTOGRAM}", counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
    for name, wealth in statistics.wealth.items():
        yield f"{name}.{WEALTH}", np.ascontiguousarray(wealth)


@dataclass(frozen=True, eq=False, kw_only=True)
class StatisticsFile:
    """A file of statistics, of which only what is asked for is read."""

    path: Path
    facts: Mapping[str, Any]
    strata: tuple[Stratum, ...]

    def read(self, strata: Sequence[Stratum] | None = None, *, without: Sequence[str] = ()) -> Statistics:
        """The statistics of some strata, or of all.

        Args:
            strata: each one that the file has.
            without: HISTOGRAM, WEALTH or both, where they are not needed.

        Raises: AnalysisError for a file that is damaged.
        """
        rows = None if strata is None else [self.strata.index(each) for each in strata]
        try:
            arrays = dict(self._arrays(rows, without))
        except Exception as error:  # what a damaged file makes the library raise is open-ended
            raise _damaged(self.path, error) from None
        names = sorted({name.rpartition(".")[0] for name in arrays})
        return Statistics(
            strata=self.strata if strata is None else tuple(strata),
            sums={name: Sums(**{part: arrays[f"{name}.{part}"] for part in PARTS}) for name in names},
            histograms={
                name: arrays[key].astype(np.int64) for name in names if (key := f"{name}.{HISTOGRAM}") in arrays
            },
            wealth={name: arrays[key] for name in names if (key := f"{name}.{WEALTH}") in arrays},
        )

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
                    part = file.get_slice(name)
                    yield name, np.concatenate([part[row : row + 1] for row in rows])


def open_statistics(path: Path) -> StatisticsFile:
    """Open a file of statistics.

    Raises: AnalysisError for one that is not there, is damaged, or is of a newer version of the program.
    """
    from safetensors import safe_open

    if not path.is_file():
        raise AnalysisError(f"There is no file {path}. Run the corpus, then merge it.")
    try:
        with safe_open(path, "np") as file:
            facts = json.loads(file.metadata()["corpus"])
        strata = tuple(Stratum(kind, name) for kind, name in facts.pop("strata"))
        version = int(facts.pop("format"))
    except Exception as error:  # what a damaged file makes the library raise is open-ended
        raise _damaged(path, error) from None
    check_format(path, version)
    return StatisticsFile(path=path, facts=facts, strata=strata)


def check_format(path: Path, version: int) -> None:
    """Refuse a file of a newer version of the program.

    Raises: AnalysisError.
    """
    if version > FORMAT:
        raise AnalysisError(
            f"{path} was written by a newer version of this program (format {version}, and this one reads {FORMAT}). "
            "Update the program."
        )


def _damaged(path: Path, error: BaseException) -> AnalysisError:
    return AnalysisError(f"{path} is damaged ({first_line(error)}). Run the corpus again: it is computed anew.")
