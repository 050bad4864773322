"""Heads as parsers on two treebanks: the best head of each relation against the best fixed offset, as Markdown.

The best head is chosen on every second sentence and judged on the others, both ways round. Beside it stands what heads
of the same checkpoint with random weights reach.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.analysis import prepare
from core.checkpoints import BUNDLED, CheckpointFiles, find_checkpoint, load_checkpoint, randomly_initialised
from core.parses import Dependencies, dependencies
from core.parsing_heads import RelationAccuracy, TextPredictions, relation_accuracies
from core.parsing_observer import predictions
from core.passes import PassSettings
from core.texts import Text, read_file

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
TREEBANKS: Final = {
    "EWT dev": DATA / "ud_ewt" / "ewt_dev.clark_sd.jsonl.gz",
    "PUD": DATA / "pud" / "pud_en.clark_sd.jsonl.gz",
}
LEAST_CASES: Final = 100
ARROWS: Final = {"dependent-to-head": "dep → head", "head-to-dependent": "head → dep"}


def main() -> None:
    bundled = find_checkpoint(BUNDLED)
    for name, path in TREEBANKS.items():
        if not path.is_file():
            print(f"{name} is not measured: there is no {path}.")
            continue
        texts = read_file(path.name.removesuffix(".gz"), gzip.decompress(path.read_bytes()))
        trees = list(dependencies(texts))
        trained, control = (accuracies(files, texts, trees) for files in (bundled, randomly_initialised(bundled)))
        print(f"\n**{name}**, {len(texts):,} sentences\n\n" + "\n".join(table(trained, control)))


def accuracies(files: CheckpointFiles, texts: Sequence[Text], trees: Sequence[Dependencies]) -> list[RelationAccuracy]:
    checkpoint, settings = load_checkpoint(files), PassSettings()
    prepared = [prepare(checkpoint, text, settings) for text in texts]
    work = predictions(checkpoint, prepared, [tree.words for tree in trees], settings)
    found = dict(one for batch in work for one in batch)
    texts_found = [TextPredictions(dependencies=tree, predicted=found[place]) for place, tree in enumerate(trees)]
    return relation_accuracies(texts_found, least_cases=LEAST_CASES)


def table(trained: Sequence[RelationAccuracy], control: Sequence[RelationAccuracy]) -> list[str]:
    of_control = {one.relation: one for one in control}
    rows = ["| relation | cases | best head | held out | 95 % | best offset | p | random weights |"]
    rows.append("|---|--:|---|--:|--:|--:|--:|--:|")
    for one in trained:
        way, layer, head = one.best
        rows.append(
            f"| {one.relation} | {one.n_cases:,} | L{layer} H{head} {ARROWS[way]} | {100 * one.best_accuracy:.1f} "
            f"| {100 * one.best_low:.1f}-{100 * one.best_high:.1f} "
            f"| {100 * one.baseline.share:.1f} ({one.baseline.offset:+d}) | {shown(one.p_value)} "
            f"| {100 * of_control[one.relation].best_accuracy:.1f} |"
        )
    return rows


def shown(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


if __name__ == "__main__":
    main()
