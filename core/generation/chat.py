"""Turns of a chat, typed as lines, rendered by the chat template of a tokenizer, with its own tokens marked.

The template decides which tokens a chat model reads.
"""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from attention_sieve.core.checkpoints.chat_templates import Turn, written
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError, panics_caught, quoted
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids

ROLES: Final = ("system", "user", "assistant")
_TURN: Final = re.compile(rf"\s*({'|'.join(ROLES)})\s*:\s?(.*)", re.IGNORECASE | re.DOTALL)
_STAND_IN: Final = "\ue000{}\ue001"
"""What stands for the text of a turn, to see what the template puts around it: characters that mean nothing."""


def read_turns(typed: str) -> tuple[Turn, ...]:
    """Turns typed as lines: each begins with user:, assistant: or system:; other lines go on with the turn above.

    A first line that names none is the user's. A last turn of the assistant that is empty is left out: it is what the
    model is to write.

    Raises: AnalysisError for no turns, and for an empty one.
    """
    turns: list[dict[str, str]] = []
    for line in typed.splitlines():
        if match := _TURN.fullmatch(line):
            turns.append({"role": match[1].lower(), "content": match[2]})
        elif turns:
            turns[-1]["content"] += f"\n{line}"
        elif line.strip():
            turns.append({"role": "user", "content": line})
    turns = [{**turn, "content": turn["content"].strip()} for turn in turns]
    if turns and turns[-1] == {"role": "assistant", "content": ""}:
        del turns[-1]
    if not turns:
        raise AnalysisError("There is no turn yet. Type one, such as “user: Who wrote Hamlet?”.")
    if empty := [number for number, turn in enumerate(turns, start=1) if not turn["content"]]:
        raise AnalysisError(f"Turn {empty[0]:,} ({turns[empty[0] - 1]['role']}) is empty. Fill it in or remove it.")
    return tuple(turns)


def chat_text(checkpoint: Checkpoint, turns: Sequence[Turn]) -> Text:
    """A chat as the checkpoint reads it: by the ids of its tokens, up to where the model is to write.

    After a turn of the user, that is the beginning of a turn of the assistant; a last turn of the assistant is left
    open, so that the model goes on with it.

    Returns: a text of ids, with the tokens of each turn in `given.turns`, those of the system message first that the
        template itself writes where there is no turn of the system.

    Raises: AnalysisError for a tokenizer without a template, a template that fails or changes what was typed, and for
        turns that hold a special token.
    """
    _check_plain(checkpoint, turns)
    rendered, spans = _rendered(checkpoint, turns)
    with panics_caught():
        encoded = checkpoint.tokenizer(rendered, add_special_tokens=False, return_offsets_mapping=True)
    starts, ends = np.array(encoded["offset_mapping"]).T
    tokens = [np.flatnonzero((starts < end) & (ends > start)) for start, end in spans]
    ids = tuple(map(int, encoded["input_ids"]))
    return text_of_ids(GivenTokens(ids, turns=tuple((int(places[0]), int(places[-1]) + 1) for places in tokens)))


def _check_plain(checkpoint: Checkpoint, turns: Sequence[Turn]) -> None:
    """Raise for a turn that the tokenizer would read as the end of a turn, or another special token."""
    added = checkpoint.tokenizer.added_tokens_decoder.values()
    special = sorted((token.content for token in added if token.special), key=len, reverse=True)
    for number, turn in enumerate(turns, start=1):
        if named := next((name for name in special if name in turn["content"]), None):
            raise AnalysisError(
                f"Turn {number:,} ({turn['role']}) holds {quoted(named)}, which the tokenizer of "
                f"{checkpoint.files.name} reads as a special token. Remove it from what you typed."
            )


def _rendered(checkpoint: Checkpoint, turns: Sequence[Turn]) -> tuple[str, list[tuple[int, int]]]:
    """The chat as the template writes it, and first and one-past-last character of what each turn holds."""
    name, tokenizer = checkpoint.files.name, checkpoint.tokenizer
    if not tokenizer.chat_template:
        raise AnalysisError(
            f"The tokenizer of {name} has no chat template, so turns cannot be written for it. Switch the chat off, or "
            "choose a model that was tuned on chats."
        )
    stand_ins = [_STAND_IN.format(number) for number in range(len(turns))]
    standing_in = [{**turn, "content": stand_in} for turn, stand_in in zip(turns, stand_ins, strict=True)]
    around, expected = written(name, tokenizer, [standing_in, turns])
    rendered, spans, before = "", list[tuple[int, int]](), around
    for turn, stand_in in zip(turns, stand_ins, strict=True):
        piece, separator, before = before.partition(stand_in)
        rendered += piece
        if separator:
            spans.append((len(rendered), len(rendered) + len(turn["content"])))
            rendered += turn["content"]
    rendered += before
    if len(spans) < len(turns) or rendered != expected:
        raise AnalysisError(
            f"The chat template of {name} leaves out or changes what was typed, so its own tokens cannot be told from "
            "yours. Type other turns, or switch the chat off."
        )
    return rendered, [*_default_message(checkpoint, turns, rendered), *spans]


def _default_message(checkpoint: Checkpoint, turns: Sequence[Turn], rendered: str) -> list[tuple[int, int]]:
    """Characters of the system message that the template writes by itself, if it does: where one would stand that is
    given."""
    if turns[0]["role"] == "system":
        return []
    stand_in = _STAND_IN.format("system")
    chat = [{"role": "system", "content": stand_in}, *turns]
    try:
        (with_one,) = written(checkpoint.files.name, checkpoint.tokenizer, [chat])
    except AnalysisError:  # the template takes no turn of the system
        return []
    before, given, after = with_one.partition(stand_in)
    first, end = len(before), len(rendered) - len(after)
    is_there = given and first < end and rendered.startswith(before) and rendered.endswith(after)
    return [(first, end)] if is_there else []
