"""The commands `python -m attention_sieve page` and `check`: one HTML file with the heads of a checkpoint, and whether
its numbers are right."""

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.commands import check_output, loaded, read_texts, write
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_device_option,
    add_output_option,
    add_parser_options,
    add_resume_option,
    add_settings_options,
    add_texts_options,
    heads,
)
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.command import add_roles_options, role_settings
from attention_sieve.core.texts.parsers import parsed_by
from attention_sieve.core.texts.text import read_bytes, read_typed

HTML: Final = ".html"
MOST_DIFFERENCES: Final = 20


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    saving = commands.add_parser(
        "page", help="save the heads of a checkpoint as one HTML file", description=page.__doc__
    )
    add_checkpoint_options(saving)
    saving.add_argument("--compare", metavar="CHECKPOINT", help="another checkpoint of the same shape, to compare with")
    add_resume_option(saving)
    add_texts_options(saving)
    add_parser_options(saving)
    saving.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="TEXT",
        help="a text whose attention is drawn, with ||| between its two segments if it is a pair; may be repeated; "
        "default: the first of the texts",
    )
    saving.add_argument(
        "--heads",
        type=heads,
        action="extend",
        default=[],
        help="heads whose arcs are drawn at first, as layer-head, such as 3-7,2-5; default: the one that links words "
        "most",
    )
    add_roles_options(saving)
    add_output_option(saving, f"file to write: {HTML}")
    add_settings_options(saving, ROLE_ANALYSIS.settings)
    saving.set_defaults(run=page)
    checking = commands.add_parser(
        "check", help="compute the numbers of a saved page again and compare them", description=check.__doc__
    )
    checking.add_argument("page", type=Path, help="file that the command page, or the dashboard, has written")
    checking.add_argument(
        "--checkpoint",
        action="append",
        default=[],
        help="name or folder of the checkpoint, if it is not where the page names it; for a comparison twice, the "
        "reference first",
    )
    add_device_option(checking)
    checking.set_defaults(run=check)


def page(arguments: argparse.Namespace) -> None:
    """Save the heads of a checkpoint as one HTML file: the attention of a text as a grid beside arcs, roles with their
    tests, the heads of each combination of roles, and where the numbers come from.

    The file opens from a disk without a network and asks for nothing. It holds its texts, its tables as CSV files, and
    the command that makes it. `check` computes its numbers again.
    """
    texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    drawn = parsed_by([text for typed in arguments.text for text in read_typed(typed)], arguments.parser)
    check_output(arguments.output, (HTML,), [arguments.texts])
    settings = role_settings(arguments, find_checkpoint(arguments.checkpoint))
    checkpoint, pass_settings = loaded(arguments)
    checkpoints = [checkpoint]
    if arguments.compare is not None:
        other = find_checkpoint(arguments.compare)
        checkpoints.append(load_checkpoint(other, device=arguments.device, dtype=arguments.dtype))
    from attention_sieve.dashboard.saved_page.content import PageRequest, compute  # these import Streamlit, which the
    from attention_sieve.dashboard.saved_page.data import page_data  # other commands do without
    from attention_sieve.dashboard.saved_page.file import page_html

    request = PageRequest(
        pass_settings=pass_settings,
        settings=settings,
        texts=texts,
        drawn=drawn,
        chosen=arguments.heads,
        too_long=arguments.too_long,
    )
    html = page_html(page_data(compute(checkpoints, request, arguments.answer)))
    write(arguments.output, partial(Path.write_text, data=html, encoding="utf-8", newline="\n"))


def check(arguments: argparse.Namespace) -> int:
    """Compute the numbers of a saved page again, from its texts and the checkpoint that it names, and compare them.

    Prints that all are equal, or each place where they differ with both numbers; the exit status is then 1. It is 1,
    too, for a page of another version: its numbers are compared, but not its script, style and markup. Means in
    float32 are equal if they differ by at most one part in 10,000, and what tests make of them by one in 50, which is
    what another machine may change; weights of attention are rounded to 256 steps, and may differ by one of them. The
    hub is asked only for what --checkpoint names.
    """
    from attention_sieve.dashboard.saved_page.check import check_page

    checked = check_page(read_bytes(arguments.page), str(arguments.page), arguments.checkpoint, arguments.device)
    for note in checked.notes:
        print(note, file=sys.stderr)
    for difference in checked.differences[:MOST_DIFFERENCES]:
        print(difference)
    if not checked.differences:
        print(f"Equal: {checked.n_values:,} values of {arguments.page} were computed again.")
        return 0 if checked.same_version else 1
    print(f"{len(checked.differences):,} of {checked.n_values:,} values of {arguments.page} differ.")
    return 1
