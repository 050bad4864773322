"""The card of a head."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attention_sieve.calls.analyses import settings_of_call
from attention_sieve.calls.given import (
    SHARED,
    check_keywords,
    checked,
    kinds_of,
    opened,
    parsed,
    pass_settings_of,
    too_long_in,
)
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.commands import check_output, write
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.usage import ROLE_OPTIONS
from attention_sieve.dashboard.card.command import SUFFIXES

if TYPE_CHECKING:
    from attention_sieve.dashboard.figures.card import HeadCard


@dataclass(frozen=True, eq=False, repr=False)
class Card:
    """The card of a head, which a cell of a notebook shows."""

    content: "HeadCard"

    @property
    def name(self) -> str:
        """What the head mostly does, in at most five words; "No clear habit" where no test carries more."""
        return self.content.name

    @property
    def facts(self) -> Mapping[str, str]:
        """What it was computed from."""
        return self.content.facts

    def svg(self) -> str:
        """The picture as SVG, of 1200 x 630 pixels."""
        from attention_sieve.dashboard.figures.card import card_svg

        return card_svg(self.content)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture to a file, .svg or .png, and return its path. Raises AnalysisError for another suffix."""
        from attention_sieve.dashboard.figures.card import card_file

        output = Path(path)
        check_output(output, SUFFIXES)
        write(output, partial(Path.write_bytes, data=card_file(self.content, output.suffix)))
        return output

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"Card of {self.content.title}"


def card(model: Any, text: Any, head: Head, *, texts: Any = None, tokenizer: Any = None, **settings: Any) -> Card:
    """The card of a head: its name in words, its pattern in a text, and its scores, as a picture of 1200 x 630 pixels.

    Args:
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        text: on which the head is drawn: a string, or a pair of strings for two segments.
        head: layer and head, from 0.
        texts: over which it is named and scored, as of `roles`; None for the sample texts, with varied ones to judge
            the name on.
        tokenizer: of a model in memory.
        settings: those of `roles`.

    Returns: the card, with `name` and `facts`; `save(path)` writes .svg or .png by the suffix.
    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> texts = ["She closed the shop.", "A cat sat on the old mat.", "He sold two books."]
    >>> found = sieve.card("bundled", "The old dog chased a cat.", (0, 2), texts=texts)
    >>> found.name
    'Looks at the previous token'
    """
    from attention_sieve.dashboard.card.content import CardRequest, compute

    check_keywords("card", settings, {*SHARED, *ROLE_OPTIONS, *kinds_of(ROLE_ANALYSIS.settings)})
    shown = parsed([text], settings)
    asked = checked("head", head, tuple[int, int])
    if not all(number >= 0 for number in asked):
        raise AnalysisError(f"head is {asked}. Give layer and head, both from 0, such as (3, 7).")
    with opened(model, tokenizer, settings) as checkpoint:
        request = CardRequest(
            pass_settings=pass_settings_of(checkpoint, settings),
            settings=settings_of_call(ROLE_ANALYSIS, settings, checkpoint.files),
            head=asked,
            text=shown[0],
            texts=None if texts is None else parsed(texts, settings),
            too_long=too_long_in(settings),
        )
        return Card(compute(checkpoint, request))
