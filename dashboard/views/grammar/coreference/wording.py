"""Sentences of the section Coreference of the page Grammar."""

from collections.abc import Mapping, Sequence
from typing import Final

from attention_sieve.core.coreference.accuracy import Candidates
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.wording import p_value
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.wording import FROM_EVERYWHERE

NUMBERS: Final = {"times": f"{LEAST_TIMES:g}"}
"""Numbers in `method.md`."""

SEE: Final = (
    "Words such as *she* or *the bakery* mention someone or something. Does an attention head find the earlier "
    "mention of the same thing (the antecedent)? A head's guess is the earlier mention that it looks at most."
)
SOURCE: Final = "Texts with mentions"
EXAMPLE: Final = "example texts"
UPLOAD: Final = "a file of your own"
UPLOAD_LABEL: Final = "Upload texts with gold mentions"
UPLOAD_FORMATS: Final = (
    "The format is recognised from the content. **JSON** with `text` (or "
    "`words`) and `clusters`: for each entity, its mentions as `[start, end]` in characters (or words), counted from 0 "
    "with the end excluded; optionally `types` (pronoun, proper, nominal), `heads` (where each head word begins, or "
    "which word it is; otherwise a parser finds it) and `name` (texts with the same name are parts of one document). "
    "**UD GUM** as JSON, documents or windows. **GAP** as its tab-separated table. The texts "
    "in the sidebar have no mentions and are not used here. An uploaded file is not part of the link."
)
TEMPLATE: Final = "Example file"
WAIT: Final = "Upload a file with mentions above, or choose the example texts."
ONE_TEXT: Final = (
    "Coreference needs attention within one text, as in an encoder. Choose **encoder** under Attention in the sidebar."
)
FEW_CASES: Final = 100
"""With fewer cases the page calls its numbers an illustration."""
CANDIDATES: Final = "Candidates"
AMONG_MENTIONS: Final = "earlier mentions"
AMONG_WORDS: Final = "all words"
CANDIDATE_NAMES: Final[dict[Candidates, str]] = {"mentions": AMONG_MENTIONS, "words": AMONG_WORDS}
CANDIDATES_HELP: Final = (
    "The words among which a mention's antecedent is chosen; the paper does not say. Earlier mentions: their head "
    "words, as for both baselines. All words: any other word of the text, which is harder. Special tokens are never "
    "candidates."
)
WINDOW: Final = "Maximum window length"
WINDOW_HELP: Final = (
    "In tokens. Longer documents are cut at sentence boundaries into windows of at most this length, unless a "
    "single sentence is longer; the paper cut documents at 128. GUM's windows and GAP's snippets stay whole if the "
    "checkpoint can read them."
)
TABLE: Final = "How often the antecedent is found"
TABLE_PAPER: Final = (
    "Corresponds to table 2 of Clark et al. (2019), whose rule-based and neural systems are quoted below, not computed."
)
DESIGN_EFFECT: Final = "design effect (variance, relative to independent cases)"
DESIGN_EFFECT_HELP: Final = (
    "Variance of the accuracy over all mentions with documents as units, divided by its variance if cases were "
    "independent. With 2, it takes two cases to say as much as one independent case."
)
TIMES_OTHERS: Final = "× other words"
TIMES_OTHERS_HELP: Final = (
    "How many times as much attention antecedents get from mentions that refer back to them as from later words that "
    "do not mention the same thing."
)
FROM_EVERYWHERE_HELP: Final = (
    f"Checked if this is less than {LEAST_TIMES:g} times: the head {FROM_EVERYWHERE}. The best head is chosen among "
    "those with at least this and significantly more, if there are any."
)
WHO: Final = "chosen by"
MAP_PAPER: Final = "The paper has no such figure."
MENTIONS: Final = "Mentions"
AGAINST: Final = "Minus"
NOTHING: Final = "nothing"
MARK: Final = "beats the baseline (p corrected for all heads)"
LOWER: Final = "worse"
HIGHER: Final = "better"
TO_BEST: Final = "Go to the best head"
PICK_TEXT: Final = "Text"
LEGEND: Final = (
    "Mentions are numbered. she³ → ¹ ✓: from mention 3 the head looks most at mention 1, which is the same person or "
    "thing. ✗ (¹): it looks at another word, and mention 1 would be right. Grey: mentioned for the first time."
)
NO_HEAD: Final = "Click a head in the map to see its choices."
NOTHING_CHOSEN: Final = "nothing"
NO_TEST: Final = "none"
NOT_READ: Final = "not read"
AS_TABLE: Final = "The same as a table"


def upload_limits(megabytes: int) -> str:
    return f"UTF-8, at most {megabytes} MB. {UPLOAD_FORMATS}"


def read(name: str, n_texts: int, n_cases: int, n_mentions: int) -> str:
    mentions = f"{counted(n_texts, 'text')} with {counted(n_mentions, 'mention')}"
    return f"{name}: {mentions}, of which **{n_cases:,}** have an antecedent."


def few(n_cases: int, *, is_example: bool) -> str:
    written = ", in texts written for this page" if is_example else ""
    return f"Only {counted(n_cases, 'case')}{written}: an illustration, not a result."


def left_out(n_without: int, n_apart: int, n_unread: int) -> str:
    """What was left out; empty if nothing was.

    Args:
        n_without: texts without a mention that has an antecedent.
        n_apart: mentions whose antecedents are all in earlier windows.
        n_unread: mentions whose head word has no token.
    """
    parts = []
    if n_without:
        parts.append(f"{counted(n_without, 'text')} in which no mention has an antecedent")
    if n_apart:
        parts.append(f"{counted(n_apart, 'mention')} with antecedents in earlier windows only")
    if n_unread:
        parts.append(f"{counted(n_unread, 'mention')} beyond the point where the checkpoint stops reading")
    return f"Not counted: {'; '.join(parts)}." if parts else ""


def headline(
    heads: Sequence[str], accuracy: float, n_cases: int, baselines: Sequence[float], *, is_held_out: bool
) -> str:
    names = list(dict.fromkeys(heads))
    named = " and ".join(f"**{name}**" for name in names)
    antecedent = f"the antecedent in **{percent(accuracy, 1)}** of {counted(n_cases, 'case')}"
    if not is_held_out:
        sentence = f"{named}, the best of all heads, finds {antecedent}"
    elif len(names) == 1:
        sentence = f"{named}, chosen on each half of the documents and counted on the other, finds {antecedent}"
    else:
        sentence = f"{named}, each chosen on one half of the documents and counted on the other, find {antecedent}"
    at_random, nearest, same_word = (percent(share, 1) for share in baselines)
    return (
        f"{sentence}. For comparison: an earlier mention chosen at random is right in {at_random}, the nearest in "
        f"{nearest}, the nearest with the same head word (or else the nearest) in {same_word}."
    )


def among_others(candidates: Candidates, accuracy: float) -> str:
    return f"With {CANDIDATE_NAMES[candidates]} as candidates instead, the best head finds **{percent(accuracy, 1)}**."


def beats(p_values: Mapping[str, float], alpha: float) -> str:
    beaten = [f"the {name} ({p_value(p)})" for name, p in p_values.items() if p < alpha]
    others = [f"the {name} ({p_value(p)})" for name, p in p_values.items() if not p < alpha]
    parts = [f"This significantly beats {' and '.join(beaten)}"] if beaten else []
    parts += [f"{'but not' if beaten else 'This does not significantly beat'} {' or '.join(others)}"] if others else []
    return f"{', '.join(parts)}."


def map_title(group: str, baseline: str | None) -> str:
    return f"{group} mentions: " + ("right, in percent" if baseline is None else f"right − {baseline}, in points")


def in_text(name: str, n_right: int, n_cases: int) -> str:
    return f"**{name}** is right in **{n_right:,} of {n_cases:,}** cases of this text."
