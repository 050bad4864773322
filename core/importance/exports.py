"""How a checkpoint without some heads is saved."""

from typing import Final, Literal

Export = Literal["removed", "zeroed"]
"""Slices of the weights, or the same shapes with the weights that read the heads' outputs set to 0."""
EXPORTS: Final[tuple[Export, ...]] = ("removed", "zeroed")
