"""About how long passes will take on this machine, said before the click that begins them."""

from collections.abc import Sequence
from functools import cache
from time import perf_counter
from typing import Final

import numpy as np

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.wording import duration

SECONDS_OF_A_LAYER: Final = 3e-4
"""Of a pass of one text through one layer of a checkpoint so small that its arithmetic takes no time."""
CHARACTERS_OF_A_TOKEN: Final = 4
TRAINING: Final = 3
"""A pass forward and back, in passes forward: it has three times the operations."""
TRIALS: Final = 5


def of_passes(files: CheckpointFiles, n_passes: float, n_characters: float) -> str:
    """How long so many forward passes of single texts take, such as "about 3 min on a processor".

    Args:
        n_characters: mean length of a text.
    """
    operations = 2 * _n_weights(files) * (n_characters / CHARACTERS_OF_A_TOKEN + 2)  # [CLS] and [SEP]
    of_layers = SECONDS_OF_A_LAYER * (files.n_layers or 1)
    seconds = n_passes * (of_layers + operations / _operations_a_second())
    return f"{duration(seconds)} on a processor"


def mean_characters(texts: Sequence[Text]) -> float:
    """Mean length of some texts, of which there is at least one."""
    return sum(len(segment) for text in texts for segment in text.segments) / len(texts)


def _n_weights(files: CheckpointFiles) -> float:
    n_bytes = sum(path.stat().st_size for path in files.whole.folder.glob("*.safetensors"))
    return n_bytes / (2 if files.saved_in else 4)


@cache
def _operations_a_second() -> float:
    """Of this machine in float32, by the fastest of a few products that take a millisecond."""
    left, right = np.ones((128, 512), np.float32), np.ones((512, 1024), np.float32)
    seconds = []
    for _ in range(TRIALS):
        started = perf_counter()
        left @ right
        seconds.append(perf_counter() - started)
    return 2 * left.size * right.shape[1] / min(seconds)
