"""What measured effects say of heads, and whether the truth of a planted model states the same."""

from typing import Final

from benchmarks.planted.truth import Effects, Head, Truth

EXACT: Final = ("none", "gaussian 1", "gaussian 2")
"""Noise at which every head does as designed; at other noise the truth states of the task what was measured."""
LEAST_RISE: Final = 0.1
"""Rise of the loss, in nats, from which a head is needed; and part of the greatest rise of one head."""
LEAST_ATTENTION: Final = 0.95
"""Attention that a head of an exact model gives to what it looks at."""
LEAST_EVEN_ATTENTION: Final = 0.7
"""The same of one that spreads its attention: what is even is the first to bend under noise."""
GREATEST_LOSS: Final = 0.1
"""Of an exact model and of a trained one, in nats; one with a suppressor has up to GREATEST_SUPPRESSED_LOSS."""
GREATEST_SUPPRESSED_LOSS: Final = 2.0


def least_rise(measured: Effects) -> float:
    """Rise of the loss from which a head counts as needed: a tenth of the greatest of one head, or LEAST_RISE nats."""
    return max(LEAST_RISE, LEAST_RISE * max(map(max, measured.single)))


def measured_needed(measured: Effects) -> tuple[Head, ...]:
    """Heads whose removal alone does damage."""
    least = least_rise(measured)
    return tuple(place for place, rise in _rises(measured) if rise >= least)


def measured_harmful(measured: Effects) -> tuple[Head, ...]:
    """Heads whose removal alone lowers the loss."""
    return tuple(place for place, rise in _rises(measured) if rise <= -LEAST_RISE)


def is_redundant(heads: tuple[Head, ...], measured: Effects) -> bool:
    """Whether no proper subset does damage when it is removed, but all together do."""
    rises = {effect.heads: effect.rise for effect in measured.sets}
    least = max(LEAST_RISE, LEAST_RISE * rises[heads])
    parts = [rise for part, rise in rises.items() if set(part) < set(heads)]
    parts += [rise for place, rise in _rises(measured) if place in heads]
    return rises[heads] >= max(least, least_rise(measured)) and max(parts) < least


def _rises(measured: Effects) -> list[tuple[Head, float]]:
    return [((layer, head), rise) for layer, row in enumerate(measured.single) for head, rise in enumerate(row)]


def faults(truth: Truth) -> list[str]:
    """Sentences about what is stated of a model and was measured otherwise.

    Args:
        truth: Statements and measured effects; what is stated of a model that is not exact is what was measured.
    """
    measured, found = truth.effects, list[str]()
    least_needed, least_harmful = measured_needed(measured), measured_harmful(measured)
    if least_needed != truth.needed:
        found.append(f"needed are {truth.needed}, and damage is measured without {least_needed}")
    if least_harmful != truth.harmful:
        found.append(f"harmful are {truth.harmful}, and the loss is lower without {least_harmful}")
    sets = [*truth.redundant_sets, *((pair.main, pair.backup) for pair in truth.backups)]
    found += [f"{heads} are not redundant" for heads in sets if not is_redundant(heads, measured)]
    greatest = GREATEST_SUPPRESSED_LOSS if truth.harmful else GREATEST_LOSS
    if truth.noise in (*EXACT, "trained") and measured.loss > greatest:
        found.append(f"the loss is {measured.loss:.3f}, more than {greatest}")
    if truth.noise not in EXACT:
        return found
    for head in truth.heads:
        least = LEAST_EVEN_ATTENTION if head.looks_at in ("uniform", "own segment") else LEAST_ATTENTION
        if head.attention is not None and head.attention < least:
            found.append(f"{head.place} gives {head.attention:.3f} to what it looks at ({head.looks_at})")
    return found
