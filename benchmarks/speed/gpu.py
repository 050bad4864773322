"""On a GPU: texts per second of BERT-base's shape in bfloat16, and one very long text through a Llama-shaped model.

`python -m benchmarks.speed.gpu cpu` runs the same at a tiny size on the processor, to see that it runs.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.roles.scores import ScoreObserver
from attention_sieve.core.roles.sieves import BatchSieves, batch_sieves
from benchmarks.shared import material, memory

DTYPE = "bfloat16"
GOAL = 1.3
"""Time of the pass over that of the bare forward pass."""


@dataclass(frozen=True)
class Size:
    """What is measured on a device."""

    bert: transformers.BertConfig
    n_tokens: int
    n_texts: int
    llama: transformers.LlamaConfig
    n_long: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Ready:
    """A batch whose inputs are on the device."""

    inputs: dict[str, Tensor]
    sieves: BatchSieves


def sizes(device: str) -> Size:
    if device != "cpu":
        llama = transformers.LlamaConfig(
            hidden_size=2048,
            intermediate_size=8192,
            num_hidden_layers=16,
            num_attention_heads=32,
            num_key_value_heads=8,
            max_position_embeddings=32768,
        )
        return Size(transformers.BertConfig(), 128, 1024, llama, 32768, 20)
    tiny = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    llama = transformers.LlamaConfig(**tiny, num_key_value_heads=2, max_position_embeddings=256)
    return Size(transformers.BertConfig(**tiny), 32, 64, llama, 256, 0.5)


def main(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        print("No GPU was found.")
        return
    material.print_machine(device=device)
    size = sizes(device)
    report_throughput(device, size)
    report_long(device, size)


def report_throughput(device: str, size: Size) -> None:
    checkpoint = material.random_model(size.bert, device, DTYPE)
    sdpa = material.with_attention(checkpoint, "sdpa")
    batches = material.planned(material.made_up_texts(checkpoint, [size.n_tokens] * size.n_texts), device)
    ready = [made_ready(checkpoint, batch) for batch in batches]
    ways: dict[str, Callable[[], object]] = {
        "bare": lambda: [bare(sdpa, batch) for batch in ready],
        "pass": lambda: [pass_over(checkpoint, batch) for batch in ready],
        "texts to scores": lambda: material.scored(checkpoint, batches),
    }
    seconds, ratios = material.median_ratios(list(ways.values()), size.seconds)
    shape = f"BERT {size.bert.num_hidden_layers}x{size.bert.num_attention_heads}"
    print(f"{shape}, {DTYPE}, {size.n_texts} texts of {size.n_tokens} tokens in {len(batches)} batches")
    print(f"{'':<18}{'texts a second':>16}{'over bare':>11}{'goal':>7}")
    for way, ratio in zip(ways, ratios):
        goal = f"{GOAL:.2f}" if way == "pass" else ""
        print(f"{way:<18}{size.n_texts / (seconds * ratio):>16,.0f}{ratio:>11.2f}{goal:>7}", flush=True)


def report_long(device: str, size: Size) -> None:
    checkpoint = material.random_model(size.llama, device, DTYPE)
    sdpa = material.with_attention(checkpoint, "sdpa")
    ready = made_ready(checkpoint, material.made_up_texts(checkpoint, [size.n_long]))
    contestants: list[Callable[[], object]] = [lambda: bare(sdpa, ready), lambda: pass_over(checkpoint, ready)]
    seconds, ratios = material.median_ratios(contestants, size.seconds)
    measurable = memory.is_measurable(device)
    shape = f"Llama {size.llama.num_hidden_layers}x{size.llama.num_attention_heads}"
    print(f"{shape}, {DTYPE}, one text of {size.n_long:,} tokens")
    print(f"{'':<18}{'seconds':>16}{'over bare':>11}{'MB above the model':>20}")
    for way, ratio, contestant in zip(("bare", "pass"), ratios, contestants):
        taken = f"{megabytes(contestant, device):,.0f}" if measurable else ""
        print(f"{way:<18}{seconds * ratio:>16.3f}{ratio:>11.2f}{taken:>20}", flush=True)


def made_ready(checkpoint: Checkpoint, texts: Sequence[Any]) -> Ready:
    return Ready(model_inputs(checkpoint, texts), batch_sieves(texts, checkpoint.attentions["self"].causal))


def bare(model: Any, ready: Ready) -> None:
    with torch.inference_mode():
        model(**ready.inputs).last_hidden_state.cpu()


def pass_over(checkpoint: Checkpoint, ready: Ready) -> None:
    """As scoring does it, from inputs and sieves that are there."""
    attention = checkpoint.attentions["self"]
    sieves = [ready.sieves] * attention.n_layers
    scores = ScoreObserver(sieves, attention.n_heads, checkpoint.device, checkpoint.statistics_dtype)
    observe(checkpoint.model, ready.inputs, Pass(observers=[scores], calls=attention.calls, stops=True))
    scores.scores()


def megabytes(contestant: Callable[[], object], device: str) -> float:
    before = memory.start_peak(device)
    contestant()
    return (memory.peak(device) - before) / 1e6


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "cuda")
