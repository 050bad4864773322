"""Prints the tests of the files that differ from a commit: those named like a file, else those of its room.

`python tests/helpers/changed.py [COMMIT]`, by default what is not committed.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = ("core", "cache", "dashboard", "attention_sieve")


def closest_tests(changed: Path) -> Path | None:
    """The closest tests of a file, by its path in the project; None where nothing has its name."""
    if changed.parts[0] == "tests":
        return changed if changed.name.startswith("test_") and (ROOT / changed).is_file() else None
    if changed.parts[0] not in ROOMS:
        return None
    place = Path("tests") / changed
    own, of_folder, folder = place.with_name(f"test_{place.stem}.py"), place.parent, place.parent
    same_name = folder.with_name(f"test_{folder.name}.py")
    is_room = len(of_folder.parts) > 2  # the tests of a whole floor take minutes
    found = (each for each in (own, of_folder if is_room else own, same_name) if (ROOT / each).exists())
    return next(found, None)


def main(commit: str) -> None:
    """Print the paths, one a line."""
    commands = (["git", "diff", "--name-only", commit], ["git", "ls-files", "--others", "--exclude-standard"])
    outputs = (subprocess.run(each, cwd=ROOT, check=True, capture_output=True, text=True).stdout for each in commands)
    found = {closest_tests(Path(line)) for output in outputs for line in output.splitlines()}
    print("\n".join(sorted(str(path) for path in found if path is not None)))


if __name__ == "__main__":
    main(*sys.argv[1:] or ["HEAD"])
