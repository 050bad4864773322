"""Causal families beside hooks and passes of the test's own: one of each way that attention, layers, windows and kept
keys take through transformers. `benchmarks/families` goes through all."""

import pytest
from checked_family import faults_of
from small_checkpoints import TOKENIZERS

FAMILIES = (
    "afmoe", "bamba", "bloom", "codegen", "cohere2", "deepseek_v3", "doge", "falcon_h1",
    "gemma3n_text", "gemma4_text", "gpt_bigcode", "gpt_neo", "granitemoehybrid", "jamba", "lfm2", "longcat_flash",
    "minimax", "nemotron_h", "olmo_hybrid", "phi3", "qwen3_next", "recurrent_gemma", "zamba", "zamba2",
)  # fmt: skip


@pytest.mark.parametrize("model_type", FAMILIES)
def test_layers_windows_and_written_text_are_as_hooks_see_them(model_type):
    assert faults_of(model_type, TOKENIZERS["llama"]()) == []
