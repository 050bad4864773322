"""Whether memory has run out; needs no torch."""

from typing import Final

OUT_OF_MEMORY: Final = ("can't allocate memory", "not enough memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
"""How torch says it: of a GPU in an error of its own kind, of a CPU in any RuntimeError."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory does not suffice, rather than that something is wrong."""
    is_torchs = isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    return is_torchs or isinstance(error, MemoryError)
