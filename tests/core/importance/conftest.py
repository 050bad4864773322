import pytest
from small_checkpoints import save_with_head

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint

HEADS = {
    "masked": ("bert", "MaskedLM", {}),
    "causal": ("gpt2", "CausalLM", {}),
    "t5": ("t5", "Seq2SeqLM", {}),
    "classes": ("bert", "SequenceClassification", {"id2label": {0: "no", 1: "so", 2: "yes"}}),
    "value": ("roberta", "SequenceClassification", {"num_labels": 1}),
}
"""Small random checkpoints with a head: family, what for, and what else is configured."""


@pytest.fixture(scope="session")
def headed(tmp_path_factory):
    """headed(name) -> one of HEADS in float64, made and loaded once."""
    made = {}

    def checkpoint(name):
        if name not in made:
            family, head, more = HEADS[name]
            folder = save_with_head(family, tmp_path_factory.mktemp(name), head, dtype="float64", **more)
            made[name] = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")
        return made[name]

    return checkpoint
