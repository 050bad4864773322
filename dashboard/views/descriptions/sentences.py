"""The sentences of all heads as far as they need no pass: for tooltips and files."""

from dashboard.views.corpus import Corpus
from dashboard.views.descriptions import wording
from dashboard.views.descriptions.known import kept_descriptions
from dashboard.views.frame import Visit


def kept_sentences(visit: Visit, tested: Corpus) -> list[list[str]] | None:
    """The sentence of every head, by layer and head; None where that needs a pass."""
    described = kept_descriptions(visit, tested)
    if described is None:
        return None
    by_layer: dict[int, list[str]] = {}
    for (layer, _), description in described.heads.items():
        by_layer.setdefault(layer, []).append(wording.tip(description))
    return list(by_layer.values())
