"""Grades what the program says of copying, and of what heads add directly to the logits of tokens."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

import attention_sieve as sieve
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.passes.direct_path import logit_attribution
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.probe_texts.make import ProbeTextSettings, fitting_block, probe_texts
from benchmarks.planted.grades.asked import INDUCTION, LEAST_SHARE, PROBE_TEXTS, Asked, after_copies, truth_of
from benchmarks.planted.grades.claims import Opened
from benchmarks.planted.grades.records import (
    DirectEffects,
    MeasureValues,
    Refusal,
    Statement,
    Verdict,
    by_head,
)
from benchmarks.planted.measured import output_projections
from benchmarks.planted.statements import EXACT
from benchmarks.planted.truth import HeadTruth

N_PROBES: Final = 4
LEAST_SIGN: Final = 0.5
"""Sign of the OV circuit from which a head copies; below its opposite it suppresses."""
N_TEXTS: Final = 4
N_POSITIONS: Final = 1
"""Of each text, whose direct effects are measured."""
LOOKS: Final = Asked("looks at what is to be copied", "induction", "repeats", INDUCTION, after_copies)


def copying(opened: Opened, refuse: Callable[[Refusal], None]) -> Iterator[Statement]:
    """Whether each head looks at what is to be copied, writes it, and copies or suppresses by its weights alone.

    Args:
        opened: A decoder.
        refuse: Takes what the program does not say.
    """
    tokenizer, longest = opened.tokenizer, opened.checkpoint.max_tokens
    texts = probe_texts(tokenizer, ProbeTextSettings(number=N_PROBES, block=fitting_block(tokenizer, longest)))
    try:
        table = sieve.copying(opened.checkpoint, list(texts), no_ablation=True, parser=False).table
    except AnalysisError as error:
        refuse(Refusal("copying", str(error)))
        return
    there = opened.measured(LOOKS, LOOKS.sample).share >= LEAST_SHARE
    for head, row in zip(opened.truth.heads, table.itertuples(), strict=True):
        looks = truth_of(LOOKS, head, opened.truth, bool(there[head.place]))
        yield _statement(head, LOOKS.states, looks, row.in_looks, row.looks)
        yield _statement(head, "writes it", _writes("token", head, opened), row.in_writes, row.times)
        for states, sign, written in (("copies by its weights", 1, "token"), ("suppresses", -1, "negative token")):
            truth = _writes(written, head, opened)
            yield _statement(head, states, truth, row.ov_sign * sign > LEAST_SIGN, row.ov_sign)


def _writes(written: str, head: HeadTruth, opened: Opened) -> bool | None:
    """Whether a head writes this; None where noise or training may have had it write what it was not designed to."""
    is_designed = head.writes == written
    return is_designed if is_designed or opened.truth.noise in EXACT else None


def _statement(head: HeadTruth, states: str, truth: bool | None, holds: bool, score: float) -> Statement:
    verdict: Verdict = "yes" if holds else "no"
    number = float(score) if np.isfinite(score) else None
    return Statement("copying", states, PROBE_TEXTS, *head.place, truth, verdict, number)


def direct_effects(opened: Opened, texts: Sequence[PassText]) -> tuple[DirectEffects, MeasureValues]:
    """How far direct effects on the targets' logits are from those by hooks, and their means as a measure.

    Args:
        opened: A decoder.
        texts: Of its task, as the program reads them.

    Raises:
        AnalysisError: The program does not measure direct effects of this model.
    """
    task, settings = opened.truth.task, PassSettings()
    by_program, by_hooks = [], []
    for row, text in enumerate(texts[:N_TEXTS]):
        targets = list(zip(task.scored[row], task.targets[row]))[:N_POSITIONS]
        for position, target in targets:
            by_program.append(logit_attribution(opened.checkpoint, text, settings, position, target).adds.heads)
        by_hooks += list(plain_effects(opened.model, torch.tensor([task.tokens[row]]), targets))
    found, expected = np.stack(by_program), np.stack(by_hooks)
    compared = DirectEffects(float(np.abs(found - expected).max()), float(np.abs(expected).max()))
    return compared, MeasureValues("direct attribution", by_head(found.mean(axis=0)), is_signed=True)


@torch.no_grad()
def plain_effects(
    model: PreTrainedModel, ids: Int[Tensor, "1 token"], targets: Sequence[tuple[int, int]]
) -> Float[np.ndarray, "target layer head"]:
    """What each head adds to the logits of tokens, relative to the mean of all tokens, the last norm as it is there.

    Args:
        model: GPT-2 or Llama.
        ids: A text.
        targets: Position and token of each logit.
    """
    given, handles = dict[int, Tensor](), []
    projections = output_projections(model)
    last_norm = model.transformer.ln_f if model.config.model_type == "gpt2" else model.model.norm
    for number, module in enumerate((*projections, last_norm)):
        handles.append(module.register_forward_pre_hook(lambda _, values, at=number: given.update({at: values[0][0]})))
    model(input_ids=ids)
    for handle in handles:
        handle.remove()
    unembedding, stream = model.lm_head.weight.double(), given[len(projections)].double()
    centred = unembedding - unembedding.mean(0)
    effects = np.zeros((len(targets), len(projections), model.config.num_attention_heads))
    for row, (position, token) in enumerate(targets):
        direction = _before_norm(last_norm, stream[position], centred[token])
        for layer, module in enumerate(projections):
            weight = module.get_parameter("weight").double()
            weight = weight if isinstance(module, nn.Linear) else weight.T
            products = given[layer][position].double() * (direction @ weight)
            effects[row, layer] = products.view(effects.shape[2], -1).sum(-1).numpy()
    return effects


def _before_norm(
    norm: Any, stream: Float[Tensor, " channel"], direction: Float[Tensor, " channel"]
) -> Float[Tensor, " channel"]:
    """A direction after a norm as one before it, with the norm's scale as it is for this stream."""
    scaled = direction * norm.weight.double()
    if isinstance(norm, nn.LayerNorm):
        scale = (stream.var(correction=0) + norm.eps).rsqrt()
        return scale * (scaled - scaled.mean())
    return scaled * (stream.square().mean() + norm.variance_epsilon).rsqrt()
