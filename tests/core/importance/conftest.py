import pytest
import torch
import transformers
from small_checkpoints import TOKENIZERS, config

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint

HEADS = {
    "masked": ("bert", "AutoModelForMaskedLM", {}),
    "causal": ("gpt2", "AutoModelForCausalLM", {}),
    "t5": ("t5", "AutoModelForSeq2SeqLM", {}),
    "classes": ("bert", "AutoModelForSequenceClassification", {"id2label": {0: "no", 1: "so", 2: "yes"}}),
    "value": ("roberta", "AutoModelForSequenceClassification", {"num_labels": 1}),
}
"""Small random checkpoints with a head: family, class, and what else is configured."""


@pytest.fixture(scope="session")
def headed(tmp_path_factory):
    """headed(name) -> one of HEADS in float64, made and loaded once."""
    made = {}

    def checkpoint(name):
        if name not in made:
            family, auto, more = HEADS[name]
            folder, tokenizer = tmp_path_factory.mktemp(name), TOKENIZERS[family]()
            torch.manual_seed(3)
            model = getattr(transformers, auto).from_config(config(family, len(tokenizer), **more))
            model.double().save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            made[name] = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")
        return made[name]

    return checkpoint
