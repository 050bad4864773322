"""Vectors of texts from one observed forward pass: outputs of heads before the output projection, and of layers."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import Kind, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.vectors import Pooling, TextVectors, places_to_read
from attention_sieve.core.passes.batches import BATCH_TOKENS, gates, model_inputs, plan_batches, to_device
from attention_sieve.core.passes.texts import PassText

HIDDEN_STATES: Final = {"decoder": "decoder_hidden_states", "cross": "decoder_hidden_states"}


def text_vectors(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings, pooling: Pooling
) -> Iterator[list[tuple[int, TextVectors]]]:
    """The vectors of each text at the token that the pooling selects, or their mean over its tokens.

    Args:
        settings: which attention, and which heads are off; the output of such a head is 0.
        pooling: where vectors are read; for cross-attention, among the querying tokens.

    Yields: index of the text and its vectors, batch by batch; not in input order.
    Raises: AnalysisError if the outputs of single heads cannot be observed, or a text lacks the token.
    """
    check_heads_are_seen(checkpoint.model)
    if pooling == "cls" and not all(text.queries.is_cls.any() for text in texts):
        raise AnalysisError(
            "This checkpoint does not add [CLS] to a text, so there is no vector at that token. Use the last token, or "
            "the mean over tokens."
        )
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        heads, layers = _batch_vectors(checkpoint, [texts[index] for index in batch.positions], settings, pooling)
        yield [(index, TextVectors(heads=heads[row], layers=layers[row])) for row, index in enumerate(batch.positions)]


def _batch_vectors(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings, pooling: Pooling
) -> tuple[Float[np.ndarray, "text layer head channel"], Float[np.ndarray, "text layer hidden"]]:
    attention, pool = checkpoint.attentions[settings.kind], _Pooling(checkpoint, texts, pooling)
    head_vectors = list[Tensor]()

    def collect(outputs: Tensor, _: Tensor) -> None:
        head_vectors.append(pool(outputs))

    model = checkpoint.model.get_encoder() if settings.kind == "encoder" else checkpoint.model
    inputs: dict[str, Any] = {**model_inputs(checkpoint, texts), "output_hidden_states": True}
    output = observe(model, inputs, Pass(calls=attention.calls, gates=gates(checkpoint, settings), on_output=collect))
    heads = torch.stack(head_vectors, 1)
    for layer, head in attention.removed:
        heads[:, layer, head] = torch.nan
    layers = torch.stack([pool(states) for states in _blocks(output, settings.kind, attention.n_layers)], 1)
    return heads.cpu().numpy(), layers.to(heads.dtype).cpu().numpy()


def _blocks(output: Any, kind: Kind, n_layers: int) -> Sequence[Float[Tensor, "text token hidden"]]:
    """Output of each block, without the states before the first block.

    Raises: AnalysisError.
    """
    states = output[HIDDEN_STATES.get(kind, "hidden_states")]
    if len(states) != n_layers + 1:
        raise AnalysisError(
            f"The checkpoint shows {len(states)} hidden states and has {n_layers} layers of attention, so it is not "
            "known which state is whose. Choose a checkpoint of another family, such as BERT."
        )
    return list(states[1:])


class _Pooling:
    """Selects or averages one vector per text from an array with a token axis."""

    def __init__(self, checkpoint: Checkpoint, texts: Sequence[PassText], pooling: Pooling) -> None:
        lengths = torch.tensor([len(text.queries.ids) for text in texts])
        positions = torch.from_numpy(places_to_read(texts, pooling))
        self._rows: Int[Tensor, " text"] = to_device(torch.arange(len(texts)), checkpoint.device)
        self._positions = to_device(positions, checkpoint.device)
        self._weights: Tensor | None = None
        if pooling == "mean":
            is_real = (torch.arange(int(lengths.max())) < lengths[:, None]).to(checkpoint.statistics_dtype)
            self._weights = to_device(is_real / lengths[:, None], checkpoint.device)

    def __call__(self, values: Float[Tensor, "text token *axis"]) -> Float[Tensor, "text *axis"]:
        """The vector of each text, a copy."""
        if self._weights is None:
            return values[self._rows, self._positions]
        flat = self._weights[:, None].to(values.dtype) @ values.flatten(2)
        return flat[:, 0].view(len(values), *values.shape[2:])
