"""Many texts through the door in batches of like length, and what a collector keeps of each."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from core.attention import observe
from core.checkpoints import Checkpoint
from core.observers import Observer
from core.passes import PassSettings, PassText
from core.scores import BATCH_TOKENS, gates, model_inputs, plan_batches

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Collector(Observer, Protocol[Result_co]):
    """An observer of one batch that keeps something of each text."""

    def results(self) -> Sequence[Result_co]:
        """One per text of the batch, in order, on the CPU; asked for once, after the pass."""


def collect(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    collector: Callable[[Sequence[PassText]], Collector[Result]],
    *,
    batch_tokens: int | None = None,
) -> Iterator[list[tuple[int, Result]]]:
    """Pass texts, yielding each batch's results as they are done.

    Args:
        checkpoint: loaded.
        texts: prepared for the kind of attention that the settings name.
        settings: which attention, and which heads are off.
        collector: makes the observer of a batch from its texts.
        batch_tokens: tokens of a batch, padding included; None for what suits the device.

    Yields: place among the texts given, and result; not in the order given.
    """
    attention = checkpoint.attentions[settings.kind]
    budget = batch_tokens or BATCH_TOKENS[checkpoint.device]
    for batch in plan_batches([text.n_tokens for text in texts], budget):
        chosen = [texts[place] for place in batch.positions]
        keeps = collector(chosen)
        observe(
            checkpoint.model,
            model_inputs(checkpoint, chosen),
            [keeps],
            calls=attention.calls,
            gates=gates(checkpoint, settings),
            stops=True,
        )
        yield list(zip(batch.positions, keeps.results(), strict=True))
