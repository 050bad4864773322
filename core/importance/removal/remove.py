"""Saves a checkpoint without some of its heads, after checking its output."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import has_attention_interface, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import Head, Kind, head_name
from attention_sieve.core.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointFiles,
    as_removed,
    check_heads,
    no_such_attention,
    write_removed,
)
from attention_sieve.core.checkpoints.checks.files import TOKENIZER_FILES
from attention_sieve.core.checkpoints.checks.loaded import first_id, probe_inputs, real_rows
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.folders import UNFINISHED
from attention_sieve.core.checkpoints.load import load_every_weight
from attention_sieve.core.checkpoints.weights import remove_heads, scale_heads
from attention_sieve.core.errors import AnalysisError, CheckpointError, GrowsLarger, first_line
from attention_sieve.core.importance.removal.exports import MERGED_TOLERANCE, TOLERANCE, Export


@dataclass(frozen=True)
class Removal:
    """A checkpoint without some of its heads."""

    folder: Path
    n_removed: int
    """Heads of this kind of attention that are removed or set to 0, earlier removals included."""
    n_heads: int
    """Number of heads of this kind of attention in the original."""
    n_weights: tuple[int, int]
    """Number of weights before and after."""
    difference: float
    """Largest difference from the original with these heads switched off, relative to the largest output."""


def remove(
    files: CheckpointFiles,
    heads: Sequence[Head],
    output: Path,
    *,
    kind: Kind = "self",
    export: Export = "removed",
    may_grow: bool = False,
) -> Removal:
    """Save a checkpoint without some of its heads.

    The saved folder is loaded as a user would load it, in float64, and its output is compared with that of the original
    with the same heads switched off. Only then is the folder renamed to its final name.

    Args:
        files: of the original, from which heads may have been removed before.
        heads: layer and head of the heads to remove.
        output: folder to create.
        kind: of attention that these heads belong to.
        export: "removed" slices the weights, so that the checkpoint is smaller and faster, and this program (not
            others) loads it; "zeroed" sets the output projection of these heads to 0, and loads anywhere.
        may_grow: save the checkpoint even if it has more weights than the original.

    Raises: GrowsLarger if it would have more weights; AnalysisError if the checkpoint lacks one of the heads, the
        folder exists, or heads cannot be removed from this checkpoint.
    Source: Michel et al. 2019, section 4.1: pruned heads are removed from the model, not only masked.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise AnalysisError(f"{output} already exists. Choose a folder that does not exist yet.")
    original = load_checkpoint(files, device="cpu", dtype="float64")
    _check_heads(original, kind, heads)
    layers = original.attentions[kind]
    gates = torch.ones((layers.n_layers, layers.n_heads))
    for head in heads:
        gates[head] = 0
    expected = _output(original, kind, gates)
    largest = max(float(expected.abs().max()), 1e-12)
    unfinished = output.with_name(output.name + UNFINISHED)
    try:
        n_weights = _save(files, unfinished, heads, kind, export, gates)
        if n_weights[1] > n_weights[0] and not may_grow:
            raise GrowsLarger(files.name, n_weights)
        difference = float((_reloaded_output(files.name, unfinished) - expected).abs().max()) / largest
        allowed = TOLERANCE if files.base is None else MERGED_TOLERANCE
        if not difference <= allowed:
            raise CheckpointError(
                f"{files.name} without these heads computes something else than with them switched off: the output "
                f"differs by {difference:.1e} (allowed {allowed:.0e}), so nothing was saved. Switch them off instead."
            )
        if output.is_dir():
            output.rmdir()
        unfinished.replace(output)
    except OSError as error:
        raise AnalysisError(f"{output} cannot be written ({error.strerror or error}). Choose another place.") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Removal(
        folder=output,
        n_removed=len({*heads, *layers.removed}),
        n_heads=layers.n_layers * layers.n_heads,
        n_weights=n_weights,
        difference=difference,
    )


def _check_heads(original: Checkpoint, kind: Kind, heads: Sequence[Head]) -> None:
    """Raise AnalysisError if the checkpoint lacks one of the heads, or would have no head left."""
    name, attention = original.files.name, original.attentions.get(kind)
    if attention is None:
        raise no_such_attention(name, kind, original.attentions)
    if not heads:
        raise AnalysisError("No head is named. Name at least one, as layer-head: 3-7,2-5.")
    check_heads(name, (attention.n_layers, attention.n_heads), heads)
    for head in heads:
        if head in attention.removed:
            raise AnalysisError(f"Head {head_name(*head)} was removed from {name} before. Leave it out.")
    if len({*heads, *attention.removed}) == attention.n_layers * attention.n_heads:
        raise AnalysisError(f"No head of the {kind} attention of {name} would be left. Keep at least one.")
    if not has_attention_interface(original.model):
        raise AnalysisError(
            f"{type(original.model).__name__} has its own attention code, so heads cannot be removed from {name}. "
            "Switch them off instead."
        )


def _save(
    files: CheckpointFiles,
    folder: Path,
    heads: Sequence[Head],
    kind: Kind,
    export: Export,
    gates: Float[Tensor, "layer head"],
) -> tuple[int, int]:
    """Save the checkpoint; returns its number of weights before and after."""
    model, random = load_every_weight(files)
    n_before, removed = model.num_parameters(), dict(files.removed)
    if export == "removed":
        remove_heads(files.name, model, as_removed({kind: heads}, files.kinds))
        removed[kind] = (*removed.get(kind, ()), *heads)
    else:
        scale_heads(files.name, model, kind, gates)
    shutil.rmtree(folder, ignore_errors=True)
    state_dict = {name: weights for name, weights in model.state_dict().items() if name not in random}
    model.save_pretrained(folder, state_dict=state_dict)
    for name in TOKENIZER_FILES:
        if (files.tokenizer_folder / name).is_file():
            shutil.copyfile(files.tokenizer_folder / name, folder / name)
    write_removed(folder, as_removed(removed, files.kinds))
    return n_before, model.num_parameters()


def _reloaded_output(name: str, folder: Path) -> Float[Tensor, "row channel"]:
    try:
        return _output(load_checkpoint(find_checkpoint(str(folder.resolve())), device="cpu", dtype="float64"))
    except CheckpointError as error:
        raise CheckpointError(
            f"{name} does not work without these heads ({first_line(error)}). Keep at least one head in every layer, "
            "or switch heads off instead."
        ) from error


def _output(
    checkpoint: Checkpoint, kind: Kind = "self", gates: Float[Tensor, "layer head"] | None = None
) -> Float[Tensor, "row channel"]:
    """Output of the model for a batch of two texts, with gates if given."""
    two_stacks = len(checkpoint.files.kinds) > 1
    n_ids = min(checkpoint.tokenizer.vocab_size, checkpoint.full_model.get_input_embeddings().num_embeddings)
    inputs = probe_inputs(n_ids, first_id(checkpoint.tokenizer), checkpoint.model.device, two_stacks)
    calls = None if gates is None else checkpoint.attentions[kind].calls
    return real_rows(observe(checkpoint.model, inputs, Pass(calls=calls, gates=gates))[0], two_stacks)
