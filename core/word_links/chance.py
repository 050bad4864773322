"""Expected share of the strongest of several links if attention is divided at random.

Of 16 words, the one with most attention always has more than an even share, so it is compared with the strongest of 16
words under chance. Under chance, the attention of a token is divided uniformly at random among the n tokens that it can
attend to: the share of a word of t tokens then has the distribution Beta(t, n - t), whose mean is the even share t / n.
Heads and queries are independent. The mean over several tokens of a query word is treated as that of a single token,
which varies more, so for such words these values are upper bounds.
"""

from typing import Final

import numpy as np
from jaxtyping import Float

STEPS: Final = 1_000
"""Steps of the numerical integrals over a share; the relative error is below 0.001."""
WHOLE: Final = 1 - 1e-9
"""Shares are clipped to this, because a word that is all that a token can attend to gets a share of 1 by chance,
too."""


def strongest_by_chance(even: Float[np.ndarray, "query key"], n_seen: Float[np.ndarray, " query"]) -> float:
    """Expected share of the strongest link.

    For a single link this is its even share. Links of one query divide its attention: their largest share is the
    largest of independent gamma variables, divided by n, since the sum of these is independent of their proportions.
    Links of several queries to one word are independent.

    Args:
        even: share of evenly spread attention on each link; 0 where a query cannot attend to the key; one query, or one
            key.
        n_seen: number of tokens that each query can attend to.

    Returns: 0 to 1; NaN if no link is possible.
    Source: Fisher 1929, Tests of significance in harmonic analysis, on the greatest part of a line divided at random.
    """
    from scipy.special import betainc, gammainc  # takes a quarter of a second

    if not even.any():
        return np.nan
    if len(even) == 1:
        n_tokens = even[even > 0] * n_seen
        largest = n_tokens.max() + 12 * np.sqrt(n_tokens.max()) + 30
        shares = np.linspace(0, largest, STEPS)
        below = np.prod([gammainc(t, shares) for t in n_tokens], axis=0)
        return float(np.trapezoid(1 - below, shares) / n_seen[0])
    shares = np.linspace(0, 1, STEPS)
    n_tokens, n_others = (even * n_seen[:, None])[even > 0], ((1 - even) * n_seen[:, None])[even > 0]
    below = np.prod([betainc(t, others, shares) for t, others in zip(n_tokens, n_others, strict=True)], axis=0)
    return float(np.trapezoid(1 - below, shares))


def p_of_strongest(
    share: Float[np.ndarray, " head"], even: Float[np.ndarray, "query key"], n_seen: Float[np.ndarray, " query"]
) -> Float[np.ndarray, " head"]:
    """p-values of "attention is divided at random": probability that any link gets as much as the strongest one.

    Summed over the links (Bonferroni), so valid for any dependence between them.

    Args:
        share: of the strongest link of each head, 0 to 1.
        even, n_seen: as for `strongest_by_chance`.

    Returns: 0 to 1; NaN if no link is possible.
    """
    from scipy.special import betaincc  # takes a quarter of a second

    is_seen = even > 0
    if not is_seen.any():
        return np.full(share.shape, np.nan)
    n_tokens, n_others = ((part * n_seen[:, None])[is_seen, None] for part in (even, 1 - even))
    return np.minimum(betaincc(n_tokens, n_others, np.clip(share, 0, WHOLE)).sum(axis=0), 1)
