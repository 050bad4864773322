"""The training loop: transformers' Trainer, adapted to save safetensors and JSON only and to resume exactly."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.utils.data import Sampler
from transformers import (
    PreTrainedTokenizerBase,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_pt_utils import get_length_grouped_indices

from attention_sieve.core.checkpoints.checkpoint import RemovedHeads, write_removed
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.settings import WARM_UP, WEIGHT_DECAY, TrainingSettings
from attention_sieve.core.pauses import pausing
from attention_sieve.core.running import Journal, Stopped, ValidationResult, saved_checkpoints, saving_in

RESUME: Final = "resume.safetensors"
"""State of optimizer, schedule and random numbers; saved with the last checkpoint only."""
N_REPORTS, N_MEASUREMENTS = 100, 10
"""Numbers of reports of the training loss, and of evaluations on the validation texts, per run."""
Example = dict[str, Any]
"""`input_ids` of a text, `token_type_ids` if the model uses them, and its `labels`: one number."""
Batch = dict[str, Tensor]


def arguments(folder: Path, settings: TrainingSettings, device: str) -> TrainingArguments:
    """Arguments of the Trainer: a single device, no reporting services; Reports decides when to log and save."""
    training_arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        per_device_train_batch_size=settings.batch_size,
        seed=settings.seed,
        warmup_steps=WARM_UP,
        weight_decay=WEIGHT_DECAY,
        use_cpu=device == "cpu",
        dataloader_pin_memory=device == "cuda",
        logging_strategy="no",
        logging_nan_inf_filter=False,
        eval_strategy="no",
        save_strategy="no",
        save_only_model=True,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to="none",
        push_to_hub=False,
    )
    training_arguments._n_gpu = min(training_arguments.n_gpu, 1)  # several would multiply the batch size
    return training_arguments


class PlainTrainer(Trainer):
    """Trainer that saves steps as safetensors and JSON, into a folder that is renamed once complete.

    A resumed run gives exactly the same numbers as an uninterrupted one.
    """

    def __init__(self, *, tokenizer: PreTrainedTokenizerBase, removed: RemovedHeads, **options: Any) -> None:
        super().__init__(**options)
        self._tokenizer, self._removed = tokenizer, removed
        self._folder = Path(self.args.output_dir)

    def save_start(self) -> None:
        """Save the model as it is before the first step, as step 0."""
        start = self._folder / "checkpoint-0"
        if not start.exists():
            with self._saved_model() as temporary:
                temporary.replace(start)

    def finish(self) -> None:
        """Write the fine-tuned checkpoint to the run's folder, its configuration last, and remove the resume files."""
        with self._saved_model() as temporary:
            for file in sorted(temporary.iterdir(), key=lambda file: file.name == "config.json"):
                file.replace(self._folder / file.name)
        for saved in saved_checkpoints(self._folder):
            (saved / RESUME).unlink(missing_ok=True)

    @contextmanager
    def _saved_model(self) -> Iterator[Path]:
        """A temporary folder with the saved model; whatever is still in it at the end is removed."""
        temporary = self._folder / "saving"
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            with saving_in(self._folder):
                self.save_model(str(temporary), _internal_call=True)
                yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        folder = output_dir or self.args.output_dir
        self.model.save_pretrained(folder, state_dict=state_dict)
        self._tokenizer.save_pretrained(folder)
        write_removed(Path(folder), self._removed)

    def _save_checkpoint(self, model: torch.nn.Module, trial: Any) -> None:
        with self._saved_model() as temporary:
            self.state.save_to_json(str(temporary / "trainer_state.json"))
            self._save_training_state(temporary / RESUME)
            temporary.replace(self._folder / f"checkpoint-{self.state.global_step}")
        for older in saved_checkpoints(self._folder)[:-1]:
            (older / RESUME).unlink(missing_ok=True)

    def _save_training_state(self, path: Path) -> None:
        optimizer = self.optimizer.state_dict()
        values = {
            f"optimizer.{number}.{name}": value
            for number, weights in optimizer["state"].items()
            for name, value in weights.items()
        }
        values |= {f"random.{name}": source.get_rng_state() for name, source in self._random_sources().items()}
        numbers = {
            "schedule": self.lr_scheduler.state_dict(),
            "learning_rates": [group["lr"] for group in optimizer["param_groups"]],
        }
        save_file(
            {name: value.detach().cpu().contiguous() for name, value in values.items()},
            path,
            {name: json.dumps(value) for name, value in numbers.items()},
        )

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: torch.nn.Module | None = None) -> None:
        """Do nothing: the model was already loaded from there, which reports missing weights."""

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        optimizer = self.optimizer.state_dict()
        with _opened(checkpoint) as file:
            for name in file.keys():  # noqa: SIM118  it is no mapping
                kind, *key = name.split(".", 2)
                if kind == "optimizer":
                    optimizer["state"].setdefault(int(key[0]), {})[key[1]] = file.get_tensor(name)
            numbers = {name: json.loads(value) for name, value in file.metadata().items()}
        for group, rate in zip(optimizer["param_groups"], numbers["learning_rates"]):
            group["lr"] = rate
        self.optimizer.load_state_dict(optimizer)
        self.lr_scheduler.load_state_dict(numbers["schedule"])

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            with _opened(checkpoint) as file:
                for name, source in self._random_sources().items():
                    if f"random.{name}" in file.keys():  # noqa: SIM118  absent where the run began on another device
                        source.set_rng_state(file.get_tensor(f"random.{name}"))

    def _random_sources(self) -> dict[str, Any]:
        device = {"cuda": torch.cuda, "mps": torch.mps}.get(self.args.device.type)
        return {"cpu": torch} | ({self.args.device.type: device} if device else {})

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        lengths = [len(example["input_ids"]) for example in train_dataset or self.train_dataset]
        return _LengthGrouped(lengths, self.args.train_batch_size, self.args.seed)


class _LengthGrouped(Sampler[int]):
    """Groups texts of similar length, in an order that depends only on seed and epoch."""

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self._lengths, self._batch_size, self._seed, self._epoch = lengths, batch_size, seed, 0

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed((self._seed << 10) + self._epoch)
        return iter(get_length_grouped_indices(self._lengths, self._batch_size, generator=generator))

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch


class Reports(TrainerCallback):
    """Decides when to log, evaluate, save and stop, and reports to the journal."""

    def __init__(
        self,
        journal: Journal,
        settings: TrainingSettings,
        measure: Callable[[int], ValidationResult],
        on_step: Callable[[int, int], None] | None,
        n_measurements: int = N_MEASUREMENTS,
    ) -> None:
        """Set up the callbacks.

        Args:
            measure: evaluates the model after a step.
            on_step: called with each finished step and the total number of steps.
            n_measurements: number of evaluations, evenly spaced.
        """
        self._journal, self._save_steps, self._measure, self._on_step = journal, settings.save_steps, measure, on_step
        self._n_measurements = n_measurements

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Choose the steps with an evaluation, and make that of the saved step where the run was stopped during it."""
        self._journal.plan(state.max_steps)
        parts = range(1, self._n_measurements + 1)
        self._measured_at = {-(-state.max_steps * part // self._n_measurements) for part in parts}
        if all(measured.step != state.global_step for measured in self._journal.progress.held_out):
            self._evaluate(state.global_step)

    def _evaluate(self, step: int) -> None:
        """Evaluate if due. Raises: Stopped."""
        if step in self._measured_at:
            with pausing(self._journal.check):
                self._journal.held_out(self._measure(step))

    def on_step_end(self, args: Any, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Evaluate if due, and request logging, saving and stopping from the Trainer."""
        step, is_last = state.global_step, state.global_step >= state.max_steps
        with suppress(Stopped):
            self._evaluate(step)
        stop = self._journal.stop_asked()
        is_due = self._save_steps is not None and step % self._save_steps == 0
        control.should_log = is_last or stop or step % max(1, state.max_steps // N_REPORTS) == 0
        control.should_save = is_last or stop or is_due
        control.should_training_stop |= stop
        if self._on_step is not None:
            self._on_step(step, state.max_steps)

    def on_log(
        self, args: Any, state: TrainerState, control: TrainerControl, logs: dict[str, float], **others: Any
    ) -> None:
        """Report the loss; a loss that is not finite ends the run."""
        if "loss" in logs:
            if not isfinite(logs["loss"]):
                raise AnalysisError(
                    f"The loss is {logs['loss']} at step {state.global_step:,}, so training has diverged. Give a "
                    "smaller learning rate, or, for a regression, smaller labels."
                )
            self._journal.loss(state.global_step, logs["loss"])


def _opened(checkpoint: str) -> Any:
    path = Path(checkpoint) / RESUME
    try:
        return safe_open(path, "pt")
    except (OSError, SafetensorError) as error:
        raise AnalysisError(
            f"{path} cannot be read ({error}), so the run cannot be resumed from there. Start again in another folder."
        ) from error
