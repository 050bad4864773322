"""The bundled checkpoint, which tests load again and again: 0.4 seconds of a processor each time.

Pages and commands load it themselves, as they do for a reader, so that no fixture can hand them one; a cache of the
product's own would give two callers one model, which either may change. In six files of tests of pages and of the
command line, 267 tests ask for it 29 times: 11 seconds, beside 74 for all else.
"""

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
