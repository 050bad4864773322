"""Published scores of how much a head looks where a role would; imports no torch."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.measures import USUAL_TAU
from attention_sieve.core.roles.record import Band, Pairs, Role

Detector = Literal["share", "mass", "entries", "mul", "abs", "stripe"]
DIFFERENCES: Final[dict[Detector, str]] = {
    "share": "Attention above chance to all tokens that the role looks at, mean over the tokens that have such ones: 0 "
    "for evenly spread attention, 1 at most.",
    "mass": "Attention to all tokens that the role looks at, mean over the tokens that have such ones, as Crosbie and "
    "Shutova take it: chance is not 0 but depends on the text.",
    "entries": "Attention to one of these tokens, mean over all pairs of tokens (Olsson): a head that finds k copies "
    "scores 1/k at most.",
    "mul": 'Attention to these tokens over all attention of the text (TransformerLens, "mul"): tokens that have none '
    "count as 0, so the best head scores about half on two copies.",
    "abs": 'One less the distance between attention and a map of ones at these tokens (TransformerLens, "abs"): down '
    "to about -1 for a head that looks elsewhere.",
    "stripe": "Attention at the commonest distance of these tokens, mean over all tokens (ARENA): a head that always "
    "looks so far back scores as one that finds copies.",
}
"""What each score is, in a sentence that says how it differs from the others."""
LEAST: Final = 0.4
"""Score from which a head counts as one that looks.

Source: ARENA, chapter 1.2, for the stripe.
"""
DETECTORS: Final = tuple(name for name in get_args(Detector) if name != "share")
"""Those that are sums of attention; the share is the score of the role."""


def least(detector: Detector) -> float:
    """Score from which a head looks, unless a reader says otherwise: that of the role for the share above chance."""
    return USUAL_TAU["share"] if detector == "share" else LEAST


@dataclass(frozen=True, eq=False, kw_only=True)
class Entries:
    """Attention entries of a text that the scores read."""

    at: Int[np.ndarray, "entry 2"]
    """Query and key."""
    sums: Int[np.ndarray, " entry"]
    """Index into DETECTORS of the sum that an entry is added to."""
    weight: Float[np.ndarray, " entry"]


def looked_at(text: PassText, role: Role) -> Int[np.ndarray, "pair 2"]:
    """Query and key of each pair of tokens that a role looks at, in a causal model."""
    if isinstance(role.sieve, Pairs):
        pairs = [(query, key) for pair in role.sieve.of(text) for query in pair.dependent for key in pair.head]
    elif isinstance(role.sieve, Band):
        bounds = role.sieve.keys(len(text.queries.ids), causal=True).tolist()
        pairs = [(query, key) for query, (start, end) in enumerate(bounds) for key in range(start, end)]
    else:
        raise ValueError(f"{role.name} looks at the same tokens from everywhere.")
    return np.array(pairs, np.int64).reshape(-1, 2)


def detector_weights(text: PassText, role: Role) -> Entries:
    """The entries whose weighted sums make the scores of DETECTORS; none where the role does not apply."""
    pairs, n_queries = looked_at(text, role), len(text.queries.ids)
    if not len(pairs):
        return Entries(at=pairs, sums=np.zeros(0, np.int64), weight=np.zeros(0))
    # The commonest one, the shortest of several: of a text with a fixed period that of the copy before.
    distance = int(np.bincount(pairs[:, 0] - pairs[:, 1]).argmax())
    stripe = np.stack([np.arange(distance, n_queries), np.arange(n_queries - distance)], axis=1)
    entries = {
        "mass": (pairs, 1 / len(np.unique(pairs[:, 0]))),
        "entries": (pairs, 1 / len(pairs)),
        "mul": (pairs, 1 / n_queries),
        "abs": (pairs, 2 / n_queries),
        "stripe": (stripe, 1 / len(stripe)),
    }
    sizes = [len(at) for at, _ in entries.values()]
    return Entries(
        at=np.concatenate([at for at, _ in entries.values()]),
        sums=np.repeat([DETECTORS.index(name) for name in entries], sizes),
        weight=np.repeat([weight for _, weight in entries.values()], sizes),
    )


def detector_scores(
    sums: Float[np.ndarray, "detector layer head"], text: PassText, role: Role
) -> Float[np.ndarray, "detector layer head"]:
    """The scores from the sums of `detector_weights`; NaN where the role does not apply.

    With a map D of ones at the n tokens looked at in a text of T, "abs" is 1 - T mean|A - D|, over all T x T entries:
    1 - (T + n - 2 sum of A at these) / T, as the rows of A sum to 1.
    """
    n_pairs, n_queries = len(looked_at(text, role)), len(text.queries.ids)
    scores = np.array(sums) if n_pairs else np.full_like(sums, np.nan)
    scores[DETECTORS.index("abs")] -= n_pairs / n_queries
    return scores


def second_copies(ids: Int[np.ndarray, " token"]) -> Int[np.ndarray, " position"]:
    """Positions after which a pair of tokens is completed for the second time, such as the second copy of a text."""
    n_seen: dict[tuple[int, int], int] = {}
    positions = []
    for position, pair in enumerate(zip(ids[:-1].tolist(), ids[1:].tolist())):
        n_seen[pair] = n_seen.get(pair, 0) + 1
        if n_seen[pair] == 2:
            positions.append(position)
    return np.array(positions, np.int64)
