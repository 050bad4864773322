"""Causal head gating: gates of all heads, trained on the planted task, without and with a pull upwards or downwards."""

from pathlib import Path
from typing import Any, Final

import torch
from causal_head_gating import CHG, CHGTrainer
from causal_head_gating.data.datasets import MaskedSequenceDataset
from planted_folder import NotRunnable, causal_model, logits_differ, reference_logits, say_of_each, versions

UPDATES: Final = 60
"""Of each of the three stages; the package's own number is 500, of which a processor has no time."""
TEXTS: Final = 4
"""In a step; the package's own number is 32."""


def says(folder: Path, planted: dict[str, Any]) -> dict[str, Any]:
    model = causal_model(folder, planted)
    tokens, scored = predicted_tokens(planted)
    gated = CHG(model)
    open_gates = torch.ones(gated.num_layers, gated.num_heads)
    differ = logits_differ(lambda ids: gated(ids, open_gates), reference_logits(model, planted), planted)
    torch.manual_seed(planted["seed"])
    texts = MaskedSequenceDataset(pad_token_id=-1, input_ids=tokens, loss_masks=scored)
    trainer = CHGTrainer(model, texts, batch_size=min(TEXTS, len(tokens)))
    for _ in trainer.fit(num_updates=UPDATES, num_reg_updates=UPDATES, verbose=False):
        pass
    stages = {
        "gate, stage none": trainer.mask_logits,
        "gate, stage positive (called necessary)": trainer.mask_logits_pos,
        "gate, stage negative (called sufficient)": trainer.mask_logits_neg,
    }
    return {
        "tool": "causal head gating",
        "version": versions("nam-causal-head-gating", "transformers", "torch"),
        "licence": "MIT",
        "says": "importance",
        "settings": {
            "updates of a stage": UPDATES,
            "texts in a step": TEXTS,
            "gates": 1,
            "others": "the package's own",
        },
        "logits_differ": differ,
        "scores": {stage: logits.detach().sigmoid().tolist() for stage, logits in stages.items()},
    }


def predicted_tokens(planted: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The longest texts' tokens, and which of them a scored position predicts, both text x position.

    Raises:
        NotRunnable: a target is not the token that comes next, which is all that the package scores.
    """
    task = planted["task"]
    length = max(map(len, task["tokens"]))
    chosen = [text for text in zip(task["tokens"], task["scored"], task["targets"]) if len(text[0]) == length]
    predicted = torch.zeros(len(chosen), length, dtype=torch.bool)
    for row, (tokens, scored, targets) in enumerate(chosen):
        if [tokens[position + 1] for position in scored if position + 1 < length] != targets:
            raise NotRunnable("The task's targets are not the tokens that come next, which the package asks for.")
        predicted[row, [position + 1 for position in scored]] = True
    return torch.tensor([tokens for tokens, _, _ in chosen]), predicted


if __name__ == "__main__":
    say_of_each(says)
