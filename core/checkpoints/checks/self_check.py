"""Self-check of a loaded model: finds its attention layers, and verifies that the observed attention is the one it
uses."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from attention_sieve.core.attention.masks import TileMask
from attention_sieve.core.attention.observed import ATTENTION_NAME, observe
from attention_sieve.core.attention.observers import Pass, Tile, current_pass
from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS, UNLIMITED, Kind, Reach
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers
from attention_sieve.core.errors import CheckpointError, first_line

ROW_SUM_TOLERANCE: Final = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 3e-2}
"""By number format; models that compute attention in their own code round in that format."""
OUTPUT_TOLERANCE: Final = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 3e-2, torch.bfloat16: 1e-1}
"""Maximum difference with and without the registered function, relative to the largest output."""
EAGER_TOLERANCE: Final = 1e-5
"""Lower bound of that tolerance if the model otherwise uses transformers' eager attention, whose softmax is float32."""
SOURCE_LENGTHS: Final = (7, 12)
TARGET_LENGTHS: Final = (9, 5)
"""Lengths of the two texts of the self-check; all differ, so that padding is tested and kinds can be distinguished."""


class ProbeObserver:
    """Records the attention calls of a model, and checks the observed attention."""

    indicators = None
    wants_entropy = False
    wants_outputs = False

    def __init__(self, lengths: Mapping[Kind, tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
        """Take the lengths of queries and keys of each text, by the kind of attention."""
        self._lengths = lengths
        self.calls: defaultdict[Kind, dict[int, int]] = defaultdict(dict)
        """Number of heads of each call, by kind."""
        self.causal: dict[Kind, bool] = {}
        self.own_layers: dict[int, int | None] = {}
        """Number that the model itself gives to the layer of each call."""
        self.masks: dict[int, TileMask | None] = {}
        """Mask of each call."""
        self.unknown: set[tuple[int, int]] = set()
        """Numbers of queries and keys that match no kind of attention."""
        self.row_error = 0.0

    def observe(self, tile: Tile) -> None:
        """Record heads, mask, largest row-sum error, and causality; each tile holds the whole batch."""
        shape = (tile.queries.stop, tile.probabilities.shape[-1])
        kind = next((kind for kind, sides in self._lengths.items() if tuple(map(max, sides)) == shape), None)
        if kind is None:
            self.unknown.add(shape)
            return
        self.calls[kind][tile.layer] = tile.probabilities.shape[1]
        self.masks[tile.layer] = tile.mask
        current = current_pass.get()
        self.own_layers[tile.layer] = None if current is None else current.own_layer
        for row, (n_queries, n_keys) in enumerate(zip(*self._lengths[kind])):
            heads = slice(None) if tile.kept is None else list(tile.kept)
            real = tile.probabilities[row, heads, :n_queries, :n_keys]
            expected = 1 if tile.row_sums is None else tile.row_sums[row, heads, :n_queries]
            error = float((real.sum(-1) - expected).abs().max()) if len(real) else 0.0
            self.row_error = float(np.maximum(self.row_error, error))  # propagates NaN, unlike max()
            self.causal[kind] = self.causal.get(kind, True) and not bool(real.triu(1).any())


def self_check(
    model: PreTrainedModel, name: str, vocabulary: int, two_stacks: bool, device: torch.device
) -> dict[Kind, AttentionLayers]:
    """Switch a model to the registered attention function and verify it. It is in evaluation mode, and knows as many
    ids as its vocabulary has.

    Attention rows must sum to 1, the output must be unchanged, and gates must affect the output.

    Returns: the layers of each kind of attention.
    Raises: CheckpointError with the measured errors.
    """
    inputs = probe_inputs(vocabulary, device, two_stacks)
    expected = _plain_output(model, name, inputs)
    allowed = max(OUTPUT_TOLERANCE[model.dtype], EAGER_TOLERANCE if is_eager(model) else 0)
    probe = _probe(model, name, inputs, two_stacks)
    output = real_rows(observe(model, inputs, Pass(observers=[probe]))[0], two_stacks)
    largest = max(float(expected.abs().max()), 1e-12)
    difference = float((output - expected).abs().max()) / largest
    if not (probe.row_error <= ROW_SUM_TOLERANCE[model.dtype] and difference <= allowed):
        raise CheckpointError(
            f"{name} failed its self-check: attention rows differ from 1 by {probe.row_error:.1e} (allowed "
            f"{ROW_SUM_TOLERANCE[model.dtype]:.0e}) and the output changes by {difference:.1e} when observed (allowed "
            f"{allowed:.0e}). Its scores would be wrong, so it is not used."
        )
    attentions = _attentions(probe, model, name, two_stacks)
    for kind, attention in attentions.items():
        zero_gates = torch.zeros((attention.n_layers, attention.n_heads), device=device)
        output_without = real_rows(observe(model, inputs, Pass(calls=attention.calls, gates=zero_gates))[0], two_stacks)
        if torch.equal(output_without, output):
            raise CheckpointError(
                f"{name} failed its self-check: switching off all heads of its {kind} attention changes nothing, so "
                "what is observed is not what the model computes with. It is not used."
            )
    return attentions


def _probe(model: PreTrainedModel, name: str, inputs: Mapping[str, Tensor], two_stacks: bool) -> ProbeObserver:
    """Switch a model to the registered attention function, or tap its softmax, and observe one pass."""
    lengths: dict[Kind, tuple[tuple[int, ...], tuple[int, ...]]] = {"self": (SOURCE_LENGTHS, SOURCE_LENGTHS)}
    if two_stacks:
        lengths = {
            "encoder": (SOURCE_LENGTHS, SOURCE_LENGTHS),
            "decoder": (TARGET_LENGTHS, TARGET_LENGTHS),
            "cross": (TARGET_LENGTHS, SOURCE_LENGTHS),
        }
    model.set_attn_implementation(ATTENTION_NAME)  # has no effect on a model without the interface, which is tapped
    probe = ProbeObserver(lengths)
    observe(model, inputs, Pass(observers=[probe]))
    if set(probe.calls) == set(lengths):
        return probe
    raise CheckpointError(
        f"{name} ({type(model).__name__}) computes attention in a way that cannot be observed. "
        "Choose a checkpoint of another family, such as BERT, RoBERTa, GPT-2, Llama, T5 or BART."
    )


def _attentions(
    probe: ProbeObserver, model: PreTrainedModel, name: str, two_stacks: bool
) -> dict[Kind, AttentionLayers]:
    layers: dict[Kind, AttentionLayers] = {}
    for kind, calls in probe.calls.items():
        heads = set(calls.values())
        if len(heads) > 1:
            raise CheckpointError(
                f"The layers of {name} have different numbers of heads ({sorted(heads)}), "
                "and equal numbers are needed. Choose another checkpoint."
            )
        n_heads, by_layer = heads.pop(), tuple(calls) if two_stacks else _by_own_layer(probe, tuple(calls), model)
        missing = [layer for layer, call in enumerate(by_layer) if call is None]
        layers[kind] = AttentionLayers(
            calls=by_layer,
            n_heads=n_heads,
            causal=probe.causal[kind],
            reaches=_reaches([None if call is None else probe.masks[call] for call in by_layer], name),
            removed=tuple((layer, head) for layer in missing for head in range(n_heads)),
        )
    if probe.unknown:
        raise CheckpointError(
            f"{name} ({type(model).__name__}) computes some of its attention over other tokens than the text's "
            f"(queries x keys: {sorted(probe.unknown)}), which cannot be observed. Choose another family, such as BERT."
        )
    return {kind: layers[kind] for kind in (TWO_STACKS if two_stacks else ONE_STACK)}


def _by_own_layer(probe: ProbeObserver, calls: Sequence[int], model: PreTrainedModel) -> tuple[int | None, ...]:
    """The calls by the model's own number of their layers, None for layers without attention.

    A model that gives no numbers, or the same to several calls, has its calls numbered as they come.
    """
    own = [layer for call in calls if (layer := probe.own_layers[call]) is not None]
    n_layers = getattr(model.config, "num_hidden_layers", 0)
    if len(own) < len(calls) or own != sorted(set(own)) or not 0 <= own[-1] < n_layers:
        return tuple(calls)
    return tuple(dict(zip(own, calls)).get(layer) for layer in range(n_layers))


def _reaches(masks: Sequence[TileMask | None], name: str) -> tuple[Reach, ...]:
    """Attention window of each layer; empty if no layer has one."""
    try:
        reaches = tuple(UNLIMITED if mask is None else mask.reach() for mask in masks)
    except ValueError as error:
        raise CheckpointError(
            f"{name} restricts attention to a pattern other than a window ({error}), so its scores would be "
            "meaningless. Choose a checkpoint of another family."
        ) from error
    return () if set(reaches) == {UNLIMITED} else reaches


def _plain_output(model: PreTrainedModel, name: str, inputs: Mapping[str, Tensor]) -> Float[Tensor, "row channel"]:
    try:
        with torch.inference_mode():
            return real_rows(model(**inputs)[0], "decoder_input_ids" in inputs)
    except Exception as error:  # models for pictures, sound or tables fail in their own ways
        raise CheckpointError(
            f"{name} ({type(model).__name__}) cannot read a text of {max(SOURCE_LENGTHS)} tokens "
            f"in {str(model.dtype).removeprefix('torch.')} ({first_line(error)}). Choose another number format, or a "
            "checkpoint of a text model, such as BERT."
        ) from error


def probe_inputs(vocabulary: int, device: torch.device, two_stacks: bool) -> dict[str, Tensor]:
    """A batch of two texts, the shorter one padded."""
    generator = torch.Generator().manual_seed(0)

    def side(lengths: tuple[int, ...], prefix: str) -> dict[str, Tensor]:
        shape = (len(lengths), max(lengths))
        ids = torch.randint(min(5, vocabulary - 1), vocabulary, shape, generator=generator)
        mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()
        return {f"{prefix}input_ids": ids.to(device), f"{prefix}attention_mask": mask.to(device)}

    return side(SOURCE_LENGTHS, "") | (side(TARGET_LENGTHS, "decoder_") if two_stacks else {})


def real_rows(output: Float[Tensor, "text token channel"], two_stacks: bool) -> Float[Tensor, "row channel"]:
    """Rows of the output without padding, in float64."""
    lengths = TARGET_LENGTHS if two_stacks else SOURCE_LENGTHS
    return torch.cat([rows[:n_tokens] for rows, n_tokens in zip(output, lengths)]).cpu().double()


def is_eager(model: PreTrainedModel) -> bool:
    """Whether a model uses transformers' eager attention."""
    return model.config._attn_implementation == "eager"
