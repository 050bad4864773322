"""EAP, EAP-IG and exact patching of nodes, by the package of MIB's circuit track, on pairs of clean and corrupted text.

The track's program takes its tasks from a hub and needs CUDA. This calls the function that it calls, `attribute_node`,
with the planted task, and differs in four ways: tokens are given as they are, a text has several scored positions,
what the package puts on CUDA is put on the processor, and exact patching is asked of the package's `evaluate_graph`,
with one graph for each head, since `attribute_node` breaks off there.
"""

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import eap.attribute_node
import eap.evaluate
import torch
from corrupted_texts import corrupted_texts
from eap.graph import Graph
from hooked_model import hooked
from planted_folder import causal_model, logits_differ, reference_logits, say_of_each, versions
from torch.overrides import TorchFunctionMode
from transformer_lens import HookedTransformer

N_TEXTS: Final = 4
IG_STEPS: Final = 5
"""As the track's program has it."""
METHODS: Final = ("EAP", "EAP-IG-inputs")


@dataclass(frozen=True)
class Scored:
    """Where a text is scored, the right token there, and the one that the corrupted text leads to."""

    positions: list[int]
    targets: list[int]
    foils: list[int]


Pair = tuple[torch.Tensor, torch.Tensor, Scored]
"""Clean and corrupted tokens, each 1 x position."""


Metric = Callable[[torch.Tensor, Any, Any, Scored], torch.Tensor]


class OnProcessor(TorchFunctionMode):
    """Tensors that are asked for on CUDA lie on the processor."""

    def __torch_function__(self, function: Callable, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("device") == "cuda":
            kwargs["device"] = "cpu"
        return function(*args, **kwargs)


def says(folder: Path, planted: dict[str, Any]) -> dict[str, Any]:
    reference = causal_model(folder, planted)
    model = hooked(reference)
    differ = logits_differ(model, reference_logits(reference, planted), planted)
    corrupted, how = corrupted_texts(planted, N_TEXTS)
    pairs = list(scored_pairs(model, planted, corrupted))
    metrics = (logit_difference, cross_entropy)
    with OnProcessor():
        scores = {
            f"{method}, {named(metric)}": attributed(model, pairs, metric, method)
            for metric in metrics
            for method in METHODS
        }
        scores |= {f"exact, {named(metric)}": patched(model, pairs, metric) for metric in metrics}
    return {
        "tool": "MIB attribute_node",
        "version": f"eap {eap_version()}, " + versions("transformer-lens", "transformers", "torch"),
        "licence": "MIT",
        "says": "importance",
        "settings": {"texts": len(pairs), "corrupted": how, "IG steps": IG_STEPS, "intervention": "patching"},
        "logits_differ": differ,
        "scores": scores,
    }


@torch.no_grad()
def scored_pairs(model: HookedTransformer, planted: dict[str, Any], corrupted: list[list[int]]) -> Iterator[Pair]:
    """Each text with its corrupted one, and the token, not the target, that this one makes most likely."""
    task = planted["task"]
    for tokens, other, positions, targets in zip(task["tokens"], corrupted, task["scored"], task["targets"]):
        logits = model(torch.tensor([other]))[0, positions]
        logits[range(len(targets)), targets] = -torch.inf
        yield torch.tensor([tokens]), torch.tensor([other]), Scored(positions, targets, logits.argmax(-1).tolist())


def logit_difference(logits: torch.Tensor, _clean: Any, _lengths: Any, scored: Scored) -> torch.Tensor:
    """How far the foils' logits are above the targets': the track's measure, as a loss."""
    at, rows = logits[0, scored.positions], range(len(scored.positions))
    return (at[rows, scored.foils] - at[rows, scored.targets]).mean()


def cross_entropy(logits: torch.Tensor, _clean: Any, _lengths: Any, scored: Scored) -> torch.Tensor:
    """The loss in nats per scored position."""
    return torch.nn.functional.cross_entropy(logits[0, scored.positions], torch.tensor(scored.targets))


def eap_version() -> str:
    """The version of the EAP package in its checkout."""
    project = Path(eap.__file__).parents[2] / "pyproject.toml"
    return tomllib.loads(project.read_text("utf-8"))["project"]["version"]


def attributed(model: HookedTransformer, pairs: list[Pair], metric: Metric, method: str) -> list[list[float]]:
    """The package's estimates of what the metric rises by when a head is patched, layer x head."""
    graph = Graph.from_model(model, node_scores=True)
    eap.attribute_node.attribute_node(model, graph, pairs, metric, method, ig_steps=IG_STEPS, quiet=True)
    return [[float(graph.nodes[name].score) for name in layer] for layer in head_nodes(model)]


def patched(model: HookedTransformer, pairs: list[Pair], metric: Metric) -> list[list[float]]:
    """What the metric does rise by when all that a head writes comes from the corrupted text, layer x head."""
    before = eap.evaluate.evaluate_baseline(model, pairs, metric, quiet=True).mean()

    def rise(name: str) -> float:
        graph = Graph.from_model(model)
        graph.in_graph |= graph.real_edge_mask
        graph.nodes_in_graph[:] = True
        for edge in graph.nodes[name].child_edges:
            edge.in_graph = False
        return float(eap.evaluate.evaluate_graph(model, graph, pairs, metric, quiet=True).mean() - before)

    return [[rise(name) for name in layer] for layer in head_nodes(model)]


def head_nodes(model: HookedTransformer) -> list[list[str]]:
    """The names of the heads in the package's graphs, layer x head."""
    return [[f"a{layer}.h{head}" for head in range(model.cfg.n_heads)] for layer in range(model.cfg.n_layers)]


def named(metric: Metric) -> str:
    return metric.__name__.replace("_", " ")


def tokens_as_given(_model: Any, tokens: torch.Tensor, _most: Any = None) -> tuple:
    """What the package asks of a tokenizer, for tokens that need none: with attention mask, lengths and positions."""
    return tokens, torch.ones_like(tokens), torch.tensor([tokens.shape[1]] * len(tokens)), tokens.shape[1]


if __name__ == "__main__":
    eap.attribute_node.tokenize_plus = eap.evaluate.tokenize_plus = tokens_as_given
    say_of_each(says)
