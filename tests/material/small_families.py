"""A small configuration of every causal language model of transformers that can be made small: settings by the names
that families give them, and what some of them need besides."""

import dataclasses
import inspect

N_LAYERS = 3
WINDOW = 6
"""Of sliding attention, where a family has it."""
LAYERS = dict.fromkeys(
    (
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "num_decoder_layers",
        "decoder_layers",
        "encoder_layers",
    ),
    N_LAYERS,
)
WIDTH = dict.fromkeys(("hidden_size", "d_model", "n_embd", "emb_dim", "dim", "lru_width", "word_embed_proj_dim"), 32)
HEADS = dict.fromkeys(
    (
        "num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads", "encoder_attention_heads",
        "num_decoder_attention_heads", "num_encoder_attention_heads", "mamba_num_heads", "mamba_n_heads",
        "n_mamba_heads", "linear_num_value_heads", "swa_num_attention_heads",
    ),
    4,
)  # fmt: skip
KEY_HEADS = dict.fromkeys(
    ("num_key_value_heads", "num_kv_heads", "linear_num_key_heads", "index_n_heads", "swa_num_key_value_heads"), 2
)
HEAD_WIDTH = dict.fromkeys(
    (
        "head_dim", "kv_channels", "attention_head_dim", "attention_head_size", "rotary_dim", "q_lora_rank",
        "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "linear_key_head_dim",
        "linear_value_head_dim", "linear_head_dim", "swa_head_dim", "hidden_size_per_layer_input", "router_hidden_size",
    ),
    8,
)  # fmt: skip
INNER = dict.fromkeys(
    (
        "intermediate_size", "ffn_dim", "d_ff", "d_inner", "n_inner", "decoder_ffn_dim", "encoder_ffn_dim",
        "ffn_hidden_size", "feed_forward_size", "dim_ff", "dff", "intermediate_size_mlp",
    ),
    48,
)  # fmt: skip
EXPERT = dict.fromkeys(
    (
        "moe_intermediate_size", "shared_expert_intermediate_size", "shared_intermediate_size", "embedding_size",
        "expert_ffn_hidden_size", "moe_shared_expert_intermediate_size", "qk_head_dim", "mamba_d_head",
        "mamba_headdim", "mamba_head_dim", "index_head_dim",
    ),
    16,
)  # fmt: skip
EXPERTS = {
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"), 2),
    **dict.fromkeys(
        ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "n_group", "topk_group",
         "first_k_dense_replace", "num_dense_layers"), 1,
    ),
}  # fmt: skip
RECURRENT = {
    **dict.fromkeys(("mamba_d_state", "mamba_dt_rank", "ssm_state_size", "index_topk"), 4),
    **dict.fromkeys(("mamba_d_conv", "mamba_expand", "linear_conv_kernel_dim", "conv_L_cache"), 2),
    **dict.fromkeys(("mamba_n_groups", "mamba_ngroups", "n_groups"), 1),
    **dict.fromkeys(("mamba_chunk_size", "chunk_size"), 8),
    "mamba_d_ssm": 64,
}
POSITIONS = dict.fromkeys(
    ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions", "n_ctx", "max_length"), 96
)
WINDOWS = dict.fromkeys(("sliding_window", "attention_window_size", "window_size", "sliding_window_size"), WINDOW)
SHARP = dict.fromkeys(("initializer_range", "init_std", "embed_init_std"), 0.4)
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": None, "decoder_start_token_id": 1}
USUAL = {
    **LAYERS, **WIDTH, **HEADS, **KEY_HEADS, **HEAD_WIDTH, **INNER, **EXPERT, **EXPERTS, **RECURRENT, **POSITIONS,
    **WINDOWS, **SHARP, **TOKENS, "is_decoder": True, "initializer_factor": 1.0, "scale_embedding": False,
}  # fmt: skip
HYBRID = ["linear_attention", "full_attention", "linear_attention"]
OWN = {
    "bamba": {"attn_layer_indices": [1]},
    "bailing_hybrid": {"layer_types": HYBRID},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 100.0},
        "ffn_config": {"hidden_size": 32, "ffn_hidden_size": 16, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "dots3_note_text": {"shared_experts_intermediate_size": 16},
    "gemma3n_text": {"num_kv_shared_layers": 0, "laurel_rank": 4},
    "gpt_neo": {"attention_types": [[["global", "local", "local"], 1]]},
    "inkling_text": {"rel_extent": 32, "local_layer_ids": [0, 2]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 0, "num_hidden_layers": 4},
    "granitemoehybrid": {"layer_types": HYBRID},
    "kimi_linear": {"linear_num_heads": 4, "layer_types": HYBRID},
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv"]},
    "longcat_flash": {"num_layers": 2, "zero_expert_num": 2},
    "mamba2": {"head_dim": 16},
    "minimax": {"layer_types": HYBRID},
    "nemotron_h": {"layers_block_type": ["mamba", "attention", "moe"]},
    "qwen3_5_moe_text": {"layer_types": HYBRID},
    "qwen3_5_text": {"layer_types": HYBRID},
    "qwen3_next": {"layer_types": HYBRID},
    "qwen4_exp_text": {
        "layer_types": HYBRID, "indexer_n_heads": 2, "indexer_kv_heads": 1, "indexer_head_dim": 8, "indexer_budget": 4,
        "indexer_compress_ratio": 2,
        "hc_lowrank": 4, "ngram_vocab_size_base": 200, "heads_per_ngram": 2, "split_ngram_parts": 2,
        "make_ngram_vocab_size_divisible_by": 2,
    },
    "reformer": {
        "axial_pos_embds": False, "attn_layers": ["local", "lsh", "local"], "local_attn_chunk_length": 8,
        "lsh_attn_chunk_length": 8, "num_hashes": 1, "num_buckets": 2,
    },
    "rembert": {"input_embedding_size": 16, "output_embedding_size": 16},
    "roc_bert": {
        "shape_vocab_size": 20, "pronunciation_vocab_size": 20, "shape_embed_dim": 8, "pronunciation_embed_dim": 8,
    },
    "zaya": {"num_experts_per_tok": 1},
}  # fmt: skip
SHARED = {"num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2}
OWN |= {"zamba": SHARED, "zamba2": SHARED}
"""Layers with attention share its weights."""


def small_family(model_type, n_words, **changed):
    """A small configuration of a family of transformers, by its `model_type`."""
    from transformers import CONFIG_MAPPING

    made = CONFIG_MAPPING[model_type]
    known = set(inspect.signature(made.__init__).parameters)
    if dataclasses.is_dataclass(made):
        known |= {field.name for field in dataclasses.fields(made)}
    sizes = {name: value for name, value in USUAL.items() if name in known}
    for other, name in made.attribute_map.items():
        if name in sizes:
            sizes.pop(other, None)
    if "kv_lora_rank" in sizes:  # latent attention has as many keys as queries
        sizes["num_key_value_heads"] = HEADS["num_attention_heads"]
    words = {name: n_words for name in ("vocab_size", "vocab_size_per_layer_input") if name in known}
    return made(**words | sizes | OWN.get(model_type, {}) | changed)
