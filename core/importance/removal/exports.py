"""How a checkpoint without some heads is saved."""

from typing import Final, Literal

Export = Literal["removed", "zeroed"]
"""Sliced weights, or the same shapes with the output projection of these heads set to 0."""
EXPORTS: Final[tuple[Export, ...]] = ("removed", "zeroed")
TOLERANCE: Final = 1e-12
"""Maximum difference from the original with these heads switched off, relative to the largest output, in float64."""
MERGED_TOLERANCE: Final = 1e-5
"""The same for an adapter, whose merged weights are saved in float32."""
