import gzip
from functools import cache

import pytest


@pytest.fixture(scope="session")
def gum(shared):
    """gum(name) -> the texts of a file of UD GUM, read once; a test must not change them."""
    from attention_sieve.core.coreference.files import read_mentions

    @cache
    def texts(name):
        return read_mentions(gzip.decompress((shared / "data" / "ud_gum" / f"gum_{name}.jsonl.gz").read_bytes()))

    return texts
