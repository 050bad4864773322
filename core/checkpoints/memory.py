"""Recognises out-of-memory errors; does not import torch."""

from typing import Final

OUT_OF_MEMORY: Final = ("can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""Parts of torch's messages: a GPU has its own error class, a CPU raises any RuntimeError."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory is insufficient."""
    is_torchs = isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    return is_torchs or isinstance(error, MemoryError)
