"""Compiles RASP programs with tracr, carries them over to plain models, and writes these with their truth.

`python -m benchmarks.planted.rasp FOLDER [PROGRAM ...]`: tracr is installed into an environment of its own in
build/tracr. What it compiled is kept there; delete build/tracr/programs after a change of a program.
Prints how far each model is from the compiled one: greatest difference of what is written for a value in double and in
single precision, greatest difference between attention and an even share of what a selector selects, share of right
outputs, and the smallest rise of the loss without a head of the program. Goal: at most 1e-4 in single precision, and
all right.
"""

import copy
import sys
from pathlib import Path
from typing import Final

from transformers.utils.logging import disable_progress_bar

from benchmarks.planted.rasp.carrying import carried, compared, tokenizer
from benchmarks.planted.rasp.compiled import FACTS_FILE, CompiledProgram
from benchmarks.planted.rasp.environment import PROJECT, python_with_tracr, run_module
from benchmarks.planted.rasp.truths import truth_of
from benchmarks.shared.markdown import header, row

BUILD: Final = PROJECT / "build" / "tracr"
MOST: Final = 1e-4
"""Greatest difference of what is written for a value."""


def main(folder: Path, names: list[str]) -> None:
    disable_progress_bar()
    compiled = BUILD / "programs"
    run_module(python_with_tracr(BUILD / "environment"), "benchmarks.planted.rasp.compiling", str(compiled), *names)
    header("program", "host", "layers x heads", "double", "single", "attention", "right", "least rise")
    for place in sorted(compiled.glob(f"*/{FACTS_FILE}")):
        program = CompiledProgram.read(place.parent)
        if not names or program.name in names:
            carry(program, folder)


def carry(program: CompiledProgram, folder: Path) -> None:
    """Carries a program over, compares it, writes it with its truth, and prints its row.

    Args:
        program: Compiled.
        folder: Gets a folder with the name of the model.

    Raises:
        ValueError: The plain model does not compute the program.
    """
    model = carried(program)
    exact = copy.deepcopy(model)
    exact.model.double()
    double, single = compared(exact), compared(model)
    if single.outputs > MOST or single.right < 1:
        raise ValueError(f"{program.name} is not carried over: {single}")
    truth = truth_of(model)
    place = folder / truth.name
    model.model.save_pretrained(place)
    tokenizer(model).save_pretrained(place)
    truth.write(place)
    least = min(truth.effects.single[layer][head] for layer, head in truth.needed)
    row(
        program.name, model.at.host, f"{len(program.layers)} x {model.at.n_heads}", f"{double.outputs:.0e}",
        f"{single.outputs:.0e}", f"{single.attention:.0e}", f"{single.right:.3f}", f"{least:.2f}",
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
