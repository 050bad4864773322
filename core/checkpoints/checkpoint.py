"""A checkpoint as a value: its removed heads, its files with their digests, and the loaded model with its attentions.

`removed_heads.json`: {"format": 1, "removed": {"self": [[3, 7], [2, 5]]}}, layer and head, both counted from 0, by kind
of attention.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, Literal

from attention_sieve.core.attention.settings import ONE_STACK, UNLIMITED, Head, Kind, Reach, head_name
from attention_sieve.core.errors import PROGRAM, AnalysisError, CheckpointError
from attention_sieve.core.json_values import parse_json

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

REMOVED_HEADS: Final = "removed_heads.json"
FORMAT: Final = 1
MAX_FILE_BYTES: Final = 2_000_000
"""Maximum size of `removed_heads.json`; enough for 100,000 heads."""
LARGEST_INDEX: Final = 1_000_000
SAVE_AGAIN: Final = f"Remove the heads again with {PROGRAM} remove, or load the checkpoint that it comes from."

AttentionSize = tuple[int | None, int | None]
"""Numbers of layers and heads of one kind of attention; None where the configuration does not give them."""
RemovedHeads = tuple[tuple[Kind, tuple[Head, ...]], ...]
"""Kinds of attention with the heads removed from each, sorted; empty for a checkpoint with all its heads."""


def as_removed(heads: Mapping[Kind, Sequence[Head]], kinds: Sequence[Kind]) -> RemovedHeads:
    """Heads by kind, in the order of the kinds and sorted, without kinds that keep all their heads."""
    return tuple((kind, tuple(sorted(set(heads[kind])))) for kind in kinds if heads.get(kind))


def read_removed(name: str, folder: Path, sizes: Mapping[Kind, AttentionSize]) -> RemovedHeads:
    """The heads that were removed from a checkpoint.

    Args:
        sizes: its kinds of attention with their numbers of layers and heads, according to its configuration. Where it
            gives none, the loaded model is checked.

    Returns: empty if there is no `removed_heads.json`.
    Raises: CheckpointError for a file of another format, and for heads that the configuration does not describe.
    """
    path = folder / REMOVED_HEADS
    if not path.exists():
        return ()
    content = _removed_file(name, path)
    version = content.get("format")
    if type(version) is not int or version != FORMAT:
        raise _not_read(name, f"has format {_shown(version)}, and format {FORMAT} is read")
    removed = content.get("removed")
    if not isinstance(removed, dict) or not removed:
        raise _not_read(name, 'has no "removed" with heads by kind of attention')
    unknown = sorted(set(removed) - set(sizes))
    if unknown:
        raise _not_read(name, f"names {_shown(unknown[0])} attention, and the checkpoint has {', '.join(sizes)}")
    heads_of: dict[Kind, list[Head]] = {}
    for kind, (n_layers, n_heads) in sizes.items():
        if kind in removed:
            heads_of[kind] = _written_heads(name, kind, removed[kind])
            if n_layers is not None and n_heads is not None:
                check_removed(name, kind, heads_of[kind], n_layers, n_heads)
    return as_removed(heads_of, tuple(sizes))


def write_removed(folder: Path, removed: RemovedHeads) -> None:
    """Write `removed_heads.json`; nothing for a checkpoint with all its heads.

    Raises: OSError.
    """
    if removed:
        content = {"format": FORMAT, "removed": {kind: [list(head) for head in heads] for kind, heads in removed}}
        (folder / REMOVED_HEADS).write_text(json.dumps(content) + "\n", encoding="utf-8")


def check_removed(name: str, kind: Kind, heads: Sequence[Head], n_layers: int, n_heads: int) -> None:
    """Raise for heads that an attention lacks, and if none of its heads would remain.

    Raises: CheckpointError.
    """
    for layer, head in heads:
        if not (layer < n_layers and head < n_heads):
            raise _not_read(
                name,
                f"names {head_name(layer, head)}, and the {kind} attention has {n_layers} layers x {n_heads} heads",
            )
    if len(heads) == n_layers * n_heads:
        raise _not_read(name, f"leaves no head to the {kind} attention")


def _removed_file(name: str, path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _not_read(name, f"has {path.stat().st_size:,} bytes, and at most {MAX_FILE_BYTES:,} are read")
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _not_read(name, f"cannot be read ({str(error)[:100]})") from None
    if not isinstance(content, dict):
        raise _not_read(name, "holds no object")
    return content


def _written_heads(name: str, kind: Kind, values: Any) -> list[Head]:
    if not isinstance(values, list) or not values:
        raise _not_read(name, f"has no list of heads for the {kind} attention")
    for head in values:
        is_pair = isinstance(head, list) and len(head) == 2 and all(type(index) is int for index in head)
        if not is_pair or not all(0 <= index <= LARGEST_INDEX for index in head):
            raise _not_read(name, f"names {_shown(head)}, which is no layer and head, both counted from 0")
    heads = [(layer, head) for layer, head in values]
    duplicate, n_times = Counter(heads).most_common(1)[0]
    if n_times > 1:
        raise _not_read(name, f"names {head_name(*duplicate)} {'twice' if n_times == 2 else f'{n_times:,} times'}")
    return heads


def _shown(value: object) -> str:
    return repr(value)[:60]


def _not_read(name: str, problem: str) -> CheckpointError:
    return CheckpointError(f"{REMOVED_HEADS} of {name} {problem}. {SAVE_AGAIN}")


@dataclass(frozen=True)
class FileState:
    """State of one file."""

    name: str
    sha256: str
    mark: tuple[int, ...]
    """Size, times and inode: a different mark means that the file was written to, even if its bytes are equal."""


def file_states(name: str, folder: Path, patterns: Sequence[str]) -> tuple[FileState, ...]:
    """State of every file in a folder on which results depend, sorted by name. Files may be links.

    Raises: CheckpointError for an entry that cannot be read as a file.
    """
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    return tuple(_state(name, path) for path in sorted(paths))


def fingerprint(states: Sequence[FileState]) -> str:
    """SHA-256 over file names and contents; independent of the location of the folder."""
    return hashlib.sha256("\n".join(f"{state.name} {state.sha256}" for state in states).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; cached until the file is written to."""
    return _sha256_of(path, _mark(path))


def unreadable(name: str, file: str, error: OSError) -> CheckpointError:
    """The error for a file, or the folder itself, that the system does not let this program read."""
    what = f"{file} of {name}" if file else name
    if isinstance(error, PermissionError):
        return CheckpointError(
            f"You have no permission to read {what}. Ask its owner for it, or copy the checkpoint to where you have it."
        )
    return CheckpointError(
        f"{what} cannot be read ({error.strerror or error}). Check the file and where a link to it leads."
    )


@contextmanager
def held_still(name: str, folder: Path, patterns: Sequence[str], recorded: Sequence[FileState]) -> Iterator[None]:
    """Raise if a file has changed since its state was recorded, or is written to while the block runs.

    Such a change is the most likely cause of any error inside the block, so it is reported instead.

    Raises: CheckpointError that names the first file that changed.
    """
    states_before = file_states(name, folder, patterns)
    _check_same(
        name, [(file.name, file.sha256) for file in recorded], [(file.name, file.sha256) for file in states_before]
    )
    try:
        yield
    finally:
        states_after = file_states(name, folder, patterns)
        _check_same(
            name, [(file.name, file.mark) for file in states_before], [(file.name, file.mark) for file in states_after]
        )


def _check_same(name: str, before: Sequence[tuple[str, object]], after: Sequence[tuple[str, object]]) -> None:
    changed = sorted({file for file, _ in set(before) ^ set(after)})
    if changed:
        remainder = f" (and {len(changed) - 1:,} more)" if len(changed) > 1 else ""
        raise CheckpointError(
            f"{changed[0]}{remainder} of {name} changed while the checkpoint was being loaded, so its parts may not "
            "belong together. Wait until nothing writes to its folder, and try again."
        )


def _state(name: str, path: Path) -> FileState:
    try:
        if not S_ISREG(path.stat().st_mode):
            raise CheckpointError(f"{path.name} of {name} is not a regular file. Replace it by the file itself.")
        path.open("rb").close()  # the digest may be known from when it could be read
        return FileState(path.name, file_sha256(path), _mark(path))
    except OSError as error:
        raise unreadable(name, path.name, error) from None


def _mark(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


@lru_cache(maxsize=512)
def _sha256_of(path: Path, _mark: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


DTYPES: Final = ("float32", "bfloat16", "float16", "float64")
OutputHead = Literal["masked token", "next token", "classes"]
"""What the head of a checkpoint predicts."""
OUTPUT_HEADS: Final[dict[str, OutputHead]] = {
    "ForMaskedLM": "masked token",
    "ForCausalLM": "next token",
    "LMHeadModel": "next token",
    "ForConditionalGeneration": "next token",
    "MTModel": "next token",
    "ForSequenceClassification": "classes",
}
"""Suffix of the architecture name in the configuration -> what the head predicts. Others are loaded without a head."""


@dataclass(frozen=True)
class CheckpointFiles:
    """A checkpoint on disk, not loaded."""

    name: str
    """The name used to find it: `bundled`, a folder, or a hub id."""
    folder: Path
    revision: str
    """Commit on the hub; empty for a folder."""
    model_type: str
    n_layers: int | None
    """According to the configuration; the loaded model is checked again."""
    n_heads: int | None
    """Like the layers of an encoder-decoder, those of its encoder."""
    fingerprint: str
    """SHA-256 over configuration, weights and tokenizer files."""
    states: tuple[FileState, ...] = field(compare=False, repr=False)
    """The state of each of these files, to detect which has changed."""
    kinds: tuple[Kind, ...] = ONE_STACK
    """Kinds of attention: one, or the three of an encoder-decoder."""
    decoder: tuple[int | None, int | None] = (None, None)
    """Layers and heads of an encoder-decoder's decoder, likewise."""
    seed: int | None = None
    """Seed of randomly initialised weights; None for the checkpoint's own weights."""
    removed: RemovedHeads = ()
    """Heads that were removed, by kind of attention."""
    without_attention: tuple[int, ...] = ()
    """Layers that have none, according to the configuration, as in models that are partly recurrent."""
    is_decoder: bool = False
    """Whether it writes the next token, according to the configuration."""
    head: OutputHead | None = None
    """What its head predicts, according to the configuration; None if it was saved without one."""
    quantised: str = ""
    """How its weights were stored before they were written as plain numbers, as GGUF names it; empty if they always
    were."""
    saved_in: str = ""
    """Number format of its weights in its files; empty for float32."""
    n_shared: int = 1
    """How many neighbouring heads of a layer share their keys and values, according to the configuration."""
    base: "CheckpointFiles | None" = None
    """The checkpoint that an adapter changes; None for a checkpoint that is whole."""
    adapter: str = ""
    """Kind of the adapter, as PEFT names it, such as LORA; empty for a checkpoint that is whole."""

    @property
    def whole(self) -> "CheckpointFiles":
        """The checkpoint with the configuration and all weights: itself, or the base of an adapter."""
        return self.base or self

    @property
    def tokenizer_folder(self) -> Path:
        """Folder of its tokenizer: an adapter may bring one of its own."""
        brings_it = any(state.name == "tokenizer.json" for state in self.states)
        return self.folder if brings_it else self.whole.folder

    @property
    def facts_of_weights(self) -> dict[str, str]:
        """What files say of its weights: how they were stored, and which ones an adapter changes."""
        stored = f"{self.quantised}, dequantised" if self.quantised else self.saved_in and f"saved in {self.saved_in}"
        weights = {"weights": stored} if stored else {}
        if self.base is None:
            return weights
        return weights | {
            "adapter": self.adapter,
            "base": self.base.name,
            "base fingerprint": self.base.fingerprint,
        }

    @property
    def all_states(self) -> tuple[FileState, ...]:
        """States of all files, those of an adapter's base included."""
        return self.states if self.base is None else (*self.base.states, *self.states)

    def removed_of(self, kind: Kind) -> tuple[Head, ...]:
        """Heads of one kind of attention that are not there: removed, or of a layer without attention."""
        missing = ((layer, head) for layer in self.without_attention for head in range(self.n_heads or 0))
        return (*dict(self.removed).get(kind, ()), *missing)

    def check_heads(self, kind: Kind, heads: Iterable[Head]) -> None:
        """Raise for a kind of attention, and for a head, that the configuration does not have.

        Raises: AnalysisError.
        """
        if kind not in self.kinds:
            raise no_such_attention(self.name, kind, self.kinds)
        n_layers, n_heads = self.decoder if kind in ("decoder", "cross") else (self.n_layers, self.n_heads)
        if n_layers and n_heads:  # only the loaded model knows those of other configurations
            check_heads(self.name, (n_layers, n_heads), heads)

    def sharing(self, head: Head) -> tuple[Head, ...]:
        """The heads that share keys and values with a head, itself included, removed ones too."""
        layer, first = head[0], head[1] - head[1] % self.n_shared
        return tuple((layer, number) for number in range(first, first + self.n_shared))


@dataclass(frozen=True)
class AttentionLayers:
    """The layers of one kind of attention in a loaded model."""

    calls: tuple[int | None, ...]
    """Index of each layer's attention call within a forward pass, from 0; None for a layer without attention."""
    n_heads: int
    """Removed ones included."""
    causal: bool
    """Whether tokens cannot attend to later tokens."""
    reaches: tuple[Reach, ...] = ()
    """Attention window of each layer; empty if no layer has one."""
    removed: tuple[Head, ...] = ()
    """Heads that are not there, since they were removed or their layer has no attention: their attention, and what is
    computed from it, is NaN."""

    def reach(self, layer: int) -> Reach:
        """Attention window of one layer."""
        return self.reaches[layer] if self.reaches else UNLIMITED

    @property
    def n_layers(self) -> int:
        """Number of layers of this kind, those without attention included."""
        return len(self.calls)


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A loaded checkpoint that has passed its self-check."""

    files: CheckpointFiles
    model: "PreTrainedModel"
    """Without a head; used for passes."""
    full_model: "PreTrainedModel"
    """With the checkpoint's head, if it has one, sharing weights with `model`; used for the model's output."""
    head: OutputHead | None
    tokenizer: Any
    attentions: Mapping[Kind, AttentionLayers]
    takes_type_ids: bool
    padding_id: int
    """An id for which the model has an embedding; padding is masked."""
    start_id: int
    """Start token of the decoder in an encoder-decoder; unused for a checkpoint with one stack."""
    max_tokens: int
    """Maximum length of a text, special tokens included."""
    device: str
    dtype: str
    statistics_dtype: "torch.dtype"
    """Number format of the statistics: float32, or float64 for a float64 model."""

    @property
    def sizes(self) -> dict[int, int]:
        """Bytes of each of its weights by their place in memory, which a base and its adapters share."""
        weights = self.full_model.parameters()
        return {weight.data_ptr(): weight.numel() * weight.element_size() for weight in weights if weight.numel()}


def check_heads(name: str, shape: tuple[int, int], heads: Iterable[Head]) -> None:
    """Raise for a head that a checkpoint of so many layers and heads does not have.

    Raises: AnalysisError.
    """
    n_layers, n_heads = shape
    for layer, head in heads:
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise AnalysisError(
                f"{name} has no head {head_name(layer, head)}: it has {n_layers} layers x {n_heads} heads, "
                f"{head_name(0, 0)} to {head_name(n_layers - 1, n_heads - 1)}. Choose among these."
            )


def no_such_attention(name: str, kind: Kind, kinds: Iterable[Kind]) -> AnalysisError:
    """The error for a kind of attention that a checkpoint lacks."""
    return AnalysisError(f"{name} has no {kind} attention. Choose: {', '.join(kinds)}.")
