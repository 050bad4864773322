"""Sentences of the page Where heads look."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Final

from attention_sieve.core.passes.metric import MASKED_SHARE
from attention_sieve.core.relations.settings import VOITA_MARGIN
from attention_sieve.core.surface.per_text import CODE_SEPARATORS, SMOOTHED
from attention_sieve.core.surface.statistics import FREQUENT, POSITIONAL_SHARE, RARE_OVER_CHANCE, RARE_SHARE
from attention_sieve.core.texts.relations import RELATIONS
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import counted, percent

POSITIONAL: Final = percent(POSITIONAL_SHARE)
LETTERS: Final = ", ".join(f"{LOOKS[f'syntactic:{relation}'].letter} {relation}" for relation in RELATIONS)
NUMBERS: Final = {
    "separators": str(CODE_SEPARATORS),
    "rest": f"{1 - SMOOTHED:g}",
    "smoothed": f"{SMOOTHED:.4f}",
    "positional": POSITIONAL,
    "rare": percent(RARE_SHARE),
    "over_chance": f"{RARE_OVER_CHANCE:g}",
    "frequent": str(FREQUENT),
    "masked": percent(MASKED_SHARE),
}
"""Numbers in `method.md`."""
SEE: Final = (
    "Each dot is an attention head, one of the parts of the model that pick which words to look at. Its height says "
    "how much of its attention goes to special tokens, to punctuation or to neighbouring words, on average over all "
    "texts. Click a dot to choose its head."
)
MOST: Final = 0.5
"""A share of attention above which the page says that most of it goes there."""
NAMED_LAYERS: Final = 12

SHARES: Final = "Attention"
PANELS: Final = {
    "special tokens": "to special tokens",
    "separator": "to [SEP], by who attends",
    "neighbours": "to neighbours",
}
ENTROPY: Final = "Entropy"
HEADS: Final = "All heads"
FUNCTIONS: Final = "Labels"
LAYERS: Final = "Layers"
TABLE: Final = "Table"

PUNCTUATION: Final = "Punctuation"
AS_IN_CODE: Final = "Shares and entropy as in the authors' code"
AS_IN_CODE_HELP: Final = (
    "The code of Clark et al. divides attention to the previous and the next token by the number of all tokens, "
    f"attention from [SEP] to [SEP] by {CODE_SEPARATORS}, and from other tokens to [SEP] by the number of tokens "
    f"less {CODE_SEPARATORS}, and takes the entropy of {1 - SMOOTHED:g} A + {SMOOTHED:.4f} / n. If this is off, "
    "attention is divided by the number of tokens that it comes from, and the entropy is that of A. The first "
    "change needs a forward pass."
)
BY_CODE: Final = "Shares and entropy are computed as in the code of Clark et al."

CLARK_2: Final = "Figure 2 of Clark et al. (2019)."
CLARK_3: Final = "Corresponds to Figure 3 of Clark et al. (2019)."
CLARK_4: Final = "Figure 4 of Clark et al. (2019)."
VOITA_1B: Final = "Corresponds to Figure 1 (b) of Voita et al. (2019)."
VOITA_1C: Final = "Corresponds to Figure 1 (c) of Voita et al. (2019)."
MICHEL: Final = "The papers have no such figure: the code of Michel et al. (2019) prints these statistics."
DOTS_2: Final = (
    "The papers have no such grid: Figure 2 of Clark et al. (2019) shows these numbers as dots, as the picture above."
)
DOTS_4: Final = (
    "The papers have no such grid: Figure 4 of Clark et al. (2019) shows these numbers as dots, see the tab Entropy."
)
NO_FIGURE: Final = "The papers have no figure for this statistic."

NO_NEIGHBOURS: Final = (
    "In cross-attention, queries and keys are tokens of two texts: there is no next, previous or same token, no "
    "offset and no distance. Attention to special tokens, punctuation and rare tokens of the source, entropy and "
    "confidence still apply."
)
STATISTIC: Final = "Statistic"
STATISTICS: Final = {
    "self": "attention to the token itself",
    "previous": "attention to the previous token",
    "next": "attention to the next token",
    "first": "attention to the first token",
    "cls": "attention to [CLS]",
    "sep": "attention to [SEP]",
    "punctuation": "attention to punctuation",
    "other": "attention to all other tokens",
    "sep from sep": "attention from [SEP] to [SEP]",
    "sep from others": "attention from other tokens to [SEP]",
    "entropy": "entropy (nats; 0: all on one token)",
    "cls entropy": "entropy of the [CLS] query (nats)",
    "confidence": "confidence",
    "distance": "distance to the most attended token",
    "top previous": "most attended: the previous token",
    "top self": "most attended: the token itself",
    "top next": "most attended: the next token",
    "on rarest": "most attended: the rarest word",
    "on two rarest": "most attended: one of the two rarest words",
    "column rarest": "texts that attend most to their rarest word",
}
"""Every statistic as the page names it."""
MEAN: Final = "mean"
TEXTS: Final = "texts"
NO_INTERVAL: Final = "needs 2 texts"
NO_VALUE: Final = "Not applicable: this statistic is not defined for any of these texts."

BY_CONFIDENCE: Final = "In order of confidence"
BY_CONFIDENCE_HELP: Final = (
    "Confidence is how much attention the most attended token gets. The paper orders the heads of a layer by relevance "
    "(LRP), which the page Importance measures."
)
LABELS: Final = (
    f"**Positional** (P): for at least {POSITIONAL} of the tokens, the most attended token "
    "is at the named offset. **Syntactic** (S): the head holds, as on the page Roles, the syntactic role or that of a "
    f"single relation; the cell names its relations, or their letters if there is little room: {LETTERS}. **Rare** "
    "(R): the most attended token mostly belongs to one of the two rarest words of the text."
)
ARGMAX: Final = "Add syntactic by the most attended word (argmax), the rule of the paper"
ARGMAX_HELP: Final = (
    f"Heads whose most attended word is the related one at least {100 * VOITA_MARGIN:g} points more often than with "
    f"the best fixed offset, for {', '.join(RELATIONS)} (D), as on the page Grammar. For this, the texts are parsed "
    "and run through the model, unless that page has done so already."
)
NO_RELATIONS: Final = "Syntactic functions are left out until the roles have been scored."
FREQUENCIES: Final = "Word frequencies"
FREQUENCIES_HELP: Final = (
    "Which words count as rare: by their frequency in these texts, or in English if these have too few words "
    "(default); by the English list of the package wordfreq; or by a file of your own. Changing the list needs no "
    "forward pass."
)
BY_TEXTS: Final = "these texts, or else English"
BY_WORDFREQ: Final = "English (wordfreq)"
BY_FILE: Final = "upload a list"
LIST: Final = "Frequency list"
LIST_HELP: Final = (
    ".txt: one word per line, the most frequent first. .tsv: a header with the columns rank and word. Both may be "
    "gzipped. The list is not part of the link."
)
WAIT_LIST: Final = "Upload a frequency list. Until then, frequencies are counted in these texts."
CHOSEN: Final = "Chosen heads"
ENTROPY_SEE: Final = (
    "Entropy says how widely a head spreads its attention, in nats (units of the natural logarithm): 0 if all of it is "
    "on one token, ln n if n tokens share it evenly."
)
DENOMINATORS: Final = (
    "Attention to the previous token is averaged over the tokens that have one, so the shares of neighbours can add up "
    "to a little more than 1."
)
BY_SIEVE: Final = "by the sieve, as on the page Roles"

KEYS: Final = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "punctuation", "other": "other tokens"}
"""Kinds of keys, in the figure of gradients."""
COMPUTE: Final = "Compute the gradients"
COMPUTE_HELP: Final = "One forward and one backward pass for each text; the results are kept."
GRADIENT_SEE: Final = (
    "How much the masked-language-model loss would change if a head attended a little more to a token. A small "
    "gradient means that attention to that kind of token does not matter for the loss."
)
NO_LANGUAGE_MODEL: Final = (
    "This checkpoint does not predict masked words, so there is no loss to take gradients of. Checkpoints that do "
    "are, for instance, google-bert/bert-base-uncased, FacebookAI/roberta-base and "
    "distilbert/distilbert-base-uncased."
)

ONLY_LAYERS: Final = "Layers"
ONLY_STATISTICS: Final = "Statistics"
ONLY_CHOSEN: Final = "Only chosen heads"
AGREEMENT: Final = (
    "How similar the heads of a layer are, averaged over pairs of heads, queries and texts: their rows of attention "
    "(sum over keys of the product) and their outputs (cosine). Broad attention has small products even where it is "
    "similar; the cosine is 1 wherever the outputs are equal."
)

PAPER_TITLE: Final = "What the papers found"


FEW_TEXTS: Final = 20
"""Below so many, the page says that they are few."""
FEW: Final = "With so few texts, this describes only these; add more to see what holds in general."


def finding(n_heads: int, most: Mapping[str, int], n_positional: int) -> str:
    """What most attention goes to, in the most heads; `most` counts heads with over half of it on each kind of key."""
    if not most:
        return f"**{n_positional} of {n_heads} heads** {'is' if n_positional == 1 else 'are'} positional."
    name, number = max(most.items(), key=itemgetter(1))
    verb = "puts over half of its" if number == 1 else "put over half of their"
    return f"**{number} of {n_heads} heads** {verb} attention on {name}."


def numbers(n_texts: int, most: Mapping[str, int], offsets: Mapping[int, int] | None, n_rare: int | None) -> str:
    """What stands behind the finding; None for positional heads, or for rare words, where they do not apply."""
    phrases = [f"{number} on {name}" for name, number in most.items()]
    if offsets is not None:
        n_positional = sum(offsets.values())
        by_offset = (f"{n} at {offset_name(offset)}" for offset, n in offsets.items())
        offset_note = f" ({', '.join(by_offset)})" if n_positional else ""
        phrases.append(f"{n_positional} positional{offset_note}")
    if n_rare is not None:
        phrases.append(f"{n_rare} {'points' if n_rare == 1 else 'point'} to rare words")
    return f"Over {counted(n_texts, 'text')}: {'; '.join(phrases)}."


def interval(alpha: float) -> str:
    return f"{percent(1 - alpha)} interval"


def offset_name(offset: int) -> str:
    return f"{offset:+d}".replace("-", "\N{MINUS SIGN}")


def most_of_layers(layers: Mapping[str, Sequence[int]]) -> str:
    layer_lists = {
        name: ", ".join(map(str, of_name[:NAMED_LAYERS])) + (" and more" if len(of_name) > NAMED_LAYERS else "")
        for name, of_name in layers.items()
    }
    phrases = [
        f"to {name} in {'layer' if len(layers[name]) == 1 else 'layers'} {layer_lists[name]}" for name in layer_lists
    ]
    return f"Over half of a layer's attention goes {' and '.join(phrases)}."


def by_sieve(n_pooled: int, n_single: int) -> str:
    return (
        f"By the sieve, **{counted(n_pooled + n_single, 'head')}** {'is' if n_pooled + n_single == 1 else 'are'} "
        f"syntactic here: {n_pooled} over all relations pooled, which the page Roles counts as syntactic, and "
        f"{n_single} only for single relations, which are finer roles there. The page Grammar asks whether the "
        "related word gets the *most* attention, so it finds other heads."
    )


def by_offset(share: float) -> str:
    return f"{share:.0%} of the tokens with such a neighbour attend most to it"


def by_rarest(share: float, chance: float) -> str:
    return f"{share:.0%} of the tokens attend most to one of the two rarest words (by chance {chance:.0%})"


def rare_texts(n_texts: int, n_all: int, source: str) -> str:
    return (
        f"{n_texts:,} of {counted(n_all, 'text')} have a rare word (not one of the {FREQUENT} most frequent). "
        f"Frequencies: {source}; choose others below."
    )


def on_gradients(n_texts: int, n_masked: int) -> str:
    return f"Over {counted(n_texts, 'text')} with {counted(n_masked, 'masked token')}."
