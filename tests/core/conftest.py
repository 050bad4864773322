import shutil

import numpy as np
import pytest

from attention_sieve.core import progress


@pytest.fixture(autouse=True, scope="session")
def results(tmp_path_factory):
    """Commands keep their answers here, and on a busy machine they do not tell how far they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path_factory.mktemp("results")))
        patch.setattr(progress, "EVERY", 3_600)
        yield


@pytest.fixture
def folder(folders, tmp_path):
    """A small BERT that a test may change."""
    return shutil.copytree(folders("bert"), tmp_path / "bert")


@pytest.fixture
def chance():
    """Random numbers that hang on no other test: the order of tests differs from run to run."""
    return np.random.default_rng(5)
