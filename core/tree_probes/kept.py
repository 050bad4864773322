"""Probes that are kept in the folder of their run, a file each: a run goes on with those that are missing."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Final

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from attention_sieve.core.json_values import typed_json
from attention_sieve.core.running import PIECES, saving_in
from attention_sieve.core.tree_probes.probe import (
    AttachmentScore,
    Epoch,
    Probe,
    ProbeKind,
    ProbeResults,
    ProbeTraining,
    TrainedProbe,
)

FORMAT: Final = 1
FOUND: Final = "found"
"""Key of everything but the arrays in the metadata of a file."""
ARRAYS: Final = tuple(field.name for field in fields(Probe))
TRAINING: Final = tuple(field.name for field in fields(ProbeTraining) if field.name != "probe")


@dataclass(frozen=True, kw_only=True)
class _Found:
    """What a file says beside the weights of its probe."""

    best: int
    epochs: tuple[Epoch, ...]
    done: int
    n_texts: int
    n_held_out: int
    is_finished: bool
    score: AttachmentScore
    offsets: tuple[tuple[int, AttachmentScore], ...]
    too_long: tuple[tuple[int, int], ...]
    n_left_out: int


class KeptProbes:
    """The probes of the run in a folder."""

    def __init__(self, folder: Path | None, depends_on: object = None) -> None:
        """Of a folder that may not exist yet; None keeps nothing.

        Args:
            depends_on: everything besides their kind on which they depend, values of JSON.
        """
        self._folder, self._depends_on = None if folder is None else folder / PIECES, depends_on

    def read(self, kinds: Iterable[ProbeKind]) -> ProbeResults | None:
        """Results with those of these kinds that are kept and can be read; None if there are none."""
        results: ProbeResults | None = None
        for kind in kinds:
            if (one := self._read(kind)) is not None:
                results = one if results is None else replace(results, probes={**results.probes, **one.probes})
        return results

    def write(self, kind: ProbeKind, results: ProbeResults) -> None:
        """Keep the probe of a kind, whole or not at all.

        Raises: AnalysisError if it cannot be written.
        """
        if self._folder is None:
            return
        training, score = results.probes[kind].training, results.probes[kind].score
        numbers = {name: getattr(training, name) for name in TRAINING}
        of_results = {"too_long": results.too_long, "n_left_out": results.n_left_out}
        found = numbers | of_results | {"score": score, "offsets": list(results.offsets.items())}
        arrays = {name: np.ascontiguousarray(getattr(training.probe, name)) for name in ARRAYS}
        path = self._path(self._folder, kind)
        with saving_in(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            save_file(arrays, path.with_suffix(".part"), {FOUND: json.dumps(found, default=asdict)})
            path.with_suffix(".part").replace(path)

    def _read(self, kind: ProbeKind) -> ProbeResults | None:
        if self._folder is None:
            return None
        try:
            with safe_open(self._path(self._folder, kind), "numpy") as file:
                found = typed_json((file.metadata() or {})[FOUND], _Found)
                probe = Probe(**{name: file.get_tensor(name) for name in ARRAYS})
        except (OSError, SafetensorError, KeyError, ValueError):
            return None
        training = ProbeTraining(probe=probe, **{name: getattr(found, name) for name in TRAINING})
        return ProbeResults(
            offsets=dict(found.offsets),
            probes={kind: TrainedProbe(training=training, score=found.score)},
            too_long=found.too_long,
            n_left_out=found.n_left_out,
        )

    def _path(self, folder: Path, kind: ProbeKind) -> Path:
        key = json.dumps([FORMAT, self._depends_on, kind.words, kind.control])
        return folder / f"{hashlib.sha256(key.encode()).hexdigest()}.safetensors"
