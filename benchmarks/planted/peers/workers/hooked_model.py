"""A decoder of transformers carried over to TransformerLens 3, for the tools that are written for it."""

from typing import Any

from planted_folder import NotRunnable
from transformer_lens import HookedTransformer, HookedTransformerConfig
from transformer_lens.pretrained.weight_conversions import convert_gpt2_weights, convert_llama_weights
from transformers import PreTrainedModel


def hooked(reference: PreTrainedModel) -> HookedTransformer:
    """The same model in TransformerLens, its weights as they are: nothing folded, nothing centred."""
    convert = {"gpt2": convert_gpt2_weights, "llama": convert_llama_weights}
    cfg = HookedTransformerConfig(**hooked_config(reference.config))
    model = HookedTransformer(cfg)
    model.load_and_process_state_dict(
        convert[reference.config.model_type](reference, cfg),
        fold_ln=False,
        center_writing_weights=False,
        center_unembed=False,
        fold_value_biases=False,
    )
    model.cfg.use_attn_result = model.cfg.use_split_qkv_input = model.cfg.use_hook_mlp_in = True
    model.cfg.ungroup_grouped_query_attention = True
    model.requires_grad_(False)
    model.embed.W_E.requires_grad_(True)  # so that activations have gradients, of which alone the package has a use
    return model


def hooked_config(config: Any) -> dict[str, Any]:
    """The fields of TransformerLens for a configuration of transformers."""
    fields = {
        "n_layers": config.num_hidden_layers,
        "d_model": config.hidden_size,
        "n_heads": config.num_attention_heads,
        "d_head": getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        "n_ctx": config.max_position_embeddings,
        "d_vocab": config.vocab_size,
        "device": "cpu",
    }
    if config.model_type == "gpt2":
        return fields | {
            "d_mlp": config.n_inner or 4 * config.n_embd,
            "act_fn": config.activation_function,
            "eps": config.layer_norm_epsilon,
            "normalization_type": "LN",
            "use_attn_scale": config.scale_attn_weights,
        }
    if config.model_type == "llama":
        grouped = config.num_key_value_heads != config.num_attention_heads
        return fields | {
            "d_mlp": config.intermediate_size,
            "act_fn": config.hidden_act,
            "eps": config.rms_norm_eps,
            "normalization_type": "RMS",
            "final_rms": True,
            "gated_mlp": True,
            "positional_embedding_type": "rotary",
            "rotary_adjacent_pairs": False,
            "rotary_dim": fields["d_head"],
            "rotary_base": config.rope_parameters["rope_theta"],
            "n_key_value_heads": config.num_key_value_heads if grouped else None,
        }
    raise NotRunnable(f"Nothing carries {config.model_type} over to the tool.")
