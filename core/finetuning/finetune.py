"""Fine-tuning a checkpoint on labelled texts; attention_sieve.core.finetuning.loop has the loop itself."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import softmax
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    set_seed,
)

from attention_sieve.core.checkpoints.adapters import NONE_BESIDE, merge_adapter
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, CheckpointFiles
from attention_sieve.core.checkpoints.checks.loaded import own_memory
from attention_sieve.core.checkpoints.find import choose_device, load_checkpoint, unchanged
from attention_sieve.core.checkpoints.load import ONE_AT_A_TIME
from attention_sieve.core.checkpoints.weights import class_without_heads
from attention_sieve.core.errors import AnalysisError, CheckpointError, is_out_of_memory
from attention_sieve.core.finetuning.data import TrainingData, held_out_texts
from attention_sieve.core.finetuning.journal import WrongText, record_result
from attention_sieve.core.finetuning.loop import Batch, Example, PlainTrainer, Reports, arguments
from attention_sieve.core.finetuning.settings import TrainingSettings
from attention_sieve.core.pauses import pause, pausing
from attention_sieve.core.running import Journal, Progress, Validation, ValidationResult, saved_checkpoints
from attention_sieve.core.texts.tokens import tokenize

OF_A_HEAD: Final = "pooler"
"""Weights that are named like the body but belong to the head, so that a checkpoint without a head may lack them."""
MOST_WRONG: Final = 5
"""Maximum number of wrongly predicted validation texts that a run records."""


def finetune(
    files: CheckpointFiles,
    data: TrainingData,
    settings: TrainingSettings,
    journal: Journal,
    *,
    held_out: TrainingData | None = None,
    device: str = "auto",
    on_step: Callable[[int, int], None] | None = None,
    trainer: Callable[..., PlainTrainer] = PlainTrainer,
) -> Progress:
    """Fine-tune a checkpoint from the journal's step, until the last step or until a stop is requested.

    Args:
        journal: journal of the run; its folder gets the saved steps and, at the end, the fine-tuned checkpoint.
        held_out: validation texts; None for a validation split of the data.
        device: auto, cuda, mps or cpu.
        on_step: called with each finished step and the total number of steps.
        trainer: class of the training loop.

    Returns: how the run ended: finished or stopped.
    Raises: AnalysisError for an unsuitable checkpoint, text or setting, and for insufficient memory or disk space;
        Stopped before the first step.
    """
    device = choose_device(device)
    with journal.beginning():
        training, validation, held_out, max_tokens = _examples(files, data, held_out, settings, journal)
        set_seed(settings.seed)
        saved = str(saved_checkpoints(journal.folder)[-1]) if journal.step else None
        model = _load_model(files, data, saved)
    tokenizer = _tokenizer(files, model)
    collator = DataCollatorWithPadding(tokenizer)
    by_length = sorted(range(len(validation)), key=lambda position: len(validation[position]["input_ids"]))
    order = [by_length[at : at + settings.batch_size] for at in range(0, len(by_length), settings.batch_size)]
    batches = [dict(collator([validation[position] for position in batch])) for batch in order]
    with _enough_memory(device, settings.batch_size, max_tokens):
        loop = trainer(
            tokenizer=tokenizer,
            removed=files.removed,
            model=model,
            args=arguments(journal.folder, settings, device),
            train_dataset=training,
            data_collator=collator,
            callbacks=[Reports(journal, settings, partial(measure_held_out, model, batches), on_step)],
        )
        loop.remove_callback(PrinterCallback)
        loop.train(saved)
    if loop.state.max_steps not in [measured.step for measured in journal.progress.held_out]:
        journal.end("stopped")
        return journal.progress
    with pausing(journal.check):
        wrong = _most_wrong(model, batches, [position for batch in order for position in batch], held_out)
    loop.finish()
    facts = {"texts": len(training), "texts_held_out": len(validation), "max_tokens": max_tokens, "device": device}
    result = asdict(journal.progress.held_out[-1])
    record_result(journal.folder, **result, **facts, wrong=[asdict(text) for text in wrong])
    journal.end("finished")
    return journal.progress


@contextmanager
def _enough_memory(device: str, batch_size: int, max_tokens: int) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise AnalysisError(
            f"The memory of {device} is too small for batches of {batch_size:,} texts of up to {max_tokens:,} tokens. "
            "Give a smaller batch size or maximum length, or choose a smaller checkpoint."
        ) from None


def _examples(
    files: CheckpointFiles,
    data: TrainingData,
    held_out: TrainingData | None,
    settings: TrainingSettings,
    journal: Journal,
) -> tuple[list[Example], list[Example], TrainingData, int]:
    """Training examples, validation examples and their texts, and the maximum number of tokens of a text.

    The checkpoint loaded here is freed on return: its weights are loaded again, with a head.
    """
    checkpoint = load_checkpoint(files, device="cpu")
    max_tokens = min(settings.max_length, checkpoint.max_tokens)
    journal.doing("Tokenizing the texts.")
    examples, n_cut = _encoded(checkpoint, data, max_tokens)
    if held_out is None:
        is_held_out = held_out_texts(data, settings.held_out, settings.seed)
        training = [example for example, out in zip(examples, is_held_out) if not out]
        validation = [example for example, out in zip(examples, is_held_out) if out]
        held_out, data = data.subset(is_held_out), data.subset(~is_held_out)
    else:
        training, (validation, n_validation_cut) = examples, _encoded(checkpoint, held_out, max_tokens)
        n_cut += n_validation_cut
    if n_cut:
        n_texts = len(training) + len(validation)
        journal.note(f"{n_cut:,} of {n_texts:,} texts have more than {max_tokens:,} tokens and were truncated.")
    journal.validation(_one_answer(data, held_out))
    return training, validation, held_out, max_tokens


def _one_answer(training: TrainingData, held_out: TrainingData) -> Validation:
    """The result of giving the same answer for all validation texts."""
    labels = np.array(held_out.labels)
    if held_out.task == "regression":
        return Validation(len(labels), None, float(np.square(labels - np.mean(training.labels)).mean()))
    return Validation(len(labels), float(np.bincount(labels.astype(int)).max() / len(labels)), None)


def _encoded(checkpoint: Checkpoint, data: TrainingData, max_tokens: int) -> tuple[list[Example], int]:
    """One example per text, and the number of truncated texts."""
    as_label = float if data.task == "regression" else int
    examples, n_cut = [], 0
    for position, (text, label) in enumerate(zip(data.texts, data.labels)):
        tokens = tokenize(text, checkpoint.tokenizer, max_tokens, position=position, truncate=True)
        example = {"input_ids": tokens.ids.tolist(), "labels": as_label(label)}
        if checkpoint.takes_type_ids:
            example["token_type_ids"] = tokens.type_ids.tolist()
        examples.append(example)
        n_cut += tokens.n_cut > 0
    return examples, n_cut


def measure_held_out(model: PreTrainedModel, batches: Sequence[Batch], step: int) -> ValidationResult:
    """Evaluate a model on the validation texts; uses no random numbers."""
    outputs, targets, loss = _outputs(model, batches)
    if model.config.problem_type == "regression":
        return ValidationResult(step, loss, None, _correlation(outputs[:, 0], targets))
    return ValidationResult(step, loss, float((outputs.argmax(-1) == targets).mean()), None)


def _outputs(
    model: PreTrainedModel, batches: Sequence[Batch]
) -> tuple[Float[np.ndarray, "text class"], np.ndarray, float]:
    """Outputs for the validation texts, their labels, and the mean loss."""
    model.eval()
    outputs, labels, losses = [], [], []
    with torch.inference_mode():
        for batch in batches:
            pause()
            output = model(**{name: values.to(model.device) for name, values in batch.items()})
            outputs.append(output.logits.float().cpu())
            labels.append(batch["labels"])
            losses.append(float(output.loss) * len(batch["labels"]))
    targets = torch.cat(labels).numpy()
    return torch.cat(outputs).numpy(), targets, sum(losses) / len(targets)


def _most_wrong(
    model: PreTrainedModel, batches: Sequence[Batch], order: Sequence[int], held_out: TrainingData
) -> list[WrongText]:
    """The validation texts with the most confident wrong predictions, or the largest errors of a regression, the worst
    first.

    Args:
        model: after training.
        batches: the validation texts.
        order: position of each of their texts in `held_out`.
        held_out: their texts.
    """
    outputs, targets, _ = _outputs(model, batches)
    if held_out.task == "regression":
        answers = outputs[:, 0]
        badness, names = np.abs(answers - targets), [f"{answer:.3g}" for answer in answers]
        labels = [f"{target:g}" for target in targets]
    else:
        answers = outputs.argmax(-1)
        sureness = softmax(outputs, axis=-1).max(-1)
        badness, names = np.where(answers == targets, 0, sureness), [held_out.classes[answer] for answer in answers]
        labels = [held_out.classes[target] for target in targets]
    worst = [row for row in np.argsort(-badness, kind="stable")[:MOST_WRONG] if badness[row] > 0]
    return [WrongText(held_out.texts[order[row]].segments, labels[row], names[row]) for row in worst]


def _correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a.astype(np.float64), b.astype(np.float64))[0, 1])


def _load_model(files: CheckpointFiles, data: TrainingData, saved: str | None) -> PreTrainedModel:
    """The model with a new head for these labels, or as it was saved."""
    names = data.classes or (data.label_column,)
    config = AutoConfig.from_pretrained(
        saved or files.whole.folder,
        trust_remote_code=False,
        local_files_only=True,
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
        problem_type="regression" if data.task == "regression" else "single_label_classification",
    )
    if type(config) not in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING:
        raise CheckpointError(
            f"transformers has no classification head for {files.model_type!r}, the architecture of {files.name}. "
            "Choose another checkpoint, such as BERT."
        )
    model_class = class_without_heads(files.name, AutoModelForSequenceClassification, config, files.removed)
    with ONE_AT_A_TIME, unchanged(files):
        model, report = model_class.from_pretrained(
            saved or files.whole.folder,
            config=config,
            dtype=torch.float32,
            ignore_mismatched_sizes=saved is None,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            adapter_kwargs=NONE_BESIDE,
        )
        if saved is None and files.base is not None:
            merge_adapter(files.name, files.folder, model)
    own_memory(model)
    _check_body(files.name, model, report, saved)
    return model


def _check_body(name: str, model: PreTrainedModel, report: dict[str, Any], saved: str | None) -> None:
    """Raise if weights other than those of a new head are missing."""
    absent = [*report["missing_keys"], *(key[0] for key in report["mismatched_keys"])]
    body = f"{model.base_model_prefix}."
    random = sorted(key for key in absent if saved or (key.startswith(body) and OF_A_HEAD not in key))
    if random:
        raise CheckpointError(
            f"{len(random):,} weights of {saved or name} are missing or have another shape, {random[0]} first. Save "
            "the whole model with save_pretrained."
        )


def _tokenizer(files: CheckpointFiles, model: PreTrainedModel) -> PreTrainedTokenizerBase:
    """The tokenizer from its files, with a padding token that is also set in the model.

    A model that classifies at the last token locates it by the padding; without a padding token, the end token is used.
    """
    tokenizer = AutoTokenizer.from_pretrained(files.tokenizer_folder, trust_remote_code=False, local_files_only=True)
    n_embeddings = model.get_input_embeddings().num_embeddings
    candidates = (model.config.pad_token_id, tokenizer.pad_token_id, tokenizer.eos_token_id)
    padding = next((number for number in candidates if number is not None and 0 <= number < n_embeddings), None)
    if padding is None:
        raise CheckpointError(
            f"The tokenizer of {files.name} names neither a padding nor an end token, so texts of different lengths "
            "cannot be batched. Name one in its tokenizer_config.json."
        )
    model.config.pad_token_id = padding
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(padding)
    return tokenizer
