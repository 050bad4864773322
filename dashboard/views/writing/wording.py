"""Sentences about what a decoder writes."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.attention.settings import Head, head_names
from attention_sieve.dashboard.figures.figure import counted

WRITE: Final = "Write on"
WRITE_HELP: Final = (
    "Lets the model write on after your text, or after what it has written, token by token. Heads that are switched "
    "off stay off."
)
HOW: Final = "How it writes"
TOKENS: Final = "Tokens"
TEMPERATURE: Final = "Temperature"
TEMPERATURE_HELP: Final = (
    "0 always takes the likeliest token. Above 0, each token is drawn: at 1 with the model's own probabilities, above "
    "that with more even ones."
)
SEED: Final = "Seed"
SEED_HELP: Final = "Decides what is drawn. The same seed writes the same text again."
CHAT: Final = "Chat"
CHAT_HELP: Final = (
    "Reads each line as a turn of a chat, such as “user: Who wrote Hamlet?”; turns begin with user:, assistant: or "
    "system:, and a line that begins with none of these goes on with the turn above. The model's own chat template "
    "puts its tokens around the turns: they are marked as special, and a head that looks at them has the role *chat "
    "template*."
)
STOP: Final = "Stop here"
EARLIER: Final = "Earlier token"
LATER: Final = "Later token"
CUT: Final = "Cut after it"
CUT_HELP: Final = "Removes what was written after the chosen token, so that you can write on from there."
AGAIN: Final = "Write again"
AGAIN_HELP: Final = "Writes from your text on anew, with the heads and settings of now. What stands here is kept."
REMOVE: Final = "Remove"
AS_TURN: Final = "Keep as a turn"
AS_TURN_HELP: Final = (
    "Puts it below your lines as a turn of the assistant. Then type the next turn of the user below it, and let the "
    "model write on."
)
BACK: Final = "Put it back"
TITLE: Final = "The model wrote"
INSIDE: Final = (
    "It ends inside a character, of which the last token is only a part, as � shows. Write on to complete it."
)
ENDED: Final = "Here the model has ended the text."


def part(first: int, last: int, n_tokens: int) -> str:
    return f"Tokens {first:,} to {last:,} of {n_tokens:,}"


def full(n_tokens: int) -> str:
    return (
        f"The text has {n_tokens:,} tokens, the most that this model reads, so nothing more can be written. Cut it "
        "after an earlier token, or begin with a shorter text."
    )


def by_whole_passes(n_tokens: int) -> str:
    return (
        f"{counted(n_tokens, 'token')} took a pass over the whole text each: with the keys and values that this model "
        "keeps of earlier tokens, other probabilities would have come out."
    )


def no_ids(value: str) -> str:
    return f"“{value}” is no list of tokens that were written, so the text stands alone."


def other_heads(now: Sequence[Head], then: Sequence[Head]) -> str:
    return f"It was written {with_heads(then)}. Write again to see what it writes {with_heads(now)}."


def with_heads(off: Sequence[Head]) -> str:
    return f"without {head_names(off)}" if off else "with all heads on"


def before(how: str, text: str, differs_at: int | None) -> str:
    """What stood there before; the text must already be escaped."""
    where = "" if differs_at is None else f" The two differ from token {differs_at + 1:,} on."
    return f"Before{f', {how}' if how else ''}: “{text}”.{where}"


def chosen(temperature: float, seed: int) -> str:
    return f", temperature {temperature:g} and seed {seed}" if temperature else ""
