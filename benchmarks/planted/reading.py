"""A planted model and the texts of its task, as the analyses of the product read them."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from attention_sieve.core.answering import Reading
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import text_of_ids
from benchmarks.planted.truth import Truth


@dataclass(frozen=True, eq=False)
class Planted:
    """A planted model: what is known about it, and its texts, of which the scored positions alone have a loss."""

    truth: Truth
    reading: Reading[LabelledText]


def planted(folder: Path) -> Planted:
    """Load a planted model with the texts of its task.

    Args:
        folder: with a checkpoint and truth.json.
    """
    truth, settings = Truth.read(folder), PassSettings()
    checkpoint, task = load_checkpoint(find_checkpoint(str(folder)), device="cpu"), truth.task
    inputs, prepared = [], {}
    for row, (ids, scored, targets) in enumerate(zip(task.tokens, task.scored, task.targets, strict=True)):
        full = np.array(ids)
        if task.kind == "masked":  # the pass masks what it scores
            full[list(scored)] = targets
        text = text_of_ids(GivenTokens(tuple(full.tolist())))
        tokens = prepare(checkpoint, text, settings)
        if task.segments is not None:
            tokens = replace(tokens, source=replace(tokens.source, type_ids=np.array(task.segments[row])))
        inputs.append(LabelledText(text))
        prepared[row] = replace(tokens, predicts_after=scored)
    return Planted(
        truth, Reading(checkpoint=checkpoint, pass_settings=settings, inputs=tuple(inputs), prepared=prepared)
    )


def planted_folders(root: Path) -> list[Path]:
    """The folders of planted models in a folder, by name."""
    return sorted(path.parent for path in root.glob("*/truth.json"))
