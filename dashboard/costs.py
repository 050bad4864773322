"""About how long passes will take on this machine, said before the click that begins them."""

from collections.abc import Sequence
from functools import cache
from time import perf_counter
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import wording

SECONDS_OF_A_LAYER: Final = 3e-4
"""Of a pass of one text through one layer of a checkpoint so small that its arithmetic takes no time."""
CHARACTERS_OF_A_TOKEN: Final = 4
TRAINING: Final = 3
"""A pass forward and back, in passes forward: it has three times the operations."""
TRIALS: Final = 5


QUIET: Final = 5
"""Seconds; of work that takes less nothing is said."""
PROBE_STEP: Final = 2e-3
"""Seconds in which a tree probe learns from one text, however short."""
PROBE_HEAD: Final = {False: 5e-7, True: 2e-6}
"""What each word and head of the checkpoint adds, by whether weights depend on the words."""


def say(files: CheckpointFiles, n_passes: float, texts: Sequence[Text] | float, further: float = 0) -> None:
    """Say how long work will take, before the click that begins it; nothing of work that is soon done.

    Args:
        texts: those of the passes, or the mean number of characters of one.
        further: seconds of what is no pass.
    """
    if sentence := takes(files, n_passes, texts, further):
        st.caption(sentence)


def takes(files: CheckpointFiles, n_passes: float, texts: Sequence[Text] | float, further: float = 0) -> str | None:
    """The sentence of `say`, for where a caption has no place."""
    n_characters = texts if isinstance(texts, float | int) else mean_characters(texts)
    seconds = _seconds(files, n_passes, n_characters) + further
    return None if seconds < QUIET else wording.takes(_written(seconds))


def of_passes(files: CheckpointFiles, n_passes: float, n_characters: float) -> str:
    """How long so many forward passes of single texts take, such as "about 3 min on a processor".

    Args:
        n_characters: mean length of a text.
    """
    return _written(_seconds(files, n_passes, n_characters))


def of_tree_probe(files: CheckpointFiles, n_texts: int, n_words: int, epochs: int, *, words: bool) -> float:
    """Seconds in which a tree probe sees so many texts, of so many words in all, in so many epochs."""
    n_heads = (files.n_layers or 1) * (files.n_heads or 1)
    return epochs * (PROBE_STEP * n_texts + PROBE_HEAD[words] * n_words * n_heads)


def _written(seconds: float) -> str:
    return f"{wording.duration(seconds)} on a processor"


def _seconds(files: CheckpointFiles, n_passes: float, n_characters: float) -> float:
    operations = 2 * _n_weights(files) * (n_characters / CHARACTERS_OF_A_TOKEN + 2)  # [CLS] and [SEP]
    of_layers = SECONDS_OF_A_LAYER * (files.n_layers or 1)
    return n_passes * (of_layers + operations / _operations_a_second())


def mean_characters(texts: Sequence[Text]) -> float:
    """Mean length of some texts; 0 of none."""
    return sum(len(segment) for text in texts for segment in text.segments) / max(1, len(texts))


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
