"""Sentences of the page Roles."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final, get_args

from attention_sieve.core.roles.measures import SyntacticDirection
from attention_sieve.core.roles.roles import role_named, role_title
from attention_sieve.core.roles.rules import READERS, Relative
from attention_sieve.core.roles.sinks import SINK_ANALYSIS, SinkFinding
from attention_sieve.core.roles.uncertainty.sensitivity import LEAST_TEXTS
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.figures.roles.grid import STABLE
from attention_sieve.dashboard.plain import plain

SEE: Final = (
    "Each square is an attention head; its letters name its roles over all texts: what it looks at, such as nearby "
    "words, words joined by grammar, or special tokens. Point at the name of a role for what it means."
)
SENSITIVITY: Final = (
    "How much the counts above depend on the threshold, and on how many texts there are. If a role's count jumps "
    "with tau, the role is a matter of degree; if its band is wide, it takes more texts to tell."
)
_SINKS: Final = SINK_ANALYSIS.settings
SINKS_HELP: Final = (
    f"The share of heads whose attention to the first token, in the mean over the first {_SINKS.tokens} tokens of a "
    f"text, is above {_SINKS.eps:g} (Gu et al. 2025). The role *first-token sink* is tested over texts instead."
)
RESTS_HELP: Final = (
    "Such a head holds the role no more when the first token of the text, at which many heads of decoders rest, is "
    "left out of the role's keys and of chance."
)
LIMITS: Final = "How far can these counts be trusted?"
STABILITY: Final = f"Stability: {STABLE}."
TOO_FEW_TO_DRAW: Final = (
    f"How the counts depend on the number of texts is drawn only for {LEAST_TEXTS} texts or more. Choose a larger "
    "corpus."
)
OVERLAP: Final = (
    "How many heads hold both of two roles, also as shares of the heads that hold the first role, the second, or "
    "either."
)


def finding(n_any: int, n_heads: int, counts: Mapping[str, int | None]) -> str:
    """How many heads hold a role, and what most of them look at; None is the count of a role that was not tested."""
    sentence = f"**{n_any} of {n_heads} heads** {'holds' if n_any == 1 else 'hold'} a role"
    role, n_most = max(((role, count or 0) for role, count in counts.items()), key=itemgetter(1), default=("", 0))
    return f"{sentence}; {n_most} look at {plain(role_named(role).expects)}." if n_most > 1 else f"{sentence}."


def looks_back(direction: SyntacticDirection) -> str:
    relations = {
        "dependent-to-head": "only those whose head stands before its dependent",
        "head-to-dependent": "only those whose dependent stands before its head",
        "both": "each only in the direction from its later word to its earlier one",
    }[direction]
    return (
        f"This attention only looks back. For the syntactic roles, relations count as follows: {relations}. Choose "
        "the direction under *More settings*."
    )


def rests_on_first(n_resting: Mapping[str, int], n_held: Mapping[str, int | None]) -> str:
    """Roles that heads hold with the first token only; empty without any. `n_held` is by the same roles."""
    named = [
        f"{n_heads} of {counted(n_held[role] or 0, f'{plain(role_title(role))} head')}"
        for role, n_heads in n_resting.items()
        if n_heads
    ]
    return f"Also rest on the first token: {', '.join(named)}. {RESTS_HELP}" if named else ""


def most_of_layers(layers: Mapping[str, Sequence[int]]) -> str:
    if not layers:
        return "In no layer do more than half of the heads hold the same role."
    phrases = [
        f"**{role_title(role)}** in layer{'' if len(of_role) == 1 else 's'} {spans(of_role)}"
        for role, of_role in layers.items()
    ]
    return f"More than half of the heads hold one role: {'; '.join(phrases)}."


def spans(numbers: Sequence[int]) -> str:
    """Numbers in order, with runs of consecutive numbers as one span."""
    ends: list[list[int]] = []
    for number in numbers:
        if ends and number == ends[-1][-1] + 1:
            ends[-1] = [ends[-1][0], number]
        else:
            ends.append([number])
    return ", ".join("–".join(map(str, span)) for span in ends)


def no_such_region(requested: str) -> str:
    return f"The link asks for heads with exactly the roles “{requested}”, which no head has here. Showing all heads."


def sink_share(finding: SinkFinding) -> str:
    n_long, n_texts, tokens = finding.n_texts, len(finding.masses), finding.settings.tokens
    others = "" if n_long == n_texts else f"; the others of {n_texts:,} are shorter than {tokens:,} tokens"
    return f"**{percent(finding.share, 0)}** of heads are attention sinks, mean over {counted(n_long, 'text')}{others}."


WRITTEN: Final = "Your roles"
WRITTEN_SEE: Final = (
    "Write a role as papers define heads: *from* tokens that are … a head looks *to* tokens that are …. It is then "
    "scored, tested and drawn like the others, kept in the address of this page, and can be saved as a file for "
    "`attention-sieve roles --role`."
)
BESIDE: Final = {
    "dependent": ">",
    "head": "<",
    "word below": ">>",
    "word above": "<<",
    "sibling after": "$++",
    "sibling before": "$--",
    "next word": ".",
    "previous word": ";",
}
"""Operators of spaCy's DependencyMatcher, in words."""
FIRST_VALUES: Final = {
    "words": "the, a, an",
    "entities": "any",
    "dependent_of": "nsubj",
    "head_of": "nsubj",
    "positions": "0",
}
TOML_HELP: Final = (
    "The fields above write this, and here you can write more. All conditions of a table have to hold, each for any of "
    f"its values: {', '.join(f'`{name}`' for name in READERS)}; `pattern` is one of spaCy's Matcher, such as "
    '`[{LOWER = "the"}, {POS = "ADJ", OP = "?"}]`, and `tree` one of its DependencyMatcher, of which the first word '
    "counts; under `[to]`, another one that is called `from` is the one that looks. Under `[to]` also "
    "`offset = [-2, 2]`, or `relative`: "
    f"{', '.join(get_args(Relative))}, of which head and dependent take `relations`."
)


def cases(n_queries: int, n_cells: int, text: str) -> str:
    if not n_queries:
        return f"No token looks by this rule in the text on screen: *{text}*"
    return f"{counted(n_cells, 'case')} from {counted(n_queries, 'token')} in the text on screen: *{text}*"


LEARNT: Final = "The weights that were learnt"
RANDOM: Final = "Random weights"
"""Above the two grids of a lesson."""
