"""How a checkpoint without some heads is saved."""

from typing import Final, Literal

Export = Literal["removed", "zeroed"]
"""Slices of the weights, or the same shapes with the weights that read the heads' outputs set to 0."""
EXPORTS: Final[tuple[Export, ...]] = ("removed", "zeroed")
TOLERANCE: Final = 1e-12
"""Largest allowed difference from the original with these heads switched off, relative to the largest output, in
float64."""
