"""How many errors of first-order measures are marked, and how many right ones: on planted models, against ablation by
plain hooks.

A measure errs on a head to which it gives the wrong sign, or next to nothing although the head matters; the truth about
the head is what truth.json says of all texts of the task. Marks come from ablation on all of these, as by default, or
on a few, as with --no-ablation.

    python -m benchmarks.planted.unreliable FOLDER
"""

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.answering import find_in
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.analysis import IMPORTANCE_ANALYSIS
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.finding import ImportanceFinding
from attention_sieve.core.importance.measures import Values, damage
from attention_sieve.core.importance.metrics import mean_score
from attention_sieve.core.importance.settings import ImportanceSettings, MetricSettings
from attention_sieve.core.importance.unreliable import some_texts, unreliable_heads
from benchmarks.planted.reading import planted, planted_folders
from benchmarks.shared.markdown import header, row

N_TEXTS: Final = (1, 2, 4, 8)
"""Texts on which a measure is compared with ablation."""
HARDLY: Final = 0.01
"""Rise of the loss, in nats a token, up to which a sign is of no account."""
SETTINGS: Final = ImportanceSettings(metric_settings=MetricSettings(metric="lm"))


@dataclass
class Marks:
    """How many heads are marked, of those on which a measure errs and of the others."""

    n_wrong: int = 0
    n_wrong_marked: int = 0
    n_right: int = 0
    n_right_marked: int = 0

    def add(self, wrong: Bool[np.ndarray, "layer head"], marked: Bool[np.ndarray, "layer head"]) -> None:
        """Count the heads of a model."""
        self.n_wrong += int(wrong.sum())
        self.n_wrong_marked += int((wrong & marked).sum())
        self.n_right += int((~wrong).sum())
        self.n_right_marked += int((~wrong & marked).sum())


def main(root: Path) -> None:
    by_measure: dict[tuple[str, int], Marks] = defaultdict(Marks)
    by_noise: dict[tuple[str, int], Marks] = defaultdict(Marks)
    folders, furthest = planted_folders(root), 0.0
    for folder in folders:
        try:
            model = planted(folder)
        except AnalysisError as error:
            print(f"{folder.name} is not counted: {error}")
            continue
        found, rises = find_in(IMPORTANCE_ANALYSIS, model.reading, SETTINGS), np.array(model.truth.effects.single)
        furthest = max(furthest, float(np.abs(found.exact - rises).max()))
        for measure in found.unreliable:
            wrong = _marked(measure, found, rises[None]) & (np.abs(rises) > HARDLY)
            for n_texts in N_TEXTS:
                marked = _marked(measure, found, _resampled(found, n_texts))
                by_measure[measure, n_texts].add(wrong, marked)
                by_noise[model.truth.noise, n_texts].add(wrong, marked)
    print(f"{len(folders)} models; ablation differs from that by hooks by at most {furthest:.2g} nats.")
    for name, by in (("measure", by_measure), ("noise, all measures", by_noise)):
        header(name, "texts compared", "errors", "of these marked", "others", "of these marked")
        for (key, n_texts), marks in sorted(by.items()):
            shares = (_share(marks.n_wrong_marked, marks.n_wrong), _share(marks.n_right_marked, marks.n_right))
            row(key, n_texts, marks.n_wrong, shares[0], marks.n_right, shares[1])


def _marked(measure: str, found: ImportanceFinding, damage_in: Values) -> Bool[np.ndarray, "layer head"]:
    return unreliable_heads(measure, found.values[measure], damage_in, has_sign=True)


def _resampled(found: ImportanceFinding, n_texts: int) -> Values:
    """Damage in resamples, if so many of the texts are compared."""
    outcomes = [found.answers[0][index] for index in some_texts(len(found.items), n_texts)]
    return damage(outcomes, mean_score("loss")).over(Draws([None] * len(outcomes), SETTINGS.resamples).weights)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
