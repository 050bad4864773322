"""A checkpoint's output for a text, with all heads on and with some switched off."""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import Head, Kind, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.batches import gates, model_inputs
from attention_sieve.core.passes.kept_pass import logits_without
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import SPECIAL

MOST_LIKELY: Final = 5
"""Number of tokens reported from each of the two distributions."""
Unit = Literal["probability", "independent probability", "value"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Prediction:
    """Output of a checkpoint's head for a text: of all classes, or of the most likely tokens."""

    names: tuple[str, ...]
    values: Float[np.ndarray, " choice"]
    unit: Unit
    masked: str | None = None
    """The token that a masked language model predicts from a mask in its place."""
    after: str | None = None
    """The token after which a causal language model predicts the next one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadOutput:
    """Output of a checkpoint's head before and after a change: heads that are switched off, or another text."""

    names: tuple[str, ...]
    """The most likely tokens before or after, or all classes."""
    before: Float[np.ndarray, " choice"]
    after: Float[np.ndarray, " choice"]
    unit: Unit
    """Probabilities of mutually exclusive choices, of independent classes, or values of a regression."""
    token: int | None
    """Index of the masked token, or of the token before the predicted one (causal); None for classes."""
    distance: float | None
    """Total variation distance between the two distributions over all choices, 0 to 1; only for exclusive choices."""


@dataclass(frozen=True, eq=False, kw_only=True)
class NextTokens:
    """What a causal language model expects after one token of a text."""

    position: int
    """Index of that token."""
    ids: tuple[int, ...]
    """Of the likeliest next tokens with all heads on, of those without the heads that are off, and of the one asked
    for and the one that follows in the text, which come first where they are none of them."""
    names: tuple[str, ...]
    log_probabilities: Float[np.ndarray, "2 token"]
    """Natural logarithms, with all heads on and without those that are off; equal where none is off."""
    follows: int | None
    """Id of the token that follows in the text, one of `ids`; None after the last one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputChange:
    """A checkpoint's output for one text, before and after heads are switched off."""

    cosine: float | None
    """Cosine of the two text vectors, each the mean of the last hidden states over all tokens; None for an
    encoder-decoder with a target."""
    head: HeadOutput | None
    """None for a checkpoint without a head, and for an encoder without its decoder."""


def output_change(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, token: int | None = None
) -> OutputChange:
    """Change of the output for one text when heads are switched off. The token is as for `head_output`."""
    cosine = None
    if text.target is None:
        pass_settings = (PassSettings(settings.kind), settings)
        before, after = (_text_vector(checkpoint, text, one_pass) for one_pass in pass_settings)
        cosine = float(torch.nn.functional.cosine_similarity(before, after, dim=0))
    return OutputChange(cosine=cosine, head=head_output(checkpoint, text, settings, token))


def head_output(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, token: int | None = None
) -> HeadOutput | None:
    """What the head of a checkpoint says of one text, with all heads of attention on and without those that are off.

    Args:
        token: the one to mask, or the one before the predicted token; None for the last one of the text.

    Returns: None for a checkpoint without a head, and for an encoder without its decoder.
    """
    if checkpoint.head is None or text.kind == "encoder":
        return None
    if checkpoint.head == "classes":
        return _classes(checkpoint, *_logits_of_both(checkpoint, text, settings))
    token = _last_own_token(text) if token is None else token
    before, after = _logits_of_both(checkpoint, text, settings, token)
    return _tokens(checkpoint, before, after, token)


def next_tokens(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int | None = None, asked: str = ""
) -> NextTokens | None:
    """The likeliest tokens after one token of a text, with all heads on and without those that are off.

    Args:
        position: index of the token; None for the last one that the tokenizer did not add.
        asked: a token whose probability is wanted too, as it is written; empty for none.

    Returns: None for a checkpoint that is no causal language model, and for an encoder without its decoder.

    Raises: AnalysisError if what is asked for is not one token of this checkpoint.
    """
    if checkpoint.head != "next token" or text.kind == "encoder":
        return None
    asked_for = None if not asked else token_id(checkpoint, asked)
    position = _last_own_token(text) if position is None else position
    rest = text.queries.ids[position + 1 :]
    follows = int(rest[0]) if len(rest) else None
    before, after = _logits_of_both(checkpoint, text, settings, position).log_softmax(-1)
    likely = _likeliest(before, after)
    first = [token for token in (asked_for, follows) if token is not None and token not in likely]
    ids = tuple(dict.fromkeys((*first, *likely)))
    return NextTokens(
        position=position,
        ids=ids,
        names=tuple(checkpoint.tokenizer.decode([token]) for token in ids),
        log_probabilities=torch.stack([before, after])[:, list(ids)].numpy(),
        follows=follows,
    )


def token_leads(
    checkpoint: Checkpoint, text: PassText, kind: Kind, heads_off: Sequence[tuple[Head, ...]], token: int
) -> tuple[float, ...]:
    """Logit of a next token minus the highest of the others, without each of several sets of heads; below 0 a causal
    language model says another one after the text.

    Args:
        token: its id.
    """
    logits = _logits_without(checkpoint, text, kind, heads_off, _last_own_token(text))
    others = logits.clone()
    others[:, token] = -torch.inf
    return tuple((logits[:, token] - others.max(-1).values).tolist())


def token_id(checkpoint: Checkpoint, asked: str) -> int:
    """Id of a token, as it is written.

    Raises: AnalysisError if it is not one token of this checkpoint.
    """
    ids = checkpoint.tokenizer(asked, add_special_tokens=False)["input_ids"]
    if not ids:
        raise AnalysisError(f"“{asked}” is no token of this model. Type another one.")
    if len(ids) != 1:
        parts = ", ".join(f"“{checkpoint.tokenizer.decode([token])}”" for token in ids)
        raise AnalysisError(f"“{asked}” is {len(ids)} tokens of this model: {parts}. Type one of these.")
    return int(ids[0])


def output_of_both(checkpoint: Checkpoint, a: PassText, b: PassText, settings: PassSettings) -> HeadOutput | None:
    """What a checkpoint predicts for two texts: classes, or the token after each (causal).

    Returns: the output for `a` as that before, for `b` as that after the change. None for a checkpoint without a head,
        for an encoder without its decoder, and for a masked language model, which needs a token to predict.
    """
    if checkpoint.head in (None, "masked token") or a.kind == "encoder":
        return None
    if checkpoint.head == "classes":
        return _classes(checkpoint, _logits(checkpoint, a, settings), _logits(checkpoint, b, settings))
    before, after = (_logits(checkpoint, text, settings, _last_own_token(text)) for text in (a, b))
    return _tokens(checkpoint, before, after, _last_own_token(a))


def prediction(checkpoint: Checkpoint, text: PassText, settings: PassSettings) -> Prediction | None:
    """Prediction for a text: classes, the token of its last word from a mask there, or the token after it (causal).

    Returns: None for a checkpoint without a head, and for an encoder without its decoder.
    """
    if checkpoint.head is None or text.kind == "encoder":
        return None
    if checkpoint.head == "classes":
        unit, values = _class_values(checkpoint, _logits(checkpoint, text, settings))
        return Prediction(names=_class_names(checkpoint), values=values.numpy(), unit=unit)
    is_masked = checkpoint.head == "masked token"
    token = _last_word_token(text) if is_masked else _last_own_token(text)
    shares = _logits(checkpoint, text, settings, token).softmax(-1)
    likely = _likeliest(shares)
    return Prediction(
        names=tuple(checkpoint.tokenizer.decode([i]) for i in likely),
        values=shares[likely].numpy(),
        unit="probability",
        masked=text.queries.tokens[token] if is_masked else None,
        after=None if is_masked else text.queries.tokens[token],
    )


def vector_angle(checkpoint: Checkpoint, a: PassText, b: PassText, settings: PassSettings) -> float:
    """Angle between the vectors of two texts, in degrees: 0 for one direction, 90 for a right angle. They are prepared
    for an attention whose queries are the checkpoint's input.

    Returns: the angle between the means of the last hidden states over all tokens.
    Source: Kahan 2006, "How Futile are Mindless Assessments of Roundoff", whose formula keeps small angles exact.
    """
    u, v = (_text_vector(checkpoint, text, settings) for text in (a, b))
    u, v = u / u.norm(), v / v.norm()
    return math.degrees(2 * math.atan2(float((u - v).norm()), float((u + v).norm())))


def word_probability(
    checkpoint: Checkpoint, text: PassText, tokens: Sequence[int], settings: PassSettings
) -> float | None:
    """Probability that a language model gives to a word in its place. Its tokens are given by their positions, in
    order.

    Returns: the product over the word's tokens; of a causal model given all tokens before each, of a masked one given
        the rest of the text and the word's earlier tokens. None for a checkpoint that predicts no tokens, for an
        encoder without its decoder, and for a causal model's first token, before which there is nothing.
    Source: Kauf and Ivanova 2023 (their PLL-word-l2r), for masked models of words with several tokens.
    """
    if checkpoint.head in (None, "classes") or text.kind == "encoder":
        return None
    is_masked = checkpoint.head == "masked token"
    if not is_masked and tokens[0] == 0:
        return None
    probability = 1.0
    for number, token in enumerate(tokens):
        if is_masked:
            logits = _logits(checkpoint, _masked(checkpoint, text, tokens[number:]), settings, token)
        else:
            logits = _logits(checkpoint, text, settings, token - 1)
        probability *= float(logits.softmax(-1)[int(text.queries.ids[token])])
    return probability


def _masked(checkpoint: Checkpoint, text: PassText, tokens: Sequence[int]) -> PassText:
    ids = text.source.ids.copy()
    ids[list(tokens)] = checkpoint.tokenizer.mask_token_id
    return replace(text, source=replace(text.source, ids=ids))


def _text_vector(checkpoint: Checkpoint, text: PassText, settings: PassSettings) -> Float[Tensor, " channel"]:
    model = checkpoint.model if text.kind == "self" else checkpoint.model.get_encoder()
    return _output(checkpoint, model, model_inputs(checkpoint, [text]), settings)[0][0].cpu().double().mean(0)


def _logits(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, token: int | None = None
) -> Float[Tensor, " choice"]:
    """Logits of the head for a text or one of its tokens, computed for that token only if the model supports it."""
    model, inputs = checkpoint.full_model, _inputs(checkpoint, text, token)
    if token is not None and "logits_to_keep" in inspect.signature(model.forward).parameters:
        inputs["logits_to_keep"], token = torch.tensor([token], device=inputs["input_ids"].device), 0
    logits = _output(checkpoint, model, inputs, settings).logits[0]
    # A copy of one row: those of all tokens together may be larger than the model.
    return (logits if token is None else logits[token].clone()).cpu().double()


def _logits_of_both(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, token: int | None = None
) -> Float[Tensor, "2 choice"]:
    """The same with all heads on, and without those that are off."""
    return _logits_without(checkpoint, text, settings.kind, [(), settings.off], token)


def _logits_without(
    checkpoint: Checkpoint, text: PassText, kind: Kind, heads_off: Sequence[tuple[Head, ...]], token: int | None
) -> Float[Tensor, "set choice"]:
    return logits_without(checkpoint, _inputs(checkpoint, text, token), kind, heads_off, token)


def _inputs(checkpoint: Checkpoint, text: PassText, token: int | None) -> dict[str, Tensor]:
    """Inputs of the model; a masked language model has a mask in the place of the token."""
    inputs = model_inputs(checkpoint, [text])
    if checkpoint.head == "masked token":
        inputs["input_ids"][0, token] = checkpoint.tokenizer.mask_token_id
    return inputs


def _output(checkpoint: Checkpoint, model: Any, inputs: Mapping[str, Tensor], settings: PassSettings) -> Any:
    calls = checkpoint.attentions[settings.kind].calls
    return observe(model, inputs, Pass(calls=calls, gates=gates(checkpoint, settings)))


def _last_own_token(text: PassText) -> int:
    """Index of the last token that was not added by the tokenizer; of the last one where ids were given."""
    if text.queries.given is not None:
        return len(text.queries.ids) - 1
    own = np.flatnonzero(text.queries.segments != SPECIAL)
    return int(own[-1]) if len(own) else len(text.queries.ids) - 1


def _last_word_token(text: PassText) -> int:
    """Index of the last token with a letter or digit: a full stop is easily guessed."""
    is_word = [any(character.isalnum() for character in token) for token in text.queries.tokens]
    words = np.flatnonzero((text.queries.segments != SPECIAL) & is_word)
    return int(words[-1]) if len(words) else _last_own_token(text)


def _classes(checkpoint: Checkpoint, before: Float[Tensor, " choice"], after: Float[Tensor, " choice"]) -> HeadOutput:
    (unit, before), (_, after) = (_class_values(checkpoint, logits) for logits in (before, after))
    return HeadOutput(
        names=_class_names(checkpoint),
        before=before.numpy(),
        after=after.numpy(),
        unit=unit,
        token=None,
        distance=_total_variation(before, after) if unit == "probability" else None,
    )


def _class_names(checkpoint: Checkpoint) -> tuple[str, ...]:
    config = checkpoint.full_model.config
    return tuple(str(config.id2label[i]) for i in range(config.num_labels))


def _class_values(checkpoint: Checkpoint, logits: Float[Tensor, " choice"]) -> tuple[Unit, Float[Tensor, " choice"]]:
    config = checkpoint.full_model.config
    if len(logits) == 1 or config.problem_type == "regression":
        return "value", logits
    if config.problem_type == "multi_label_classification":
        return "independent probability", logits.sigmoid()
    return "probability", logits.softmax(-1)


def _tokens(
    checkpoint: Checkpoint, before: Float[Tensor, " choice"], after: Float[Tensor, " choice"], token: int
) -> HeadOutput:
    before, after = before.softmax(-1), after.softmax(-1)
    likely = _likeliest(before, after)
    return HeadOutput(
        names=tuple(checkpoint.tokenizer.decode([i]) for i in likely),
        before=before[likely].numpy(),
        after=after[likely].numpy(),
        unit="probability",
        token=token,
        distance=_total_variation(before, after),
    )


def _likeliest(*distributions: Float[Tensor, " choice"]) -> list[int]:
    """Ids of the likeliest tokens of each distribution, each once."""
    ids = (int(i) for values in distributions for i in values.topk(min(MOST_LIKELY, len(values))).indices)
    return list(dict.fromkeys(ids))


def _total_variation(a: Float[Tensor, " choice"], b: Float[Tensor, " choice"]) -> float:
    return float((a - b).abs().sum() / 2)
