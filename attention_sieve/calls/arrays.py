"""Attention as arrays, for other programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float32

from attention_sieve.calls.given import opened, pass_settings_of, text_given
from attention_sieve.core.attention.settings import Kind
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.maps.command import bytes_of
from attention_sieve.core.passes.texts import prepare


@dataclass(frozen=True, eq=False, kw_only=True)
class Attention:
    """Attention of all heads on one text, as arrays for other programs."""

    kind: Kind
    """self, or one of the three of an encoder-decoder."""
    query_tokens: list[str]
    key_tokens: list[str]
    weights: Float32[np.ndarray, "layer head query key"]
    """The rows of a head sum to 1, in a model with attention sinks (GPT-OSS) to what its sink leaves: it is no key, and
    takes the rest. NaN for heads that are not there."""
    second: int | None
    """Index of the first token of the second segment; None for one segment."""

    def bertviz(self) -> dict[str, Any]:
        """Keywords of BertViz: `head_view(**attention.bertviz())`, and `model_view` likewise.

        Returns: attention as a tuple with a tensor (1, heads, queries, keys) for each layer, and the tokens.
        """
        import torch

        maps = tuple(torch.from_numpy(layer)[None] for layer in self.weights)
        if self.kind == "self":
            return {"attention": maps, "tokens": self.query_tokens, "sentence_b_start": self.second}
        encoder_tokens = {} if self.kind == "decoder" else {"encoder_tokens": self.key_tokens}
        decoder_tokens = {} if self.kind == "encoder" else {"decoder_tokens": self.query_tokens}
        return {f"{self.kind}_attention": maps, **encoder_tokens, **decoder_tokens}

    def circuitsvis(self, layer: int) -> dict[str, Any]:
        """Keywords of CircuitsVis: `circuitsvis.attention.attention_patterns(**attention.circuitsvis(layer=3))`.

        Args:
            layer: index of the layer, from 0.

        Returns: attention (heads, queries, keys), and the tokens.

        Raises: AnalysisError for a layer that is not there, and for cross-attention, whose keys are other tokens.
        """
        if self.kind == "cross":
            raise AnalysisError("CircuitsVis shows a text that attends to itself. Choose the encoder or the decoder.")
        if not 0 <= layer < len(self.weights):
            raise AnalysisError(f"There is no layer {layer}. The layers are 0 to {len(self.weights) - 1}.")
        return {"tokens": self.query_tokens, "attention": self.weights[layer]}


def attention(
    model: Any,
    text: str | tuple[str, str],
    *,
    tokenizer: Any = None,
    attention: Kind | None = None,
    off: Sequence[tuple[int, int]] = (),
) -> Attention:
    """Attention of all heads on one text, for BertViz, CircuitsVis and programs of one's own.

    Args:
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        text: a string, or a pair of strings for two segments; source and target of an encoder-decoder.
        tokenizer: that of a model in memory.
        attention: encoder, decoder or cross in an encoder-decoder; by default the encoder's.
        off: heads to switch off, as pairs of layer and head.

    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> found = sieve.attention("bundled", "The old dog chased a cat.")
    >>> found.weights.shape, found.query_tokens[:4]
    ((6, 12, 9, 9), ['[CLS]', 'the', 'old', 'dog'])
    >>> [layer.shape for layer in found.bertviz()["attention"]][:1]
    [torch.Size([1, 12, 9, 9])]
    >>> found.circuitsvis(layer=2)["attention"].shape
    (12, 9, 9)
    """
    from attention_sieve.core.passes.batches import MapCollector, collect

    with opened(model, tokenizer, {}) as checkpoint:
        pass_settings = pass_settings_of(checkpoint, {"attention": attention, "off": off})
        prepared = prepare(checkpoint, text_given(text, "The text"), pass_settings)
        bytes_of(checkpoint, [prepared])  # raises where they are too large
        precise = partial(MapCollector, precision=np.float32)
        ((_, weights),) = (
            indexed for batch in collect(checkpoint, [prepared], pass_settings, precise) for indexed in batch
        )
    return Attention(
        kind=pass_settings.kind,
        query_tokens=list(prepared.queries.tokens),
        key_tokens=list(prepared.keys.tokens),
        weights=weights,
        second=int(np.argmax(prepared.queries.segments == 1)) if prepared.queries.n_segments > 1 else None,
    )
