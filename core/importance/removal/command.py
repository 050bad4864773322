"""The command `python -m core remove`."""

import argparse
from pathlib import Path
from typing import Any

from core.attention.settings import ONE_STACK, TWO_STACKS
from core.checkpoints.find import find_checkpoint
from core.checkpoints.removed_heads import REMOVED_HEADS
from core.commands import check_name, heads
from core.importance.removal.exports import EXPORTS


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("remove", help="save a checkpoint without some heads", description=remove.__doc__)
    parser.add_argument("--checkpoint", required=True, help="a hub id, a folder, or: bundled")
    parser.add_argument(
        "--heads", type=heads, action="extend", required=True, help="heads to remove, as layer-head: 3-7,2-5"
    )
    parser.add_argument("--attention", choices=(*ONE_STACK, *TWO_STACKS), help="of an encoder-decoder")
    parser.add_argument("--output", required=True, type=Path, help="folder of the new checkpoint, newly made")
    parser.add_argument(
        "--export",
        choices=EXPORTS,
        default=EXPORTS[0],
        help="removed: smaller and faster, for this program; zeroed: of the same shape, loads anywhere",
    )
    parser.add_argument(
        "--may-grow",
        action="store_true",
        help="save the checkpoint even if it has more weights than the original, because heads that shared keys and "
        "values get copies of their own",
    )
    parser.set_defaults(run=remove)


def remove(arguments: argparse.Namespace) -> None:
    """Save a checkpoint without some of its heads, after checking that it computes the same as with them switched
    off."""
    from core.importance.removal.remove import remove as remove_heads

    check_name(arguments.output)
    files = find_checkpoint(arguments.checkpoint)
    removal = remove_heads(
        files,
        arguments.heads,
        arguments.output,
        kind=arguments.attention or files.kinds[0],
        export=arguments.export,
        may_grow=arguments.may_grow,
    )
    before, after = removal.n_weights
    action = "removed" if arguments.export == "removed" else "set to 0"
    weights = f"{before:,} weights before, {after:,} now" if after != before else f"{after:,} weights, as before"
    print(
        f"{removal.n_removed:,} of {removal.n_heads:,} heads are {action}: {weights}. The output differs by "
        f"{removal.difference:.1e} from that with these heads switched off. The checkpoint: {removal.folder}"
    )
    if arguments.export == "removed":
        print(f"Its {REMOVED_HEADS} says which heads; keep it beside the weights.")
