"""Makes planted models and grades what the program says of them: `python -m benchmarks.planted [FOLDER]`.

FOLDER, by default build/planted, gets *models*, made as by `benchmarks.planted.make`, and *grades*, a file for each
model, so that it goes on where it stopped; *peers* may hold results of `benchmarks.planted.peers`. The tables are then
printed by `python -m benchmarks.findings planted`. `--count N` stops after the first N models, `--made` makes none.
"""

import argparse
from pathlib import Path

from benchmarks.planted.grades.model import grade_all
from benchmarks.planted.grades.places import FOLDER, GRADES, MODELS
from benchmarks.planted.models import made, save, specs
from benchmarks.planted.truth import FILE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="where models and grades are kept")
    parser.add_argument("--count", type=int, help="make so many models")
    parser.add_argument("--made", action="store_true", help="grade the models that are there, and make none")
    arguments = parser.parse_args()
    models = arguments.folder / MODELS
    for spec in () if arguments.made else specs()[: arguments.count]:
        if not (models / spec.name / FILE).exists():
            save(*made(spec), models / spec.name)
    folders = (file.parent for file in models.glob(f"*/{FILE}"))
    # By seed, so that hosts, families and noise are mixed from the first model on.
    grade_all(sorted(folders, key=lambda folder: (folder.name[-3:], folder.name)), arguments.folder / GRADES)


if __name__ == "__main__":
    main()
