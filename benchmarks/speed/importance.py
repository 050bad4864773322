"""Time of ablating each head in turn, over that of as many full passes; and of the gradient measures, over that of a
forward and a backward pass.

Full passes go through the same batches with one head off, through the same attention function. The gradient family's
baseline runs the model with SDPA on the same batches, forward and backward to its input, or to its weights.
"""

from typing import Any

import torch

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.importance.passes.head_outputs import head_slopes
from attention_sieve.core.importance.passes.sweep import Sweep, sweep
from attention_sieve.core.passes.batches import BATCH_TOKENS, model_inputs, plan_batches
from attention_sieve.core.passes.readout import Readout
from attention_sieve.core.passes.texts import PassText
from benchmarks.shared import material

CASES = {
    "MiniLM 6x12": (("4 x 40", [40] * 4), ("2 x 128", [128] * 2), ("1 x 512", [512])),
    "BERT 12x12": (("1 x 128", [128]),),
}
GRADIENT_CASES = (("16 x 40", [40] * 16), ("16 x 128", [128] * 16))
SWEEP_GOAL, GRADIENT_GOAL = 0.6, 1.3
SECONDS = 8


def main() -> None:
    material.print_machine()
    checkpoints = {"MiniLM 6x12": material.bundled(), "BERT 12x12": material.bert_base()}
    print(f"{'checkpoint':<12}{'texts':>13}{'sweep / full passes':>21}{'goal':>7}")
    for name, checkpoint in checkpoints.items():
        for case, lengths in CASES[name]:
            report_sweep(name, checkpoint, lengths, case)
    print(f"{'checkpoint':<12}{'texts':>13}{'gradients / to input':>22}{'/ to weights':>14}{'goal':>7}")
    for name, checkpoint in checkpoints.items():
        for case, lengths in GRADIENT_CASES:
            report_gradients(name, checkpoint, lengths, case)


def report_sweep(name: str, checkpoint: Checkpoint, lengths: list[int], case: str) -> None:
    """One full pass a layer stands for those of all its heads: they cost the same."""
    texts = material.made_up_texts(checkpoint, lengths)
    attention = checkpoint.attentions["self"]
    n_timed = attention.n_layers
    _, (_, ratio) = material.median_ratios(
        [
            lambda: one_by_one(checkpoint, texts, n_timed),
            lambda: list(sweep(checkpoint, texts, material.SETTINGS, Sweep(metric="output"))),
        ],
        SECONDS,
    )
    print(f"{name:<12}{case:>13}{ratio / attention.n_heads:>21.2f}{SWEEP_GOAL:>7.2f}", flush=True)


def one_by_one(checkpoint: Checkpoint, texts: list[PassText], n_heads: int) -> None:
    """So many of the full passes, each with one head off, in the usual batches."""
    attention = checkpoint.attentions["self"]
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        readout = Readout(checkpoint, "output", [texts[place] for place in batch.positions])
        for layer in range(n_heads):
            gates = torch.ones((attention.n_layers, attention.n_heads), device=checkpoint.device)
            gates[layer, 0] = 0
            readout.outcomes(observe(checkpoint.model, readout.inputs(), Pass(calls=attention.calls, gates=gates)))


def report_gradients(name: str, checkpoint: Checkpoint, lengths: list[int], case: str) -> None:
    texts = material.made_up_texts(checkpoint, lengths)
    sdpa = material.with_attention(checkpoint, "sdpa")
    _, (_, family, to_weights) = material.median_ratios(
        [
            lambda: bare(checkpoint, sdpa, texts, to_weights=False),
            lambda: list(head_slopes(checkpoint, texts, [None] * len(texts), material.SETTINGS, "output")),
            lambda: bare(checkpoint, sdpa, texts, to_weights=True),
        ],
        SECONDS,
    )
    print(f"{name:<12}{case:>13}{family:>22.2f}{family / to_weights:>14.2f}{GRADIENT_GOAL:>7.2f}", flush=True)


def bare(checkpoint: Checkpoint, model: Any, texts: list[PassText], to_weights: bool) -> None:
    """Forward and backward pass without observing a head."""
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS["cpu"]):
        inputs = model_inputs(checkpoint, [texts[place] for place in batch.positions])
        embedded = model.get_input_embeddings()(inputs.pop("input_ids")).detach().requires_grad_()
        loss = model(inputs_embeds=embedded, **inputs)[0].mean(1).norm(dim=1).sum()
        weights = list(model.encoder.parameters()) if to_weights else []
        torch.autograd.grad(loss, [embedded, *weights])


if __name__ == "__main__":
    main()
