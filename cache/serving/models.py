"""Keeps loaded checkpoints in memory, within a budget.

Those that are not trusted are first loaded on trial, in a process of their own.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from safetensors import SafetensorError

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.memory import limit_from
from attention_sieve.cache.serving.memory import free_memory, gpu_bytes, machine_bytes
from attention_sieve.cache.serving.requests import as_exception
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, CheckpointFiles, file_states, fingerprint
from attention_sieve.core.checkpoints.checks.files import WEIGHT_FILES, WRITING_FILES, n_saved
from attention_sieve.core.checkpoints.find import bundled_folder, choose_device, load_checkpoint
from attention_sieve.core.checkpoints.folders import checkpoints_folder, program_folder
from attention_sieve.core.checkpoints.trial_load import try_to_load
from attention_sieve.core.errors import AnalysisError, CheckpointError, is_out_of_memory
from attention_sieve.core.texts.relations import parse
from attention_sieve.core.texts.text import Text

SHARE_OF_MACHINE: Final = 0.5
SHARE_OF_GPU: Final = 0.6
"""Share of memory for the weights of checkpoints; passes, results and the program need the rest."""
BYTES_OF_WEIGHT: Final = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
TRIED: Final = "tried"
"""Folder in the program's data with an empty file for each checkpoint that passed its trial, named by fingerprint."""

_trying: Final = Lock()
"""Allows one trial at a time, because each may take gigabytes of memory."""

_loading: Final = Lock()
"""Allows one load at a time: each frees memory for itself only, so concurrent loads would exceed the budget."""


@dataclass(eq=False)
class _Held:
    checkpoint: Checkpoint
    n_users: int = 0


class Models:
    """Checkpoints by engine; thread-safe.

    A checkpoint in use is never evicted. Others are, least recently used first, when the weights on a device exceed
    its budget; a checkpoint that exceeds it alone is kept alone.
    """

    def __init__(self, budget_bytes: int | None = None, load: Callable[..., Checkpoint] = load_checkpoint) -> None:
        """Begin with nothing loaded.

        Args:
            budget_bytes: for each device; None for the megabytes in ATTENTION_SIEVE_MODELS_MB, or else half of the
                machine's memory and 60 % of a GPU's.

        Raises: AnalysisError: ATTENTION_SIEVE_MODELS_MB is not a whole number.
        """
        if budget_bytes is None:
            advice = "4096, or remove it to let checkpoints take half of the memory"
            budget_bytes = limit_from("ATTENTION_SIEVE_MODELS_MB", advice)
        self._budget, self._load_checkpoint = budget_bytes, load
        self._held: OrderedDict[Engine, _Held] = OrderedDict()
        """The least recently used first."""
        self._loads: dict[Engine, Future] = {}
        self._behind: set[Engine] = set()
        """Those that are being loaded in the background, or could not be."""
        self._lock = Lock()

    def is_loaded(self, engine: Engine) -> bool:
        """Whether a checkpoint is in memory; never waits."""
        return engine in self._held

    def is_loading(self, engine: Engine) -> bool:
        """Whether a checkpoint is being loaded; never waits."""
        return engine in self._loads

    @contextmanager
    def use(self, engine: Engine) -> Iterator[Checkpoint]:
        """Context in which a checkpoint stays in memory; loads it, or waits for the thread that is loading it.

        Call `trim` once nothing refers to it any more.

        Raises: CheckpointError.
        """
        held = self._take(engine)
        try:
            yield held.checkpoint
        finally:
            with self._lock:
                held.n_users -= 1
                self._held.move_to_end(engine)

    def load_behind(self, engine: Engine) -> None:
        """Load a checkpoint in the background; an error is raised again by the next request that needs it."""
        with self._lock:
            if self.is_loaded(engine) or self.is_loading(engine) or engine in self._behind:
                return
            self._behind.add(engine)
        Thread(target=self._load_quietly, args=(engine,), name="load checkpoint", daemon=True).start()

    def _load_quietly(self, engine: Engine) -> None:
        try:
            with self.use(engine):
                pass
            list(parse([Text(("Warm.",))]))  # so that the first text does not wait for the parser
            self._behind.discard(engine)
        except AnalysisError:  # it stays there, and is tried again only where it is needed
            pass
        self.trim()

    def trim(self) -> None:
        """Evict unused checkpoints beyond the budget; the latest one stays even if it exceeds the budget alone."""
        with self._lock:
            devices = {held.checkpoint.device for held in self._held.values()}
        for device in devices:
            self._make_room(device, 0)

    def _take(self, engine: Engine) -> _Held:
        """Acquire a checkpoint: one more user."""
        while True:
            with self._lock:
                held = self._held.get(engine)
                if held is not None:
                    held.n_users += 1
                    self._held.move_to_end(engine)
                    return held
                load = self._loads.get(engine)
                if load is None:
                    own_load = self._loads[engine] = Future()
            if load is None:
                self._load(engine, own_load)
            else:
                load.result()

    def _load(self, engine: Engine, promise: Future) -> None:
        """Load a checkpoint; waiting threads get the same error."""
        try:
            check_by_trial(engine.files)
            base = engine.files.base
            # An adapter uses the weights of its base in memory.
            with nullcontext() if base is None else self.use(replace(engine, files=base)) as loaded_base, _loading:
                checkpoint = self._loaded(engine, loaded_base)
        except BaseException as error:
            with self._lock:
                del self._loads[engine]
            promise.set_exception(as_exception(error))
            raise
        with self._lock:
            self._held[engine] = _Held(checkpoint)
            del self._loads[engine]
        promise.set_result(None)

    def _loaded(self, engine: Engine, base: Checkpoint | None) -> Checkpoint:
        device = choose_device(engine.device)
        expected = _expected_bytes(engine)
        self._make_room(device, expected)
        try:
            shared = {} if base is None else {"base": base}
            return self._load_checkpoint(engine.files, device=device, dtype=engine.dtype, **shared)
        except Exception as error:
            if isinstance(error, AnalysisError) or not is_out_of_memory(error):
                raise
        free_memory(device)
        raise CheckpointError(
            f"{engine.files.name} has weights of {expected / 1e6:,.0f} MB, more than the memory of {device} has room "
            "for. Choose a smaller checkpoint, a smaller number format, or another device."
        )

    def _make_room(self, device: str, expected: int) -> None:
        """Evict unused checkpoints until the rest and `expected` more bytes fit the budget."""
        budget = self._budget_of(device)
        evicted = []
        with self._lock:
            here = [engine for engine, held in self._held.items() if held.checkpoint.device == device]
            latest = None if expected or not here else here[-1]
            for engine in here:
                if self._n_bytes(device) + expected <= budget:
                    break
                if engine != latest and self._held[engine].n_users == 0:
                    del self._held[engine]
                    evicted.append(engine)
        if evicted:
            free_memory(device)

    def _n_bytes(self, device: str) -> int:
        """Size of the weights in memory on a device; those that several checkpoints share count once."""
        sizes: dict[int, int] = {}
        for held in self._held.values():
            if held.checkpoint.device == device:
                sizes |= held.checkpoint.sizes
        return sum(sizes.values())

    def _budget_of(self, device: str) -> int:
        if self._budget is not None:
            return self._budget
        return int(SHARE_OF_GPU * gpu_bytes() if device == "cuda" else SHARE_OF_MACHINE * machine_bytes())


def _expected_bytes(engine: Engine) -> int:
    """Memory of a checkpoint's weights in the engine's number format, whatever the format of its files."""
    try:
        return n_saved(engine.files.whole.folder) * BYTES_OF_WEIGHT.get(engine.dtype, 4)
    except (SafetensorError, OSError):
        # Loading reports what is wrong with such a file.
        paths = engine.files.whole.folder.glob(WEIGHT_FILES)
        return sum(path.stat().st_size for path in paths if path.is_file())


def check_by_trial(files: CheckpointFiles) -> None:
    """Load a checkpoint on trial, once, unless it is trusted.

    Trusted are the bundled one, those that this program made, and those below a folder that ATTENTION_SIEVE_TRUSTED
    names (several are separated as in PATH).

    Raises: CheckpointError.
    """
    folders = os.environ.get("ATTENTION_SIEVE_TRUSTED", "").split(os.pathsep)
    trusted = (bundled_folder(), checkpoints_folder(), *(Path(folder) for folder in folders if folder))
    if any(files.folder.resolve().is_relative_to(folder.resolve()) for folder in trusted):
        return
    # `states` is the same for all random weights of one architecture. A chat template is tried, too.
    states = (*files.all_states, *file_states(files.name, files.tokenizer_folder, WRITING_FILES))
    record = program_folder() / TRIED / fingerprint(states)
    with _trying:
        if not os.path.exists(record):
            try_to_load(files)
            with suppress(OSError):  # if it cannot be written, the trial is repeated next time
                record.parent.mkdir(parents=True, exist_ok=True)
                record.touch()
