"""Attention masks as transformers passes them to our attention function, evaluated one tile at a time."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils._pytree import tree_map_only
from transformers.masking_utils import (
    bidirectional_mask_function,
    causal_mask_function,
    prepare_padding_mask,
    sdpa_mask,
)

from attention_sieve.core.attention.settings import UNLIMITED, Reach

FAR: Final = 1 << 17
"""Query position at which the size of a sliding window is measured, so far from both ends that they do not cut it;
wider windows count as unlimited."""
KEPT_ENTRIES: Final = 1 << 22
"""Entries of evaluated tiles cached for later layers; those of short texts fit, those of long ones are recomputed."""


class TileMask:
    """Which keys each query may attend to in one pass; shared by all layers of one kind of attention."""

    def __init__(self, function: Callable[..., Any], padding: Bool[Tensor, "text key"] | None, **sizes: Any) -> None:
        """Store the mask as transformers describes it.

        Args:
            function: mask function of text, head, query and key position, as composed by transformers.
            padding: False for padded keys; None if there is no padding.
            sizes: batch_size, q_length, kv_length, q_offset, kv_offset, use_vmap and device, as for `sdpa_mask`.
        """
        self._function, self._padding, self._sizes = function, padding, sizes
        self._kept: dict[tuple[object, ...], Float[Tensor, "text 1 query key"]] = {}
        self._n_kept = 0
        self._start = sizes["q_offset"] - sizes["kv_offset"]

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Compute with the whole mask as a tensor, where a model's own code does so (Doge)."""
        whole = partial(tree_map_only, cls, cls.tensor)
        return func(*whole(args), **whole(kwargs or {}))

    def __getitem__(self, place: Any) -> Tensor:
        """Part of the whole mask as a tensor, for such code."""
        return self.tensor()[place]

    def __getattr__(self, name: str) -> Any:
        """Whatever else such code asks of a mask, as of that tensor (Qwen 4)."""
        if name.startswith("_"):  # while a mask is made or copied, it has no sizes yet
            raise AttributeError(name)
        return getattr(self.tensor(), name)

    @property
    def dtype(self) -> torch.dtype:
        """Number format of that tensor."""
        return torch.bool

    @property
    def device(self) -> torch.device:
        """Where that tensor would be."""
        return torch.device(self._sizes["device"])

    def tensor(self) -> Bool[Tensor, "text 1 query key"]:
        """The whole mask: True where attention is allowed."""
        return self._visible(self._padding, self._sizes)

    @property
    def is_causal(self) -> bool:
        """Whether the mask is plainly causal: apart from padding, only later keys are hidden."""
        return self._function is causal_mask_function

    def reach(self) -> Reach:
        """How far a query can attend, padding aside.

        Raises: ValueError for a pattern other than a window, such as attention within chunks.
        """
        if self._function in (bidirectional_mask_function, causal_mask_function):
            return UNLIMITED
        # Two queries, because within chunks each sees as far as its place in the chunk allows.
        reaches = {self._reach_of(query) for query in (FAR, FAR + 777)}
        if len(reaches) > 1:
            raise ValueError("Not every query of the layer sees equally far.")
        return reaches.pop()

    def _reach_of(self, query: int) -> Reach:
        # Evaluated, because a mask function is a closure that does not tell its window.
        sizes = self._sizes | {"batch_size": 1, "q_length": 1, "kv_length": 2 * FAR, "q_offset": query, "kv_offset": 0}
        keys = self._visible(None, sizes).flatten().nonzero().flatten()
        first, last = int(keys[0]), int(keys[-1])
        if len(keys) != last - first + 1:
            raise ValueError("A query of the layer sees keys that are not all neighbours.")
        return Reach(None if first == 0 else query - first, None if last == 2 * FAR - 1 else last - query)

    def n_visible_keys(self, queries: slice, n_keys: int) -> int:
        """Number of leading keys that at least one of these queries may attend to."""
        return min(n_keys, self._start + queries.stop) if self.is_causal else n_keys

    def add_to(self, logits: Float[Tensor, "text head query key"], texts: slice, queries: slice) -> None:
        """Mask the logits in place wherever attention is not allowed."""
        first = 0
        if self._padding is None and self.is_causal:
            # Only the keys that are visible to some but not all of these queries.
            first = min(max(0, self._start + queries.start), logits.shape[-1])
        addend = self.addend(texts, queries, slice(first, logits.shape[-1]), logits.dtype)
        logits[..., first:] += addend.to(logits.device)  # a model may be spread over several devices

    def addend(
        self, texts: slice, queries: slice, keys: slice, dtype: torch.dtype
    ) -> Float[Tensor, "#text 1 #query key"]:
        """Additive mask of a tile's logits: 0 where attention is allowed."""
        # Only padding hides keys, from all queries alike: one row is broadcast over them.
        if self._function is bidirectional_mask_function:
            queries = slice(0, 1)
        # Slices are not hashable before Python 3.12.
        key = (queries.start, queries.stop, keys.start, keys.stop, dtype)
        addend = self._kept.get(key)
        if addend is None:
            # Of all texts, not just those of the tile, so that tiles and layers share what is kept by queries and keys.
            allowed = self._allowed(queries, keys)
            addend = torch.zeros_like(allowed, dtype=dtype).masked_fill_(~allowed, _hidden(dtype))
            if self._n_kept + addend.numel() <= KEPT_ENTRIES:
                self._kept[key] = addend
                self._n_kept += addend.numel()
        return addend[texts] if addend.shape[0] > 1 else addend

    def _allowed(self, queries: slice, keys: slice) -> Bool[Tensor, "text 1 query key"]:
        sizes = self._sizes | {
            "q_length": queries.stop - queries.start,
            "kv_length": keys.stop - keys.start,
            "q_offset": self._sizes["q_offset"] + queries.start,
            "kv_offset": self._sizes["kv_offset"] + keys.start,
        }
        # The same for every text, and broadcast over them.
        if self._padding is None and self.is_causal:
            sizes["batch_size"] = 1
        return self._visible(self._padding, sizes)

    def _visible(self, padding: Bool[Tensor, "text key"] | None, sizes: dict[str, Any]) -> Bool[Tensor, "*of"]:
        return sdpa_mask(
            mask_function=self._function,
            attention_mask=padding,
            allow_is_causal_skip=False,
            allow_is_bidirectional_skip=False,
            **sizes,
        )


def attention_mask_function(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Bool[Tensor, "batch key"] | None = None,
    use_vmap: bool = False,
    device: torch.device | str = "cpu",
    **kwargs: Any,
) -> TileMask | None:
    """The mask that transformers passes to the attention function; None if every key may be attended to."""
    padding = prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if padding is None and mask_function is bidirectional_mask_function:
        return None
    return TileMask(
        mask_function,
        padding,
        batch_size=batch_size,
        q_length=q_length,
        kv_length=kv_length,
        q_offset=q_offset,
        kv_offset=kv_offset,
        use_vmap=use_vmap,
        device=device,
    )


def add_tensor(logits: Float[Tensor, "text head query key"], mask: Tensor, texts: slice, queries: slice) -> None:
    """Apply a mask tensor built by the model itself: boolean (True where attention is allowed) or additive."""
    rows = mask[texts] if mask.shape[0] > 1 else mask
    rows = (rows[:, :, queries] if rows.shape[2] > 1 else rows)[..., : logits.shape[-1]]
    if rows.dtype == torch.bool:
        logits.masked_fill_(~rows, _hidden(logits.dtype))
    else:
        # A model may add minus infinity, which times a probability of 0 would make the entropy NaN.
        logits += rows.to(logits.dtype).clamp_min(_hidden(logits.dtype))


def _hidden(dtype: torch.dtype) -> float:
    """Logit of a masked entry. Not the smallest number, because its products with probabilities may sum to infinity."""
    return torch.finfo(dtype).min / 2
