import math

import pytest

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.serving import worker
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import find_checkpoint


@pytest.fixture
def inference(tmp_path):
    """On a store of its own."""
    made = Inference(Store(tmp_path / "store"))
    yield made
    made.close()
    made.store.close()


@pytest.fixture(scope="session")
def engine(folders):
    """A small BERT on the CPU."""
    return Engine(find_checkpoint(str(folders("bert"))), "cpu")


@pytest.fixture
def unhurried(monkeypatch):
    """Batches of any duration, however slow the machine is."""
    monkeypatch.setattr(worker, "STEP_SECONDS", math.inf)
    monkeypatch.setattr(worker, "ALONE_SECONDS", math.inf)
