"""The importance of heads by every measure of the program, on the task of a planted model, and its effects of sets."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from transformers import PreTrainedTokenizerBase

from attention_sieve.core.answering import Reading, answer, find_in
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS, IMPORTANCE_ANALYSIS
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import gated_question
from attention_sieve.core.importance.settings import AblationSettings, ImportanceSettings, MetricSettings
from attention_sieve.core.passes.texts import PassText, prepare_all
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.parsers import NO_PARSER
from attention_sieve.core.texts.text import Text, text_of_ids
from benchmarks.planted.grades.claims import Opened
from benchmarks.planted.grades.copying import direct_effects
from benchmarks.planted.grades.records import DirectEffects, MeasureValues, Refusal, by_head
from benchmarks.planted.truth import SetEffect, Task

LOSS: Final = MetricSettings(metric="lm")
UNSIGNED: Final = ("gradient per token", "gradient per text", "gradient per batch", "wanda-sp", "flap", "confidence")
"""Measures that are no estimate of a rise or fall, so that their sign says nothing."""
MEAN_ABLATION: Final = "ablation, replaced by the mean"


OTHER_LOSS: Final = "The task is neither to predict the next token nor that at a mask, whose loss alone is measured."


def task_texts(task: Task, tokenizer: PreTrainedTokenizerBase) -> tuple[Text, ...]:
    """The texts of a task, with the right tokens where it has masks.

    Raises:
        ValueError: The tokenizer does not give the same tokens again for two segments.
    """
    texts = []
    for row, ids in enumerate(task.tokens):
        whole = np.array(ids)
        if task.kind == "masked":
            whole[list(task.scored[row])] = task.targets[row]
        if task.segments is None or not any(task.segments[row]):
            texts.append(text_of_ids(GivenTokens(tuple(whole.tolist()))))
            continue
        is_special, segments = np.isin(whole, tokenizer.all_special_ids), np.array(task.segments[row])
        parts = [
            " ".join(tokenizer.convert_ids_to_tokens(whole[~is_special & (segments == side)].tolist()))
            for side in range(2)
        ]
        if (again := tokenizer(*parts)["input_ids"]) != whole.tolist():
            raise ValueError(f"Text {row} of the task has {whole.tolist()}, and is read as {again}.")
        texts.append(Text(tuple(parts), parser=NO_PARSER))
    return tuple(texts)


def is_own_loss(task: Task, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether the task is what a language model's loss measures: the tokens that follow, or those at masks."""
    if task.kind == "masked":
        return all(
            ids[place] == tokenizer.mask_token_id for ids, scored in zip(task.tokens, task.scored) for place in scored
        )
    return all(
        tuple(ids[place + 1] for place in scored if place + 1 < len(ids)) == targets
        for ids, scored, targets in zip(task.tokens, task.scored, task.targets)
    )


def scored_reading(opened: Opened) -> Reading[LabelledText]:
    """The texts of the task as the program reads them, whose loss is that of the scored tokens alone."""
    task, settings = opened.truth.task, PassSettings(opened.checkpoint.files.kinds[0])
    texts = task_texts(task, opened.tokenizer)
    prepared, _ = prepare_all(opened.checkpoint, texts, settings, "error")
    scored = {row: replace(text, predicts_after=task.scored[row]) for row, text in prepared.items()}
    inputs = tuple(map(LabelledText, texts))
    return Reading(checkpoint=opened.checkpoint, pass_settings=settings, inputs=inputs, prepared=scored, answer=answer)


def importance(opened: Opened, refuse: Callable[[Refusal], None]) -> Iterator[MeasureValues]:
    """The values of all measures that the program has of a model, but for direct attribution.

    Args:
        opened: The model.
        refuse: Takes what the program does not say.
    """
    if not is_own_loss(opened.truth.task, opened.tokenizer):
        refuse(Refusal("importance", OTHER_LOSS))
        return
    reading = scored_reading(opened)
    finding = find_in(IMPORTANCE_ANALYSIS, reading, ImportanceSettings(metric_settings=LOSS))
    for name, reason in finding.cheap.left_out:
        refuse(Refusal(name, reason))
    for name, values in finding.values.items():
        yield MeasureValues(name, by_head(values), name not in UNSIGNED)
    by_mean = find_in(ABLATION_ANALYSIS, reading, AblationSettings(metric_settings=LOSS, replace="mean"))
    yield MeasureValues(MEAN_ABLATION, by_head(by_mean.damage), is_signed=True)


def direct_attribution(
    opened: Opened, refuse: Callable[[Refusal], None]
) -> tuple[DirectEffects | None, tuple[MeasureValues, ...]]:
    """Direct effects beside those by hooks, and as a measure; none where the program has none."""
    texts: list[PassText] = list(scored_reading(opened).prepared.values())
    try:
        compared, measure = direct_effects(opened, texts)
    except AnalysisError as error:
        refuse(Refusal("direct attribution", str(error)))
        return None, ()
    return compared, (measure,)


def measured_sets(opened: Opened) -> tuple[SetEffect, ...]:
    """The rise of the loss without sets of heads, as the program measures it."""
    sets = opened.truth.effects.sets
    if not sets or not is_own_loss(opened.truth.task, opened.tokenizer):
        return ()
    n_layers, n_heads = np.array(opened.truth.effects.single).shape
    gatings = np.ones((1 + len(sets), n_layers, n_heads))
    for number, effect in enumerate(sets, start=1):
        gatings[(number, *np.array(effect.heads).T)] = 0
    reading, question = scored_reading(opened), gated_question("lm", gatings)
    texts = [item.text for item in reading.inputs]
    batches = reading.answer(opened.checkpoint, question, texts, reading.prepared, reading.pass_settings)
    by_text: dict[int, Any] = {index: outcome for batch in batches for index, outcome in batch}
    weights = np.array([len(scored) for scored in opened.truth.task.scored], float)
    losses = np.einsum("t,tg->g", weights / weights.sum(), np.stack([by_text[row][:, 0] for row in sorted(by_text)]))
    rises = (losses[1:] - losses[0]).tolist()
    return tuple(SetEffect(effect.heads, rise) for effect, rise in zip(sets, rises, strict=True))
