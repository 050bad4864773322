"""Checkpoints that cannot be used, though transformers knows them: each is met with what was found and what to do."""

import pytest
import torch
import transformers
from small_checkpoints import TOKENIZERS

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError, CheckpointError
from attention_sieve.core.generation.writer import prompt_ids
from attention_sieve.core.texts.text import Text

TOKENIZER = TOKENIZERS["llama"]()
TEXT_SIZES = {
    "vocab_size": len(TOKENIZER), "hidden_size": 24, "intermediate_size": 32, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "num_hidden_layers": 2,
}  # fmt: skip
LLAMA4 = TEXT_SIZES | {
    "head_dim": 6, "intermediate_size_mlp": 32, "num_local_experts": 2, "num_experts_per_tok": 1,
    "attention_chunk_size": 16,
}  # fmt: skip
PICTURES = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64, "image_size": 16,
    "patch_size": 8, "vision_output_dim": 16, "projector_input_dim": 16, "projector_output_dim": 16,
}  # fmt: skip
WHISPER = {
    "vocab_size": len(TOKENIZER), "d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "num_mel_bins": 8,
    "max_source_positions": 32, "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1,
    "decoder_start_token_id": 1,
}  # fmt: skip
DEEPSEEK = TEXT_SIZES | {
    "kv_lora_rank": 8, "q_lora_rank": 8, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 6,
    "n_routed_experts": 2, "n_shared_experts": 1, "num_experts_per_tok": 1, "moe_intermediate_size": 16,
}  # fmt: skip
OTHER = "transformers has no AutoModelForSeq2SeqLM of this kind: image and audio models cannot be used here. Choose"
REFUSED = {
    "Llama4ForCausalLM": (
        lambda: transformers.Llama4TextConfig(**LLAMA4),
        "restricts attention to a pattern other than a window .*Choose a checkpoint of another family",
    ),
    "Llama4ForConditionalGeneration": (
        lambda: transformers.Llama4Config(text_config=LLAMA4, vision_config=PICTURES),
        f"is a Llama4ForConditionalGeneration, and {OTHER}",
    ),
    "WhisperForConditionalGeneration": (
        lambda: transformers.WhisperConfig(**WHISPER),
        f"is a WhisperForConditionalGeneration, and {OTHER}",
    ),
    "DeepseekV2ForCausalLM": (
        lambda: transformers.DeepseekV2Config(**DEEPSEEK),
        "names 2 heads of keys and values and 4 of queries, and the latent attention of DeepseekV2ForCausalLM has as "
        r"many of each\. Correct num_key_value_heads in config\.json",
    ),
    "DiffLlamaForCausalLM": (
        lambda: transformers.DiffLlamaConfig(**TEXT_SIZES),
        r"\(DiffLlamaModel\) computes attention 4 times in 2 layers, and can be observed where each layer does so once",
    ),
}


def saved(architecture, config, folder):
    torch.manual_seed(0)
    getattr(transformers, architecture)(config).save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return find_checkpoint(str(folder))


@pytest.mark.parametrize("architecture", REFUSED)
def test_what_cannot_be_used_is_refused_in_a_sentence_of_our_own(architecture, tmp_path):
    config, sentence = REFUSED[architecture]
    with pytest.raises(CheckpointError, match=sentence):
        load_checkpoint(saved(architecture, config(), tmp_path), device="cpu")


def test_a_latent_attention_with_as_many_keys_as_queries_is_read(tmp_path):
    config = transformers.DeepseekV2Config(**DEEPSEEK | {"num_key_value_heads": 4})
    checkpoint = load_checkpoint(saved("DeepseekV2ForCausalLM", config, tmp_path), device="cpu")
    assert (checkpoint.attentions["self"].n_layers, checkpoint.attentions["self"].n_heads) == (2, 4)


@pytest.mark.parametrize(
    ("architecture", "made"),
    [
        ("XLNetLMHeadModel", lambda: transformers.XLNetConfig(vocab_size=300, d_model=24, n_layer=1, n_head=2)),
        ("BertLMHeadModel", lambda: transformers.BertConfig(**TEXT_SIZES)),
    ],
)
def test_a_model_whose_tokens_see_later_ones_predicts_no_next_token(architecture, made, tmp_path):
    files = saved(architecture, made(), tmp_path)
    checkpoint = load_checkpoint(files, device="cpu")
    assert not checkpoint.attentions["self"].causal
    assert checkpoint.head is None
    assert not (files.is_decoder and architecture == "XLNetLMHeadModel"), "its configuration says so"
    with pytest.raises(AnalysisError, match="cannot write a text on, since it has no head that predicts the next"):
        prompt_ids(checkpoint, Text(("the cat",)), PassSettings())


def test_a_model_with_sparse_attention_reads_texts_that_it_attends_to_fully(tmp_path):
    sizes = TEXT_SIZES | {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 1}
    checkpoint = load_checkpoint(saved("BigBirdModel", transformers.BigBirdConfig(**sizes), tmp_path), device="cpu")
    assert checkpoint.max_tokens == (5 + 2) * 4
