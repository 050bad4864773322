import pytest
import torch
import transformers
from small_checkpoints import TOKENIZERS, config

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
            folder, tokenizer = tmp_path_factory.mktemp(family), TOKENIZERS[family]()
            torch.manual_seed(3)
            # No token ends a text, so that all texts have the same length.
            sizes = {"eos_token_id": None} | changed
            model = transformers.AutoModelForCausalLM.from_config(config(family, len(tokenizer), **sizes))
            dtype = DTYPES.get(family, "float64")
            model.to(getattr(torch, dtype)).save_pretrained(folder)
            tokenizer.eos_token = None
            tokenizer.save_pretrained(folder)
            made[key] = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype=dtype)
        return made[key]

    return of
