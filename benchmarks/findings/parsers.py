"""Heads as parsers on two treebanks: the heads of each relation against the best fixed offset.

A head is chosen on every second document and evaluated on the others, and vice versa; two names are given if the halves
choose differently. Documents are the units of intervals. Bold is an accuracy whose interval lies above the best offset.
The control is the same with random weights of the same shape: the mean of several seeds, and their range. A second
control is the attention that other words give to the right word: how many times as much it gets along the relation, and
which heads this control replaces.
"""

import gzip
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import RelationAccuracy, TextPredictions, relation_accuracies
from attention_sieve.core.relations.settings import DIRECTIONS, Direction
from attention_sieve.core.texts.text import Text, read_file

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
TREEBANKS: Final = {
    "EWT": (DATA / "ud_ewt" / "ewt_dev.clark_sd.jsonl.gz", DATA / "ud_ewt" / "en_ewt-ud-dev.conllu.gz"),
    "PUD": (DATA / "pud" / "pud_en.clark_sd.jsonl.gz", DATA / "pud" / "en_pud-ud-test.conllu.gz"),
}
"""Trees in Stanford style, and the same sentences as CoNLL-U, which names their documents."""
LEAST_CASES: Final = 100
SEEDS: Final = (0, 1, 2)
"""Of the random weights."""
COLUMNS: Final = "cases | evaluated head | held out % (95%) | best offset % | random % | × other words"
SHOWN: Final = (("nsubj", 2, 8), ("nsubj", 2, 3), ("dobj", 2, 0), ("amod", 1, 8))
"""Relations from dependent to head, layer and head whose second control is printed."""
ARROWS: Final = {"dependent-to-head": "", "head-to-dependent": " ↓"}


def main() -> None:
    if missing := [path for paths in TREEBANKS.values() for path in paths if not path.is_file()]:
        print(f"Not measured: there is no {missing[0]}.", file=sys.stderr)
        return
    bundled, cells = find_checkpoint(BUNDLED), dict[str, dict[str, str]]()
    for name, (trees, documents) in TREEBANKS.items():
        texts = with_documents(read_file("trees.jsonl", gzip.decompress(trees.read_bytes())), documents)
        of_texts = predicted(bundled, texts)
        of_bundled, by_accuracy = (accuracies(each) for each in (of_texts, [without_control(one) for one in of_texts]))
        random = [accuracies(predicted(randomly_initialised(bundled, seed), texts)) for seed in SEEDS]
        cells[name] = {one.relation: row(one, random) for one in of_bundled}
        n_documents = len({text.document for text in texts})
        print(f"\n{name}, {len(texts):,} sentences in {n_documents} documents:\n")
        lines = [*offset_lines(of_bundled, random), *control_lines(of_bundled, by_accuracy)]
        print("\n".join(f"- {line}" for line in lines))
    print("", *table(cells), sep="\n")


def with_documents(texts: Sequence[Text], conllu: Path) -> list[Text]:
    """The texts with the names of the documents in which CoNLL-U has the same sentences, in the same order."""
    named = [text.document for text in read_file("trees.conllu", gzip.decompress(conllu.read_bytes()))]
    return [replace(text, document=document) for text, document in zip(texts, named, strict=True)]


def predicted(files: CheckpointFiles, texts: Sequence[Text]) -> tuple[TextPredictions, ...]:
    return find(RELATION_ANALYSIS, load_checkpoint(files), texts).predictions


def accuracies(texts: Sequence[TextPredictions]) -> list[RelationAccuracy]:
    return [accuracy for accuracy in relation_accuracies(texts) if accuracy.n_cases >= LEAST_CASES]


def without_control(text: TextPredictions) -> TextPredictions:
    """The same without attention to compare, so that heads are chosen by their accuracy alone."""
    unknown = np.full(text.to_head.shape, np.nan, np.float32)
    return replace(text, to_head=unknown, from_head=unknown, from_others=unknown)


def control_lines(by_both: Sequence[RelationAccuracy], by_accuracy: Sequence[RelationAccuracy]) -> list[str]:
    """Results of the second control for a few heads, and for the heads of every relation, chosen with and without
    it."""
    lines = [shown_head(one, layer, head) for name, layer, head in SHOWN for one in by_both if one.relation == name]
    for one, alone in zip(by_both, by_accuracy, strict=True):
        marked = [
            named(best)
            for best in dict.fromkeys((alone.best, *alone.best_of_halves))
            if one.key_matched.from_everywhere[DIRECTIONS.index(best[0]), best[1], best[2]]
        ]
        if marked or one.best_of_halves != alone.best_of_halves:
            lines.append(
                f"{one.relation}: by accuracy {' / '.join(map(named, alone.best_of_halves))} "
                f"({alone.best_accuracy:.1%}; from everywhere: {', '.join(marked) or 'none'}), by both "
                f"{' / '.join(map(named, one.best_of_halves))} ({one.best_accuracy:.1%}, times "
                f"{float(one.best_key_matched.times):.1f})"
            )
    above = {one.relation: one.p_values < 0.05 for one in by_both}
    marked_of = {one.relation: int((one.key_matched.from_everywhere & above[one.relation]).sum()) for one in by_both}
    return [
        *lines,
        f"{sum(int(heads.sum()) for heads in above.values())} heads beat the best offset at a relation (p < .05, "
        f"corrected); {sum(marked_of.values())} of them look there from everywhere: "
        f"{', '.join(f'{n} at {relation}' for relation, n in marked_of.items() if n) or 'none'}.",
    ]


def offset_lines(of_bundled: Sequence[RelationAccuracy], random: Sequence[Sequence[RelationAccuracy]]) -> list[str]:
    """How many relations' heads lie above the best offset, of this checkpoint and of random weights."""
    above = [one.relation for one in of_bundled if one.best_low > one.baseline.share]
    by_chance = [
        f"{one.relation} ({one.best_accuracy:.1%}, the offset {one.baseline.share:.1%})"
        for run in random
        for one in run
        if one.best_accuracy > one.baseline.share
    ]
    effects = [one.best_design_effect for one in of_bundled[1:]]
    return [
        f"The interval lies above the best fixed offset in {len(above)} of {len(of_bundled)} rows with at least "
        f"{LEAST_CASES} cases.",
        f"With random weights, {len(SEEDS)} seeds, above it: {', '.join(by_chance) or 'none'}.",
        f"With documents as units, the variance is {of_bundled[0].best_design_effect:.1f} times that of independent "
        f"cases for {of_bundled[0].relation}, {min(effects):.1f} to {max(effects):.1f} times for single relations.",
    ]


def shown_head(one: RelationAccuracy, layer: int, head: int) -> str:
    control, at = one.key_matched, (0, layer, head)
    return (
        f"{one.relation} by L{layer} H{head}: right in {one.accuracy[at]:.1%}, attention {control.to_right[at]:.3f}, "
        f"of other words {control.from_others[at]:.4f}, times {control.times[at]:.1f}, p {control.p_values[at]:.2g}"
    )


def row(one: RelationAccuracy, random: Sequence[Sequence[RelationAccuracy]]) -> str:
    """The cells of a relation in one treebank."""
    chance = [100 * other.best_accuracy for run in random for other in run if other.relation == one.relation]
    accuracy = f"{100 * one.best_accuracy:.1f}"
    shown = f"**{accuracy}**" if one.best_low > one.baseline.share else accuracy
    return (
        f"{one.n_cases:,} | {' / '.join(dict.fromkeys(map(named, one.best_of_halves)))} "
        f"| {shown} ({100 * one.best_low:.1f}-{100 * one.best_high:.1f}) "
        f"| {100 * one.baseline.share:.1f} ({one.baseline.offset:+d}) "
        f"| {sum(chance) / len(chance):.1f} ({min(chance):.1f}-{max(chance):.1f}) "
        f"| {float(one.best_key_matched.times):.1f}"
    )


def table(cells: dict[str, dict[str, str]]) -> list[str]:
    """One line per relation, with the cells of every treebank."""
    relations = dict.fromkeys(relation for of_treebank in cells.values() for relation in of_treebank)
    n_columns = COLUMNS.count("|") + 1
    empty = " | ".join([" "] * n_columns)
    lines = ["| relation | " + " | ".join(f"{name} {COLUMNS}" for name in cells) + " |"]
    lines.append("|---|" + "--:|---|--:|--:|--:|--:|" * len(cells))
    for relation in relations:
        shown = [of_treebank.get(relation, empty) for of_treebank in cells.values()]
        lines.append(f"| {relation} | {' | '.join(shown)} |")
    return lines


def named(best: tuple[Direction, int, int]) -> str:
    way, layer, head = best
    return f"L{layer} H{head}{ARROWS[way]}"


if __name__ == "__main__":
    main()
