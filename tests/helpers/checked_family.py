"""A family of transformers, made small, as `core` reads it and as hooks of the test's own see it."""

from functools import partial

import numpy as np
import torch
from own_hooks import eager_model, furthest, log_probabilities, own_maps
from small_families import small_family

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.in_memory import observed_in_place
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.generation.settings import WritingSettings
from attention_sieve.core.generation.writer import write_on
from attention_sieve.core.importance.passes.direct_path import logit_attribution
from attention_sieve.core.passes.batches import MapCollector, collect
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import text_of_ids

N_TOKENS, N_PROMPT, N_WRITTEN = 20, 8, 12
"""Longer than any window of the small families."""
MAP_TOLERANCE, LOG_TOLERANCE = 1e-4, 5e-3
"""Of probabilities in the maps, and of logarithms of those of written tokens, in float32."""
PLACE, TOKEN = N_TOKENS - 3, 7
LOGIT_TOLERANCE = 1e-4
"""Of a logit, as a share of the largest one, or of 1."""
LEAST_LOGIT = -1e30
"""Models set those of tokens that they never write to the least number there is."""


def faults_of(model_type, tokenizer, is_attributed=None, **changed):
    """What of a family's layers, windows, maps, written text and parts of a logit is not as the hooks see it; empty if
    all is.

    Args:
        is_attributed: whether the parts of a logit have to be known, or refused with a reason; None where either will
            do.

    Raises: CheckpointError where the family is refused.
    """
    model, own = eager_model(small_family(model_type, len(tokenizer), **changed))
    ids = torch.randint(5, len(tokenizer), (N_TOKENS,), generator=torch.Generator().manual_seed(1)).tolist()
    expected = own_maps(own, ids)
    with observed_in_place(model, tokenizer) as checkpoint:
        attention = checkpoint.attentions["self"]
        text = prepare(checkpoint, text_of_ids(GivenTokens(tuple(ids))), PassSettings())
        precise = partial(MapCollector, precision=np.float32)
        ((_, maps),) = next(collect(checkpoint, [text], PassSettings(), precise))
        layers = [layer for layer, call in enumerate(attention.calls) if call is not None]
        return [
            *_of_maps(layers, maps, expected),
            *_of_windows(attention, layers, expected),
            *_of_direction(checkpoint, expected),
            *(_of_writing(checkpoint, own, ids[:N_PROMPT]) if checkpoint.head == "next token" else ()),
            *(_of_logits(checkpoint, own, ids, text, is_attributed) if checkpoint.head == "next token" else ()),
        ]


def _of_maps(layers, maps, expected):
    own_layers = [layer for layer, _ in expected]
    if expected and own_layers not in (layers, [None] * len(layers)):
        yield f"layers {layers}, where the hooks see {own_layers}"
    for layer, (_, own) in zip(layers, expected):
        if own.shape != maps[layer].shape:
            yield f"layer {layer} has maps {maps[layer].shape}, where the hooks see {tuple(own.shape)}"
        elif (difference := float(np.abs(_of_one(own.numpy()) - _of_one(maps[layer])).max())) > MAP_TOLERANCE:
            yield f"maps of layer {layer} differ by {difference:.1e}"


def _of_one(attention):
    """Rows that sum to 1: what sinks take of them, some families of transformers leave in their maps."""
    return attention / attention.sum(-1, keepdims=True)


def _of_windows(attention, layers, expected):
    for layer, (_, own) in zip(layers, expected):
        told, seen = attention.reach(layer).back, furthest(own)
        if min(N_TOKENS - 1, N_TOKENS if told is None else told) != seen:
            yield f"queries of layer {layer} see {told} tokens back, where the hooks see {seen}"


def _of_direction(checkpoint, expected):
    is_causal = not any(bool(own.triu(1).any()) for _, own in expected)
    if expected and checkpoint.attentions["self"].causal != is_causal:
        yield f"it is {'' if checkpoint.attentions['self'].causal else 'not '}causal, and the hooks see otherwise"
    if checkpoint.head == "next token" and not is_causal:
        yield "it predicts next tokens that its tokens see"


def _of_writing(checkpoint, own, ids):
    ids = list(ids)
    for step, each in enumerate(write_on(checkpoint, text_of_ids(GivenTokens(tuple(ids))), WritingSettings(N_WRITTEN))):
        of_all = log_probabilities(own, ids)
        told, best = float(of_all[each.token]), float(of_all.max())
        if max(abs(told - each.log_probability), best - told) > LOG_TOLERANCE:
            yield f"token {step + 1} has {each.log_probability:.4f}, in a whole pass {told:.4f}, the best {best:.4f}"
            return
        ids.append(each.token)


def _of_logits(checkpoint, own, ids, text, is_attributed):
    with torch.inference_mode():
        logits = own(input_ids=torch.tensor([ids])).logits[0, PLACE].double()
    written = logits[logits > LEAST_LOGIT]
    try:
        found = logit_attribution(checkpoint, text, PassSettings(), PLACE, TOKEN)
    except AnalysisError as error:
        if is_attributed or not str(error):
            yield f"the parts of a logit are refused: {error}"
        return
    if is_attributed is False:
        yield "the parts of a logit are not refused"
    told, expected = (found.capped or found.adds).total, float(logits[TOKEN] - written.mean())
    if abs(told - expected) > LOGIT_TOLERANCE * max(1, float(written.abs().max())):
        yield f"the parts of a logit sum to {told:.6f}, which less the mean of all is {expected:.6f}"
