"""Time of the most surprising links of a typed text, over which the page answers it, beyond the pass of the text.

Goal: at most 50 ms for a text of 137 tokens. Of a text of thousands of tokens the window on screen counts.
"""

import statistics
import time
from typing import Final

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.analysis import DISTANCES
from attention_sieve.core.word_links.habits import habits_of, surprising_links
from attention_sieve.dashboard.samples import read_sample
from benchmarks.shared import material
from benchmarks.shared.sentences import sentences

LENGTHS: Final = (9, 40, 137, 400)
"""Tokens at least."""
GOALS: Final = {137: 50}
"""Milliseconds."""
REPEATS: Final = 21


def main() -> None:
    material.print_machine()
    engine, samples = Engine(find_checkpoint(BUNDLED)), read_sample("both")
    inference = Inference(Store())
    habits = habits_of(inference.ask(engine, DISTANCES, samples, PassSettings()).results)
    print(f"{'tokens':>7}{'words':>7}{'ms, median':>12}{'best':>7}{'goal':>7}")
    for length in LENGTHS:
        looked = look_at(inference, engine, length)
        waits = []
        for _ in range(REPEATS):
            begun = time.perf_counter()
            surprising_links(looked, habits)
            waits.append(1000 * (time.perf_counter() - begun))
        n_tokens, n_words = len(looked.text.queries.ids), len(set(looked.text.queries.words.tolist())) - 1
        times = f"{statistics.median(waits):>12.1f}{min(waits):>7.1f}"
        print(f"{n_tokens:>7}{n_words:>7}{times}{GOALS.get(length, ''):>7}", flush=True)


def look_at(inference: Inference, engine: Engine, length: int) -> TextAttention:
    """A text of whole sentences with as many tokens or a few more."""
    said = list[str]()
    for sentence in ["The old baker closed her shop.", *sentences(length)]:
        said.append(sentence)
        looked, _ = inference.look(engine, Text((" ".join(said),)), PassSettings())
        if len(looked.text.queries.ids) >= length:
            break
    return looked


if __name__ == "__main__":
    main()
