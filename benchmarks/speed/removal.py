"""Time with half of the heads removed, over the time of the original, at four batch sizes: of the model's output alone
(SDPA), and of scoring every head.

Every second head is removed. Michel et al. 2019, table 4, measured BERT's output on a GPU, in examples per second:
+1.9%, +2.7%, +17.5% and +17.5% at batches of 1, 4, 16 and 64.
"""

import copy
from dataclasses import replace

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.weights import remove_heads
from benchmarks.shared import material

BATCH_SIZES = (1, 4, 16, 64)
N_TOKENS = 64
SECONDS = 8


def main() -> None:
    material.print_machine()
    print(f"{'checkpoint':<13}{'heads left':>12}{'batch':>7}{'output':>9}{'as examples/s':>15}{'scores':>9}")
    for name, checkpoint in {"MiniLM 6x12": material.bundled(), "BERT 12x12": material.bert_base()}.items():
        attention = checkpoint.attentions["self"]
        gone = [(layer, head) for layer in range(attention.n_layers) for head in range(layer % 2, attention.n_heads, 2)]
        pruned = without(checkpoint, gone)
        left = f"{attention.n_layers * attention.n_heads - len(gone)} of {attention.n_layers * attention.n_heads}"
        for batch_size in BATCH_SIZES:
            output, scores = ratios(checkpoint, pruned, batch_size)
            faster = f"{100 * (1 / output - 1):+.1f}%"
            print(f"{name:<13}{left:>12}{batch_size:>7}{output:>9.2f}{faster:>15}{scores:>9.2f}", flush=True)


def without(checkpoint: Checkpoint, heads: list[Head]) -> Checkpoint:
    """A copy of a checkpoint without some heads."""
    model = copy.deepcopy(checkpoint.full_model)
    remove_heads(checkpoint.files.name, model, (("self", tuple(heads)),))
    attention = replace(checkpoint.attentions["self"], removed=tuple(heads))
    return replace(checkpoint, full_model=model, model=model.base_model, attentions={"self": attention})


def ratios(original: Checkpoint, pruned: Checkpoint, batch_size: int) -> tuple[float, float]:
    """Time of the pruned over that of the original: of the output, and of the scores."""
    texts = [material.made_up_texts(original, [N_TOKENS] * batch_size)]
    sdpa, pruned_sdpa = (material.with_attention(checkpoint, "sdpa") for checkpoint in (original, pruned))
    _, (_, output) = material.median_ratios(
        [lambda: material.bare(original, sdpa, texts), lambda: material.bare(pruned, pruned_sdpa, texts)], SECONDS / 2
    )
    _, (_, scores) = material.median_ratios(
        [lambda: material.scored(original, texts), lambda: material.scored(pruned, texts)], SECONDS / 2
    )
    return output, scores


if __name__ == "__main__":
    main()
