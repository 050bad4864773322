"""A disk without room, as far as a program can tell: no file may grow beyond a size."""

import resource
from contextlib import contextmanager


@contextmanager
def files_up_to(n_bytes):
    """Within, writing past `n_bytes` of a file fails, after the bytes for which there is room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
