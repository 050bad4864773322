"""What each term means, with a small picture of those that can be seen in the sentence of the lessons."""

from collections.abc import Mapping
from html import escape
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.roles.roles import RECORDS
from attention_sieve.dashboard.components.grid import sieves_in
from attention_sieve.dashboard.figures.miniatures import WIDTH, bars, cells, fan, image
from attention_sieve.dashboard.glossary import TERMS
from attention_sieve.dashboard.languages import translated_terms
from attention_sieve.dashboard.samples import EXAMPLE
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons.answers import near_object, previous_word
from attention_sieve.dashboard.views.lessons.computation import StepInputs

NO_PICTURES: Final[Mapping[str, str]] = {}
_GRID: Final = f"display: grid; grid-template-columns: {WIDTH}px 1fr; gap: 0.75rem 1rem; align-items: center"


def listed(language: str, pictures: Mapping[str, str] = NO_PICTURES) -> str:
    """All terms in HTML, in the order of letters.

    Args:
        language: of what they mean, where it is translated.
        pictures: SVG by term.
    """
    rows = (
        f"{image(pictures[term]) if term in pictures else '<i></i>'}<div><b>{escape(term)}</b>: {escape(means)}</div>"
        for term, means in sorted(
            (TERMS | dict(translated_terms(language))).items(), key=lambda entry: entry[0].lower()
        )
    )
    return f'<div style="{_GRID}">{"".join(rows)}</div>'


def pictures_of_terms(visit: Visit) -> dict[str, str]:
    """SVG by term, of what the heads of a checkpoint do in the sentence of the lessons.

    Raises: AnalysisError if the checkpoint cannot be loaded, or cannot read the sentence.
    """
    settings = PassSettings(visit.settings.kind)
    text_attention, _ = visit.inference.look(visit.engine, EXAMPLE, settings)
    inputs = StepInputs(visit=visit, text_attention=text_attention, typed=EXAMPLE.segments[0])
    to_object, weights = near_object(inputs), np.nan_to_num(text_attention.attention)
    of_object, of_neighbour = (weights[result.heads[0]] for result in (to_object, previous_word(inputs)))
    query = to_object.query or 0
    key = int(of_object[query].argmax())
    entropies = -(weights * np.log(np.maximum(weights, 1e-12))).sum(axis=-1).mean(axis=-1)
    least, most = (np.unravel_index(place, entropies.shape) for place in (entropies.argmin(), entropies.argmax()))
    first_layer = np.full(weights.shape[:2], 0.15)
    first_layer[0] = 1
    sieves = sieves_in(text_attention, EXAMPLE, [role.name for role in RECORDS if role.name in TERMS], "both")
    pictures = {role: cells(sieve.astype(float)) for role, sieve in sieves.items()}
    if "syntactic" in sieves:
        expected = sieves["syntactic"].astype(float)
        pictures |= {"sieve": cells(expected), "score": cells(expected, of_object)}
    return pictures | {
        "confidence": bars(of_object[query]),
        "divergence": cells(of_object, of_neighbour),
        "entropy": cells(weights[least], weights[most]),
        "head": cells(of_object),
        "key": fan(np.where(np.arange(weights.shape[-1]) == key, of_object, 0)),
        "layer": cells(first_layer),
        "positional head": cells(of_neighbour),
        "query": fan(of_object, query),
    }
