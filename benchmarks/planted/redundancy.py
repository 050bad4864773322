"""How many planted redundancies the analysis of backups finds, and what else it reports.

python -m benchmarks.planted.redundancy FOLDER
"""

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from attention_sieve.core.answering import find_in
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS
from benchmarks.planted.reading import planted, planted_folders
from benchmarks.planted.truth import Truth
from benchmarks.shared.markdown import header, row

Sets = set[frozenset[tuple[int, int]]]


@dataclass
class Counts:
    """What is planted, found, and found beside it."""

    n_models: int = 0
    n_planted: int = 0
    n_found: int = 0
    n_others: int = 0


def main(root: Path) -> None:
    counts: dict[tuple[str, str], Counts] = defaultdict(Counts)
    for folder in planted_folders(root):
        try:
            truth, found = _found(folder)
        except AnalysisError as error:
            print(f"{folder.name} is not counted: {error}")
            continue
        planted_sets = _planted(truth)
        for key in ((truth.family if planted_sets else "others", truth.noise), ("all", "all")):
            of_kind = counts[key]
            of_kind.n_models += 1
            of_kind.n_planted += len(planted_sets)
            of_kind.n_found += len(planted_sets & found)
            of_kind.n_others += len(found - planted_sets)
        missed, besides = planted_sets - found, found - planted_sets
        if missed or besides:
            print(f"{truth.name} ({truth.noise}): missed {_said(missed)}; besides {_said(besides)}")
    header("family", "noise", "models", "planted", "found", "besides")
    for (family, noise), of_kind in sorted(counts.items()):
        row(family, noise, of_kind.n_models, of_kind.n_planted, of_kind.n_found, of_kind.n_others)


def _found(folder: Path) -> tuple[Truth, Sets]:
    model = planted(folder)
    finding = find_in(BACKUP_ANALYSIS, model.reading, BACKUP_ANALYSIS.settings)
    return model.truth, {frozenset(finding.sets[index]) for index in finding.redundant}


def _planted(truth: Truth) -> Sets:
    pairs = {frozenset((backup.main, backup.backup)) for backup in truth.backups}
    return pairs | {frozenset(heads) for heads in truth.redundant_sets}


def _said(sets: Sets) -> list[list[tuple[int, int]]]:
    return sorted(sorted(heads) for heads in sets)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
