"""GGUF files as llama.cpp writes them, of small checkpoints."""

import json

import numpy as np
from gguf import GGUFWriter
from safetensors.numpy import load_file

N_HEADS, N_SHARED = 4, 2
NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def in_gguf(name, weights):
    """Name and weights as llama.cpp writes them: those of queries and keys with the halves of each head interleaved."""
    parts = name.split(".")
    if parts[0] != "layers":
        return {"embed_tokens": "token_embd.weight", "norm": "output_norm.weight"}[parts[0]], weights
    for shared, n_heads in (("q_proj", N_HEADS), ("k_proj", N_SHARED)):
        if shared in name:
            weights = weights.reshape(n_heads, 2, -1, weights.shape[1]).swapaxes(1, 2).reshape(weights.shape)
    return f"blk.{parts[1]}.{NAMES['.'.join(parts[2:-1])]}.weight", weights


def write_gguf(folder, path, architecture="llama", **changed):
    """The checkpoint of a folder as a GGUF file of float16 numbers."""
    config, tokenizer = (json.loads((folder / name).read_text()) for name in ("config.json", "tokenizer.json"))
    config |= changed
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(N_HEADS)
    writer.add_head_count_kv(N_SHARED)
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    vocabulary = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in ("<s>", "</s>") else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    for name, weights in load_file(folder / "model.safetensors").items():
        writer.add_tensor(*in_gguf(name, weights.astype(np.float16)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
