"""How an analysis is asked for, beside its settings: by a command, which reads a file, and by a call of a program."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import TYPE_CHECKING, Any, Final

from attention_sieve.core.errors import AnalysisError, shortened
from attention_sieve.core.texts.text import SUFFIXES, Text

if TYPE_CHECKING:
    import pandas as pd

    from attention_sieve.core.answering import Analysis, Reading, Watch
    from attention_sieve.core.checkpoints.checkpoint import Checkpoint

HEAD_COLUMNS: Final = {"layer": "index of the layer, from 0", "head": "index of the head, from 0"}
"""What these columns of a table hold."""
TEXTS_HELP: Final = f"file of texts: {', '.join(SUFFIXES)}"


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a command and keyword of a call that is no setting."""

    sentence: str
    usual: Any = None
    """If it is not given; False for a switch."""
    kind: Callable[[str], Any] = str
    """Makes a value of what a command is given; a type is also that of what a call is given."""
    given: Callable[[Any], Any] | None = None
    """Makes a value of what a call is given, which is of another type than `kind`."""
    flag: str = ""
    """On a command line, where that differs from the name of the keyword."""
    metavar: str | None = None
    is_repeated: bool = False
    """Whether a command takes it several times, and makes a list of them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadInputs:
    """Inputs of an analysis, as they were read for a checkpoint."""

    inputs: Sequence[Any]
    settings: Any
    """Those of the analysis, with what the inputs decide."""
    facts: Mapping[str, str]
    """Metadata of files on the texts."""
    note: str = ""
    """A remark on what was read; empty for none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs:
    """Inputs of an analysis that are more than texts."""

    file: str
    """What the file of a command is."""
    are_texts: bool
    """Whether the options on texts hold: columns of a table, and what becomes of texts that are too long."""
    options: Mapping[str, Option]
    """Further options of a command on the file."""
    in_file: "Callable[[Namespace, Watch], Any]"
    """What the file of a command holds, before a checkpoint is loaded."""
    keywords: Mapping[str, Option]
    """Those of a call on its inputs."""
    given: "Callable[[Any, Namespace, Callable[[Any], tuple[Text, ...]]], Any]"
    """The same as `in_file`, of what a call is given as texts, and of its keywords; the function reads texts."""
    check: "Callable[[Checkpoint, Namespace, Any], None]" = lambda *_: None
    """Raises AnalysisError for options and settings that a checkpoint does not allow."""
    read: "Callable[[Any, Checkpoint, Namespace, Any, Watch], ReadInputs]"
    """The inputs, from what the file holds, the checkpoint, the options and the settings."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SecondTable:
    """A second file that a command may write."""

    sentence: str
    """What it holds."""
    columns: Mapping[str, str]
    table: "Callable[[Any], pd.DataFrame] | None" = None
    """Of the same finding; None where another analysis finds it."""
    analysis: "Analysis[Any, Any, Any, Any, Any] | None" = None
    """Of the same texts, if it is another finding."""
    settings: Callable[[Any], Any] = lambda settings: settings
    """Those of the other analysis."""
    check: "Callable[[Reading[Any], Any], None]" = lambda *_: None
    """Raises AnalysisError before the work, from what is read and the settings, if the table cannot be made."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A call as a program has it."""

    texts: str = '["The old dog chased a cat.", "She closed the shop because it was late."]'
    keywords: str = ""
    model: str = '"bundled"'
    before: tuple[str, ...] = ()
    """Lines before the call."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Usage:
    """How an analysis is asked for, and what is said beside its table."""

    command: str | None = ""
    """Name of the command; empty for that of the analysis, with hyphens. None if no command is made of the analysis,
    because its room writes one that does more, or because it is a second file of another."""
    details: str = ""
    """What the help of the command says after the sentence of the analysis."""
    more: str = ""
    """What it says last, after the columns."""
    inputs: Inputs | None = None
    """None for texts."""
    parses: bool = False
    """Whether the command has options on the parser of texts without trees."""
    options: Mapping[str, Option] = field(default_factory=dict)
    usual: Callable[[Namespace], Any] | None = None
    """The usual settings, where options decide them, which also hold `files`, those of the checkpoint, in a call; None
    for those of the analysis."""
    asks: str = ""
    """Field of the settings that alone is asked for in a call; empty for all of them."""
    reading_analysis: "Callable[[Reading[Any]], Analysis[Any, Any, Any, Any, Any]] | None" = None
    """The analysis of what was read; None for itself."""
    second: Mapping[str, SecondTable] = field(default_factory=dict)
    """Further files of the command, by the name of their option."""
    notes: Callable[[Any], Iterable[str]] = lambda _: ()
    """Remarks on a finding, each a sentence or more, which a command prints to standard error."""
    summary: Callable[[Any], Iterable[str]] = lambda _: ()
    """What a finding comes to, in lines, which a command prints to standard output."""
    example: Example = Example()

    @property
    def keywords(self) -> Mapping[str, Option]:
        """Of a call, beside the settings."""
        return {**self.options, **({} if self.inputs is None else self.inputs.keywords)}


A_DECODER: Final = (
    "from transformers import LlamaConfig, LlamaForCausalLM",
    'shape = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}',
    "model = LlamaForCausalLM(LlamaConfig(**shape, vocab_size=30_522))  # with random weights",
)
"""Lines before an example that needs a decoder, with the tokenizer of the bundled checkpoint."""


def listed(name: str, value: Any, kind: type | UnionType, says: str) -> list[Any]:
    """One or several values of a keyword.

    Raises: AnalysisError for one of another kind.
    """
    values = [value] if isinstance(value, kind) or not isinstance(value, Iterable) else list(value)
    if wrong := [item for item in values if not isinstance(item, kind)]:
        raise AnalysisError(f"{name} is {shortened(repr(wrong[0]))}. Give {says}.")
    return values


def column_list(heading: str, columns: Mapping[str, str]) -> str:
    """A paragraph of help on the columns of a table."""
    return "".join([f"\n\n{heading}:", *(f"\n    {name}: {sentence}" for name, sentence in columns.items())])
