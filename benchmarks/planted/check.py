"""Checks planted models against their truth: `python -m benchmarks.planted.check FOLDER` reads all models in FOLDER.

It opens each with transformers alone, and measures by hooks where heads look and what the task loses without them.
Prints a line for each model, and ends with status 1 if any statement is not what was measured.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedModel
from transformers.utils import logging

from benchmarks.planted.looks import measured_attention
from benchmarks.planted.measured import effects
from benchmarks.planted.statements import faults
from benchmarks.planted.truth import FILE, Effects, Truth

TOLERANCE: Final = 2e-3
"""Between measurements of one model, in nats or in parts of attention: other threads round otherwise."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the models' folders stand")
    folders = sorted(path.parent for path in parser.parse_args().folder.glob(f"*/{FILE}"))
    if not folders:
        parser.error("no planted model stands there")
    logging.disable_progress_bar()
    n_wrong = 0
    for folder in folders:
        found = faults_of(folder)
        n_wrong += bool(found)
        print(f"{folder.name}: {'; '.join(found) or 'right'}", flush=True)
    print(f"{len(folders) - n_wrong} of {len(folders)} are as stated.")
    sys.exit(n_wrong > 0)


def faults_of(folder: Path) -> list[str]:
    """Sentences about what is stated of a model and is not so.

    Args:
        folder: A planted model.
    """
    truth, model = Truth.read(folder), opened(folder)
    measured = effects(model, truth.task, [effect.heads for effect in truth.effects.sets])
    found = faults(truth)
    if difference(measured, truth.effects) > TOLERANCE:
        found.append(f"effects differ by {difference(measured, truth.effects):.4f} nats from those that are written")
    return found + _attention_faults(truth, model)


def opened(folder: Path) -> PreTrainedModel:
    """A planted model as transformers opens it, with eager attention."""
    kind = AutoModelForMaskedLM if Truth.read(folder).task.kind == "masked" else AutoModelForCausalLM
    return kind.from_pretrained(folder, attn_implementation="eager").eval()


def difference(first: Effects, second: Effects) -> float:
    """The greatest difference between two measurements of the same, relative to those above one nat."""
    pairs = [(first.loss, second.loss)]
    pairs += [pair for rows in zip(first.single, second.single) for pair in zip(*rows)]
    pairs += [(one.rise, other.rise) for one, other in zip(first.sets, second.sets)]
    return max(abs(one - other) / max(1, abs(one)) for one, other in pairs)


def _attention_faults(truth: Truth, model: PreTrainedModel) -> list[str]:
    found = []
    for head, share in zip(truth.heads, measured_attention(model, truth)):
        if (share is None) != (head.attention is None) or abs((share or 0) - (head.attention or 0)) > TOLERANCE:
            found.append(f"{head.place} gives {share} to what it looks at, and {head.attention} is written")
    return found


if __name__ == "__main__":
    main()
