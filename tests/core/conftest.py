import shutil

import pytest


@pytest.fixture
def folder(folders, tmp_path):
    """A small BERT that a test may change."""
    return shutil.copytree(folders("bert"), tmp_path / "bert")
