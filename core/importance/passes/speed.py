"""How fast a checkpoint is with and without some of its heads, measured side by side."""

import copy
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from core.checkpoints.checkpoint import Checkpoint

BATCH_SIZES: Final = (1, 4, 16, 64)
"""Of Michel et al. 2019, table 4."""
N_TOKENS: Final = 64
"""Of each made-up text, or as many as the checkpoint takes."""
FEWEST_ROUNDS: Final = 7
SECONDS: Final = 2.0
"""Of measuring at a batch size, beyond the fewest rounds."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Texts a second of two checkpoints at one batch size."""

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
    """Speed of the model's output, computed as others compute it (SDPA), before and after heads were removed.

    The two run by turns, and ratios are taken within a round: a machine may be slower in one round than in the next.

    Args:
        original, pruned: loaded on one device.
        batch_sizes: texts of a batch.
        seconds: of measuring at each, at least.

    Source: Michel et al. 2019, table 4.
    """
    both = [_run(checkpoint) for checkpoint in (original, pruned)]
    n_tokens = min(N_TOKENS, original.max_tokens)
    n_ids = original.model.get_input_embeddings().num_embeddings
    for batch_size in batch_sizes:
        ids = torch.randint(n_ids, (batch_size, n_tokens), generator=torch.Generator().manual_seed(0))
        rounds = _rounds(both, ids.to(original.device), seconds)
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
    """A pass of the same weights behind SDPA."""
    model = copy.deepcopy(checkpoint.model, {id(weight): weight for weight in checkpoint.model.parameters()})
    model.set_attn_implementation("sdpa")

    def decoded(ids: Any) -> dict[str, Any]:
        return {"decoder_input_ids": ids} if len(checkpoint.files.kinds) > 1 else {}

    def run(ids: Any) -> None:
        with torch.inference_mode():
            model(input_ids=ids, attention_mask=torch.ones_like(ids), **decoded(ids))
        if ids.is_cuda:
            torch.cuda.synchronize()

    return run


def _rounds(both: Sequence[Callable[[Any], None]], ids: Any, seconds: float) -> list[tuple[float, float]]:
    """Seconds of both in each round, after one that does not count."""
    rounds: list[tuple[float, float]] = []
    for run in both:
        run(ids)
    until = time.perf_counter() + seconds
    while len(rounds) < FEWEST_ROUNDS or time.perf_counter() < until:
        rounds.append((_seconds(both[0], ids), _seconds(both[1], ids)))
    return rounds


def _seconds(run: Callable[[Any], None], ids: Any) -> float:
    start = time.perf_counter()
    run(ids)
    return time.perf_counter() - start
