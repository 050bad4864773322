"""Results as named arrays, and strings as arrays, so that results can be stored as arrays only."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import UInt8

REMOVED: Final = -2
"""In place of an index, for a head that was removed from its checkpoint: it attends to nothing."""
Arrays = Mapping[str, np.ndarray]
"""A result as named arrays, the form in which it is stored."""


def text_to_array(value: str) -> UInt8[np.ndarray, " byte"]:
    """Encode any Python string, lone surrogates included, as an array."""
    return np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8)


def array_to_text(array: UInt8[np.ndarray, " byte"]) -> str:
    """The inverse of `text_to_array`."""
    return array.tobytes().decode("utf-8", "surrogatepass")


def part(name: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """Arrays as a part of a result, whose names begin with the name of the part."""
    return {f"{name} {array_name}": array for array_name, array in arrays.items()}


def part_of(arrays: Arrays, name: str) -> dict[str, np.ndarray]:
    """The arrays of one part of a result: the inverse of `part`."""
    start = f"{name} "
    return {other.removeprefix(start): array for other, array in arrays.items() if other.startswith(start)}
