"""Opens a results folder, remembers it for the next time, and derives from its statistics what pages and commands show;
reads no texts."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.checkpoints.folders import make_private, program_folder
from attention_sieve.core.commands import write_whole
from attention_sieve.core.corpus.manifest import STATISTICS, CorpusSettings, Manifest, read_manifest, record_path
from attention_sieve.core.corpus.statistics import (
    EVERYTHING,
    HISTOGRAM,
    TOKENS,
    WEALTH,
    Statistics,
    StatisticsFile,
    Stratum,
    open_statistics,
)
from attention_sieve.core.errors import PROGRAM, AnalysisError, first_line
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.relations.analysis import (
    OFFSET_RIGHT,
    RELATION_ANALYSIS,
    RELATION_CASES,
    RELATION_REDUCTION,
    RELATION_RIGHT,
    RELATION_SQUARES,
)
from attention_sieve.core.relations.settings import OFFSETS
from attention_sieve.core.roles.analysis import (
    ABOVE_UNIFORM,
    GREATEST,
    OUT_OF_REACH,
    ROLE_ANALYSIS,
    ROLE_REDUCTION,
    ROLE_SCORES,
    UNIFORM,
)
from attention_sieve.core.roles.hypotheses import LACKS, Criterion, HeadTests, tests_of_moments, untested
from attention_sieve.core.roles.measures import SYNTACTIC
from attention_sieve.core.roles.uncertainty.anytime import tests_of_evidence
from attention_sieve.core.running import read_progress
from attention_sieve.core.statistics.evidence import evidence_of
from attention_sieve.core.statistics.means import Moments, means_of_squares, share_interval
from attention_sieve.core.statistics.series import SCORE_BINS, SHARE_BINS, TAUS, Bins, Sums, with_zeros
from attention_sieve.core.surface.analysis import (
    LAYER_NAMES,
    OFFSETS_AT,
    OFFSETS_OF,
    RARE_CHANCE,
    SURFACE,
    SURFACE_ANALYSIS,
    SURFACE_LAYERS,
    SURFACE_NAMES,
    SURFACE_REDUCTION,
)
from attention_sieve.core.surface.statistics import (
    OF_KEYS,
    HeadLabels,
    HeadStatistics,
    RareShares,
    head_labels,
    positional_of_counts,
    statistics_of_moments,
)

N_AXES_OF_HEADS: Final = 3
"""Least number of axes of a series with heads: names, layers, heads."""
NO_PARSER: Final = "the corpus was scored without the parser"
"""Why a syntactic role could not be tested."""
MOST_RECENT: Final = 8
"""Maximum number of remembered folders."""
RECENT: Final = "results.json"


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """A results folder, whose statistics are read on demand."""

    folder: Path
    checkpoint: str
    fingerprint: str
    texts_sha256: str
    settings: CorpusSettings
    n_texts: int
    n_too_long: int
    n_without_token: int
    file: StatisticsFile

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """Parts of the corpus with their own statistics."""
        return self.file.strata

    @cached_property
    def manifest(self) -> Manifest:
        """The manifest, with the shards of the texts.

        Raises: AnalysisError if it cannot be read.
        """
        return read_manifest(self.folder)

    def part(self, stratum: Stratum = EVERYTHING) -> "CorpusPart":
        """The statistics of a part of the corpus.

        Raises: AnalysisError for a part without texts, and for a damaged file.
        """
        if stratum not in self.strata:
            raise AnalysisError(f"The corpus has no texts of {stratum.title}. Choose another part.")
        statistics = self.file.read([stratum], without=(HISTOGRAM, WEALTH))
        try:
            _check(statistics, self.settings)
        except ValueError as error:
            raise _damaged(self.file, error) from None
        return CorpusPart(results=self, stratum=stratum, statistics=statistics)


def cells_of(settings: CorpusSettings, n_layers: int, n_heads: int) -> dict[str, tuple[int, ...]]:
    """Axes of the numbers of one text, by name of the series that are read here."""
    return {
        TOKENS: (),
        **ROLE_REDUCTION.cells(settings.analysis_settings(ROLE_ANALYSIS), n_layers, n_heads),
        **SURFACE_REDUCTION.cells(SURFACE_ANALYSIS.settings, n_layers, n_heads),
        **RELATION_REDUCTION.cells(RELATION_ANALYSIS.settings, n_layers, n_heads),
    }


def _check(statistics: Statistics, settings: CorpusSettings) -> None:
    """Raise ValueError for series of other shapes than those of one checkpoint, and for a part without texts."""
    shapes = {name: sums.n.shape[1:] for name, sums in statistics.sums.items()}
    by_head = [shapes[name] for name in (ROLE_SCORES, SURFACE, RELATION_RIGHT) if name in shapes]
    if not by_head or len(by_head[0]) < N_AXES_OF_HEADS or 0 in by_head[0]:
        raise ValueError("it has no numbers of heads")
    n_layers, n_heads = by_head[0][-2:]
    expected = cells_of(settings, n_layers, n_heads)
    if differing := [name for name, shape in shapes.items() if shape != expected.get(name, shape)]:
        raise ValueError(f"{differing[0][:40]!r} has the shape {shapes[differing[0]]}")
    if TOKENS not in shapes or not statistics.sums[TOKENS].n.all():
        raise ValueError("it has a part without texts")
    if {RELATION_CASES, RELATION_RIGHT, OFFSET_RIGHT} <= set(shapes):
        cases, right, at_offset = (
            statistics.sums[name].at(0).total for name in (RELATION_CASES, RELATION_RIGHT, OFFSET_RIGHT)
        )
        if (cases < right.T).any() or (cases < at_offset.T).any() or min(right.min(), at_offset.min()) < 0:
            raise ValueError("more words are right than there are")


def _damaged(file: StatisticsFile, error: ValueError) -> AnalysisError:
    return AnalysisError(f"{file.path} is damaged ({first_line(error)}). Merge it again: {PROGRAM} corpus merge")


@dataclass(frozen=True)
class _Facts:
    """Origin of the statistics of a whole corpus."""

    checkpoint: str
    fingerprint: str
    texts: str
    settings: CorpusSettings
    n_texts: int
    n_too_long: int
    n_without_token: int


def open_results(folder: Path) -> Results:
    """Open a results folder.

    Raises: AnalysisError for any other folder, and for results that are not merged, damaged, or of a newer version.
    """
    if not os.path.isfile(folder / STATISTICS):  # Path raises for a name that is too long
        raise AnalysisError(_how_far(folder))
    file = open_statistics(folder / STATISTICS)
    try:
        facts = typed_json(file.metadata, _Facts)
    except ValueError as error:
        raise _damaged(file, error) from None
    return Results(
        folder=folder,
        checkpoint=facts.checkpoint,
        fingerprint=facts.fingerprint,
        texts_sha256=facts.texts,
        settings=facts.settings,
        n_texts=facts.n_texts,
        n_too_long=facts.n_too_long,
        n_without_token=facts.n_without_token,
        file=file,
    )


def _how_far(folder: Path) -> str:
    """How much of a corpus is done that is not finished, and what to do."""
    shards, progress = read_manifest(folder).shards, read_progress(folder)
    n_done = sum(record_path(folder, shard).exists() for shard in shards)
    failure = f" {progress.message}" if progress is not None and progress.state == "failed" else ""
    return (
        f"{folder.name} is not finished: it has {n_done:,} of {len(shards):,} shards.{failure} To continue, "
        f"call {PROGRAM} corpus run with this folder as --output."
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusPart:
    """Statistics of a part of a corpus."""

    results: Results
    stratum: Stratum
    statistics: Statistics
    """Sums only; histograms and bets are read on demand."""

    def sums(self, name: str) -> Sums:
        """Sums of a series, without the axis of strata.

        Raises: AnalysisError if the corpus was run without its question.
        """
        if name not in self.statistics.sums:
            question = name.split()[0]
            questions = dict.fromkeys((*self.results.settings.questions, question))
            raise AnalysisError(
                f"{self.results.folder.name} does not include the question {question}. Run the corpus into another "
                f"folder with --questions {','.join(questions)} and all other options as they were."
            )
        return self.statistics.sums[name].at(0)

    @property
    def n_texts(self) -> int:
        """Number of scored texts."""
        return int(self.sums(TOKENS).n)

    @property
    def n_tokens(self) -> tuple[int, int]:
        """Number of tokens of the shortest and of the longest text."""
        tokens = self.sums(TOKENS)
        return int(tokens.least), int(tokens.greatest)

    @property
    def bins(self) -> Bins:
        """Bins of the histograms of scores."""
        return SCORE_BINS if self.results.settings.scale == "score" else SHARE_BINS

    @cached_property
    def role_counts(self) -> Int[np.ndarray, "role layer head bin"]:
        """Histograms of the scores."""
        return np.asarray(self._read(without=(WEALTH,)).histograms[ROLE_SCORES][0])

    @cached_property
    def wealth(self) -> Float[np.ndarray, "threshold stake role layer head"] | None:
        """Logarithms of the wealth of bets, by TAUS and against uniform attention; None for shares above chance."""
        wealth = self._read(without=(HISTOGRAM,)).wealth
        return np.asarray(wealth[ROLE_SCORES][0]) if ROLE_SCORES in wealth else None

    def _read(self, without: tuple[str, ...]) -> Statistics:
        return self.results.file.read([self.stratum], without=without)

    def references(self) -> tuple[Float[np.ndarray, "role layer"], Float[np.ndarray, "role layer"]]:
        """Mean scores of uniform and of the best possible attention."""
        return self.sums(UNIFORM).mean, self.sums(GREATEST).mean

    def out_of_reach(self, tau: float) -> Int[np.ndarray, " role"] | None:
        """Number of texts on which no attention can reach tau, by role; None for a threshold that was not counted."""
        if tau not in TAUS:
            return None
        return self.sums(OUT_OF_REACH).total[TAUS.index(tau)].astype(int)

    def tests(self, settings: Criterion) -> HeadTests:
        """The tests of all heads for all roles, as `attention_sieve.core.roles.hypotheses.role_tests` on the scores
        themselves."""
        scores, above = self.sums(ROLE_SCORES), self.sums(ABOVE_UNIFORM)
        return tests_of_moments(moments_of(scores), moments_of(above), self.results.settings.roles, settings)

    def untested(self, tests: HeadTests) -> dict[str, str]:
        """Roles that could not be tested, with the reason, as `attention_sieve.core.roles.hypotheses.untested`."""
        reasons = untested(tests)
        if self.results.settings.parses:
            return reasons
        return {
            role: NO_PARSER if role in SYNTACTIC and reason == LACKS else reason for role, reason in reasons.items()
        }

    def by_evidence(self, settings: Criterion) -> HeadTests:
        """Roles by evidence that stays valid while texts are added.

        A threshold without bets gets the evidence at the next higher one, which is a lower bound: evidence falls as tau
        rises.

        Raises: AnalysisError if there were no bets, or none at such a high threshold.
        """
        wealth, scores = self.wealth, self.sums(ROLE_SCORES)
        if wealth is None:
            raise AnalysisError(
                "Evidence needs scores of at least 0, but these are shares above chance. Use the test instead."
            )
        index = _threshold(settings.tau)
        evidence = evidence_of(wealth[index])
        if settings.rule == "role":
            evidence = np.minimum(evidence, evidence_of(wealth[len(TAUS)]))
        evidence = np.where(scores.n > 0, evidence, np.nan)
        return tests_of_evidence(moments_of(scores), evidence, self.results.settings.roles, settings)

    def surface(self, alpha: float) -> HeadStatistics:
        """Surface statistics of every head, as `attention_sieve.core.surface.statistics.head_statistics`."""
        sums = self.sums(SURFACE)
        counts_keys = np.isin(SURFACE_NAMES, OF_KEYS)[:, None, None]
        sums = with_zeros(sums, np.where(counts_keys, self.n_texts, 0))
        return statistics_of_moments(SURFACE_NAMES, moments_of(sums), alpha)

    def layers(self, alpha: float) -> HeadStatistics:
        """Agreement within layers, and the entropy of uniform attention, by LAYER_NAMES."""
        return statistics_of_moments(LAYER_NAMES, moments_of(self.sums(SURFACE_LAYERS)), alpha)

    def labels(self) -> tuple[HeadLabels, RareShares]:
        """Labels of heads by their most attended keys."""
        at, cases = (self.sums(name).total.astype(int) for name in (OFFSETS_AT, OFFSETS_OF))
        rarest, two_rarest, column = self.sums(SURFACE).mean[-3:]
        chance = self.sums(RARE_CHANCE)
        n_texts = int(chance.n)
        rare = RareShares(
            rarest=rarest, two_rarest=two_rarest, column=column, chance=float(chance.mean), n_texts=n_texts
        )
        return head_labels(positional_of_counts(at, cases), rare), rare

    def relations(self, alpha: float) -> "Relations":
        """Accuracy of every head at each of RELATION_NAMES, with texts as units."""
        cases = self.sums(RELATION_CASES).total.astype(int)
        right = self.sums(RELATION_RIGHT).total
        at_offset = self.sums(OFFSET_RIGHT).total
        n_cases = np.broadcast_to(cases[:, None, None, None], right.shape)
        squares = self.sums(RELATION_SQUARES)
        n_texts = squares.n[0, :, 0, 0, 0].tolist()
        by_relation = [
            means_of_squares(*numbers, right[place], squares.total[:, place])
            for place, numbers in enumerate(zip(cases.tolist(), n_texts, strict=True))
        ]
        low, high = (np.stack(ends) for ends in zip(*(share_interval(cases, alpha) for cases in by_relation)))
        has_cases = cases > 0
        return Relations(
            n_cases=cases,
            accuracy=np.where(n_cases > 0, right / np.maximum(n_cases, 1), np.nan),
            low=low,
            high=high,
            offset=np.where(has_cases, np.array(OFFSETS)[at_offset.argmax(axis=1)], 0),
            offset_accuracy=np.where(has_cases, at_offset.max(axis=1) / np.maximum(cases, 1), np.nan),
        )

    def facts(self) -> Mapping[str, Any]:
        """Metadata of a file about this part: its origin."""
        results = self.results
        return {
            "checkpoint": results.checkpoint,
            "fingerprint": results.fingerprint,
            "corpus": results.folder.name,
            "part": self.stratum.title,
            "all texts": f"{self.n_texts:,}",
            "texts sha256": results.texts_sha256,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Relations:
    """Heads as parsers over a corpus, by RELATION_NAMES; NaN without cases."""

    n_cases: Int[np.ndarray, " relation"]
    accuracy: Float[np.ndarray, "relation direction layer head"]
    low: Float[np.ndarray, "relation direction layer head"]
    """Interval as of the analysis of relations, with texts as units; NaN with fewer than two that have a case."""
    high: Float[np.ndarray, "relation direction layer head"]
    offset: Int[np.ndarray, " relation"]
    """Baseline: the fixed offset that predicts the syntactic head of most words."""
    offset_accuracy: Float[np.ndarray, " relation"]


def moments_of(sums: Sums) -> Moments:
    """The same without the extremes."""
    return sums.n, sums.mean, sums.squares


def _threshold(tau: float) -> int:
    """Index of the lowest threshold among TAUS that is at least tau."""
    indices = [index for index, threshold in enumerate(TAUS) if threshold >= tau]
    if not indices:
        raise AnalysisError(
            f"Evidence was recorded for thresholds up to {TAUS[-1]:g}, and tau is {tau:g}. Choose a lower tau."
        )
    return indices[0]


def recent_results() -> list[Path]:
    """The folders that still exist, the latest first."""
    try:
        paths: tuple[str, ...] = typed_json((program_folder() / RECENT).read_bytes(), tuple[str, ...])
    except (OSError, ValueError):
        return []
    return [folder for folder in map(Path, paths) if os.path.isfile(folder / STATISTICS)]


def remember_results(folder: Path) -> None:
    """Put a folder first; does nothing if the list cannot be written."""
    resolved = folder.resolve()
    folders = [resolved, *(path for path in recent_results() if path != resolved)][:MOST_RECENT]
    content = json.dumps([str(path) for path in folders])
    try:
        make_private(program_folder())
        write_whole(program_folder() / RECENT, lambda temporary: temporary.write_text(content, encoding="utf-8"))
    except OSError:
        return
