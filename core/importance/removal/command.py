"""The command `python -m attention_sieve remove`: save a checkpoint without some of its heads."""

import argparse
from typing import Any

from attention_sieve.core.checkpoints.checkpoint import REMOVED_HEADS
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.commands import check_name
from attention_sieve.core.importance.removal.exports import EXPORTS
from attention_sieve.core.options import add_attention_option, add_checkpoint_option, add_output_option, heads


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "remove", help="save a checkpoint without some of its heads", description=remove.__doc__
    )
    add_checkpoint_option(parser)
    parser.add_argument(
        "--heads", type=heads, action="extend", required=True, help="heads to remove, as layer-head, such as 3-7,2-5"
    )
    parser.add_argument(
        "--whole-groups",
        action="store_true",
        help="remove the heads that share keys and values with these, too, so that keys and values go with them",
    )
    add_attention_option(parser)
    add_output_option(parser, "new folder for the checkpoint")
    parser.add_argument(
        "--export",
        choices=EXPORTS,
        default=EXPORTS[0],
        help="removed: smaller and faster, but only this program can load it; zeroed: same shape, with the weights of "
        "these heads set to 0, loads anywhere; default: %(default)s",
    )
    parser.add_argument(
        "--may-grow",
        action="store_true",
        help="save the checkpoint even if it is larger than the original, which happens when heads that share keys "
        "and values each get their own copy",
    )
    parser.set_defaults(run=remove)


def remove(arguments: argparse.Namespace) -> None:
    """Save a checkpoint without some of its heads, after checking that its output is the same as with them switched
    off.
    """
    from attention_sieve.core.importance.removal.remove import remove as remove_heads

    check_name(arguments.output)
    files = find_checkpoint(arguments.checkpoint)
    kind = arguments.attention or files.kinds[0]
    sharing = [shared for head in arguments.heads for shared in files.sharing(head)] if arguments.whole_groups else []
    removal = remove_heads(
        files,
        [*arguments.heads, *(head for head in sharing if head not in files.removed_of(kind))],
        arguments.output,
        kind=kind,
        export=arguments.export,
        may_grow=arguments.may_grow,
    )
    before, after = removal.n_weights
    action = "removed" if arguments.export == "removed" else "set to 0"
    weights = f"{before:,} weights before, {after:,} now" if after != before else f"{after:,} weights, as before"
    print(
        f"{removal.n_removed:,} of {removal.n_heads:,} heads are {action}: {weights}. The output differs by "
        f"{removal.difference:.1e} from that with these heads switched off. The checkpoint is in {removal.folder}"
    )
    if arguments.export == "removed":
        print(f"Its {REMOVED_HEADS} lists the removed heads; keep this file beside the weights.")
