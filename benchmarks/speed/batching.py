"""Texts per second of scoring short texts: one by one, in the order of a file, and sorted and filled to a budget."""

import random
from collections.abc import Callable

from attention_sieve.core.passes.batches import BATCH_TOKENS, plan_batches
from benchmarks.shared import material

N_TEXTS = 200
MEDIAN_TOKENS, SPREAD = 32, 0.6
"""Lengths are log-normal, much as those of sentences."""
SHORTEST, LONGEST = 6, 128
TEXTS_IN_FILE_ORDER = 32
SECONDS = 30


def main() -> None:
    material.print_machine()
    checkpoint = material.bundled()
    chance = random.Random(0)
    drawn = [round(MEDIAN_TOKENS * chance.lognormvariate(0, SPREAD)) for _ in range(N_TEXTS)]
    lengths = [min(LONGEST, max(SHORTEST, n_tokens)) for n_tokens in drawn]
    texts = material.made_up_texts(checkpoint, lengths)
    budget = BATCH_TOKENS[checkpoint.device]
    ways = {
        "one by one": [[i] for i in range(N_TEXTS)],
        f"file order, {TEXTS_IN_FILE_ORDER} at a time": in_file_order(),
        "sorted and filled": [list(batch.positions) for batch in plan_batches(lengths, budget)],
    }

    def scoring(groups: list[list[int]]) -> Callable[[], object]:
        batches = [[texts[i] for i in group] for group in groups]
        return lambda: material.scored(checkpoint, batches)

    seconds, ratios = material.median_ratios([scoring(groups) for groups in ways.values()], SECONDS)
    print(
        f"{N_TEXTS} texts of {sum(lengths) / N_TEXTS:.0f} tokens on average, MiniLM 6x12; filled to {budget:,} tokens"
    )
    print(f"{'batches':<28}{'texts a second':>16}{'speed':>8}{'padding':>10}")
    for (way, groups), ratio in zip(ways.items(), ratios):
        print(f"{way:<28}{N_TEXTS / (seconds * ratio):>16.0f}{1 / ratio:>8.2f}{padding(lengths, groups):>10.0%}")


def in_file_order() -> list[list[int]]:
    starts = range(0, N_TEXTS, TEXTS_IN_FILE_ORDER)
    return [list(range(start, min(N_TEXTS, start + TEXTS_IN_FILE_ORDER))) for start in starts]


def padding(lengths: list[int], groups: list[list[int]]) -> float:
    """Padded tokens over tokens of the texts."""
    passed = sum(len(group) * max(lengths[i] for i in group) for group in groups)
    return passed / sum(lengths) - 1


if __name__ == "__main__":
    main()
