"""Speed of a checkpoint with and without some of its heads, measured side by side."""

import copy
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from attention_sieve.core.checkpoints.checkpoint import Checkpoint

BATCH_SIZES: Final = (1, 4, 16, 64)
"""As in Michel et al. 2019, table 4."""
N_TOKENS: Final = 64
"""Length of the random texts, or the maximum length of the checkpoint if that is smaller."""
FEWEST_ROUNDS: Final = 7
SECONDS: Final = 2.0
"""Minimum duration of measuring at a batch size."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Texts per second of two checkpoints at one batch size."""

    batch_size: int
    before: float
    """Median over the rounds."""
    after: float
    ratio: float
    """Median over the rounds of speed after over speed before, both of the same round."""
    low: float
    high: float
    """Quartiles of that ratio."""
    n_rounds: int


def speeds(
    original: Checkpoint, pruned: Checkpoint, batch_sizes: Sequence[int] = BATCH_SIZES, seconds: float = SECONDS
) -> Iterator[Speed]:
    """Speed of a forward pass with SDPA attention, as in ordinary use, before and after heads were removed.

    The two alternate, and ratios are taken within a round, as the speed of the machine may vary between rounds.

    Args:
        original, pruned: loaded on one device.
        seconds: minimum duration of measuring at each batch size.

    Source: Michel et al. 2019, table 4.
    """
    runs = [_run(checkpoint) for checkpoint in (original, pruned)]
    n_tokens = min(N_TOKENS, original.max_tokens)
    n_ids = original.full_model.get_input_embeddings().num_embeddings
    for batch_size in batch_sizes:
        ids = torch.randint(n_ids, (batch_size, n_tokens), generator=torch.Generator().manual_seed(0))
        rounds = _rounds(runs, ids.to(original.device), seconds)
        ratios = [before / after for before, after in rounds]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        yield Speed(
            batch_size=batch_size,
            before=batch_size / statistics.median(before for before, _ in rounds),
            after=batch_size / statistics.median(after for _, after in rounds),
            ratio=ratio,
            low=low,
            high=high,
            n_rounds=len(rounds),
        )


def _run(checkpoint: Checkpoint) -> Callable[[Any], None]:
    """A forward pass of the checkpoint with SDPA attention."""
    model = copy.deepcopy(checkpoint.model, {id(weight): weight for weight in checkpoint.model.parameters()})
    model.set_attn_implementation("sdpa")

    def decoder_inputs(ids: Any) -> dict[str, Any]:
        return {"decoder_input_ids": ids} if len(checkpoint.files.kinds) > 1 else {}

    def run(ids: Any) -> None:
        with torch.inference_mode():
            model(input_ids=ids, attention_mask=torch.ones_like(ids), **decoder_inputs(ids))
        if ids.is_cuda:
            torch.cuda.synchronize()

    return run


def _rounds(runs: Sequence[Callable[[Any], None]], ids: Any, seconds: float) -> list[tuple[float, float]]:
    """Seconds of both in each round, after an unmeasured one."""
    rounds: list[tuple[float, float]] = []
    for run in runs:
        run(ids)
    end = time.perf_counter() + seconds
    while len(rounds) < FEWEST_ROUNDS or time.perf_counter() < end:
        rounds.append((_seconds(runs[0], ids), _seconds(runs[1], ids)))
    return rounds


def _seconds(run: Callable[[Any], None], ids: Any) -> float:
    start = time.perf_counter()
    run(ids)
    return time.perf_counter() - start
