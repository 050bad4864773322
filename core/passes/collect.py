"""Runs texts through the model in batches of similar length and collects one result per text."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Observer, Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import BATCH_TOKENS, gates, model_inputs, plan_batches
from attention_sieve.core.passes.texts import PassText

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Collector(Observer, Protocol[Result_co]):
    """An observer of one batch with a result for each text."""

    def results(self) -> Sequence[Result_co]:
        """One result per text of the batch, in order, on the CPU; called once, after the pass."""


def collect(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    collector: Callable[[Sequence[PassText]], Collector[Result]],
    *,
    batch_tokens: int | None = None,
) -> Iterator[list[tuple[int, Result]]]:
    """Run texts through the model, yielding the results of each batch.

    Args:
        checkpoint: loaded.
        texts: prepared for the kind of attention in the settings.
        settings: which attention, and which heads are off.
        collector: creates the observer of a batch from its texts.
        batch_tokens: tokens per batch, padding included; None for the default of the device.

    Yields: index of the text and its result; not in input order.
    """
    attention = checkpoint.attentions[settings.kind]
    budget = batch_tokens or BATCH_TOKENS[checkpoint.device]
    for batch in plan_batches([text.n_tokens for text in texts], budget):
        batch_texts = [texts[position] for position in batch.positions]
        observer = collector(batch_texts)
        observe(
            checkpoint.model,
            model_inputs(checkpoint, batch_texts),
            Pass(observers=[observer], calls=attention.calls, gates=gates(checkpoint, settings), stops=True),
        )
        yield list(zip(batch.positions, observer.results(), strict=True))
