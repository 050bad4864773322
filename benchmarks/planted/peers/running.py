"""To run a tool's worker in the tool's environment over folders of planted models, and to go on where it stopped."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.planted.peers.tools import NotRun, Tool


def python_of(tool: Tool, environments: Path) -> Path:
    """The Python of a tool's environment, which is made first if it is not whole.

    Raises:
        subprocess.CalledProcessError: pip cannot install the tool.
    """
    folder = environments / tool.name
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    if not installed.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run((python, "-m", "pip", "install", "--quiet", *tool.packages), check=True)
        listed = subprocess.run((python, "-m", "pip", "freeze"), check=True, stdout=subprocess.PIPE, text=True)
        installed.write_text(listed.stdout, "utf-8")
    return python


def run(tool: Tool, python: Path, models: Sequence[Path], output: Path, sources: Path | None) -> None:
    """Have a tool score the models that have no result of it yet; one at which it breaks off is noted and passed.

    Args:
        output: the folder of the tool's results.
        sources: where the tool's package lies, if pip does not install it.
    """
    environment = {**os.environ, "PYTHONPATH": str(sources or ""), "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
    while waiting := [model for model in models if not done(model, output)]:
        started = subprocess.Popen(
            (python, tool.worker, output, *waiting), env=environment, stderr=subprocess.PIPE, text=True
        )
        _, said = started.communicate()
        if started.returncode:
            broke_off = next(model for model in waiting if not done(model, output))
            last = said.strip().splitlines()[-1] if said.strip() else f"exit status {started.returncode}"
            note(output, broke_off, f"The tool broke off: {last}")


def done(model: Path, output: Path) -> bool:
    """Whether a tool has given scores of a model, or a reason why not."""
    return result_of(model, output).exists() or reason_of(model, output).exists()


def result_of(model: Path, output: Path) -> Path:
    return output / f"{model.name}.json"


def reason_of(model: Path, output: Path) -> Path:
    return output / "not_run" / f"{model.name}.json"


def note(output: Path, model: Path, reason: str) -> None:
    """Keep why a tool has no scores of a model."""
    path = reason_of(model, output)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"model": model.name, "reason": reason}), "utf-8")
    print(f"{output.name}: {model.name}: {reason}", file=sys.stderr)


def without_scores(tool: Tool, output: Path) -> Iterator[NotRun]:
    """The models of which a tool has no scores, with the reasons."""
    for path in sorted((output / "not_run").glob("*.json")):
        kept = json.loads(path.read_text("utf-8"))
        yield NotRun(tool.name, kept["model"], kept["reason"])
