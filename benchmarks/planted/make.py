"""Makes planted models: `python -m benchmarks.planted.make FOLDER` writes each into a folder of its own in FOLDER.

Those that are there are skipped. `--only NAME` makes one, `--count N` the first N, `--list` prints what there is.
"""

import argparse
import time
from pathlib import Path

from transformers.utils import logging

from benchmarks.planted.models import made, save, specs
from benchmarks.planted.truth import FILE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the models' folders stand")
    parser.add_argument("--only", metavar="NAME", help="make this model alone")
    parser.add_argument("--host", help="make models of this host alone")
    parser.add_argument("--noise", help="make models with this noise alone, such as 'none' or 'gaussian 1'")
    parser.add_argument("--count", type=int, help="make so many")
    parser.add_argument("--list", action="store_true", help="print name, host, family, noise and seed of each")
    arguments = parser.parse_args()
    chosen = [
        spec
        for spec in specs()
        if arguments.only in (None, spec.name)
        and arguments.host in (None, spec.host)
        and arguments.noise in (None, spec.noise)
    ][: arguments.count]
    if not chosen:
        parser.error("no planted model is so; --list prints all")
    if arguments.list:
        for spec in chosen:
            print(spec.name, spec.host, spec.family, spec.noise, spec.seed, sep="\t")
        return
    if arguments.folder is None:
        parser.error("say into which folder the models go")
    logging.disable_progress_bar()
    for spec in chosen:
        if not (arguments.folder / spec.name / FILE).exists():
            started = time.monotonic()
            model, truth = made(spec)
            save(model, truth, arguments.folder / spec.name)
            print(f"{spec.name}: loss {truth.effects.loss:.4f}, {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
