"""The passes of writing: each of one token with the keys and values of the earlier ones kept, where a model computes
with these what a pass over the whole text gives; else each over the whole text."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.batches import to_device

Way = Literal["kept, with places", "kept", "whole"]
"""Keys and values are kept, and the model is given the place of each token or counts for itself; or nothing is kept."""
WAYS: Final[tuple[Way, ...]] = ("kept, with places", "kept", "whole")
N_TRIED: Final = (8, 16)
"""Lengths of the text over which the ways are compared: of its beginning, which is passed at once, and of all."""
TOLERANCE: Final = {torch.float64: 1e-4, torch.float32: 1e-3, torch.float16: 3e-2, torch.bfloat16: 1e-1}
"""Largest difference of logits, relative to the largest, by number format; places are turned into angles in float32 in
all of them."""


@dataclass(frozen=True, eq=False)
class Kept:
    """What a model keeps of the tokens that have been passed."""

    values: Any
    frequencies: Mapping[str, Float[Tensor, " frequency"]]
    """Those of the model's rotary positions, by which the keys were turned; in some models they depend on the length of
    the text."""

    def is_turned_as(self, other: "Kept") -> bool:
        """Whether both were turned by the same frequencies."""
        return all(torch.equal(other.frequencies[name], values) for name, values in self.frequencies.items())


_ways: WeakKeyDictionary[Checkpoint, Way] = WeakKeyDictionary()


def way_of(checkpoint: Checkpoint) -> Way:
    """The quickest way in which a checkpoint writes what passes over the whole text would write; tried once."""
    if checkpoint not in _ways:
        _ways[checkpoint] = next(way for way in WAYS if way == "whole" or _agrees(checkpoint, way))
    return _ways[checkpoint]


def _agrees(checkpoint: Checkpoint, way: Way) -> bool:
    """Whether the steps of a text of random tokens have the logits of one pass over all of it."""
    n_first, n_all = (min(n_tokens, checkpoint.max_tokens) for n_tokens in N_TRIED)
    n_ids = min(checkpoint.tokenizer.vocab_size, checkpoint.full_model.get_input_embeddings().num_embeddings)
    ids = torch.randint(n_ids, (n_all,), generator=torch.Generator().manual_seed(0)).tolist()
    model, kept = checkpoint.full_model, None
    whole = observe(model, {"input_ids": to_device(torch.tensor([ids]), checkpoint.device)}, Pass()).logits[0].double()
    for n_passed in range(n_first, n_all + 1):
        logits, kept = passed(checkpoint, ids[:n_passed], kept, way, Pass())
        difference = (logits.double() - whole[n_passed - 1]).abs().max()
        if not difference <= TOLERANCE[model.dtype] * whole.abs().max():
            return False
    return True


def passed(
    checkpoint: Checkpoint, ids: Sequence[int], kept: Kept | None, way: Way, observed_pass: Pass
) -> tuple[Float[Tensor, " token"], Kept | None]:
    """Pass the tokens of a text that have not been passed.

    Args:
        ids: of the whole text.
        kept: of all its tokens but the last; None to pass all.
        way: if keys and values are not kept, all tokens are passed each time.

    Returns: logits after the last token, and what is kept; None if that would be of no use for the next token.
    """
    model = checkpoint.full_model
    known = inspect.signature(model.forward).parameters
    first = 0 if kept is None else len(ids) - 1
    inputs: dict[str, Any] = {"input_ids": to_device(torch.tensor([ids[first:]]), checkpoint.device)}
    if "logits_to_keep" in known:
        inputs["logits_to_keep"] = 1
    if "past_key_values" in known and way != "whole":
        inputs |= {"past_key_values": None if kept is None else kept.values, "use_cache": True}
    if "position_ids" in known and way == "kept, with places":
        inputs["position_ids"] = to_device(torch.arange(first, len(ids))[None], checkpoint.device)
    output = observe(model, inputs, observed_pass)
    values = None if way == "whole" else getattr(output, "past_key_values", None)
    # A copy: the row is a view of the logits of all tokens.
    return output.logits[0, -1].clone(), None if values is None else Kept(values, _frequencies(model))


def _frequencies(model: nn.Module) -> dict[str, Tensor]:
    """Copies, as some models compute them again in the same memory."""
    return {name: values.clone() for name, values in model.named_buffers() if name.endswith("inv_freq")}
