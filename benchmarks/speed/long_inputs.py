"""Long texts: time and peak memory of scoring every head, of the output alone (SDPA), and of `output_attentions`.

Two layers with random weights, one text; each measurement in a process of its own. `output_attentions` is limited by
the machine's memory: it gets MOST_MEMORY above the loaded model, and nothing is computed from its maps.
"""

import json
import resource
import sys
import time
from collections.abc import Iterator

import numpy as np
import torch
import transformers

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.roles.sieves import sieve_cells
from benchmarks.shared import material, memory

LENGTHS = (1024, 4096, 16384)
N_THREADS = 2
MOST_MEMORY = 12e9
GOAL = 1500
"""Megabytes above the loaded model."""
COMPARED_LENGTH = 2048
COMMON = {
    "hidden_size": 768,
    "num_hidden_layers": 2,
    "num_attention_heads": 12,
    "max_position_embeddings": LENGTHS[-1],
}
SHAPES = {
    "BERT 2x12": transformers.BertConfig(**COMMON),
    "Llama 2x12": transformers.LlamaConfig(**COMMON, num_key_value_heads=4, intermediate_size=2048),
}
CONTESTANTS = ("bare", "observed", "output_attentions")


def main() -> None:
    material.print_machine(N_THREADS, "cpu")
    if not memory.is_measurable("cpu"):
        return
    print(f"MB above the loaded model (goal of the observed pass: under {GOAL:,}), and time over the bare forward pass")
    print(f"{'model':<12}{'tokens':>8}{'bare, s':>9}" + "".join(f"{name:>24}" for name in CONTESTANTS))
    for shape in SHAPES:
        for n_tokens in LENGTHS:
            report(shape, n_tokens)
    for shape in SHAPES:
        error, largest = memory.in_own_process("benchmarks.speed.long_inputs", shape, COMPARED_LENGTH, "error")
        print(
            f"{shape}, {COMPARED_LENGTH:,} tokens: float64 by the definition differs by {error:.0e} at most, ", end=""
        )
        print(f"on scores up to {largest:.1f}", flush=True)


def report(shape: str, n_tokens: int) -> None:
    seen = [memory.in_own_process("benchmarks.speed.long_inputs", shape, n_tokens, name) for name in CONTESTANTS]
    bare = seen[0][0]
    columns = ["no memory" if one is None else f"{one[1]:,.0f} MB, {one[0] / bare:.2f}" for one in seen]
    print(f"{shape:<12}{n_tokens:>8,}{bare:>9.2f}" + "".join(f"{column:>24}" for column in columns), flush=True)


def measure(shape: str, n_tokens: int, contestant: str) -> tuple[float, float] | None:
    """Seconds, and megabytes above the loaded model at the worst moment; None where memory does not suffice."""
    torch.set_num_threads(N_THREADS)
    checkpoint = material.random_model(SHAPES[shape], "cpu")
    model = None if contestant == "observed" else material.with_attention(checkpoint, implementation(contestant))
    text, short = (material.made_up_texts(checkpoint, [length]) for length in (n_tokens, 16))
    if contestant == "output_attentions":
        limit_memory()

    def pass_over(texts: list[PassText]) -> None:
        if contestant == "observed":
            material.scored(checkpoint, [texts])
        elif contestant == "bare":
            material.bare(checkpoint, model, [texts])
        else:
            with torch.inference_mode():
                model(**model_inputs(checkpoint, texts), output_attentions=True)

    pass_over(short)
    before = memory.start_peak("cpu")
    start = time.perf_counter()
    try:
        pass_over(text)
    except RuntimeError as error:
        if "can't allocate memory" in str(error):
            return None
        raise
    return time.perf_counter() - start, (memory.peak("cpu") - before) / 1e6


def implementation(contestant: str) -> str:
    return "sdpa" if contestant == "bare" else "eager"


def limit_memory() -> None:
    limit = memory.in_status("VmSize") + int(MOST_MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def error(shape: str, n_tokens: int) -> tuple[float, float]:
    """Largest difference from the definition in float64, and the largest score."""
    checkpoint = material.random_model(SHAPES[shape], "cpu")
    (text,) = material.made_up_texts(checkpoint, [n_tokens])
    (measured,) = material.scored(checkpoint, [[text]])
    model = material.with_attention(checkpoint, "eager").double()
    with torch.inference_mode():
        maps = model(**model_inputs(checkpoint, [text]), output_attentions=True).attentions
    differences = [
        np.abs(measured[USUAL.measures.index(name), layer] - of_heads).max()
        for layer, attention in enumerate(maps)
        for name, of_heads in by_definition(attention[0].double().numpy(), text, checkpoint)
    ]
    return float(max(differences)), float(np.nanmax(measured))


def by_definition(attention: np.ndarray, text: PassText, checkpoint: Checkpoint) -> Iterator[tuple[str, np.ndarray]]:
    """Each measure of one layer's heads: mean attention in the sieve over mean attention to what a query may see."""
    causal = checkpoint.attentions["self"].causal
    n_tokens = attention.shape[-1]
    n_seen = np.arange(1, n_tokens + 1) if causal else np.full(n_tokens, n_tokens)
    for name in USUAL.row_measures:
        cells = sieve_cells(name.removesuffix(" without entropy"), text, causal)
        rows = cells.any(-1)
        if rows.any():
            inside = np.stack([(head[rows] * cells[rows]).sum(-1) for head in attention]) / cells[rows].sum(-1)
            yield name, (inside * n_seen[rows]).mean(-1)
            if name.startswith("block"):
                entropy = np.stack([torch.special.entr(torch.from_numpy(head)).sum(-1).numpy() for head in attention])
                yield "block", (inside * n_seen[rows] * entropy[:, rows]).mean(-1)
    found = [(pair.dependent[0], pair.head[0]) for pair in text.pairs]
    queries, keys = np.array([(query, key) for query, key in found if key <= query or not causal]).T
    yield "syntactic dependent-to-head", (attention[:, queries, keys] * n_seen[queries]).mean(-1)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    elif sys.argv[3] == "error":
        print(json.dumps(error(sys.argv[1], int(sys.argv[2]))))
    else:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
