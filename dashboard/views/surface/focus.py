"""What the views of the page Where heads look share."""

from dataclasses import dataclass

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.finding import SurfaceFinding
from attention_sieve.dashboard.views.frame import Visit


@dataclass(frozen=True, eq=False, kw_only=True)
class Surface:
    """What the views of the page share."""

    visit: Visit
    finding: SurfaceFinding
    """Over the texts of the corpus that were not left out."""
    heads: list[Head]
    """The chosen heads."""
    facts: dict[str, str]
