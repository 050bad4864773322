"""Small pictures of sieves on the text on screen, for the terms that name roles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.measures import RoleSet, SyntacticDirection
from attention_sieve.core.roles.record import DIRECTIONS
from attention_sieve.core.roles.sieves import sieve_cells, with_notes
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.components.source import base64_of
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.text.arcs import visible

MOST_TOKENS: Final = 32
"""Maximum number of queries and of keys in a picture."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sieves:
    """The sieves of a text."""

    tokens: tuple[str, ...]
    """The queries."""
    cells: Mapping[str, Bool[np.ndarray, "query key"]]
    """Sieve of each role that applies."""

    def picture(self, role: str) -> dict[str, Any] | None:
        """What `pictureOf` in `term.js` draws: the beginning of a sieve; None where the role does not apply."""
        if role not in self.cells:
            return None
        cells = self.cells[role]
        part = cells[:MOST_TOKENS, :MOST_TOKENS]
        extent = "your text" if part.shape == cells.shape else f"the first {part.shape[0]} tokens of your text"
        return {
            "tokens": [visible(token) for token in self.tokens[: len(part)]],
            "keys": part.shape[1],
            "cells": base64_of(np.packbits(part)),
            "color": LOOKS[role].color,
            "caption": (
                f"On {extent}: each row is a token that looks, each column a token that it can look at, in the same "
                f"order; {counted(int(part.sum()), 'square')} in colour: where the role expects it to look."
            ),
        }


def sieves_in(
    text_attention: TextAttention, source: Text, roles: Sequence[str], direction: SyntacticDirection
) -> Sieves:
    """The sieves of the roles that apply in the window of a text; `source` is as it was written."""
    directions = DIRECTIONS if direction == "both" else (direction,)
    noted = with_notes(text_attention.text, source, RoleSet(tuple(roles)))
    cells = {role: sieve_cells(role, noted, text_attention.causal, directions, text_attention.window) for role in roles}
    tokens = text_attention.text.queries.tokens[slice(*text_attention.window.queries)]
    return Sieves(tokens=tuple(tokens), cells={role: sieve for role, sieve in cells.items() if sieve.any()})
