"""What heads write about the tokens that they look at, and published scores of where they look, from passes."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.attention.observers import Observer, Pass, Tile
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.load import weight_in
from attention_sieve.core.copying.published import DETECTORS, detector_scores, detector_weights
from attention_sieve.core.copying.writes import WAYS, TextWrites, sample_of
from attention_sieve.core.importance.passes.direct_path import DirectPath, direct_path, is_rounding
from attention_sieve.core.importance.passes.head_outputs import remaining_heads, weight_of
from attention_sieve.core.importance.per_text import with_holes
from attention_sieve.core.passes.batches import BATCH_TOKENS, gates, model_inputs, plan_batches, tensor_on, to_device
from attention_sieve.core.passes.readout import check_metric
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.observer import EntryWeights
from attention_sieve.core.roles.record import Role
from attention_sieve.core.texts.tokens import SPECIAL

OTHERWISE: Final = "Leave the second column out, or choose"
"""Advice where the outputs of heads cannot be observed."""


class PublishedLooks(Observer):
    """Sums of the attention entries that published scores read, of rows that are normalised to sum to 1."""

    def __init__(self, checkpoint: Checkpoint, texts: Sequence[PassText], role: Role) -> None:
        attention = checkpoint.attentions[texts[0].kind]
        self._texts, self._role = texts, role
        weights = [detector_weights(text, role) for text in texts]
        at = np.concatenate([np.insert(entries.at, 0, row, axis=1) for row, entries in enumerate(weights)])
        target = np.concatenate([entries.sums + row * len(DETECTORS) for row, entries in enumerate(weights)])
        weight = np.concatenate([entries.weight for entries in weights])
        n_queries = max(len(text.queries.ids) for text in texts)
        order = np.argsort(at[:, 0] * n_queries + at[:, 1], kind="stable")
        device, dtype = checkpoint.device, checkpoint.statistics_dtype
        tensor = partial(tensor_on, device=device, dtype=dtype)
        self._entries = EntryWeights(at[order], target[order], weight[order], n_queries, tensor)
        shape = (attention.n_layers, len(texts) * len(DETECTORS), attention.n_heads)
        self._sums = torch.zeros(shape, dtype=dtype, device=device)
        self._missing = attention.removed

    def observe(self, tile: Tile) -> None:
        """Add a tile's entries."""
        self._entries.add(tile, self._sums[tile.layer])

    def results(self) -> list[Float[np.ndarray, "detector layer head"]]:
        """The scores of each text."""
        n_layers, _, n_heads = self._sums.shape
        sums = self._sums.view(n_layers, len(self._texts), len(DETECTORS), n_heads).permute(1, 2, 0, 3).cpu().numpy()
        scores = [
            detector_scores(text_sums, text, self._role) for text_sums, text in zip(sums, self._texts, strict=True)
        ]
        return [np.stack([with_holes(detector, self._missing) for detector in detectors]) for detectors in scores]


class _MostAttended(Observer):
    """The key of most attention of each query, special tokens left out."""

    wants_outputs = True
    """So that the last layer computes them, though nothing reads what it gives."""

    def __init__(self, checkpoint: Checkpoint, texts: Sequence[PassText]) -> None:
        n_keys = max(len(text.keys.ids) for text in texts)
        hidden = np.ones((len(texts), n_keys), bool)
        for row, text in enumerate(texts):
            hidden[row, : len(text.keys.ids)] = text.keys.segments == SPECIAL
        self._hidden = to_device(torch.from_numpy(hidden), checkpoint.device)
        attention = checkpoint.attentions[texts[0].kind]
        shape = (attention.n_layers, len(texts), attention.n_heads, n_keys)
        self.keys: Int[Tensor, "layer text head query"] = torch.zeros(shape, dtype=torch.long, device=checkpoint.device)

    def observe(self, tile: Tile) -> None:
        hidden = self._hidden[tile.texts, None, None, : tile.probabilities.shape[-1]]
        most = tile.probabilities.nan_to_num().masked_fill(hidden, -1).argmax(-1)
        self.keys[tile.layer, tile.texts, :, tile.queries] = most


def text_writes(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextWrites]]]:
    """How much of what each head raises falls on the token that it looks at.

    What a head adds to the residual stream is unembedded as it is, past everything between. The logits of the first
    SAMPLE distinct tokens of a text, less their mean and where they are positive, are what the head raises.

    Args:
        checkpoint: a causal language model.
        texts: prepared.
        settings: which heads are off; these write nothing, and have no share.

    Yields: index of the text and its shares, batch by batch.
    Raises: AnalysisError if outputs of heads cannot be observed, or do not reach the unembedding by additions and
        normalisations alone.
    Source: Olsson et al. 2022, appendix, head activation evaluators (copying).
    """
    check_heads_are_seen(checkpoint.model, OTHERWISE)
    check_metric(checkpoint, "lm", settings.kind)
    attention = checkpoint.attentions[settings.kind]
    shortest = min(texts, key=lambda text: text.n_tokens)
    path = direct_path(checkpoint, shortest, PassSettings(settings.kind), len(shortest.queries.ids) - 1)
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        batch_texts = [texts[index] for index in batch.positions]
        most, seen = _MostAttended(checkpoint, batch_texts), list[tuple[Tensor, Tensor]]()

        def collect(outputs: Tensor, values: Tensor, seen: list[tuple[Tensor, Tensor]] = seen) -> None:
            seen.append((outputs, values))

        passing = Pass(
            observers=[most],
            calls=attention.calls,
            gates=gates(checkpoint, settings),
            on_output=collect,
            stops=True,
        )
        observe(checkpoint.model, model_inputs(checkpoint, batch_texts), passing)
        writes = []
        for row, index in enumerate(batch.positions):
            layers = [(outputs[row], values[row]) for outputs, values in seen]
            writes.append((index, _writes(checkpoint, path, texts[index], layers, most.keys[:, row].cpu())))
        yield writes


@torch.no_grad()
def _writes(
    checkpoint: Checkpoint,
    path: DirectPath,
    text: PassText,
    layers: Sequence[tuple[Tensor, Tensor]],
    most: Int[Tensor, "layer head query"],
) -> TextWrites:
    """Shares in one text, from the outputs and values of each layer, and the key of most attention of each query."""
    attention, device = checkpoint.attentions[text.kind], checkpoint.device
    sample, first, number = sample_of(text)
    unembedding = weight_in(path.model.get_output_embeddings())[to_device(torch.from_numpy(sample), device)].double()
    directions, numbers = unembedding - unembedding.mean(0), torch.from_numpy(number)
    queries = torch.from_numpy(np.flatnonzero(text.queries.segments != SPECIAL))
    to_outputs = path.before_addition(directions)
    shares = np.full((len(WAYS), attention.n_layers, attention.n_heads), np.nan)
    for layer, module in path.projections.items():
        heads, (outputs, values) = remaining_heads(layer, attention), layers[layer]
        size, n_kv_heads = outputs.shape[-1], len(values)
        by_head = weight_of(module).double().split(size, dim=1)
        for head, weights in zip(heads, by_head, strict=True):
            by_channel = (to_outputs[layer] @ weights).T
            looked_at = numbers[most[layer, head, queries]]
            written = outputs[queries[looked_at >= 0], head].double()
            alone = values[head * n_kv_heads // attention.n_heads, torch.from_numpy(first)].double()
            sizes = to_outputs[layer].norm() * weights.norm()
            for way, given, key in (
                ("value", alone, torch.arange(len(sample))),
                ("output", written, looked_at[looked_at >= 0]),
            ):
                shares[WAYS.index(way), layer, head] = _share(given @ by_channel, key, given.norm() * sizes)
    return TextWrites(shares=shares, n_tokens=len(sample))


def _share(logits: Float[Tensor, "position token"], looked_at: Int[Tensor, " position"], size: Tensor) -> float:
    """Share of what is raised that falls on the token looked at; NaN where what is raised is rounding."""
    raised = logits.relu().cpu()
    total = raised.sum()
    if is_rounding(total, size):
        return float("nan")
    return float(raised[torch.arange(len(raised)), looked_at].sum() / total)
