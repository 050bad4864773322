"""Trains a small model on sequences that repeat, and saves its steps as checkpoints."""

from collections.abc import Callable
from typing import Final

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    PrinterCallback,
    default_data_collator,
    set_seed,
)
from transformers.utils import logging as transformers_logging

from attention_sieve.core.checkpoints.threads import on_threads
from attention_sieve.core.finetuning.loop import PlainTrainer, Reports, arguments
from attention_sieve.core.laboratory.sequences import BEGINNING, UNKNOWN, VOCABULARY, is_copied, sequences
from attention_sieve.core.laboratory.settings import BATCH, LENGTH, N_HEADS, N_LAYERS, WIDTH, LaboratorySettings
from attention_sieve.core.running import Journal, Progress, ValidationResult, saved_checkpoints

N_VALIDATION: Final = 64
"""Sequences that the model is not trained on."""
OF_VALIDATION: Final = 1
"""Distinguishes the random numbers of validation sequences from those of training sequences."""


def train(
    settings: LaboratorySettings, journal: Journal, on_step: Callable[[int, int], None] | None = None
) -> Progress:
    """Train a model from the journal's step, until the last step or until a stop is requested.

    Args:
        journal: of the run; its folder gets the saved steps, the untrained model as step 0, and at the end the trained
            one.
        on_step: called with each finished step and the number of steps.

    Returns: how the run ended: finished or stopped. Loss and accuracy of its reports are those of the copied tokens
        (see `is_copied`) of other sequences of the same kind.
    Raises: AnalysisError where the folder cannot be written.
    """
    transformers_logging.disable_progress_bar()
    set_seed(settings.seed)
    journal.doing("Drawing the sequences.")
    examples = [{"input_ids": row, "labels": row} for row in _ids(settings, settings.steps * BATCH)]
    validation = _ids(settings, N_VALIDATION, OF_VALIDATION)
    saved = str(saved_checkpoints(journal.folder)[-1]) if journal.step else None
    model = LlamaForCausalLM.from_pretrained(saved) if saved else untrained_model()
    n_measurements = -(-settings.steps // settings.save_steps)
    reports = Reports(
        journal, settings.training, lambda step: _measured(model, validation, step), on_step, n_measurements
    )
    loop = PlainTrainer(
        tokenizer=made_tokenizer(),
        removed=(),
        model=model,
        args=arguments(journal.folder, settings.training, "cpu"),
        train_dataset=examples,
        data_collator=default_data_collator,
        callbacks=[reports],
    )
    loop.remove_callback(PrinterCallback)
    if not saved:
        loop.save_start()
        journal.held_out(_measured(model, validation, 0))
    with on_threads(1):
        loop.train(saved)
    if loop.state.global_step < loop.state.max_steps:
        journal.end("stopped")
    else:
        loop.finish()
        journal.end("finished")
    return journal.progress


def untrained_model() -> LlamaForCausalLM:
    """A model with random weights: 74,048 parameters, rotary positions, in the shape of Llama."""
    config = LlamaConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=WIDTH,
        intermediate_size=WIDTH,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=N_HEADS,
        num_key_value_heads=N_HEADS,
        max_position_embeddings=LENGTH,
        bos_token_id=VOCABULARY.index(BEGINNING),
        eos_token_id=None,
    )
    return LlamaForCausalLM(config)


def made_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer for which each syllable of the vocabulary is a token; other words are unknown."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(VOCABULARY)}, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    beginning = (BEGINNING, VOCABULARY.index(BEGINNING))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGINNING} $A", pair=f"{BEGINNING} $A $B:1", special_tokens=[beginning]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=BEGINNING, unk_token=UNKNOWN, model_max_length=LENGTH
    )


def _ids(settings: LaboratorySettings, n_sequences: int, *part: int) -> Tensor:
    random = np.random.default_rng([settings.seed, *part])
    return torch.from_numpy(sequences(n_sequences, settings.periods, random))


def _measured(model: LlamaForCausalLM, ids: Tensor, step: int) -> ValidationResult:
    copied = torch.from_numpy(np.stack([is_copied(row) for row in ids.numpy()]))[:, 1:]
    model.eval()
    with torch.inference_mode():
        logits = model(ids).logits[:, :-1][copied]
    targets = ids[:, 1:][copied]
    loss = float(torch.nn.functional.cross_entropy(logits, targets))
    return ValidationResult(step, loss, float((logits.argmax(-1) == targets).double().mean()), None)
