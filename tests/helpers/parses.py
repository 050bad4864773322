"""Whether texts were parsed, by what the parser of this process keeps."""

import math
from contextlib import contextmanager

from attention_sieve.core.texts.parsers import english_parser
from attention_sieve.core.texts.relations import forget_parses
from attention_sieve.dashboard.files.commands import PARSES


@contextmanager
def unparsed(*segments):
    """Within, none of these is parsed: whatever is parsed is kept, by its characters or by its words."""
    forget_parses(math.inf)
    yield
    keys = [(segment, None) if isinstance(segment, str) else (None, segment) for segment in segments]
    assert [key for key in keys if PARSES.get((english_parser(), key)) is not None] == []
