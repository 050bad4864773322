import math
from concurrent.futures import ThreadPoolExecutor

import pytest

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.serving import worker
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import find_checkpoint


@pytest.fixture
def store(tmp_path):
    opened = Store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def threads():
    with ThreadPoolExecutor(64) as made:
        yield made


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
