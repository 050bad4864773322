import pytest

from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store


@pytest.fixture
def inference(tmp_path):
    """On a store of its own."""
    made = Inference(Store(tmp_path / "store"))
    yield made
    made.close()
    made.store.close()
