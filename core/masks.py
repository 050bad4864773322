"""The masks of attention: as transformers hands them to the door, and as numbers that are added before the softmax."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers.masking_utils import bidirectional_mask_function, prepare_padding_mask, sdpa_mask


def door_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] | None = None,
    attention_mask: Bool[Tensor, "batch key"] | None = None,
    **kwargs: Any,
) -> Bool[Tensor, "batch 1 query key"] | None:
    """The mask transformers hands to the door: one row per text where only padding is masked, else the full one."""
    if mask_function is bidirectional_mask_function:
        padding = prepare_padding_mask(attention_mask, kv_length, kv_offset)
        return None if padding is None else padding[:, None, None, kv_offset : kv_offset + kv_length]
    kwargs |= {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    if mask_function is not None:
        kwargs["mask_function"] = mask_function
    return sdpa_mask(
        batch_size, q_length, kv_length, q_offset=q_offset, kv_offset=kv_offset, attention_mask=attention_mask, **kwargs
    )


def addend(mask: Tensor, dtype: torch.dtype) -> Float[Tensor, "batch 1 query key"]:
    """0 where attention may go and the dtype's least number elsewhere; a mask of numbers stays as it is."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)
