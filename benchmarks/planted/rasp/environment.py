"""An environment of its own for tracr and what it needs, and running a module of the project in it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
REQUIREMENTS: Final = HERE / "requirements.txt"
PROJECT: Final = HERE.parents[2]


def python_with_tracr(folder: Path) -> Path:
    """The Python of an environment that has what requirements.txt names; it is made where it is not there.

    Args:
        folder: Of the environment.

    Returns: The interpreter.

    Raises:
        subprocess.CalledProcessError: The environment or its packages could not be installed.
    """
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    if not installed.is_file() or installed.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS], check=True)
        installed.write_text(wanted, encoding="utf-8")
    return python


def run_module(python: Path, module: str, *arguments: str) -> None:
    """Runs a module of the project with another environment's Python.

    Args:
        python: The interpreter.
        module: Dotted name.
        arguments: Of its command line.

    Raises:
        subprocess.CalledProcessError: The module failed.
    """
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "JAX_PLATFORMS": "cpu"}
    subprocess.run([python, "-m", module, *arguments], cwd=PROJECT, env=environment, check=True)
