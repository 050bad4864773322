"""A compiled program: weights that read and write one residual stream, its heads, and inputs with right outputs."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int

FIRST, PADDING = "compiler_bos", "compiler_pad"
"""Names in the vocabulary of the first token of every input, and of padding."""
FACTS_FILE: Final = "program.json"
ARRAYS_FILE: Final = "arrays.npz"
NO_TARGET: Final = -1
"""Where a program has no output."""


@dataclass(frozen=True)
class ProgramHead:
    """What a head does in a program, and where the compiler put it."""

    name: str
    looks_at: str
    """A word of `benchmarks.planted.truth.LooksAt`."""
    offset: int
    writes: str
    description: str
    """Which tokens are selected, in words."""
    counts: bool
    """Whether it attends to the first token beside all that is selected, else only where nothing is."""
    layer: int = -1
    head: int = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class CompiledLayer:
    """Attention, then an MLP with ReLU; no map has a bias, and scores are divided by the root of `size`."""

    query: Float[np.ndarray, "stream head size"]
    key: Float[np.ndarray, "stream head size"]
    value: Float[np.ndarray, "stream head size"]
    output: Float[np.ndarray, "head size stream"]
    inner: Float[np.ndarray, "stream inner"]
    outer: Float[np.ndarray, "inner stream"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Examples:
    """Inputs of one length, with what the compiled model and the program itself say of them."""

    tokens: Int[np.ndarray, "text token"]
    """Indices in the vocabulary; each begins with the first token."""
    outputs: Float[np.ndarray, "text token value"]
    """What the compiled model writes for each value that the program may put out."""
    targets: Int[np.ndarray, "text token"]
    """Index of the value that the program puts out, or NO_TARGET; the program was evaluated without the weights."""
    selected: Bool[np.ndarray, "text head query key"]
    """Which tokens the selector of each head selects, without the first token; heads as in `CompiledProgram.heads`."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CompiledProgram:
    """A program and its weights."""

    name: str
    seed: int
    """Of its examples, and of the heads of a host that do its work."""
    cases: tuple[int, ...]
    """Numbers of the cases of InterpBench that compute this or nearly this."""
    sentence: str
    causal: bool
    """Whether tokens see only earlier ones."""
    vocabulary: tuple[str, ...]
    values: tuple[str, ...]
    """What the program may put out."""
    heads: tuple[ProgramHead, ...]
    tokens: Float[np.ndarray, "token stream"]
    positions: Float[np.ndarray, "position stream"]
    readout: Float[np.ndarray, "stream value"]
    layers: tuple[CompiledLayer, ...]
    examples: tuple[Examples, ...]
    """By length; the last are those of the task."""

    def write(self, folder: Path) -> None:
        """Writes the program into a folder, its facts last.

        Args:
            folder: Is made where it is not there.
        """
        folder.mkdir(parents=True, exist_ok=True)
        names = ("name", "seed", "cases", "sentence", "causal", "vocabulary", "values")
        facts = {name: getattr(self, name) for name in names}
        facts["heads"] = [asdict(head) for head in self.heads]
        arrays = {name: getattr(self, name) for name in ("tokens", "positions", "readout")}
        np.savez_compressed(
            folder / ARRAYS_FILE, **arrays, **_arrays("layers", self.layers), **_arrays("examples", self.examples)
        )
        (folder / FACTS_FILE).write_text(json.dumps(facts, indent=1), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> "CompiledProgram":
        """The program that was written into a folder.

        Args:
            folder: Where it was written.

        Raises:
            OSError: It is not there.
        """
        facts = json.loads((folder / FACTS_FILE).read_text(encoding="utf-8"))
        with np.load(folder / ARRAYS_FILE) as file:
            arrays = dict(file)
        return CompiledProgram(
            name=facts["name"],
            seed=facts["seed"],
            cases=tuple(facts["cases"]),
            sentence=facts["sentence"],
            causal=facts["causal"],
            vocabulary=tuple(facts["vocabulary"]),
            values=tuple(facts["values"]),
            heads=tuple(ProgramHead(**head) for head in facts["heads"]),
            tokens=arrays["tokens"],
            positions=arrays["positions"],
            readout=arrays["readout"],
            layers=_records(arrays, "layers", CompiledLayer),
            examples=_records(arrays, "examples", Examples),
        )


def _arrays(group: str, records: Iterable[Any]) -> dict[str, np.ndarray]:
    return {
        f"{group}.{index}.{field.name}": getattr(record, field.name)
        for index, record in enumerate(records)
        for field in fields(record)
    }


def _records(arrays: dict[str, np.ndarray], group: str, kind: Any) -> tuple[Any, ...]:
    number = len({name.split(".")[1] for name in arrays if name.startswith(f"{group}.")})
    return tuple(
        kind(**{field.name: arrays[f"{group}.{index}.{field.name}"] for field in fields(kind)})
        for index in range(number)
    )
