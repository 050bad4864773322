"""Another session on the same results, for tests of what the store keeps."""

from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store


def anew(inference, **settings):
    """What another process sees of the same store. Closes the first: its workers write after they have answered."""
    inference.close()
    return Inference(Store(inference.store.folder), **settings)
