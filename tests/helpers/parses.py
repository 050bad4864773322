"""Whether texts are parsed, by what the parser asks of a memory of parses."""

from contextlib import contextmanager

from attention_sieve.core.texts.parsing import keep_parses_in


class _Asked:
    """A memory that keeps no parse, and knows which ones it was asked for."""

    def __init__(self):
        self.keys = set()

    def get(self, _, key):
        self.keys.add(key[-1])

    def put(self, _, key, __):
        self.keys.add(key[-1])


@contextmanager
def unparsed(*segments):
    """Within, none of these is parsed, by its characters or by its words, whether or not its parse is kept."""
    asked = _Asked()
    keep_parses_in(asked)
    yield
    keys = {(segment, None) if isinstance(segment, str) else (None, segment) for segment in segments}
    assert asked.keys & keys == set()
