"""Changes of a model's weights in memory by heads: some removed, or each scaled.

Heads are slices of the weights of query, key, value and output, in three layouts: separate projections (BERT, RoBERTa,
DistilBERT, ELECTRA, T5, BART, ...), one projection for all three (GPT-2), and keys and values that several heads share
(Llama, Qwen, Mistral, ...).
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from attention_sieve.core.attention.kept_heads import KEPT_SDPA_NAME, KeptHeads, kept_heads, mark_kept
from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS, Kind
from attention_sieve.core.checkpoints.checkpoint import RemovedHeads, check_removed
from attention_sieve.core.errors import CheckpointError

SEPARATE: Final = (
    ("query", "key", "value"), ("q_lin", "k_lin", "v_lin"), ("q_proj", "k_proj", "v_proj"), ("q", "k", "v"),
)  # fmt: skip
FUSED: Final = "c_attn"
OUTPUTS: Final = ("out_lin", "out_proj", "o_proj", "o", "c_proj", "output.dense")
"""Output projections; in BERT, it is outside the attention module."""
SIZES: Final = ("head_dim", "attention_head_size", "key_value_proj_dim")
CROSS: Final = ("encoder_attn", "EncDecAttention")
POSITION_BIAS: Final = "relative_attention_bias"
SINKS: Final = "sinks"
"""A number for each head, the logit of its attention sink (GPT-OSS)."""


class _Conv1DOfNothing(Conv1D):
    """A projection without inputs, which Conv1D cannot compute."""

    def forward(self, x: Tensor) -> Tensor:
        """The bias alone."""
        return self.bias.expand(*x.shape[:-1], self.nf)


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionModule:
    """One layer's attention, with its projections."""

    module: Any
    inputs: tuple[Any, ...]
    """Projections to query, key and value; or one to all three."""
    output: Any
    size: int
    """Channels of a head."""

    @property
    def is_fused(self) -> bool:
        """Whether one projection makes query, key and value."""
        return len(self.inputs) == 1

    @property
    def heads(self) -> tuple[int, ...]:
        """Its heads, counted on the query side; some may have been removed before."""
        kept = kept_heads(self.module)
        n_rows = _n_rows(self.inputs[0]) // (3 if self.is_fused else 1)
        return tuple(range(n_rows // self.size)) if kept is None else kept.heads

    @property
    def n_heads(self) -> int:
        """Number of heads, removed ones included."""
        kept = kept_heads(self.module)
        return len(self.heads) if kept is None else kept.n_heads

    @property
    def n_shared(self) -> int:
        """Number of heads that share keys and values."""
        return 1 if self.is_fused else len(self.heads) * self.size // max(1, _n_rows(self.inputs[1]))


def attention_modules(name: str, model: PreTrainedModel) -> dict[Kind, list[AttentionModule]]:
    """The attention of each layer, by kind. Some heads may have been removed by remove_heads.

    Raises: CheckpointError for a model from which heads cannot be removed.
    """
    two_stacks = bool(getattr(model.config, "is_encoder_decoder", False))
    modules: dict[Kind, list[AttentionModule]] = {kind: [] for kind in (TWO_STACKS if two_stacks else ONE_STACK)}
    by_path = dict(model.named_modules())
    for path, module in by_path.items():
        inputs = _inputs(module)
        if inputs and (attention := _attention_module(path, by_path, inputs)) is not None:
            modules[_kind(path, two_stacks)].append(attention)
    layers = {len(layers_of_kind) for layers_of_kind in modules.values()}
    is_shared = not two_stacks and layers != {getattr(model.config, "num_hidden_layers", None)}
    uneven = any(len({layer.n_heads for layer in layers_of_kind}) != 1 for layers_of_kind in modules.values())
    if is_shared or uneven or not type(model)._can_set_attn_implementation():
        raise CheckpointError(
            f"Heads cannot be removed from {name} ({type(model).__name__}): the layout of its heads' weights differs "
            "from those of BERT, GPT-2, T5, BART and Llama, or layers share weights. Switch heads off instead, which "
            "works for every checkpoint."
        )
    return modules


def remove_heads(name: str, model: PreTrainedModel, removed: RemovedHeads) -> None:
    """Remove heads from a model in place; its weights may be on the meta device.

    Raises: CheckpointError for heads that the model lacks, and for a model from which heads cannot be removed.
    """
    modules = attention_modules(name, model) if removed else {}
    for kind, heads in removed:
        n_heads = modules[kind][0].n_heads
        check_removed(name, kind, heads, len(modules[kind]), n_heads)
        absent = set(heads)
        for layer, attention in enumerate(modules[kind]):
            kept = tuple(head for head in attention.heads if (layer, head) not in absent)
            if len(kept) < len(attention.heads):
                _slice(attention, [attention.heads.index(head) for head in kept])
                mark_kept(attention.module, KeptHeads(kept, n_heads))
    if any(POSITION_BIAS in path for path, _ in model.named_modules()) and removed:
        model.set_attn_implementation(KEPT_SDPA_NAME)


def class_without_heads(name: str, auto_class: Any, config: Any, removed: RemovedHeads) -> Any:
    """A class whose from_pretrained loads a checkpoint from which heads were removed. A class of transformers, such as
    AutoModel or BertModel, is returned unchanged if no head was removed.

    transformers rejects weights whose shapes differ from those of the model built from the configuration, so the heads
    are removed from that model before its weights are loaded.

    Raises: CheckpointError, see remove_heads.
    """
    if not removed:
        return auto_class
    with torch.device("meta"):
        is_model = issubclass(auto_class, PreTrainedModel)
        shell = (auto_class if is_model else auto_class.from_config)(deepcopy(config))
    remove_heads(name, shell, removed)
    model_class = type(shell)

    @wraps(model_class.__init__)
    def init(self: PreTrainedModel, *values: Any, **keywords: Any) -> None:
        model_class.__init__(self, *values, **keywords)
        remove_heads(name, self, removed)
        self.__class__ = model_class  # it is saved under its own name

    return type(model_class.__name__, (model_class,), {"__init__": init, "__module__": model_class.__module__})


def scale_heads(name: str, model: PreTrainedModel, kind: Kind, gates: Float[Tensor, "layer head"]) -> None:
    """Multiply the weights that read the output of each head by its gate, in place: the model computes as if gated.

    Raises: CheckpointError for a model whose weights by head have an unknown layout.
    """
    for layer, attention in enumerate(attention_modules(name, model)[kind]):
        for index, head in enumerate(attention.heads):
            channels = slice(index * attention.size, (index + 1) * attention.size)
            weight = attention.output.weight.data
            (weight[channels] if isinstance(attention.output, Conv1D) else weight[:, channels]).mul_(gates[layer, head])


def _inputs(module: nn.Module) -> tuple[Any, ...]:
    """Projections to query, key and value, if a module has them."""
    fused = getattr(module, FUSED, None)
    if isinstance(fused, Conv1D) and not hasattr(module, "q_attn"):
        return (fused,)
    for names in SEPARATE:
        projections = tuple(getattr(module, name, None) for name in names)
        if all(isinstance(projection, nn.Linear) for projection in projections):
            return projections
    return ()


def _attention_module(path: str, by_path: dict[str, nn.Module], inputs: tuple[Any, ...]) -> AttentionModule | None:
    """None for a module with weights by head other than the four projections, and sinks."""
    module = by_path[path]
    size = next((getattr(module, name) for name in SIZES if hasattr(module, name)), None)
    parent = path.rpartition(".")[0]
    candidates = [f"{path}.{name}" for name in OUTPUTS] + [f"{parent}.output.dense"]
    output = next((by_path[candidate] for candidate in candidates if candidate in by_path), None)
    projection_ids = {
        id(weights) for projection in (*inputs, output) if projection for weights in projection.parameters()
    }
    other_weights = [
        weights for name, weights in module.named_parameters() if POSITION_BIAS not in name and name != SINKS
    ]
    if (
        size is None
        or output is None
        or any(id(tensor) not in projection_ids and tensor.numel() != size for tensor in other_weights)
    ):
        return None
    return AttentionModule(module=module, inputs=inputs, output=output, size=size)


def _kind(path: str, two_stacks: bool) -> Kind:
    if not two_stacks:
        return "self"
    path_names = path.split(".")
    return "encoder" if "encoder" in path_names else "cross" if path_names[-1] in CROSS else "decoder"


def _slice(attention: AttentionModule, kept: Sequence[int]) -> None:
    """Keep the weights of some of the current heads, given by index."""
    module, size, n_heads = attention.module, attention.size, len(attention.heads)
    if attention.is_fused:
        _keep_rows(
            attention.inputs[0],
            [projection_index * n_heads + head for projection_index in range(3) for head in kept],
            size,
        )
        module.split_size = [len(kept) * size] * 3  # a single size would split an empty tensor into one part only
    else:
        kv_heads = _kv_heads(kept, attention.n_shared)
        _keep_rows(attention.inputs[0], kept, size)
        for projection in attention.inputs[1:]:
            _keep_rows(projection, kv_heads, size)
        if hasattr(module, "num_key_value_groups"):
            module.num_key_value_groups = len(kept) // len(kv_heads) if kv_heads else 1
    _keep_columns(attention.output, kept, size)
    if hasattr(module, SINKS):
        setattr(module, SINKS, _kept(getattr(module, SINKS), kept, 1, dim=0))
    if isinstance(getattr(module, "num_heads", None), int):
        module.num_heads = len(kept)


def _kv_heads(kept: Sequence[int], shared: int) -> list[int]:
    """Heads of keys and values for the remaining heads: each once if the same number of heads share each, otherwise one
    per remaining head."""
    kv_of_kept = [head // shared for head in kept]
    distinct = sorted(set(kv_of_kept))
    return distinct if len({kv_of_kept.count(head) for head in distinct}) <= 1 else kv_of_kept


def _n_rows(projection: Any) -> int:
    return int(projection.nf if isinstance(projection, Conv1D) else projection.out_features)


def _keep_rows(projection: Any, heads: Sequence[int], size: int) -> None:
    if isinstance(projection, Conv1D):
        projection.weight = _kept(projection.weight, heads, size, dim=1)
        projection.nf = len(heads) * size
    else:
        projection.weight = _kept(projection.weight, heads, size, dim=0)
        projection.out_features = len(heads) * size
    if projection.bias is not None:
        projection.bias = _kept(projection.bias, heads, size, dim=0)


def _keep_columns(projection: Any, heads: Sequence[int], size: int) -> None:
    if isinstance(projection, Conv1D):
        projection.weight = _kept(projection.weight, heads, size, dim=0)
        projection.nx = len(heads) * size
        projection.__class__ = Conv1D if heads else _Conv1DOfNothing
    else:
        projection.weight = _kept(projection.weight, heads, size, dim=1)
        projection.in_features = len(heads) * size


def _kept(weights: Tensor, heads: Sequence[int], size: int, dim: int) -> nn.Parameter:
    """Weights of some heads, by slices: a tensor of indices would be on the meta device as well."""
    slices = [weights.narrow(dim, head * size, size) for head in heads] or [weights.narrow(dim, 0, 0)]
    return nn.Parameter(torch.cat(slices, dim).detach().clone(), requires_grad=weights.requires_grad)
