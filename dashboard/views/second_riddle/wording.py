"""Sentences of the second riddle. None says why a word changes: only that it does, and by how much."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER
from attention_sieve.core.importance.fewest_heads import MOST_HEADS, N_ADDED, N_DRAWN, N_GOING_ON, FewestHeads
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.second_riddle.verdict import PAIRS, Verdict, among

TITLE: Final = "Second riddle"
SEE: Final = (
    "Each square is a head: down its side stand the tokens that look, across its top those looked at. A click switches "
    "it off, another one on. The bars are the likeliest next words; a stroke marks where a bar ended with all heads on."
)
NOT_YET: Final = (
    f"{SAMPLE_DECODER}, the small decoder of this riddle, is not on this machine. `make app` fetches it beside the "
    "dashboard where there is a network; `make sample-decoder` does so at once."
)
HINT: Final = "A hint"
SHOW: Final = "Show a pair"
ALL_ON: Final = "All heads on"
OWN: Final = "A sentence of your own"
OWN_PLACEHOLDER: Final = "Type the beginning of a sentence"
OWN_HELP: Final = (
    f"The model says what follows. Then the page looks for the fewest heads, at most {MOST_HEADS}, without which it "
    "says something else. Leave it empty to go back to the riddle."
)
LOOK: Final = "Search"
SEARCHING: Final = "Switching heads off"
NUMBERS: Final = {
    "n_added": str(N_ADDED),
    "n_going_on": str(N_GOING_ON),
    "most_heads": str(MOST_HEADS),
    "n_drawn": str(N_DRAWN),
}
COUNTS: Final = ("No", "One", "Two", "Three", "Four", "Five")


def sentence(text: str, word: str, said: str) -> str:
    """The text and the word that the model says after it, behind that which it says with all heads on."""
    now = f"**{plain(word)}**" if word == said else f":gray[~~{plain(word)}~~] **{plain(said)}**"
    return f"“{plain(text)} {now}”"


def finding(verdict: Verdict, off: Sequence[Head], words: tuple[str, str], *, is_riddle: bool) -> str:
    """What is said without the heads that are off; `words` with all heads on, and now."""
    asked, now = (f"*{plain(word)}*" for word in words)
    heads = named(off) if 0 < len(off) <= 3 else f"these {len(off)} heads"
    if verdict == "asked":
        return f"It says {asked}. Find two heads without which it does not." if is_riddle else f"It says {asked}."
    if verdict == "found":
        return f"Found: without {heads} it says {now}, not {asked}."
    if verdict == "more than two":
        return f"Without {heads} it says {now}, not {asked}.{' Two are enough.' if is_riddle else ''}"
    if verdict == "close":
        of_pair = among(off)
        belong = "belongs" if len(of_pair) == 1 else "belong"
        return f"Close: {named(of_pair)} {belong} to such a pair. It still says {asked}."
    return f"Without {heads} it still says {asked}."


def found(search: FewestHeads, word: str, said: str) -> str:
    """What the search has found for a sentence of the reader's own."""
    n_heads = len(search.heads)
    if not n_heads:
        return f"It says *{plain(word)}*; no set of up to {MOST_HEADS} heads that was tried changes that."
    instead = f"without {named(search.heads)} it says *{plain(said)}*, not *{plain(word)}*."
    if n_heads == 1:
        return f"One head is enough: {instead}"
    if n_heads == 2:
        return f"Two found, and no single one will do: {instead}"
    return f"{COUNTS[n_heads]} found; fewer may do: {instead}"


def named(heads: Sequence[Head]) -> str:
    *first, last = [f"**{head_name(*head)}**" for head in heads]
    return f"{', '.join(first)} and {last}" if first else last


def numbers(word: str, before: float, now: float, n_off: int) -> str:
    if not n_off:
        return f"{plain(word)}: {percent(before, 0)}"
    return f"{plain(word)}: {percent(before, 0)} with all heads on, {percent(now, 0)} without {counted(n_off, 'head')}"


def hint() -> str:
    return f"One such pair is in layer {PAIRS[0][0][0]}."


def others() -> str:
    """That the pair which was found is not the only one."""
    pairs = [" and ".join(head_name(*head) for head in pair) for pair in PAIRS]
    return f"Of the {N_ADDED} heads that matter most alone, {len(pairs)} pairs do so: {'; '.join(pairs)}."


def control(n_changed: int, n_in_set: int, word: str) -> str:
    drawn = "heads" if n_in_set == 1 else f"sets of {n_in_set} heads"
    return f"Drawn at random, {n_changed or 'none'} of {N_DRAWN} {drawn} change *{plain(word)}*."


def n_tried(search: FewestHeads) -> str:
    return f"{search.n_tried:,} sets of heads were switched off to find this, each head alone among them."


def too_many_tokens(n_tokens: int, most: int) -> str:
    return f"The sentence has {n_tokens:,} tokens; the search takes at most {most}. Type a shorter one."


def grid(text: str) -> str:
    return f"Heads of {SAMPLE_DECODER}: where they look in “{text}”"


def cell(token: str, key: str, share: float) -> str:
    return f"From {token}, it looks most at {key}, {percent(share, 0)}."
