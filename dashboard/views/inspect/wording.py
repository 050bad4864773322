"""Sentences of the page Inspect."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.generation.attribution import Parts
from attention_sieve.core.generation.fetching import Fetching
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.record import Keys
from attention_sieve.core.roles.roles import role_named, role_title
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.languages import language, say
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.wording import RESTS_ON_FIRST, TEXT_LANGUAGE

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import Unit

PROMISE: Final = "See what every attention head of a model looks at."
LOOK: Final = "Look"
LOOK_HELP: Final = "Runs the model on what you have typed, as Enter does. Shift+Enter begins a new line."
MORE: Final = "More"
BY: Final = "Show roles for"
BY_TEXT: Final = "this text"
BY_CORPUS: Final = "the corpus"
PATTERNS: Final = "Patterns"
COLUMN_HERE: Final[dict[Scale, str]] = {
    "score": "Score on the text above, of the greatest score that any attention could have on it.",
    "share": "Share above chance on the text above: 0 for evenly spread attention, at most 1.",
}
COLUMN_P: Final = (
    "p-value of the role, corrected: the larger of those against tau and against uniform attention, or as in the paper "
    "that against tau alone."
)
COLUMN_TEXTS: Final = "Number of texts in which the role is applicable."
COLUMN_CONSTANT: Final = "(mean): the score hardly varies, so its mean decides without a test."

SAYS: Final = "What it says"
AS_TABLE: Final = "As a table"


def says(
    names: Sequence[str],
    unit: "Unit",
    values: tuple[Float[np.ndarray, " choice"], Float[np.ndarray, " choice"]],
    off: Sequence[Head],
) -> str:
    """What a model says; `values` with all heads on, and without those that are off."""
    before, after = (_said(names, unit, of_pass) for of_pass in values)
    if not off:
        return f"It says {before}."
    without = head_name(*off[0]) if len(off) == 1 else counted(len(off), "head")
    still = "still " if unit != "value" and values[0].argmax() == values[1].argmax() else ""
    return f"Without {without} it {still}says {after}; with all heads on, {before}."


def _said(names: Sequence[str], unit: "Unit", values: Float[np.ndarray, " choice"]) -> str:
    if unit == "value":
        return ", ".join(f"{value:.3f}" for value in values.tolist())
    return f"*{plain(names[int(values.argmax())])}* ({percent(float(values.max()), 0)})"


def column_mean(scale: Scale) -> str:
    where = "over the texts in which the role is applicable"
    return f"Mean {WORDS[scale].noun} {where}, and its two-sided confidence interval."


def too_short(greatest: Mapping[str, float]) -> str:
    named = ", ".join(f"{role_title(role)} (no head can score more than {most:.2f})" for role, most in greatest.items())
    return f"This text is too short for {named}."


def in_text(query: str, key: str, share: float) -> str:
    """The strongest link of a head in the text on screen; the words must already be escaped."""
    return f"In your text: *{query}* → *{key}*, {percent(share, 0)}."


def text_summary(names: Sequence[str]) -> str:
    targets, roles = [], [role_named(name) for name in names]
    for role in dict.fromkeys(role_named(record.part_of or record.name) for record in roles):
        finer = [record.expects for record in roles if record.part_of == role.name]
        if finer and isinstance(role.sieve, Keys):  # parts of one set of keys
            targets.append(" and ".join(finer))
        else:
            targets.append(role.expects + (f" ({', '.join(finer)})" if finer else ""))
    looks = f"looks at {'; also at '.join(targets)}" if targets else "nothing that the letters name"
    return f"In this text: {looks}."


def shares(names: Sequence[str]) -> str:
    named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"Shares its keys and values with {named} (*Choose whole groups*, below the grid, chooses them together)."


def marked(role: str, is_positional: bool, rests_on_first: bool) -> str:
    """A role with what is known against it."""
    marks = ["positional"] * bool(is_positional) + [RESTS_ON_FIRST] * bool(rests_on_first)
    return f"{role_title(role)} ({', '.join(marks)})" if marks else role


def corpus_summary(names: list[str], n_texts: int, is_tested: bool) -> str:
    if not is_tested:
        return f"Over {counted(n_texts, 'text')}: not tested; a test needs at least 2."
    return f"Over {counted(n_texts, 'text')}: {', '.join(map(role_title, names)) if names else 'no role'}."


THIS_HEAD: Final = "This head"
ROLES: Final = "Roles"
NO_HEAD: Final = "Choose a head in the grid."
NO_TESTS: Final = "What the corpus says of this head appears here once its texts have been computed."


def alike_help(heads: list[tuple[str, float]], scale: Scale) -> str:
    of = "logarithms of the mean scores" if scale == "score" else f"mean {WORDS[scale].nouns}"
    named = ", ".join(f"{name} {distance:.2f}" for name, distance in heads)
    return f"By the {of} of all roles. Distances, of which 0 would be equal: {named}."


EVERY_SCORE_HELP: Final = (
    "Draws every text as a dot, with WebGL. A browser without it shows a note instead; the files and the table hold "
    "all of them."
)


def every_score(n_scores: int, scale: Scale) -> str:
    return f"Draw each of the {n_scores:,} {WORDS[scale].nouns}"


NEXT_TOKEN: Final = "The next token"
ASKED: Final = "Probability of another token"
ASKED_HELP: Final = "One token as this model writes it, with the space before it where a word begins: “ cat”."
CHANGE_HELP: Final = (
    "Change of the natural logarithm of the probability, in nats: −0.69 is half the probability, +0.69 twice."
)
SPEAK_FOR: Final = "Which heads speak for"
FOR: Final = "for it"
AGAINST: Final = "against it"
ADDED_NOTE: Final = (
    "What each head adds directly to the logit of this token, relative to the mean of all tokens, with the scale of "
    "each normalisation and every other factor as it is in this text (direct logit attribution). What later layers "
    "make of it is not counted: a head with 0 may still matter, as switching it off shows."
)
CAP_NOTE: Final = (
    " This model bounds its logits by a soft cap; these numbers are before it, the column *capped* after it."
)
CAPPED_HELP: Final = "The same after the soft cap: what it takes of the logit of each token counts as a factor."
FROM_COPIES_HELP: Final = (
    "What of *adds* goes if this head's values at the earlier copies are replaced by the mean of its values at the "
    "other tokens: what it took from the copies."
)


def parts(adds: Parts) -> str:
    """What heads, the rest of the layers and the embedding add together."""
    heads, rest = float(np.nansum(adds.heads)), float(adds.blocks.sum()) + adds.end
    return (
        f"All heads together add {heads:+.2f}, the rest of the layers (MLPs) {rest:+.2f}, the embedding "
        f"{adds.embedding:+.2f}: the logit is {adds.total:+.2f} from the mean."
    )


def added(name: str) -> str:
    return f"Direct effect on the logit of “{name}”"


FOLLOWS_HELP: Final = "Marks the token that follows in the text."
LOOKS_AT_HELP: Final = "The token with most of this head's attention, from the token after which this one is predicted."


def fetched(name: str, found: Fetching) -> str:
    """Title of the ranking of heads; the name is escaped here."""
    name, select = plain(name), "Select a row to see the head's arcs."
    if not found.by_chance:
        return f"**Which heads speak for “{name}”?** No copy of it stands earlier, so none fetched it. {select}"
    if found.from_copies is None:
        return f"**Which heads look at earlier copies of “{name}”?** What they take from there is not known. {select}"
    return (
        f"**Which heads fetched “{name}”?** A head that fetched it looks at an earlier copy and takes from there what "
        "it adds to its logit. First those that lose most of it if the copy's value is replaced (*from copies*). "
        f"{select}"
    )


def on_copies_help(by_chance: float) -> str:
    even = f"Evenly spread attention would have {percent(by_chance, 1)} there." if by_chance else "There is none here."
    return f"Attention on earlier copies of this token in the text, as heads have that copy it. {even}"


def without_head(change: float, rank: int, n_heads: int, n_texts: int) -> str:
    return (
        f"Switched off, it changes the text vector by {change:.2g} (1 - cosine, mean over {counted(n_texts, 'text')}): "
        f"place {rank} of {n_heads} by importance."
    )


SIMILAR: Final = "Similar heads"
TO_SIMILAR: Final = "All heads by where they look"


def nearest(neighbours: Sequence[str]) -> str:
    """The heads that attend most like one head; their distances are shown elsewhere."""
    return f"Looking at the same words: {', '.join(neighbours)}"


def nearest_help(neighbours: Sequence[tuple[str, float]], unit: str) -> str:
    distances = ", ".join(f"{name} {distance:.3g}" for name, distance in neighbours)
    return f"Distances (0 = equal attention): {distances} ({unit})."


def not_english(foreign: str, has_parser: bool) -> str:
    """What is said of a text in another language while texts are parsed as English, in the reader's own."""
    said = say(language(), "not_english", foreign=foreign)
    return f"{said} {say(language(), 'choose_parser', foreign=foreign, setting=TEXT_LANGUAGE)}" if has_parser else said
