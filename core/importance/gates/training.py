"""Trains L0 gates that close heads, as fine-tuning runs with a gate for every head."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState

from attention_sieve.core.attention.observed import ATTENTION_NAME
from attention_sieve.core.attention.observers import Pass, current_pass
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, CheckpointFiles, no_such_attention
from attention_sieve.core.checkpoints.find import load_checkpoint
from attention_sieve.core.checkpoints.weights import attention_modules, scale_heads
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import TrainingData
from attention_sieve.core.finetuning.finetune import finetune
from attention_sieve.core.finetuning.loop import PlainTrainer
from attention_sieve.core.importance.gates.hard_concrete import EDGE, gates_of, penalty, sampled, without_noise
from attention_sieve.core.importance.gates.settings import GateSettings, TrainedGates, append_gates
from attention_sieve.core.importance.labels import class_indices
from attention_sieve.core.json_values import parse_json
from attention_sieve.core.running import Journal, Progress

LOG_ALPHA: Final = "head_gates.log_alpha"
"""Name of the gates in the weights of a saved step."""


class HeadGates(nn.Module):
    """A gate for every head of one kind of attention, applied in each forward pass of a model."""

    def __init__(self, model: PreTrainedModel, attention: AttentionLayers, start: float) -> None:
        """Add gates to a model; `start` is the logarithm of alpha of every gate."""
        super().__init__()
        self.log_alpha = nn.Parameter(torch.full((attention.n_layers, attention.n_heads), start))
        self._removed = attention.removed
        self._calls = attention.calls
        self._token: Token[Pass | None] | None = None
        model.set_attn_implementation(ATTENTION_NAME)
        model.head_gates = self
        self._hooks = (
            model.register_forward_pre_hook(self._open),
            model.register_forward_hook(self._close, always_call=True),
        )

    def remove_from(self, model: PreTrainedModel) -> None:
        """Remove the gates from the model again."""
        for hook in self._hooks:
            hook.remove()
        del model.head_gates

    def gates(self) -> Float[Tensor, "layer head"]:
        """Gates of all heads: sampled in training, without noise otherwise."""
        if not self.training:
            return without_noise(self.log_alpha)
        noise = torch.rand(self.log_alpha.shape, device=self.log_alpha.device) * (1 - 2 * EDGE) + EDGE
        return sampled(self.log_alpha, noise)

    def penalty(self) -> Float[Tensor, ""]:
        """Expected number of open gates, over the heads that were not removed."""
        present = torch.ones(self.log_alpha.shape, dtype=torch.bool)
        for head in self._removed:
            present[head] = False
        return penalty(self.log_alpha[present.to(self.log_alpha.device)])

    def _open(self, model: nn.Module, _: object) -> None:
        self._token = current_pass.set(Pass(calls=self._calls, gates=self.gates()))

    def _close(self, model: nn.Module, _: object, output: object) -> None:
        if self._token is not None:
            current_pass.reset(self._token)
            self._token = None


class GateTrainer(PlainTrainer):
    """The training loop of fine-tuning, with gates in the model and a penalty on open ones.

    With frozen weights there is no dropout, as heads would have to compensate for its noise. Attention probabilities
    never have dropout, as the attention function applies none.
    """

    def __init__(self, *, model: PreTrainedModel, settings: GateSettings, attention: AttentionLayers, **options: Any):
        if not settings.with_weights:
            model.requires_grad_(False)
        self._gates, self._settings = HeadGates(model, attention, settings.start), settings
        super().__init__(model=model, **options)
        self.add_callback(_GateReports(self._gates, self._folder))

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """AdamW with separate learning rates for weights and gates; gates have no weight decay."""
        weights = [
            parameter
            for name, parameter in self.model.named_parameters()
            if parameter.requires_grad and name != LOG_ALPHA
        ]
        groups = [{"params": [self._gates.log_alpha], "lr": self._settings.gate_rate, "weight_decay": 0.0}]
        if weights:
            groups.append({"params": weights, "lr": self.args.learning_rate, "weight_decay": self.args.weight_decay})
        self.optimizer = torch.optim.AdamW(groups)
        return self.optimizer

    def compute_loss(self, model: nn.Module, inputs: Mapping[str, Any], *arguments: Any, **options: Any) -> Any:
        """The loss of the task plus the penalty."""
        if not self._settings.with_weights:
            model.eval()
            self._gates.train()
        return (
            super().compute_loss(model, inputs, *arguments, **options) + self._settings.penalty * self._gates.penalty()
        )

    def finish(self) -> None:
        """Save the model with its gates multiplied into the weights, so that it works wherever it is loaded."""
        self._gates.remove_from(self.model)
        scale_heads("The checkpoint", self.model, self._settings.kind, without_noise(self._gates.log_alpha.detach()))
        super().finish()

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        """Load the gates of a saved step; its weights are loaded already."""
        with torch.no_grad():
            self._gates.log_alpha.copy_(_saved_log_alpha(Path(resume_from_checkpoint)))


def train_gates(
    files: CheckpointFiles,
    data: TrainingData,
    settings: GateSettings,
    journal: Journal,
    *,
    device: str = "auto",
    on_step: Callable[[int, int], None] | None = None,
) -> Progress:
    """Train gates on labelled texts from the journal's step, until the last step or until a stop is requested.

    Args:
        files: of a checkpoint that classifies the same classes.
        device: auto, cuda, mps or cpu.
        on_step: called after each step with its number and the total.

    Returns: final state of the run.
    Raises: AnalysisError for a checkpoint without a classifier of these classes or without observable heads, and what
        fine-tuning raises.
    Source: Voita et al. 2019, section 3.4: a gate for each head, relaxed to a hard concrete variable, and the expected
        number of open gates as a penalty, on a trained model.
    """
    with journal.beginning():
        checkpoint = load_checkpoint(files, device="cpu")
    attention = checkpoint.attentions.get(settings.kind)
    if attention is None:
        raise no_such_attention(files.name, settings.kind, checkpoint.attentions)
    if checkpoint.head != "classes":
        raise AnalysisError(
            f"{files.name} does not classify texts, so its heads have no task that gates could leave to fewer of them. "
            "Fine-tune it on the table first, and give the fine-tuned checkpoint."
        )
    attention_modules(files.name, checkpoint.full_model)  # raises if the gates could not become part of the weights
    names = checkpoint.full_model.config.id2label
    trainer = partial(GateTrainer, settings=settings, attention=attention)
    return finetune(
        files, _with_classes(files.name, names, data), settings, journal,
        device=device, on_step=on_step, trainer=trainer,
    )  # fmt: skip


class _GateReports(TrainerCallback):
    """Records the gates before training and whenever the loss is reported."""

    def __init__(self, gates: HeadGates, folder: Path) -> None:
        self._gates, self._folder = gates, folder

    def on_train_begin(self, args: Any, state: TrainerState, control: TrainerControl, **keywords: Any) -> None:
        self._write(state.global_step)

    def on_log(self, args: Any, state: TrainerState, control: TrainerControl, **keywords: Any) -> None:
        self._write(state.global_step)

    def _write(self, step: int) -> None:
        append_gates(self._folder, step, self._gates.log_alpha.detach().cpu().numpy())


def _with_classes(checkpoint: str, names: Mapping[int, str], data: TrainingData) -> TrainingData:
    """The same texts, with labels as indices among a checkpoint's classes."""
    if data.task == "regression":
        if len(names) == 1:
            return data
        raise AnalysisError(
            f"The labels are numbers, but the checkpoint has {len(names)} classes. Choose a column "
            "with the names of these classes."
        )
    indices = class_indices(checkpoint, names, data)
    labels = tuple(float(indices[int(label)]) for label in data.labels)
    return replace(data, classes=tuple(names[index] for index in sorted(names)), labels=labels)


def trained_gates(folder: Path, removed: Sequence[Head] = ()) -> TrainedGates:
    """The gates of a saved step; NaN for heads that were removed from the checkpoint before training.

    Raises: AnalysisError for a folder without gates.
    """
    log_alpha = _saved_log_alpha(folder).double()
    for head in removed:
        log_alpha[head] = torch.nan
    return gates_of(log_alpha.numpy())


def _saved_log_alpha(folder: Path) -> Float[Tensor, "layer head"]:
    index = folder / "model.safetensors.index.json"
    try:
        file_names = parse_json(index.read_text("utf-8"))["weight_map"] if index.is_file() else {}
        with safe_open(folder / file_names.get(LOG_ALPHA, "model.safetensors"), "pt") as file:
            return file.get_tensor(LOG_ALPHA)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise AnalysisError(f"{folder} holds no gates ({error}). Start the run again in another folder.") from error
