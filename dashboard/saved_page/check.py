"""Computes a saved page again from the checkpoints that it names, and says where its numbers differ."""

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from attention_sieve import __version__
from attention_sieve.core.attention.settings import PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError, HubOutOfReach, plain_controls, shortened
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.dashboard.saved_page.asked import IN_MEMORY, Asked, NamedCheckpoint
from attention_sieve.dashboard.saved_page.content import PageRequest, compute
from attention_sieve.dashboard.saved_page.data import page_data
from attention_sieve.dashboard.saved_page.file import page_html, read_page

TOLERANCE: Final = {"float32": 1e-4, "float64": 1e-6, "bfloat16": 2e-2, "float16": 2e-2}
"""Relative difference up to which numbers are equal, by the number format: what another machine changes in them."""
OF_TESTS: Final = 2e-2
"""The same for what tests make of numbers, such as a rank test, whose ranks change where two numbers are all but
equal."""
MEANS: Final = frozenset({"mean", "std", "low", "high", "mean_a", "mean_b", "difference"})
"""Columns of numbers in the unit of the score; other numbers of a table come from tests."""
LEAST: Final = 1e-6
"""Difference up to which numbers are equal, however small they are."""
ARRAYS: Final = {
    **dict.fromkeys(("scores", "uniform", "greatest", "p"), "<f4"),
    **dict.fromkeys(("states", "stays", "cells"), "u1"),
}
"""Fields of grids and of drawn texts that hold an array, by its type."""
DRAWN: Final = ("grids", "drawn")
STEP: Final = 1
"""Difference up to which whole numbers of an array of bytes are equal: attention is rounded to 256 steps."""


@dataclass(frozen=True)
class Difference:
    """A place where a page and the computation differ."""

    where: str
    in_page: str
    computed: str

    def __str__(self) -> str:
        return plain_controls(f"{self.where}: {self.in_page} in the page, {self.computed} computed")


@dataclass(frozen=True)
class Checked:
    """What came of checking a page."""

    differences: tuple[Difference, ...]
    n_values: int
    notes: tuple[str, ...]
    """What could not be verified."""
    same_version: bool
    """Whether it was written by this version; otherwise its script, style and markup were not compared."""


def check_page(file: bytes, name: str, checkpoints: Sequence[str] = (), device: str = "auto") -> Checked:
    """Compute a page again and compare.

    Args:
        checkpoints: names or folders to be taken in place of those that the page names, in their order. The hub is
            asked for these alone, never for what a page names.

    Raises: AnalysisError for a page that cannot be checked: damaged, of a newer version, changed outside of its data,
        or of a checkpoint that is missing or another one; of any stage.
    """
    data, html = read_page(file, name)
    same_version = data.get("program") == __version__
    notes = [] if same_version else [_of_another_version(data.get("program"))]
    asked = _asked(data, html, name, strict=same_version)
    files = [
        _found(named, given, notes) for named, given in zip(asked.checkpoints, _places(asked, checkpoints), strict=True)
    ]
    if (parser := trees_source([*asked.texts, *asked.drawn])) != asked.parser:
        notes.append(f"Its texts were parsed by {asked.parser}, and here by {parser}.")
    request = PageRequest(
        pass_settings=PassSettings(asked.attention, asked.off),
        settings=asked.settings,
        texts=asked.texts,
        drawn=asked.drawn,
        chosen=asked.chosen,
        too_long="truncate" if asked.truncated else "error",
    )
    loaded = [load_checkpoint(one, device=device, dtype=asked.dtype) for one in files]
    content = replace(compute(loaded, request), asked=asked)
    again = json.loads(json.dumps(page_data(content)))
    if not same_version:  # its name stands in the page
        again |= {"program": data.get("program"), "facts": again["facts"] | {"program": data["facts"].get("program")}}
    comparison = _Comparison(TOLERANCE[asked.dtype])
    differences = tuple(comparison.differences(data, again, ()))
    return Checked(differences, comparison.n_values, tuple(map(plain_controls, notes)), same_version)


def _of_another_version(program: object) -> str:
    return (
        f"It says that Attention Sieve {shortened(str(program))} wrote it, and this is {__version__}: its script, "
        "style and markup were not checked, so it may show something else than its data. Check it with that version."
    )


def _asked(data: Mapping[str, Any], html: str, name: str, *, strict: bool) -> Asked:
    """The question of a page whose facts, command, script and markup are those that belong to it."""
    name = shortened(name)
    try:
        asked: Asked = typed_json(json.dumps(data["asked"]), Asked)
        is_whole = not strict or page_html(data) == html
    except (KeyError, TypeError, ValueError) as error:
        raise AnalysisError(
            f"{name} is damaged: its data cannot be read ({shortened(str(error))}). Get the page again."
        ) from None
    if not is_whole:
        raise AnalysisError(
            f"{name} was changed outside of its data: its script, style or markup is not what Attention Sieve "
            f"{__version__} writes. Do not rely on what it shows."
        )
    return asked


def _places(asked: Asked, given: Sequence[str]) -> Sequence[str | None]:
    """Where the user says that each checkpoint is; None where the page says it."""
    n_named = len(asked.checkpoints)
    if given and len(given) != n_named:
        raise AnalysisError(
            f"The page is of {n_named} checkpoints, got {len(given)}. Name each of them once, in order."
        )
    return given or [None] * n_named


def _found(named: NamedCheckpoint, given: str | None, notes: list[str]) -> CheckpointFiles:
    """The checkpoint of a page; adds a note for a model in memory, of which nobody knows whether it is the same."""
    name, in_memory = shortened(named.name), named.fingerprint.startswith(IN_MEMORY)
    place = named.name if given is None else given
    if in_memory and given is None:
        raise AnalysisError(f"The page is of a {name}, which is not here. Name its saved folder: --checkpoint FOLDER")
    try:
        files = find_checkpoint(place, ask_hub=given is not None)
    except HubOutOfReach as error:
        says = f"The page is of the checkpoint {name}, which is not here."
        if given is not None:
            raise AnalysisError(f"{says} {error}") from None
        raise AnalysisError(
            f"{says} The hub is asked only for what you name: if you know who made it, with --checkpoint {name}. If it "
            "is in another place, name that: --checkpoint FOLDER"
        ) from None
    except AnalysisError as error:
        raise AnalysisError(
            f"The page is of the checkpoint {name}, which is not here. {error} If it is in another place, name that: "
            "--checkpoint FOLDER"
        ) from None
    if in_memory:
        notes.append(f"It was made of a {name}, so that nothing shows that {shortened(place)} is the same model.")
    elif files.fingerprint != named.fingerprint:
        raise AnalysisError(
            f"The page is of a checkpoint {name} with the fingerprint {named.fingerprint[:12]}, and {shortened(place)} "
            f"has {files.fingerprint[:12]}: another model. Name the right one: --checkpoint FOLDER"
        )
    return files


class _Comparison:
    """Compares two values of JSON, and counts what it compares."""

    def __init__(self, tolerance: float) -> None:
        self.n_values, self._tolerance = 0, tolerance

    def differences(self, page: Any, again: Any, where: tuple[str, ...]) -> Iterator[Difference]:
        if isinstance(page, dict) and isinstance(again, dict):
            for name in again | page:
                yield from self._of_field(name, page, again, where)
        elif isinstance(page, list) and isinstance(again, list) and len(page) == len(again):
            for index, pair in enumerate(zip(page, again)):
                yield from self.differences(*pair, (*where, str(index)))
        else:
            self.n_values += 1
            if not self._equal(page, again, self._tolerance):
                yield _difference(where, page, again)

    def _of_field(
        self, name: str, page: Mapping[str, Any], again: Mapping[str, Any], where: tuple[str, ...]
    ) -> Iterator[Difference]:
        one, other = page.get(name), again.get(name)
        if name == "values" and isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            yield from self._of_table(str(again["title"]), one, other)
        elif where[:1] and where[0] in DRAWN and name in ARRAYS and isinstance(one, str) and isinstance(other, str):
            yield from self._of_array(one, other, ARRAYS[name], (*where, name))
        else:
            yield from self.differences(one, other, (*where, name))

    def _of_table(self, title: str, page: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[Difference]:
        """A table, whose rows are named by their role and head."""
        for name, column in again.items():
            if not isinstance(page[name], list) or len(page[name]) != len(column):
                yield _difference((f'table "{title}"', f"column {name}"), page[name], column)
                continue
            for row, pair in enumerate(zip(page[name], column)):
                self.n_values += 1
                if not self._equal(*pair, self._tolerance if name in MEANS else OF_TESTS):
                    head = head_name(again["layer"][row], again["head"][row])
                    place = (f'table "{title}"', f"row {row + 1} ({again['role'][row]}, {head})", f"column {name}")
                    yield _difference(place, *pair)

    def _of_array(self, page: str, again: str, kind: str, where: tuple[str, ...]) -> Iterator[Difference]:
        computed = np.frombuffer(base64.b64decode(again), kind).astype(float)
        try:
            written = np.frombuffer(base64.b64decode(page, validate=True), kind).astype(float)
        except ValueError:
            written = np.empty(0)
        self.n_values += computed.size
        if written.shape != computed.shape:
            yield _difference(where, f"{written.size} numbers", f"{computed.size}")
            return
        tolerance = OF_TESTS if where[-1] == "p" else self._tolerance
        close = np.abs(written - computed) <= (STEP if kind == "u1" else LEAST + tolerance * np.abs(computed))
        for at in np.flatnonzero(~close & ~(np.isnan(written) & np.isnan(computed))):
            yield _difference((*where, f"number {at + 1:,} of {computed.size:,}"), written[at], computed[at])

    @staticmethod
    def _equal(page: Any, again: Any, tolerance: float) -> bool:
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (page, again))
        if not is_number:
            return type(page) is type(again) and bool(page == again)
        return math.isclose(page, again, rel_tol=tolerance, abs_tol=LEAST)


def _difference(where: Sequence[str], page: Any, again: Any) -> Difference:
    return Difference(", ".join(where), shortened(str(page)), shortened(str(again)))
