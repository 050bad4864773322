"""A text with what a checkpoint has written after it, as it is read and passed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.generation.writer import End, end_ids, prompt_ids
from attention_sieve.core.passes.texts import check_ids
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids

HALF: Final = "\N{REPLACEMENT CHARACTER}"
"""What a tokenizer decodes part of a character to."""


@dataclass(frozen=True, kw_only=True)
class Continuation:
    """What follows a prompt, token by token."""

    whole: Text
    """Prompt and what follows it, by the ids of their tokens."""
    n_prompt: int
    pieces: tuple[str, ...]
    """What each token after the prompt stands for."""
    written: str
    """What they stand for together, without the token that ends the text."""
    end: End | None
    """Why the model would write no more: it has ended the text, or the text has its maximum length."""

    @property
    def ends_inside_a_character(self) -> bool:
        """Whether the last tokens are part of a character, which one more token may complete."""
        return self.written.endswith(HALF)


def continuation(checkpoint: Checkpoint, prompt: Text, pass_settings: PassSettings, ids: Sequence[int]) -> Continuation:
    """A prompt with the tokens that follow it.

    Raises: AnalysisError for ids that are not in the vocabulary, or more than fit; else as `prompt_ids`.
    """
    before = prompt_ids(checkpoint, prompt, pass_settings)
    check_ids(checkpoint, ids)
    tokenizer, whole = checkpoint.tokenizer, (*before, *ids)
    is_ended = bool(ids) and ids[-1] in end_ids(checkpoint)
    full: End | None = "full" if len(whole) >= checkpoint.max_tokens else None
    return Continuation(
        whole=text_of_ids(_given(prompt, whole, (len(before), len(whole) - is_ended))),
        n_prompt=len(before),
        pieces=tuple(tokenizer.decode([token]) for token in ids),
        written=tokenizer.decode(whole[: len(whole) - is_ended]).removeprefix(tokenizer.decode(before)),
        end="ended" if is_ended else full,
    )


def _given(prompt: Text, ids: tuple[int, ...], written: tuple[int, int]) -> GivenTokens:
    """All tokens, with what is marked in the prompt; in a chat, what was written is a turn, but for what ends it."""
    if prompt.given is None:
        return GivenTokens(ids)
    turns = prompt.given.turns
    if turns is not None and written[0] < written[1]:
        turns = (*turns, written)
    return replace(prompt.given, ids=ids, turns=turns)
