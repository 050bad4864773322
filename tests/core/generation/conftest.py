import pytest
from small_checkpoints import save_with_head

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint

DTYPES = {"gpt_oss": "float32"}
"""Experts of GPT-OSS do not compute in float64."""


@pytest.fixture(scope="session")
def decoder(tmp_path_factory):
    """decoder(family, **changed) -> a small random causal language model, in float64 where it can be, loaded once."""
    made = {}

    def of(family, **changed):
        key = (family, repr(changed))
        if key not in made:
            # No token ends a text, so that all texts have the same length.
            sizes, dtype = {"eos_token_id": None} | changed, DTYPES.get(family, "float64")
            folder = save_with_head(family, tmp_path_factory.mktemp(family), "CausalLM", dtype=dtype, **sizes)
            made[key] = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype=dtype)
        return made[key]

    return of
