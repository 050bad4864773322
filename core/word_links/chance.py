"""What attention that is split at random gives to the strongest of several links.

Of 16 words, the one with most attention always has more than an even share, so it is compared with the strongest of 16
words under chance. Chance splits what a token gives at random among the n tokens that it sees, every division as likely
as every other: a word of t tokens then gets a share with the distribution Beta(t, n - t), whose mean is the even share
t / n. Heads and queries are split apart from each other. The mean over the tokens of a word that looks is taken for one
of them, which varies more: where it has several, chance gives at most what is said here.
"""

from typing import Final

import numpy as np
from jaxtyping import Float

STEPS: Final = 1_000
"""Of the integrals over a share: their error is below 0.001 of their value."""
WHOLE: Final = 1 - 1e-9
"""A share of 1 counts as this: a word that is all that a token sees gets it by chance as well."""


def strongest_by_chance(even: Float[np.ndarray, "query key"], n_seen: Float[np.ndarray, " query"]) -> float:
    """Expected share of the strongest link.

    Of a single link that is its even share. The links of one query share what it gives: there the strongest share is
    that of the greatest of independent gamma variables, divided by n, since their sum does not depend on how it is
    divided. The links of several queries to one word do not depend on each other.

    Args:
        even: what evenly spread attention gives to each link; 0 where a query does not see the key; one query, or one
            key.
        n_seen: how many tokens each query sees.

    Returns: 0 to 1; NaN where no link is seen.
    Source: Fisher 1929, Tests of significance in harmonic analysis, on the greatest part of a line divided at random.
    """
    from scipy.special import betainc, gammainc  # takes a quarter of a second

    if not even.any():
        return np.nan
    if len(even) == 1:
        n_tokens = even[even > 0] * n_seen
        most = n_tokens.max() + 12 * np.sqrt(n_tokens.max()) + 30
        reached = np.linspace(0, most, STEPS)
        below = np.prod([gammainc(t, reached) for t in n_tokens], axis=0)
        return float(np.trapezoid(1 - below, reached) / n_seen[0])
    reached = np.linspace(0, 1, STEPS)
    n_tokens, n_others = (even * n_seen[:, None])[even > 0], ((1 - even) * n_seen[:, None])[even > 0]
    below = np.prod([betainc(t, rest, reached) for t, rest in zip(n_tokens, n_others, strict=True)], axis=0)
    return float(np.trapezoid(1 - below, reached))


def p_of_strongest(
    share: Float[np.ndarray, " head"], even: Float[np.ndarray, "query key"], n_seen: Float[np.ndarray, " query"]
) -> Float[np.ndarray, " head"]:
    """p-values of "chance splits the attention": that one of the links gets as much as the strongest does.

    The sum over the links (Bonferroni), so that it holds however the links depend on each other.

    Args:
        share: of the strongest link of each head, 0 to 1.
        even, n_seen: as for `strongest_by_chance`.

    Returns: 0 to 1; NaN where no link is seen.
    """
    from scipy.special import betaincc  # takes a quarter of a second

    is_seen = even > 0
    if not is_seen.any():
        return np.full(share.shape, np.nan)
    n_tokens, n_others = ((of * n_seen[:, None])[is_seen, None] for of in (even, 1 - even))
    return np.minimum(betaincc(n_tokens, n_others, np.clip(share, 0, WHOLE)).sum(axis=0), 1)
