"""Small random adapters of PEFT, saved as it saves them."""

import warnings

import torch

LORA = {"r": 2, "lora_alpha": 4, "target_modules": ["query", "value"]}
IDS = torch.tensor([[2, 7, 11, 9, 30, 8, 3]])


def output_of(model):
    with torch.no_grad():
        found = model(IDS)
    return found["logits"] if "logits" in found else found["last_hidden_state"]


def save_adapter(model, config, folder, base_name):
    """An adapter as if it had been trained, in a folder that names its base; returns the output of PEFT's own model."""
    from peft import get_peft_model

    with warnings.catch_warnings():  # PEFT's about a name in transformers, and about tied weights
        warnings.simplefilter("ignore")
        adapted = get_peft_model(model, config)
        torch.manual_seed(7)
        for weights in adapted.parameters():
            if weights.requires_grad:
                weights.data = weights.data + 0.3 * torch.randn_like(weights)
        config.base_model_name_or_path = base_name
        adapted.save_pretrained(folder)
        return output_of(adapted.eval())
