"""Heads in figures: their names, and the selection of a head by a click on its mark."""

from typing import TYPE_CHECKING, Final

import numpy as np

from attention_sieve.core.attention.settings import head_name
from attention_sieve.dashboard.figures.figure import alt

if TYPE_CHECKING:
    import pandas as pd

SHARED: Final = "heads that share keys and values"
"""What a bracket over the columns of a grid means."""
CHOICE: Final = "head"
"""Name of the selection that a click on a mark makes; its fields are `layer` and `head`."""


def head_rows(n_layers: int, n_heads: int) -> "pd.DataFrame":
    """A row for each head: its layer, head and name."""
    import pandas as pd

    layer, head = np.indices((n_layers, n_heads)).reshape(2, -1)
    names = [head_name(*layer_and_head) for layer_and_head in zip(layer.tolist(), head.tolist())]
    return pd.DataFrame({"layer": layer, "head": head, "name": names})


def head_choice() -> "alt.Parameter":
    """The selection that a click on a mark makes, to be added to the marks of heads."""
    return alt.selection_point(name=CHOICE, fields=["layer", "head"])
