"""The command of this package."""

import argparse
import dataclasses
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.planted.peers.running import python_of, run, without_scores
from benchmarks.planted.peers.tools import NEVER_RUN, TOOLS, NotRun, Tool


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted.peers", description="Other tools' scores.")
    parser.add_argument("models", type=Path, help="a folder whose folders are planted models")
    parser.add_argument("output", type=Path, help="where the environments and each tool's results are kept")
    parser.add_argument("--tool", action="append", choices=[tool.name for tool in TOOLS], help="one to run, not all")
    for tool in TOOLS:
        if tool.checkout:
            parser.add_argument(f"--{tool.checkout}", type=Path, help=f"a checkout of {tool.checkout}, for {tool.name}")
    given = parser.parse_args()
    models = [path.parent.resolve() for path in sorted(given.models.glob("*/truth.json"))]
    if not models:
        parser.error(f"No folder in {given.models} has a truth.json.")
    not_run = list(NEVER_RUN)
    for tool in TOOLS:
        is_chosen = given.tool is None or tool.name in given.tool
        not_run += scored(tool, models, given) if is_chosen else without_scores(tool, given.output / tool.name)
    written = json.dumps([dataclasses.asdict(reason) for reason in not_run], indent=1)
    (given.output / "not_run.json").write_text(written, "utf-8")


def scored(tool: Tool, models: Sequence[Path], given: argparse.Namespace) -> Sequence[NotRun]:
    """Run a tool on all models, and say of which it has no scores."""
    output, sources = given.output.resolve(), None
    if tool.checkout:
        checkout = getattr(given, tool.checkout)
        if checkout is None:
            return [NotRun(tool.name, None, f"No checkout of {tool.checkout} was given, which no package index has.")]
        sources = checkout.resolve() / tool.sources
    try:
        python = python_of(tool, output / "environments")
    except subprocess.CalledProcessError as error:
        return [NotRun(tool.name, None, f"pip could not install {', '.join(tool.packages)}: {error}")]
    run(tool, python, models, output / tool.name, sources)
    return list(without_scores(tool, output / tool.name))


if __name__ == "__main__":
    main()
