"""The bundled checkpoint, which tests load again and again: a quarter of a second each time."""

import sys
from functools import lru_cache

KEPT = 6
"""Number formats and random weights; each takes 90 MB, and 180 in float64."""


def load_bundled_once():
    """Let a second load of the bundled checkpoint give what the first gave: no test may change it.

    Other checkpoints are loaded anew, since some tests change theirs.
    """
    if (module := sys.modules.get("attention_sieve.core.checkpoints.load")) is None:
        return
    from attention_sieve.core.checkpoints.find import BUNDLED

    load_anew = module.load

    @lru_cache(KEPT)
    def kept(files, states, device, dtype):
        return load_anew(files, device, dtype)

    def load(files, device, dtype, base=None):
        is_bundled = files.name == BUNDLED
        return kept(files, files.states, device, dtype) if is_bundled else load_anew(files, device, dtype, base)

    module.load = load
