"""Causal families beside hooks and passes of the test's own: one of each way that attention, layers, windows, kept
keys and logits take through transformers. `benchmarks/families` goes through all."""

import pytest
from checked_family import faults_of
from small_checkpoints import TOKENIZERS

FAMILIES = (
    "afmoe", "bamba", "bloom", "codegen", "cohere2", "ctrl", "deepseek_v3", "doge", "falcon_h1",
    "gemma3n_text", "gemma4_text", "gpt_bigcode", "gpt_neo", "granitemoehybrid", "jamba", "lfm2", "longcat_flash",
    "minimax", "nemotron_h", "olmo_hybrid", "phi3", "qwen3_next", "recurrent_gemma", "zamba", "zamba2",
)  # fmt: skip


NOT_ATTRIBUTED = ("afmoe", "bloom", "codegen", "gemma3n_text", "gpt_neo", "qwen3_next")
"""Families whose parts of a logit are refused: they have attention code of their own, do more than to normalise before
they predict, or change what heads give before it is projected."""


@pytest.mark.parametrize("model_type", FAMILIES)
def test_layers_windows_written_text_and_logits_are_as_hooks_see_them(model_type):
    assert faults_of(model_type, TOKENIZERS["llama"](), is_attributed=model_type not in NOT_ATTRIBUTED) == []
