"""ACDC: which heads keep an edge when edges whose corruption changes the output least are taken out one by one."""

import contextlib
import io
import sys
from pathlib import Path
from typing import Any, Final

import torch
import transformer_lens.config.hooked_transformer_config
from corrupted_texts import corrupted_texts
from hooked_model import hooked
from planted_folder import causal_model, logits_differ, reference_logits, say_of_each, versions
from transformer_lens import HookedTransformer

# Where ACDC, which was written for TransformerLens 1, looks for it.
sys.modules["transformer_lens.HookedTransformerConfig"] = transformer_lens.config.hooked_transformer_config
import acdc.TLACDCExperiment  # noqa: E402

N_TEXTS: Final = 2
THRESHOLDS: Final = (0.01, 0.1, 1.0)
"""Of the rise of the divergence, in nats per scored position."""


def says(folder: Path, planted: dict[str, Any]) -> dict[str, Any]:
    reference = causal_model(folder, planted)
    model = hooked(reference).requires_grad_(False)
    differ = logits_differ(model, reference_logits(reference, planted), planted)
    corrupted, how = corrupted_texts(planted, N_TEXTS)
    kept = torch.zeros(model.cfg.n_layers, model.cfg.n_heads)
    for threshold in THRESHOLDS:
        for layer, head in heads_kept(model, planted, corrupted, threshold):
            kept[layer, head] = threshold
    return {
        "tool": "ACDC",
        "version": versions("transformer-lens", "transformers", "torch"),
        "licence": "MIT",
        "says": "importance",
        "settings": {"texts": len(corrupted), "corrupted": how, "thresholds": THRESHOLDS, "metric": "KL divergence"},
        "logits_differ": differ,
        "scores": {"largest threshold at which the head is kept": kept.tolist()},
    }


def heads_kept(
    model: HookedTransformer, planted: dict[str, Any], corrupted: list[list[int]], threshold: float
) -> set[tuple[int, int]]:
    """Layer and head of the heads from which an edge is left at a threshold."""
    task = planted["task"]
    texts = torch.tensor(task["tokens"][: len(corrupted)])
    rows = [row for row, scored in enumerate(task["scored"][: len(texts)]) for _ in scored]
    columns = [position for scored in task["scored"][: len(texts)] for position in scored]
    with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
        model.reset_hooks()
        clean = model(texts)[rows, columns].log_softmax(-1)

        def divergence(logits: torch.Tensor) -> torch.Tensor:
            changed = logits[rows, columns].log_softmax(-1)
            return torch.nn.functional.kl_div(changed, clean, log_target=True, reduction="batchmean")

        experiment = acdc.TLACDCExperiment.TLACDCExperiment(
            model, texts, torch.tensor(corrupted), threshold, divergence
        )
        while experiment.current_node is not None:
            experiment.step()
    return {
        (int(sender.split(".")[1]), index.hashable_tuple[2])
        for (_, _, sender, index), edge in experiment.corr.all_edges().items()
        if edge.present and sender.endswith("attn.hook_result")
    }


if __name__ == "__main__":
    acdc.TLACDCExperiment.show = lambda *_, **__: None  # a picture of every step
    say_of_each(says)
