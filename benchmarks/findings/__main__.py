"""Run scripts of this folder, keep what each one prints in `printed`, and set that into README.md.

`python -m benchmarks.findings parsers probes` runs two of them, one after the other. Without a name none is run, and
README.md is set again from what is kept. What a script printed is kept with its command and the commit, so Python files
have to be committed first. A script that prints nothing, because its data are missing, leaves what was kept.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
PRINTED: Final = FOLDER / "printed"
README: Final = FOLDER / "README.md"
BLOCK: Final = re.compile(r"<!-- printed/(?P<script>\w+)\.md -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)
"""Where README.md shows what a script printed."""


def main() -> None:
    for script in sys.argv[1:]:
        keep(script)
    README.write_text(BLOCK.sub(with_printed, README.read_text("utf-8")), "utf-8")


def keep(script: str) -> None:
    """Run a script, and keep what it prints on standard output."""
    if not (FOLDER / f"{script}.py").is_file():
        sys.exit(f"There is no script {script} in {FOLDER.name}.")
    if git("status", "--porcelain", "--", "*.py"):
        sys.exit("Commit the Python files first: what is printed is kept with the commit that printed it.")
    commit, command = git("rev-parse", "--short", "HEAD"), f"python -m benchmarks.findings.{script}"
    print(f"{command} at {commit}", file=sys.stderr)
    module = [sys.executable, "-m", f"benchmarks.findings.{script}"]
    printed = subprocess.run(module, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True).stdout.strip()
    if not printed:
        sys.exit(f"{script} printed nothing; what was kept stays.")
    (PRINTED / f"{script}.md").write_text(f"{printed}\n\nPrinted by `{command}` at commit {commit}.\n", "utf-8")


def git(*arguments: str) -> str:
    return subprocess.run(
        ("git", *arguments), stdout=subprocess.PIPE, text=True, check=True, cwd=FOLDER.parents[1]
    ).stdout.strip()


def with_printed(block: re.Match[str]) -> str:
    """A block of README.md with what is kept of its script."""
    script = block["script"]
    return f"<!-- printed/{script}.md -->\n{(PRINTED / f'{script}.md').read_text('utf-8')}<!-- end -->"


if __name__ == "__main__":
    main()
