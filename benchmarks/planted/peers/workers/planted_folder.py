"""What all workers need: to read a planted model's folder, to compare logits, and to write what a tool says."""

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

TOLERANCE: Final = 1e-3
"""The greatest difference of a tool's logits from those of transformers with which its scores are reported."""
COMPARED: Final = 4
"""Texts of the task whose logits are compared."""


class NotRunnable(Exception):
    """Why a tool gives no numbers for a model."""


def say_of_each(says: Callable[[Path, dict[str, Any]], dict[str, Any]]) -> None:
    """Write what `says` returns for each model folder of the command line, or why it returns nothing.

    Args:
        says: from a folder and what its `truth.json` holds to the fields of the file that is written.
    """
    output = Path(sys.argv[1])
    (output / "not_run").mkdir(parents=True, exist_ok=True)
    for folder in map(Path, sys.argv[2:]):
        planted = json.loads((folder / "truth.json").read_text("utf-8"))
        print(f"{output.name}: {planted['name']}", flush=True)
        try:
            write(output / f"{folder.name}.json", {"model": planted["name"], **says(folder, planted)})
        except NotRunnable as reason:
            write(output / "not_run" / f"{folder.name}.json", {"model": planted["name"], "reason": str(reason)})


def write(path: Path, fields: dict[str, Any]) -> None:
    """A JSON file that is whole or not there."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(fields, indent=1), "utf-8")
    part.replace(path)


def causal_model(folder: Path, planted: dict[str, Any]) -> PreTrainedModel:
    """The model by transformers alone, with eager attention and no gradients of its weights.

    Raises:
        NotRunnable: it is an encoder.
    """
    if planted["task"]["kind"] != "next token":
        raise NotRunnable("Only decoders are given to this tool, and this is an encoder.")
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    return model.eval().requires_grad_(False)


@torch.no_grad()
def reference_logits(model: PreTrainedModel, planted: dict[str, Any]) -> list[torch.Tensor]:
    """The logits of transformers on the first texts of the task, each 1 x position x token."""
    return [model(torch.tensor([tokens])).logits for tokens in planted["task"]["tokens"][:COMPARED]]


@torch.no_grad()
def logits_differ(
    logits: Callable[[torch.Tensor], torch.Tensor], reference: list[torch.Tensor], planted: dict[str, Any]
) -> float:
    """The greatest difference of a tool's logits from `reference_logits`.

    Raises:
        NotRunnable: it is larger than the tolerance.
    """
    texts = planted["task"]["tokens"][:COMPARED]
    differ = max(float((logits(torch.tensor([tokens])) - own).abs().max()) for tokens, own in zip(texts, reference))
    if not differ <= TOLERANCE:
        raise NotRunnable(f"The tool's logits differ from those of transformers by up to {differ:.3g}.")
    return differ


def versions(*packages: str) -> str:
    """Installed packages with their versions, such as `torch 2.13.0`."""
    return ", ".join(f"{package} {version(package)}" for package in packages)
