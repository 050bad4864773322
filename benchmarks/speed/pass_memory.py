"""Peak memory above the loaded model: the output alone, the observed pass, and stored maps; each in a process of its
own."""

import sys
from collections.abc import Callable

import torch

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import choose_device
from benchmarks.shared import material, memory

CASES = (("MiniLM 6x12", 4, 512), ("BERT 12x12", 16, 128))
"""Checkpoint, texts of the one batch, tokens of a text."""
CONTESTANTS = ("bare", "observed", "stored maps")


def main() -> None:
    material.print_machine()
    if not memory.is_measurable(choose_device()):
        return
    print(f"{'checkpoint':<12}{'texts x tokens':>18}" + "".join(f"{f'{name}, MB':>17}" for name in CONTESTANTS))
    for name, n_texts, n_tokens in CASES:
        case = (name, n_texts, n_tokens)
        peaks = [memory.in_own_process("benchmarks.speed.pass_memory", *case, contestant) for contestant in CONTESTANTS]
        shown = "".join(f"{f'{peak:.0f} ({peak / peaks[0]:.1f}x)':>17}" for peak in peaks)
        print(f"{name:<12}{f'{n_texts} x {n_tokens}':>18}{shown}", flush=True)


def measure(name: str, n_texts: int, n_tokens: int, contestant: str) -> float:
    """Megabytes above the loaded model at the worst moment of one batch."""
    torch.set_num_threads(1)
    checkpoint = material.bundled() if name.startswith("MiniLM") else material.bert_base()
    pass_over = contestant_of(contestant, checkpoint)
    pass_over(1, 16)
    before = memory.start_peak(checkpoint.device)
    pass_over(n_texts, n_tokens)
    return (memory.peak(checkpoint.device) - before) / 1e6


def contestant_of(name: str, checkpoint: Checkpoint) -> Callable[[int, int], None]:
    kind = {"bare": "sdpa", "stored maps": "eager"}.get(name)
    model = material.with_attention(checkpoint, kind) if kind else None

    def pass_over(n_texts: int, n_tokens: int) -> None:
        batches = [material.made_up_texts(checkpoint, [n_tokens] * n_texts)]
        if name == "bare":
            material.bare(checkpoint, model, batches)
        elif name == "observed":
            material.scored(checkpoint, batches)
        else:
            material.from_stored_maps(checkpoint, model, batches)

    return pass_over


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
