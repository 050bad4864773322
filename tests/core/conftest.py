import shutil

import pytest


@pytest.fixture(autouse=True, scope="session")
def results(tmp_path_factory):
    """Commands keep their answers here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path_factory.mktemp("results")))
        yield


@pytest.fixture
def folder(folders, tmp_path):
    """A small BERT that a test may change."""
    return shutil.copytree(folders("bert"), tmp_path / "bert")
