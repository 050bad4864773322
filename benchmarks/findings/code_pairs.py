"""Asks heads for the opening bracket of each closing one, and for the place that binds a name, in functions of this
project's own code.

Of the bundled checkpoint, of SmolLM2-135M-Instruct (`python -m attention_sieve sample-decoder` makes it; where it is
not, it is left out), and of random weights of both shapes. Files are documents. Line breaks are read as spaces.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attention_sieve.core.answering import Reading, find_in
from attention_sieve.core.attention.settings import PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.pairs.make import BRACKETS, DEF_USE, passages
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import ALL, RelationAccuracy
from attention_sieve.core.relations.finding import RelationFinding
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.texts.given import WrittenPair, pairs_line
from attention_sieve.core.texts.text import Text, read_file
from benchmarks.shared.markdown import header, row

CODE: Final = Path(__file__).parents[2]
EVERY: Final = 8
"""One file of so many is read."""
LONGEST: Final = 700
"""Characters of the longest function that is read."""
SEEDS: Final = (0, 1)
"""Of the random weights."""
SETTINGS: Final = RelationSettings(offsets=(-100, 100))
ARROWS: Final = {"dependent-to-head": "", "head-to-dependent": " ↓"}


def main() -> None:
    found = functions()
    print(f"{len(found):,} functions of {len({path for *_, path in found})} files, of at most {LONGEST} characters.")
    print(copies(found))
    texts = read_file("code.jsonl", "\n".join(pairs_line((text,), *of_text) for text, *of_text in found).encode())
    header(
        "checkpoint", "pairs", "cases", "best head of each half", "held out % (95%)", "best offset %",
        "nearest %", "random choice %", "random weights %", "× other words",
    )  # fmt: skip
    for name in (BUNDLED, SAMPLE_DECODER):
        try:
            files = find_checkpoint(name)
        except CheckpointError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        measured = measure(files, texts)
        random = [measure(randomly_initialised(files, seed), texts).accuracies for seed in SEEDS]
        for one in measured.accuracies:
            if one.relation != ALL:
                report(name, one, [other for run in random for other in run if other.relation == one.relation])


def functions() -> list[tuple[str, list[WrittenPair], str]]:
    """Functions with all of their pairs, and the file of each."""
    found = []
    for path in sorted((CODE / "core").rglob("*.py"))[::EVERY]:
        pairs: dict[str, list[WrittenPair]] = {}
        for kind in (BRACKETS, DEF_USE):
            for passage in passages(kind, path.name, path.read_text("utf-8")):
                pairs.setdefault(passage.segments[0], []).extend(passage.pairs)
        name = str(path.relative_to(CODE))
        found += [(text, of_text, name) for text, of_text in pairs.items() if len(text) <= LONGEST]
    return found


def copies(found: Sequence[tuple[str, list[WrittenPair], str]]) -> str:
    """How often the last, and the first, earlier copy of a name is where it is bound."""
    last, first = list[bool](), list[bool]()
    for text, pairs, _ in found:
        for pair in pairs:
            if pair.relation == DEF_USE:
                name, use = text[slice(*pair.start[1:])], pair.start[1]
                before = [each.start() for each in re.finditer(rf"\b{name}\b", text) if each.start() < use]
                last.append(before[-1:] == [pair.end[1]])
                first.append(before[:1] == [pair.end[1]])
    return (
        f"Where a name is bound: the last earlier copy of the name in {sum(last) / len(last):.1%}, the first in "
        f"{sum(first) / len(first):.1%}."
    )


def measure(files: CheckpointFiles, texts: tuple[Text, ...]) -> RelationFinding:
    """What the heads find in the texts that the checkpoint can read."""
    checkpoint, pass_settings = load_checkpoint(files), PassSettings(files.kinds[0])
    prepared, _ = prepare_all(checkpoint, texts, pass_settings, "skip")
    print(f"{files.name}: {len(prepared):,} functions", file=sys.stderr)
    return find_in(
        RELATION_ANALYSIS,
        Reading(checkpoint=checkpoint, pass_settings=pass_settings, inputs=texts, prepared=prepared),
        SETTINGS,
    )


def report(name: str, one: RelationAccuracy, random: Sequence[RelationAccuracy]) -> None:
    heads = " / ".join(
        dict.fromkeys(f"{head_name(layer, head)}{ARROWS[way]}" for way, layer, head in one.best_of_halves)
    )
    chance = [100 * each.best_accuracy for each in random]
    shown = f"{100 * one.best_accuracy:.1f}"
    row(
        name,
        one.relation,
        f"{one.n_cases:,}",
        heads,
        f"{f'**{shown}**' if one.best_low > one.baseline.share else shown} "
        f"({100 * one.best_low:.1f}-{100 * one.best_high:.1f})",
        f"{100 * one.baseline.share:.1f} ({one.baseline.offset:+d})",
        f"{100 * one.nearest:.1f}",
        f"{100 * one.random_choice:.1f}",
        f"{sum(chance) / len(chance):.1f} ({min(chance):.1f}-{max(chance):.1f})",
        f"{float(one.best_key_matched.times):.1f}",
    )


if __name__ == "__main__":
    main()
