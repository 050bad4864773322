"""The command of this package."""

import argparse
import dataclasses
import json
import subprocess
from pathlib import Path

from benchmarks.planted.peers.running import python_of, run, without_scores
from benchmarks.planted.peers.tools import NEVER_RUN, TOOLS, NotRun


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted.peers", description="Other tools' scores.")
    parser.add_argument("models", type=Path, help="a folder whose folders are planted models")
    parser.add_argument("output", type=Path, help="where the environments and each tool's results are kept")
    parser.add_argument("--eap", type=Path, help="a checkout of the EAP package, 2.0.0, which no package index has")
    given = parser.parse_args()
    models = [path.parent.resolve() for path in sorted(given.models.glob("*/truth.json"))]
    if not models:
        parser.error(f"No folder in {given.models} has a truth.json.")
    not_run = list(NEVER_RUN)
    for tool in TOOLS:
        output = given.output.resolve() / tool.name
        if tool.checkout and given.eap is None:
            not_run.append(NotRun(tool.name, None, "No checkout of the EAP package was given."))
            continue
        try:
            python = python_of(tool, given.output.resolve() / "environments")
        except subprocess.CalledProcessError as error:
            not_run.append(NotRun(tool.name, None, f"pip could not install {', '.join(tool.packages)}: {error}."))
            continue
        run(tool, python, models, output, given.eap.resolve() if tool.checkout else None)
        not_run.extend(without_scores(tool, output))
    written = json.dumps([dataclasses.asdict(reason) for reason in not_run], indent=1)
    (given.output / "not_run.json").write_text(written, "utf-8")


if __name__ == "__main__":
    main()
