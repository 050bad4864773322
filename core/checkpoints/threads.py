"""What a process computes with: threads and GPUs."""

import torch


def use_threads(n_threads: int) -> None:
    """Compute with so many threads from now on; sums are added in an order that depends on it."""
    torch.set_num_threads(n_threads)


def n_cuda_devices() -> int:
    """NVIDIA GPUs that this process sees."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
