"""The last pass of a checkpoint with all heads on, kept layer by layer, and what the model says without some of them:
each such pass begins at the first layer from which a head is missing."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import Head, Kind
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import BATCH_TOKENS
from attention_sieve.core.passes.reuse import LayerReuse

MOST_KEPT: Final = 1 << 24
"""Numbers of all layers together that are kept of a text: 64 MB. Of a longer one every pass computes all layers."""
TOLERANCE: Final = {"float64": 1e-9, "float32": 1e-5, "float16": 3e-2, "bfloat16": 1e-1}
"""Largest difference of logits between a pass that begins above kept layers and a whole one, relative to the largest
logit (at least 1), by number format."""
Heads = tuple[Head, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Asked:
    """What is read off one text."""

    inputs: dict[str, Tensor]
    """Of the model."""
    kind: Kind
    """Of attention that heads are missing from."""
    token: int | None
    """Row of the logits; None where there is one for the text."""

    def is_as(self, other: "_Asked") -> bool:
        same = (self.kind, self.token, self.inputs.keys()) == (other.kind, other.token, other.inputs.keys())
        return same and all(torch.equal(self.inputs[name], other.inputs[name]) for name in self.inputs)


@dataclass(eq=False)
class _Kept:
    """Of one checkpoint."""

    reuse: LayerReuse
    asked: _Asked | None = None
    """Of the recorded pass; None before the first one."""
    logits: Tensor | None = None
    is_sound: bool | None = None
    """Whether passes above kept layers have the logits of whole ones; None until it is tried."""


_kept: WeakKeyDictionary[Checkpoint, _Kept] = WeakKeyDictionary()


def logits_without(
    checkpoint: Checkpoint,
    inputs: dict[str, Tensor],
    kind: Kind,
    heads_off: Sequence[Heads],
    token: int | None = None,
) -> Float[Tensor, "set choice"]:
    """Logits of the head of a checkpoint for one text, without each of several sets of heads.

    Args:
        inputs: of the model, for one text.
        kind: of attention that the heads belong to.
        heads_off: sets of heads, of which one may be empty; sets of the same first layer share passes.
        token: position whose logits are wanted; None where the model has one row for the text.
    """
    if token is not None and "logits_to_keep" in inspect.signature(checkpoint.full_model.forward).parameters:
        inputs = {**inputs, "logits_to_keep": torch.tensor([token], device=inputs["input_ids"].device)}
        token = 0
    asked = _Asked(inputs=inputs, kind=kind, token=token)
    kept, rows = _recorded(checkpoint, asked), dict[Heads, Tensor]()
    for batch in _batches(checkpoint, asked, tuple(dict.fromkeys(heads_off))):
        if batch == ((),) and kept is not None and kept.logits is not None:
            logits = kept.logits
        else:
            logits = _pass(checkpoint, asked, batch, kept if _is_sound(checkpoint, asked, kept) else None)
        rows |= zip(batch, logits, strict=True)
    return torch.stack([rows[heads] for heads in heads_off]).cpu().double()


def _recorded(checkpoint: Checkpoint, asked: _Asked) -> _Kept | None:
    """What is kept of the pass of a text with all heads on, recorded if it was another text; None where nothing is to
    be kept."""
    config = checkpoint.full_model.config.get_text_config()
    n_tokens = sum(values.shape[1] for name, values in asked.inputs.items() if name.endswith("input_ids"))
    if n_tokens * config.hidden_size * checkpoint.attentions[asked.kind].n_layers > MOST_KEPT:
        _kept.pop(checkpoint, None)
        return None
    kept = _kept.get(checkpoint)
    if kept is None:
        kept = _kept[checkpoint] = _Kept(LayerReuse(checkpoint.full_model))
    if kept.is_sound is False:
        return None
    if kept.asked is None or not kept.asked.is_as(asked):
        kept.asked = None  # until this one is recorded
        with kept.reuse.recording(1):
            kept.logits = _run(kept.reuse.model, checkpoint, asked, asked.inputs, None)
        kept.asked = asked
    return kept


def _is_sound(checkpoint: Checkpoint, asked: _Asked, kept: _Kept | None) -> bool:
    """Whether logits without a head of the last layer are those of a whole pass; tried once."""
    if kept is None:
        return False
    if kept.is_sound is None:
        layers = checkpoint.attentions[asked.kind]
        last = max(layer for layer, call in enumerate(layers.calls) if call is not None)
        sets: tuple[Heads, ...] = (((last, 0),),)
        above, whole = (_pass(checkpoint, asked, sets, one) for one in (kept, None))
        allowed = TOLERANCE[checkpoint.dtype] * max(1.0, float(whole.abs().max()))
        kept.is_sound = bool((above - whole).abs().max() <= allowed)
    return kept.is_sound


def _batches(checkpoint: Checkpoint, asked: _Asked, sets: tuple[Heads, ...]) -> Iterator[tuple[Heads, ...]]:
    """Sets in batches, of which each begins at one layer."""
    n_each = max(1, BATCH_TOKENS[checkpoint.device] // sum(values.shape[-1] for values in _of_text(asked).values()))
    by_layer: dict[int, list[Heads]] = {}
    for heads in sets:
        by_layer.setdefault(min((layer for layer, _ in heads), default=-1), []).append(heads)
    for alike in by_layer.values():
        for first in range(0, len(alike), n_each):
            yield tuple(alike[first : first + n_each])


def _of_text(asked: _Asked) -> dict[str, Tensor]:
    """The inputs that have a row for each text."""
    return {name: values for name, values in asked.inputs.items() if values.dim() > 1}


def _pass(
    checkpoint: Checkpoint, asked: _Asked, sets: tuple[Heads, ...], kept: _Kept | None
) -> Float[Tensor, "set choice"]:
    """Logits without each set, in one pass over copies of the text, above the layers that are kept."""
    layers = checkpoint.attentions[asked.kind]
    gates = torch.ones((len(sets), layers.n_layers, layers.n_heads), device=checkpoint.device)
    for row, heads in enumerate(sets):
        for layer, head in heads:
            gates[row, layer, head] = 0
    copies = {name: values.repeat(len(sets), 1) for name, values in _of_text(asked).items()}
    first = min((layer for heads in sets for layer, _ in heads), default=None)
    if kept is None or first is None:
        return _run(checkpoint.full_model, checkpoint, asked, asked.inputs | copies, gates)
    with kept.reuse.above(layers.calls[first], len(sets)):
        return _run(kept.reuse.model, checkpoint, asked, asked.inputs | copies, gates)


def _run(
    model: Any, checkpoint: Checkpoint, asked: _Asked, inputs: dict[str, Tensor], gates: Tensor | None
) -> Float[Tensor, "set choice"]:
    logits = observe(model, inputs, Pass(calls=checkpoint.attentions[asked.kind].calls, gates=gates)).logits
    return logits if asked.token is None else logits[:, asked.token].clone()  # those of all tokens may fill the memory
