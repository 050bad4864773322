"""The file `removed_heads.json` of a checkpoint from which attention heads were removed.

{"format": 1, "removed": {"self": [[3, 7], [2, 5]]}}: layer and head, both counted from 0, by kind of attention.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.attention.settings import Head, Kind, head_name
from attention_sieve.core.errors import PROGRAM, CheckpointError
from attention_sieve.core.json_values import parse_json

REMOVED_HEADS: Final = "removed_heads.json"
FORMAT: Final = 1
MAX_FILE_BYTES: Final = 2_000_000
"""Maximum size of the file; enough for 100,000 heads."""
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

    Returns: empty if there is no such file.
    Raises: CheckpointError for a file of another format, and for heads that the configuration does not describe.
    """
    path = folder / REMOVED_HEADS
    if not path.exists():
        return ()
    content = _read(name, path)
    version = content.get("format")
    if type(version) is not int or version != FORMAT:
        raise _broken(name, f"has format {_shown(version)}, and format {FORMAT} is read")
    removed = content.get("removed")
    if not isinstance(removed, dict) or not removed:
        raise _broken(name, 'has no "removed" with heads by kind of attention')
    unknown = sorted(set(removed) - set(sizes))
    if unknown:
        raise _broken(name, f"names {_shown(unknown[0])} attention, and the checkpoint has {', '.join(sizes)}")
    heads_of: dict[Kind, list[Head]] = {}
    for kind, (n_layers, n_heads) in sizes.items():
        if kind in removed:
            heads_of[kind] = _heads(name, kind, removed[kind])
            if n_layers is not None and n_heads is not None:
                check_removed(name, kind, heads_of[kind], n_layers, n_heads)
    return as_removed(heads_of, tuple(sizes))


def write_removed(folder: Path, removed: RemovedHeads) -> None:
    """Write the file; nothing for a checkpoint with all its heads.

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
            raise _broken(
                name,
                f"names {head_name(layer, head)}, and the {kind} attention has {n_layers} layers x {n_heads} heads",
            )
    if len(heads) == n_layers * n_heads:
        raise _broken(name, f"leaves no head to the {kind} attention")


def _read(name: str, path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise _broken(name, f"has {path.stat().st_size:,} bytes, and at most {MAX_FILE_BYTES:,} are read")
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _broken(name, f"cannot be read ({str(error)[:100]})") from None
    if not isinstance(content, dict):
        raise _broken(name, "holds no object")
    return content


def _heads(name: str, kind: Kind, values: Any) -> list[Head]:
    if not isinstance(values, list) or not values:
        raise _broken(name, f"has no list of heads for the {kind} attention")
    for head in values:
        is_pair = isinstance(head, list) and len(head) == 2 and all(type(index) is int for index in head)
        if not is_pair or not all(0 <= index <= LARGEST_INDEX for index in head):
            raise _broken(name, f"names {_shown(head)}, which is no layer and head, both counted from 0")
    heads = [(layer, head) for layer, head in values]
    duplicate, n_times = Counter(heads).most_common(1)[0]
    if n_times > 1:
        raise _broken(name, f"names {head_name(*duplicate)} {'twice' if n_times == 2 else f'{n_times:,} times'}")
    return heads


def _shown(value: object) -> str:
    return repr(value)[:60]


def _broken(name: str, problem: str) -> CheckpointError:
    return CheckpointError(f"{REMOVED_HEADS} of {name} {problem}. {SAVE_AGAIN}")
