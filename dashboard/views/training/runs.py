"""What begins a fine-tuning run and goes on with one."""

from dataclasses import asdict

from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.dashboard import trainings
from attention_sieve.dashboard.runs import options_of
from attention_sieve.dashboard.views.training.folders import RunRequest, RunSummary


def start(request: RunRequest, device: str = "auto", *, resume: bool = False) -> str:
    """Start a run in the background; returns its name.

    Args:
        request: what to do; its name is that of a new folder, or with `resume` of an unfinished run.
        device: auto, cuda, mps or cpu.
        resume: continue from the last saved step.

    Raises: AnalysisError if a run is active already, or its process cannot be started.
    """
    values: dict[str, object] = {
        "checkpoint": request.checkpoint,
        "data": request.data,
        "text_columns": ",".join(request.text_columns),
        "label_column": request.label_column,
        "output": checkpoints_folder() / request.name,
        **asdict(request.settings),
        "task": request.task,
        "device": device,
    }
    return trainings.start(request.name, ("finetune", *options_of(values), *(("--resume",) if resume else ())))


def can_resume(summary: RunSummary) -> bool:
    return summary.progress.state in ("stopped", "left", "failed") and (
        summary.request is not None or summary.name == SAMPLE_FINE_TUNING
    )


def resume(summary: RunSummary, device: str = "auto") -> str:
    return trainings.start_sample() if summary.request is None else start(summary.request, device, resume=True)
