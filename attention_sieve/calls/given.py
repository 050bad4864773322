"""What the calls are given: a model, texts and keywords, checked and read."""

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from os import PathLike
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.command_lines import options_of, parts_of
from attention_sieve.core.commands import progress_bar
from attention_sieve.core.errors import AnalysisError, TextError, shortened
from attention_sieve.core.passes.texts import check_settings
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.texts.json_files import from_object, parsed_json
from attention_sieve.core.texts.parsers import NO_PARSER, parsed_by
from attention_sieve.core.texts.text import Text, text_as_written, text_of
from attention_sieve.core.texts.tokens import TooLong

SHARED: Final = {"device": None, "dtype": None, "attention": None, "off": (), "too_long": "error", "parser": None}
"""Keywords of all calls, with what they are if they are not given."""


def load(model: str | PathLike[str], *, device: str = "auto", dtype: str = "float32") -> Checkpoint:
    """Load a checkpoint once, for several calls.

    Args:
        model: `bundled`, a folder, or an id of the Hugging Face hub.
        device: auto, cuda, mps or cpu.
        dtype: number format of the weights.

    Raises: CheckpointError.

    >>> import attention_sieve as sieve
    >>> checkpoint = sieve.load("bundled", device="cpu")
    >>> checkpoint.files.n_layers, checkpoint.files.n_heads
    (6, 12)
    """
    return load_checkpoint(find_checkpoint(str(model)), device=device, dtype=dtype)


def check_keywords(call: str, given: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise TypeError, as Python does, for a keyword that a call does not have."""
    if unknown := sorted(set(given) - set(known)):
        raise TypeError(f"{call}() got an unexpected keyword argument {unknown[0]!r}")


@contextmanager
def opened(model: Any, tokenizer: Any, given: Mapping[str, Any]) -> Iterator[Checkpoint]:
    """The checkpoint of a name or a folder, one that is loaded, or a model in memory, where it is.

    Raises: AnalysisError for keywords that do not go with it.
    """
    device, dtype, is_named = given.get("device"), given.get("dtype"), isinstance(model, str | PathLike)
    if not is_named and (device, dtype) != (None, None):
        raise AnalysisError("The model is in memory, and is observed where it is. Leave out device and dtype.")
    if (is_named or isinstance(model, Checkpoint)) and tokenizer is not None:
        raise AnalysisError("A checkpoint brings its own tokenizer. Leave out tokenizer, or give a model in memory.")
    if is_named:
        yield load(model, device=device or "auto", dtype=dtype or "float32")
    elif isinstance(model, Checkpoint):
        yield model
    else:
        from attention_sieve.core.checkpoints.in_memory import observed_in_place

        with observed_in_place(model, tokenizer) as checkpoint:
            yield checkpoint


@contextmanager
def all_opened(models: Sequence[Any], tokenizer: Any, given: Mapping[str, Any]) -> Iterator[list[Checkpoint]]:
    """As `opened` of each model, where the tokenizer is that of models in memory."""
    with ExitStack() as stack:
        own = [None if isinstance(model, str | PathLike | Checkpoint) else tokenizer for model in models]
        yield [stack.enter_context(opened(*pair, given)) for pair in zip(models, own, strict=True)]


def pass_settings_of(checkpoint: Checkpoint, given: Mapping[str, Any]) -> PassSettings:
    """Which attention is asked for, and which heads are off.

    Raises: AnalysisError if the checkpoint lacks them.
    """
    off = given.get("off", ())
    try:
        off = checked("off", [_plain(head) for head in off], tuple[tuple[int, int], ...])
    except (TypeError, AnalysisError):
        raise AnalysisError(
            f"off is {shortened(repr(off))}. Give pairs of layer and head, such as [(3, 7), (2, 5)]."
        ) from None
    pass_settings = PassSettings(given.get("attention") or checkpoint.files.kinds[0], tuple(sorted(set(off))))
    check_settings(checkpoint, pass_settings)
    return pass_settings


def _plain(head: Any) -> Any:
    """A head whose numbers may be those of NumPy or torch."""
    listed_head = head.tolist() if hasattr(head, "tolist") else head
    return [getattr(number, "item", lambda number=number: number)() for number in listed_head]


def _bar(**options: Any) -> Any:
    """A bar for work that takes more than a second, which goes when it is done; in a notebook tqdm's own for these."""
    if "ipykernel" not in sys.modules:
        return ProgressBar(**options, leave=False, delay=1)
    from tqdm.auto import tqdm

    return tqdm(**options, leave=False, delay=1)


watched: Final = partial(progress_bar, bar=_bar)
"""Work under a bar of progress."""


def kinds_of(settings: Any) -> dict[str, Any]:
    """Kind of each setting, and of the settings within, by its name."""
    kinds = {name: kind for name, (kind, _) in options_of(settings).items()}
    return kinds | {name: kind for part in parts_of(settings).values() for name, kind in kinds_of(part).items()}


def checked(name: str, value: Any, kind: Any) -> Any:
    """A value of a setting, as its kind has it."""
    if kind == tuple[str, ...] and isinstance(value, str):
        value = tuple(value)  # characters, which the option takes written together
    try:
        return value if kind is None else TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise AnalysisError(f"{name} is {shortened(repr(value))}. {error.errors()[0]['msg']}.") from None


def too_long_in(given: Mapping[str, Any]) -> TooLong:
    """What becomes of texts that are too long."""
    policy: TooLong = checked("too_long", given.get("too_long", "error"), TooLong)
    return policy


def parsed(texts: Any, given: Mapping[str, Any]) -> tuple[Text, ...]:
    """Texts, to be parsed by the parser that the keywords name.

    Raises: TextError; AnalysisError for a parser that is not installed.
    """
    parser = given.get("parser")
    return parsed_by(_texts(texts), NO_PARSER if parser is False else parser)


def _texts(texts: Any) -> tuple[Text, ...]:
    """Texts of strings, pairs of strings, objects as files of JSON have them, and what the readers of files return.

    Raises: TextError.
    """
    given = [texts] if isinstance(texts, str | dict | Text) or not isinstance(texts, Iterable) else list(texts)
    if not given:
        raise TextError("There is no text. Give a string, or a list of strings.")
    return tuple(text_given(text, f"Text {position:,}") for position, text in enumerate(given, start=1))


def text_given(given: Any, where: str) -> Text:
    """A text of a string, a pair of strings, or an object as files of JSON have it; `where` begins errors.

    Raises: TextError.
    """
    if isinstance(given, Text):
        return given
    if isinstance(given, dict):
        try:
            item = parsed_json(json.dumps(given), first_line=1)
        except (TypeError, ValueError, RecursionError):
            raise TextError(f"{where} is no object of JSON. Write strings, numbers, lists and objects alone.") from None
        return text_as_written(from_object(item, where))
    segments = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if len(segments) not in (1, 2) or not all(isinstance(segment, str) for segment in segments):
        raise TextError(f"{where} is {shortened(repr(given))}. Give a string, or a pair of strings for two segments.")
    return text_of(segments, where)
