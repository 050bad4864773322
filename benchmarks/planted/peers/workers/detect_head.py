"""TransformerLens' `detect_head` on random tokens twice: the share of each head type's pattern in each head."""

import logging
from pathlib import Path
from typing import Any, Final

import torch
from planted_folder import NotRunnable, causal_model, logits_differ, reference_logits, say_of_each, versions
from transformer_lens.head_detector import HEAD_NAMES, detect_head
from transformer_lens.model_bridge import TransformerBridge
from transformers import AutoTokenizer, PreTrainedTokenizerBase

N_TEXTS: Final = 10
LONGEST_COPY: Final = 25
MEASURES: Final = ("mul", "abs")


def says(folder: Path, planted: dict[str, Any]) -> dict[str, Any]:
    model = causal_model(folder, planted)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    reference = reference_logits(model, planted)
    bridge = TransformerBridge.boot_transformers(str(folder), device="cpu", tokenizer=tokenizer, hf_model=model)
    differ = logits_differ(bridge, reference, planted)
    drawn = repeats(tokenizer, bridge.cfg.n_ctx, planted["seed"])
    texts = [" ".join(tokenizer.convert_ids_to_tokens(text)) for text in drawn]
    for tokens, text in zip(drawn, texts):
        if bridge.to_tokens(text)[0].tolist() != [tokenizer.bos_token_id, *tokens]:
            raise NotRunnable("Its tokenizer does not give drawn tokens back, with one that begins the text.")
    with torch.no_grad():
        scores = {
            f"{head_type} {measure}": detect_head(bridge, texts, head_type, error_measure=measure).tolist()
            for head_type in HEAD_NAMES
            for measure in MEASURES
        }
    return {
        "tool": "TransformerLens detect_head",
        "version": versions("transformer-lens", "transformers", "torch"),
        "licence": "MIT",
        "says": "head type",
        "settings": {
            "texts": N_TEXTS,
            "tokens in a copy": len(drawn[0]) // 2,
            "weights": "as they are, nothing folded",
        },
        "logits_differ": differ,
        "scores": scores,
    }


def repeats(tokenizer: PreTrainedTokenizerBase, context: int, seed: int) -> list[list[int]]:
    """Different random tokens, twice; short enough for the context that the tool wants longer than the text."""
    special = set(tokenizer.all_special_ids)
    words = torch.tensor([token for token in tokenizer.get_vocab().values() if token not in special])
    length = min(LONGEST_COPY, len(words), (context - 2) // 2)
    generator = torch.Generator().manual_seed(seed)
    copies = [words[torch.randperm(len(words), generator=generator)[:length]].tolist() for _ in range(N_TEXTS)]
    return [copy + copy for copy in copies]


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    say_of_each(says)
