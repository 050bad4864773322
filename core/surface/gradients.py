"""Gradient of a masked-language model's loss with respect to attention, by kind of key; no gradient map is stored.

With attention A and the output of a head O = A V, the gradient of the loss with respect to A[i, j] is dL/dO[i] . V[j]:
a backward pass to the outputs of the heads and one product, tile by tile, suffice.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attention_sieve.core.attention.observed import has_attention_interface, observe, tiles
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings, live_keys
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.batches import BATCH_TOKENS, check_length, gates, model_inputs, plan_batches, to_device
from attention_sieve.core.passes.metric import masked_tokens
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.surface.per_text import KEY_KINDS, PUNCTUATION, TextGradients, key_kinds


def attention_gradients(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    *,
    seed: int = 0,
    punctuation: Collection[str] = PUNCTUATION,
) -> Iterator[list[tuple[int, TextGradients]]]:
    """Mean |gradient of the loss with respect to attention| for each kind of key, in every layer.

    MASKED_SHARE of a text's tokens are replaced by the mask; the loss is the mean cross-entropy of the original tokens,
    in nats. As keys, masked tokens are of the kind "other".

    Args:
        checkpoint: loaded, with a masked-language-model head.
        texts: prepared.
        settings: which heads are off; their gradients are 0.
        seed: decides, together with a text's tokens, which of them are masked.

    Yields: index of the text and its gradients, batch by batch; not in input order.
    Raises: AnalysisError for a checkpoint without such a head or without the attention interface, and for a text
        whose attention does not fit into memory.
    Source: Clark et al. 2019, section 3.2 (without code). They do not state which tokens are masked, of which kind
        these are as keys, or how gradients are averaged; here over heads, queries and keys of a kind, then over texts.
    """
    check_gradients(checkpoint)
    attention = checkpoint.attentions[settings.kind]
    for text in texts:
        check_length(attention, text.n_tokens)
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS["cpu"]):
        batch_texts = [texts[index] for index in batch.positions]
        masked = [masked_tokens(text.queries, seed) for text in batch_texts]
        importance = _importance(checkpoint, batch_texts, masked, settings, punctuation)
        yield [
            (index, TextGradients(importance=text_importance, n_masked=len(positions)))
            for index, text_importance, positions in zip(batch.positions, importance, masked)
        ]


def check_gradients(checkpoint: Checkpoint) -> None:
    """Raise AnalysisError if a checkpoint has no masked-language-model loss, or its heads cannot be observed."""
    if checkpoint.head != "masked token":
        raise AnalysisError(
            f"{checkpoint.files.name} has no masked-language-model head, so this loss cannot be computed. Choose a "
            "checkpoint that was saved with one, such as google-bert/bert-base-uncased."
        )
    if not has_attention_interface(checkpoint.model):
        raise AnalysisError(
            f"{type(checkpoint.model).__name__} has its own attention code, so gradients of single heads cannot be "
            "observed. Choose a checkpoint of another family, such as BERT."
        )


def _importance(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    masked: Sequence[Int[np.ndarray, "_"]],
    settings: PassSettings,
    punctuation: Collection[str],
) -> Float[np.ndarray, "text kind layer"]:
    """Run one forward and one backward pass, and reduce each layer to means by kind of key."""
    attention, outputs_and_values = checkpoint.attentions[settings.kind], list[tuple[Tensor, Tensor]]()
    gate = gates(checkpoint, settings)
    gate = torch.ones((attention.n_layers, attention.n_heads), device=checkpoint.device) if gate is None else gate
    inputs = model_inputs(checkpoint, texts)
    for row, positions in enumerate(masked):
        inputs["input_ids"][row, positions] = checkpoint.tokenizer.mask_token_id
    with torch.enable_grad():
        logits = observe(
            checkpoint.full_model,
            inputs,
            Pass(
                calls=attention.calls,
                gates=gate.requires_grad_(),
                on_output=lambda output, values: outputs_and_values.append((output, values.detach())),
            ),
        ).logits
        loss = _loss(checkpoint, logits, texts, masked)
        by_output = torch.autograd.grad(loss, [output for output, _ in outputs_and_values])
    with torch.inference_mode():
        sums = _KindSums(checkpoint, texts, masked, punctuation)
        layers = [
            sums.mean(layer, by_output[layer] * gate[layer, :, None], values)
            for layer, (_, values) in enumerate(outputs_and_values)
        ]
    return torch.stack(layers, -1).cpu().numpy()


def _loss(
    checkpoint: Checkpoint,
    logits: Float[Tensor, "text token choice"],
    texts: Sequence[PassText],
    masked: Sequence[Int[np.ndarray, "_"]],
) -> Float[Tensor, ""]:
    """Sum of the losses of the texts, so that the gradients of a text do not depend on the others."""
    losses = []
    for row, (text, positions) in enumerate(zip(texts, masked)):
        labels = to_device(torch.from_numpy(text.queries.ids[positions]), checkpoint.device)
        losses.append(torch.nn.functional.cross_entropy(logits[row, positions].to(checkpoint.statistics_dtype), labels))
    return torch.stack(losses).sum()


class _KindSums:
    """Means of a batch over heads, queries and the keys of each kind."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        texts: Sequence[PassText],
        masked: Sequence[Int[np.ndarray, "_"]],
        punctuation: Collection[str],
    ) -> None:
        self._attention = checkpoint.attentions[texts[0].kind]
        self._n_tokens = max(text.n_tokens for text in texts)
        kinds = np.zeros((len(texts), self._n_tokens, len(KEY_KINDS)))
        is_real = np.zeros((len(texts), self._n_tokens))
        for row, (text, positions) in enumerate(zip(texts, masked, strict=True)):
            kinds[row, : text.n_tokens] = key_kinds(text.keys, punctuation)
            kinds[row, positions] = [kind == "other" for kind in KEY_KINDS]
            is_real[row, : text.n_tokens] = 1
        self._kinds, self._is_real = (
            to_device(torch.from_numpy(array).to(checkpoint.statistics_dtype), checkpoint.device)
            for array in (kinds, is_real)
        )

    def mean(
        self,
        layer: int,
        by_output: Float[Tensor, "text query head channel"],
        values: Float[Tensor, "text kv_head key channel"],
    ) -> Float[Tensor, "text kind"]:
        """Mean |gradient| over the keys that queries can attend to."""
        n_texts, n_queries, n_heads, _ = by_output.shape
        keys = values.repeat_interleave(n_heads // values.shape[1], dim=1).transpose(-1, -2)
        reach = self._attention.reach(layer)
        bounds = live_keys(self._n_tokens, self._n_tokens, self._attention.causal, reach)
        start, end = torch.from_numpy(bounds).T[:, :, None]
        key = torch.arange(self._n_tokens)
        live = ((start <= key) & (key < end)).to(self._kinds)
        sums = self._kinds.new_zeros((n_texts, len(KEY_KINDS)))
        for texts, queries in tiles((n_texts, n_heads, n_queries, self._n_tokens), by_output.device.type):
            gradients = (by_output[texts, queries].transpose(1, 2) @ keys[texts]).abs_().mul_(live[queries])
            # Queries that are padding have a gradient of 0: no loss depends on them.
            sums[texts] += (gradients @ self._kinds[texts, None]).sum((1, 2))
        n_pairs = ((live @ self._kinds) * self._is_real[..., None]).sum(1)
        n_present = n_heads - sum(removed_layer == layer for removed_layer, _ in self._attention.removed)
        return sums / (n_pairs * n_present)
