"""Prepares the input of a batch of texts, and computes a metric from the model's output."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from attention_sieve.core.attention.settings import Kind
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.batches import model_inputs, to_device
from attention_sieve.core.passes.metric import Metric, masked_tokens
from attention_sieve.core.passes.texts import PassText

_NEEDED: Final[dict[Metric, tuple[tuple[str, ...], str]]] = {
    "lm": (("masked token", "next token"), "a language-model head, so it has no such loss"),
    "labels": (("classes",), "a classifier, so it predicts no labels"),
}


def check_metric(checkpoint: Checkpoint, metric: Metric, kind: Kind) -> None:
    """Raise if the checkpoint does not support a metric.

    Raises: AnalysisError.
    """
    if metric == "output":
        return
    heads, lacking = _NEEDED[metric]
    alternatives = "output, or a checkpoint that was saved with one"
    if checkpoint.head not in heads:
        raise AnalysisError(f"{checkpoint.files.name} was saved without {lacking}. Choose the metric {alternatives}.")
    if metric == "labels" and kind != "self":
        raise AnalysisError(
            f"{checkpoint.files.name} is an encoder-decoder, whose classifier cannot be run here. Choose the metric "
            "output or lm."
        )


def model_of(checkpoint: Checkpoint, metric: Metric, kind: Kind) -> PreTrainedModel:
    """The model whose output a metric needs: the encoder alone for its own text vectors."""
    if metric != "output":
        return checkpoint.full_model
    return checkpoint.model.get_encoder() if kind == "encoder" else checkpoint.model


class Readout:
    """The input of a batch of texts, and the metric computed from its output.

    One forward pass may contain several copies of the batch, one after the other.
    """

    def __init__(self, checkpoint: Checkpoint, metric: Metric, texts: Sequence[PassText]) -> None:
        """Prepare a batch.

        Args:
            checkpoint: loaded; `check_metric` has passed.
            texts: prepared; with a target if the metric is the loss of an encoder-decoder.
        """
        self._checkpoint, self._metric = checkpoint, metric
        self._n_texts = len(texts)
        self._inputs = model_inputs(checkpoint, texts)
        self._lengths = [len(text.queries.ids) for text in texts]
        self._reference: Float[Tensor, "text channel"] | None = None
        self._positions: list[Tensor] = []
        self._targets: list[Tensor] = []
        if metric == "lm":
            self._hide(texts)

    def _hide(self, texts: Sequence[PassText]) -> None:
        """Choose the positions whose tokens are predicted, and mask them unless the model is causal."""
        masks = self._checkpoint.head == "masked token"
        for row, text in enumerate(texts):
            ids = text.queries.ids
            positions = masked_tokens(text.queries) if masks else np.arange(len(ids) - 1)
            if text.predicts_after is not None:
                positions = np.array(text.predicts_after)
            if masks:
                self._inputs["input_ids"][row, positions] = self._checkpoint.tokenizer.mask_token_id
            elif not len(positions):
                raise AnalysisError("A text has a single token, so no next token can be predicted. Leave it out.")
            self._positions.append(torch.from_numpy(positions))
            targets = torch.from_numpy(ids[positions if masks else positions + 1])
            self._targets.append(to_device(targets, self._checkpoint.device))

    def inputs(self, copies: int = 1) -> Mapping[str, Tensor]:
        """Arguments of the model for a number of copies of the batch."""
        return {name: values.repeat(copies, *[1] * (values.dim() - 1)) for name, values in self._inputs.items()}

    def outcomes(self, output: Any, copies: int = 1) -> Float[Tensor, "copy text part"]:
        """Outcome of each text in each copy, in float64 on the CPU; the first call sets the reference vectors."""
        if self._metric == "labels":
            rows = output.logits.cpu().double()
        elif self._metric == "lm":
            rows = self._losses(output.logits, copies).cpu().double()[:, None]
        else:
            vectors = self.text_vectors(output, copies).cpu().double()
            if self._reference is None:
                self._reference = vectors
            rows = _one_minus_cosine(vectors, self._reference.repeat(copies, 1))[:, None]
        return rows.unflatten(0, (copies, self._n_texts))

    def losses(self, output: Any, labels: Sequence[float | None]) -> Float[Tensor, " text"]:
        """Loss of each text, through which gradients flow. Labels are the class or value of each text, for the metric
        of labels only.

        The change of the output has no gradient where nothing is changed. It is replaced by the projection of the
        normalised text vector on a random direction, fixed for each text; the expected square of its slope in any gate
        is, to second order, twice the change by that gate."""
        if self._metric == "lm":
            return self._losses(output.logits, 1)
        if self._metric == "labels":
            return self._label_losses(output.logits, labels)
        vectors = self.text_vectors(output, 1)
        return (nn.functional.normalize(vectors, dim=1) * self._directions(vectors)).sum(1)

    def tops(self, output: Any) -> Float[Tensor, " text"]:
        """Starting point of relevance propagation: the largest logit of each text (mean over the predicted tokens of a
        language model), or the length of its vector."""
        if self._metric == "labels":
            return output.logits.to(self._checkpoint.statistics_dtype).amax(-1)
        if self._metric == "lm":
            logits = output.logits
            tops = [
                logits[row, positions].to(self._checkpoint.statistics_dtype).amax(-1).mean()
                for row, positions in self._rows_and_positions()
            ]
            return torch.stack(tops)
        vectors = self.text_vectors(output, 1)
        return (vectors * nn.functional.normalize(vectors.detach(), dim=1)).sum(1)

    def text_vectors(self, output: Any, copies: int) -> Float[Tensor, "row channel"]:
        """Mean of the last hidden states over the tokens of each text."""
        hidden = output[0].to(self._checkpoint.statistics_dtype)
        lengths = torch.tensor(self._lengths * copies)
        real = torch.arange(hidden.shape[1]) < lengths[:, None]
        weights = to_device((real / lengths[:, None]).to(hidden.dtype), self._checkpoint.device)
        return (hidden * weights[..., None]).sum(1)

    def _rows_and_positions(self, copies: int = 1) -> list[tuple[int, Tensor]]:
        return list(enumerate(self._positions * copies))

    def _losses(self, logits: Float[Tensor, "row token choice"], copies: int) -> Float[Tensor, " row"]:
        losses = []
        for row, positions in self._rows_and_positions(copies):
            choices = logits[row, positions].to(self._checkpoint.statistics_dtype)
            losses.append(nn.functional.cross_entropy(choices, self._targets[row % self._n_texts]))
        return torch.stack(losses)

    def _label_losses(
        self, logits: Float[Tensor, "text choice"], labels: Sequence[float | None]
    ) -> Float[Tensor, " text"]:
        targets = to_device(torch.tensor(labels, dtype=logits.dtype), self._checkpoint.device)
        if logits.shape[1] == 1:
            return (logits[:, 0] - targets) ** 2
        return nn.functional.cross_entropy(logits, targets.long(), reduction="none")

    def _directions(self, vectors: Float[Tensor, "text channel"]) -> Float[Tensor, "text channel"]:
        ids = self._inputs["decoder_input_ids" if "decoder_input_ids" in self._inputs else "input_ids"].cpu().numpy()
        directions = [
            np.random.default_rng(row[:n_tokens].tolist()).standard_normal(vectors.shape[1])
            for row, n_tokens in zip(ids, self._lengths, strict=True)
        ]
        return to_device(torch.from_numpy(np.stack(directions)).to(vectors.dtype), self._checkpoint.device)


def _one_minus_cosine(a: Float[Tensor, "row channel"], b: Float[Tensor, "row channel"]) -> Float[Tensor, " row"]:
    """As half the squared distance of the normalised vectors, which keeps the digits of a small change."""
    difference = nn.functional.normalize(a, dim=1) - nn.functional.normalize(b, dim=1)
    return (difference**2).sum(1) / 2
