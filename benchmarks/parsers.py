"""Heads as parsers on two treebanks: the best head of each relation against the best fixed offset, as Markdown.

Held out: a head is chosen on every second sentence and judged on the others, both ways round; "best on halves" names
those that were where they are not the head that is best on all sentences. p is that of the latter. Beside it stands
what heads of the same checkpoint with random weights reach.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint, randomly_initialised
from core.passes.prepare import prepare
from core.relations.accuracy import Direction, RelationAccuracy, TextPredictions, relation_accuracies
from core.relations.observer import predictions
from core.texts.relations import Dependencies, dependencies
from core.texts.text import Text, read_file

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
    texts_found = [TextPredictions.of(tree, found[place]) for place, tree in enumerate(trees)]
    return relation_accuracies(texts_found, least_cases=LEAST_CASES)


def table(trained: Sequence[RelationAccuracy], control: Sequence[RelationAccuracy]) -> list[str]:
    of_control = {one.relation: one for one in control}
    rows = ["| relation | cases | best on all | best on halves | held out | 95 % | best offset | p | random weights |"]
    rows.append("|---|--:|---|---|--:|--:|--:|--:|--:|")
    for one in trained:
        rows.append(
            f"| {one.relation} | {one.n_cases:,} | {named(one.best)} | {on_halves(one)} "
            f"| {100 * one.best_accuracy:.1f} | {100 * one.best_low:.1f}-{100 * one.best_high:.1f} "
            f"| {100 * one.baseline.share:.1f} ({one.baseline.offset:+d}) | {shown(one.p_value)} "
            f"| {100 * of_control[one.relation].best_accuracy:.1f} |"
        )
    return rows


def on_halves(one: RelationAccuracy) -> str:
    """Heads that were judged, where they are not the one that is best on all sentences."""
    heads = dict.fromkeys(one.best_of_halves)
    return "" if set(heads) == {one.best} else ", ".join(map(named, heads))


def named(best: tuple[Direction, int, int]) -> str:
    way, layer, head = best
    return f"L{layer} H{head} {ARROWS[way]}"


def shown(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


if __name__ == "__main__":
    main()
