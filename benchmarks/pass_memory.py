"""Peak memory above the loaded model: the output alone, the door, and stored maps; each in a process of its own."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import _material as material
from core.checkpoints import Checkpoint, choose_device

CASES = (("MiniLM 6x12", 4, 512), ("BERT 12x12", 16, 128))
"""Checkpoint, texts of the one batch, tokens of a text."""
CONTESTANTS = ("bare", "door", "stored maps")
STATUS = Path("/proc/self/status")
RESET_PEAK = "5"
"""What /proc/self/clear_refs takes to set VmHWM back to VmRSS."""


def main() -> None:
    material.print_machine()
    if choose_device() != "cuda" and not STATUS.exists():
        print("Peak memory is read from /proc, which this system does not have.")
        return
    print(f"{'checkpoint':<12}{'texts x tokens':>18}" + "".join(f"{f'{name}, MB':>17}" for name in CONTESTANTS))
    for name, n_texts, n_tokens in CASES:
        peaks = [in_own_process(name, n_texts, n_tokens, contestant) for contestant in CONTESTANTS]
        shown = "".join(f"{f'{peak:.0f} ({peak / peaks[0]:.1f}x)':>17}" for peak in peaks)
        print(f"{name:<12}{f'{n_texts} x {n_tokens}':>18}{shown}", flush=True)


def in_own_process(*case: str | int) -> float:
    command = [sys.executable, "-m", "benchmarks.pass_memory", *map(str, case)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(name: str, n_texts: int, n_tokens: int, contestant: str) -> float:
    """Megabytes above the loaded model at the worst moment of one batch."""
    torch.set_num_threads(1)
    checkpoint = material.bundled() if name.startswith("MiniLM") else material.bert_base()
    pass_over = contestant_of(contestant, checkpoint)
    with material.one_batch(checkpoint):
        pass_over(1, 16)
        before = start_peak(checkpoint.device)
        pass_over(n_texts, n_tokens)
    return (peak(checkpoint.device) - before) / 1e6


def contestant_of(name: str, checkpoint: Checkpoint) -> Callable[[int, int], None]:
    kind = {"bare": "sdpa", "stored maps": "eager"}.get(name)
    model = material.with_attention(checkpoint, kind) if kind else None

    def pass_over(n_texts: int, n_tokens: int) -> None:
        texts, pairs = material.made_up_texts(checkpoint, [n_tokens] * n_texts)
        if name == "bare":
            material.bare(checkpoint, model, [texts])
        elif name == "door":
            material.scored(checkpoint, texts, pairs)
        else:
            material.from_stored_maps(checkpoint, model, texts, pairs)

    return pass_over


def start_peak(device: str) -> int:
    """Forget the peak so far; returns the bytes in use."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    # Pages that were freed but kept would be used again unseen.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text(RESET_PEAK)
    return in_status("VmRSS")


def peak(device: str) -> int:
    return torch.cuda.max_memory_allocated() if device == "cuda" else in_status("VmHWM")


def in_status(field: str) -> int:
    """Bytes of one line of the process's status."""
    lines = STATUS.read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        print(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
