"""The package as others install it."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "cache", "dashboard")
SOURCES = (*ROOMS, "attention_sieve", "setup.py", "pyproject.toml", "README.md", "LICENSE")
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def copied(folder):
    """A copy of the project that has no links."""
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", *(ROOMS if name == "attention_sieve" else ()))
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


def build(what, source, folder):
    """Build a wheel or an sdist with the setuptools that are installed, without a network."""
    command = [sys.executable, "-c", BUILD, f"build_{what}", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    return folder / done.stdout.splitlines()[-1]


def installed(wheel, folder):
    """A folder with what a wheel installs, to be put on Python's path, and the console script as pip writes it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site-packages")
    script = folder / "attention-sieve"
    script.write_text("import sys\nfrom attention_sieve.__main__ import _entry\nsys.exit(_entry())\n")
    return folder / "site-packages", script
