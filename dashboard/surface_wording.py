"""Every sentence of the page Surface, once."""

from collections.abc import Mapping, Sequence
from typing import Final

from dashboard.figures.figure import counted

SEE: Final = (
    "Where each head looks, before any grammar: special tokens, punctuation, neighbours, rare tokens, how widely it "
    "spreads its attention, and how far it looks. Click a dot or a cell to choose a head."
)
MOST: Final = 0.5
"""A share of attention above which the page says that most of it goes there."""
NAMED_LAYERS: Final = 12

SHARES: Final = "Shares"
ENTROPY: Final = "Entropy"
HEADS: Final = "Heads"
FUNCTIONS: Final = "Functions"
LAYERS: Final = "Layers"
TABLE: Final = "Table"

SETTINGS: Final = "Settings"
AS_IN_CODE: Final = "Shares and entropy as in the authors' code"
AS_IN_CODE_HELP: Final = (
    "The code of Clark et al. divides attention to the previous and the next token by all tokens of a text, attention "
    "from [SEP] to [SEP] by 2 and from other tokens to [SEP] by the tokens less 2, and takes the entropy of "
    "0.9999 A + 0.0001 / n. Off: each is divided by the tokens that it is from, and entropy is that of A, by this "
    "program's own choice. The first time a pass is needed."
)
BY_CODE: Final = "Shares and entropy are computed as in the code of Clark et al."

CLARK_2: Final = "Corresponds to Figure 2 of Clark et al. (2019)."
CLARK_3: Final = "Corresponds to Figure 3 of Clark et al. (2019)."
CLARK_4: Final = "Corresponds to Figure 4 of Clark et al. (2019)."
VOITA_1B: Final = "Corresponds to Figure 1 (b) of Voita et al. (2019)."
VOITA_1C: Final = "Corresponds to Figure 1 (c) of Voita et al. (2019)."
MICHEL: Final = "No figure of a paper: statistics of heads that the code of Michel et al. (2019) prints."
DOTS_2: Final = "The papers have no such grid: Figure 2 of Clark et al. (2019) has these numbers as dots, see Shares."
DOTS_4: Final = "The papers have no such grid: Figure 4 of Clark et al. (2019) has these numbers as dots, see Entropy."
NO_FIGURE: Final = "The papers have no figure of this statistic."

NO_NEIGHBOURS: Final = (
    "Across, queries and keys are tokens of two texts: there is no next, previous or same token, no offset and no "
    "distance. What goes to special tokens, to punctuation and to rare tokens of the source, entropy and confidence "
    "apply."
)
STATISTIC: Final = "Statistic"
STATISTICS: Final = {
    "self": "attention to the token itself",
    "previous": "attention to the previous token",
    "next": "attention to the next token",
    "cls": "attention to [CLS]",
    "sep": "attention to [SEP]",
    "punctuation": "attention to punctuation",
    "other": "attention to all other tokens",
    "sep from sep": "attention from [SEP] to [SEP]",
    "sep from others": "attention from other tokens to [SEP]",
    "entropy": "entropy (nats)",
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
NO_VALUE: Final = "No text has a value of this statistic: not applicable."

ORDER: Final = (
    "Heads of a layer stand in order of confidence, the largest first; the paper orders them by relevance (LRP), which "
    "is not computed here. **Positional** (P): for at least 90 % of the tokens the most attended one stands at the "
    "offset that is named. **Syntactic** (S): the head holds a syntactic role by the sieve and its test, as on the "
    "page Roles, with its relations, or their letters where there is little room: N nsubj, O dobj, A amod, V advmod. "
    "**Rare** (R): the most attended token is mostly part of one of the two rarest words of the text."
)
ARGMAX: Final = "Add syntactic by argmax, the paper's own rule"
ARGMAX_HELP: Final = (
    "Heads whose most attended word is the related one at least 10 points more often than the best fixed offset, for "
    "nsubj, dobj, amod or advmod (D), as on the page Heads as parsers. The texts are parsed and passed once for it, "
    "unless that page has done so."
)
NO_RULE_RELATION: Final = "No relation of the paper's rule has enough cases in these texts."
NO_RELATIONS: Final = "Without the scores of the roles, syntactic functions are left out."
FREQUENCIES: Final = "Word frequencies"
FREQUENCIES_HELP: Final = (
    "What counts as rare: by the texts of the corpus, or by English where they are too few (default), by the English "
    "list of the package wordfreq, or by a file of your own. Another list costs no pass."
)
BY_TEXTS: Final = "these texts, or else English"
BY_WORDFREQ: Final = "English (wordfreq)"
BY_FILE: Final = "upload a list"
LIST: Final = "Frequency list"
LIST_HELP: Final = (
    ".txt: one word a line, the most frequent first. .tsv: a header with the columns rank and word. Either may be "
    "gzipped. The list is not part of the link."
)
WAIT_LIST: Final = "Upload a frequency list. Until then the frequencies are those of these texts."
CHOSEN: Final = "Chosen heads"
BY_SIEVE: Final = "by the sieve and its test"

KEYS: Final = {"cls": "[CLS]", "sep": "[SEP]", "punctuation": "punctuation", "other": "other tokens"}
"""Kinds of keys, in the figure of gradients."""
COMPUTE: Final = "Compute the gradients"
COMPUTE_HELP: Final = "A pass forward and one backward for each text; the numbers are kept."
GRADIENT_SEE: Final = (
    "How much the masked-language-model loss would change if a head attended a little more to a token: a small "
    "gradient says that attention to that kind of token does not matter to the loss."
)
NO_LANGUAGE_MODEL: Final = (
    "This checkpoint has no head for masked language modelling, so there is no loss to take gradients of. "
    "Checkpoints that were saved with one are, for instance, google-bert/bert-base-uncased, "
    "FacebookAI/roberta-base and distilbert/distilbert-base-uncased."
)

ONLY_LAYERS: Final = "Layers"
ONLY_STATISTICS: Final = "Statistics"
ONLY_CHOSEN: Final = "Only chosen heads"
AGREEMENT: Final = (
    "How alike the heads of a layer are, as means over pairs of heads, queries and texts: of their rows of attention "
    "(the sum over keys of the product), and of their outputs (the cosine). Broad attention has low products even "
    "where it is alike; the cosine is 1 wherever outputs are."
)

HOW_SHARES: Final = r"""
For a head with attention $A_{ij}$ of query token $i$ to key token $j$ in a text of $n$ tokens, the **share** of a set
of keys $S_i$ is

$$
\operatorname{mean}_{i \in Q} \; \textstyle\sum_{j \in S_i} A_{ij}
$$

over the queries $Q$ that can have such a key: the token itself, the next, the previous; [CLS]-like and [SEP]-like
special tokens; punctuation (full stops and commas); [SEP] from [SEP], and [SEP] from all other tokens. [CLS], [SEP],
punctuation and the rest share out every row: together they are 1. A text without punctuation has a share of 0 of it.
**Entropy** is $-\sum_j A_{ij} \ln A_{ij}$ in nats, mean over all queries, or of [CLS] alone; uniform attention over $n$
keys has $\ln n$, drawn as a line. **Confidence** is the largest weight on a key that is no special token, and
**distance** the number of tokens between a query and its most attended key; both are means over queries. Every number
is the mean over the texts that have it, with a t interval.

Source: Clark et al., *What Does BERT Look At?*, BlackboxNLP 2019, sections 3.1 to 3.3; distance and agreement: the
code of Michel et al., *Are Sixteen Heads Really Better than One?*, NeurIPS 2019. The code of Clark et al. divides
attention to the previous and the next token by $n$, also where one token has none, from [SEP] to [SEP] by 2 and from
other tokens to [SEP] by $n - 2$ whatever the number of [SEP], and takes the entropy of $0.9999 A_{ij} + 0.0001 / n$.
Dividing by the queries that can have such a key, and not smoothing, is this program's choice; what the code does is a
setting. The code also swaps the labels of next and previous in its figure, which is never done here.
"""
HOW_FUNCTIONS: Final = r"""
A head is **positional** if, for some offset $k$, the most attended token of token $i$ is $i + k$ for at least 90 % of
the tokens that have such a neighbour. It is **rare** if the most attended token is part of one of the two rarest words
of the text for more than half of the tokens, at least twice as often as for a head that chooses blindly, and the head
is not positional. Only texts count that have a word beyond the 500 most frequent. Special tokens neither attend nor
are attended to here.

Source: Voita et al., *Analyzing Multi-Head Self-Attention*, ACL 2019, sections 5.1 and 5.3. The paper names 90 % for
positional heads, and no rule for rare ones: it says that they "point to" the rarest token. The share of tokens whose
most attended one is rarest, and the share of texts in which all tokens together attend most to it, are both in the
table.
"""
HOW_GRADIENTS: Final = r"""
**Gradients**: with a part of a text's tokens masked, $|\partial L / \partial A_{ij}|$ of the masked-language-model loss
$L$, mean over heads, queries and the keys of a kind, by layer. The paper does not say which tokens are masked and how
the mean is taken; here 15 % are masked, always the same ones. A masked token counts among the other tokens whatever
stood there, since the model sees the mask.

Source: Clark et al. 2019, section 3.2 and Figure 3; their code does not hold it.
"""
PAPER_TITLE: Final = "What the papers found"
PAPER: Final = """
All numbers are of BERT-base (12 layers of 12 heads) on 1,000 segments of Wikipedia, layers counted from 1, unless
said otherwise. They are here to compare with, not to match.

- **Shares** (Clark et al. 2019, Figure 2, section 3.1 and 3.2): four heads put more than 50 % of their attention on the
  previous token (in layers 2, 4, 7 and 8), five on the next (in layers 1, 2, 2, 3 and 6). Over half of the attention
  of layers 6 to 10 goes to [SEP]; from [SEP] to [SEP] it is more than 90 %.
- **Gradients** (Clark et al. 2019, Figure 3, section 3.2): from layer 5 on, the gradient of attention to [SEP] is
  small.
- **Entropy** (Clark et al. 2019, Figure 4, section 3.3): attention from [CLS] in the last layer has 3.89 nats.
- **Functions** (Voita et al. 2019, Figure 1, sections 5.1 to 5.3; encoders of translation models, 6 layers of 8
  heads): positional heads point to the neighbours, with a confidence above 0.8 (Figure 1 (b)). The head for rare
  tokens (Figure 5) is always one of the first layer: in 66 % of cases it points to the rarest token of the sentence
  and in 83 % to one of the two rarest (OpenSubtitles); on WMT to one of the two rarest in more than 50 %. Syntactic
  heads beat the best fixed offset by up to 38 points (object to its verb on OpenSubtitles: 84 % against 46 %).
- **Agreement within a layer** (Michel et al. 2019): their code prints it, the paper has no figure and no number of it.
"""


FEW_TEXTS: Final = 20
"""Below so many, the page says that they are few."""
FEW: Final = "So few texts say what the heads do with these; give more to see what they do as a rule."


def summary(
    n_texts: int, n_heads: int, most: Mapping[str, int], offsets: Mapping[int, int] | None, n_rare: int | None
) -> str:
    """The page in one sentence.

    Args:
        n_texts: of the corpus.
        n_heads: of the checkpoint, in all layers.
        most: by kind of key, heads with more than MOST of their attention there.
        offsets: positional heads by offset; None where there are no offsets.
        n_rare: heads for rare words; None where it cannot be said.
    """
    verb = "put over half of their attention "
    shares = [f"{number} {'' if place else verb}on {name}" for place, (name, number) in enumerate(most.items())]
    said = [", ".join(shares)] if most else []
    if offsets is not None:
        n_positional, named = sum(offsets.values()), (f"{n} at {offset_name(offset)}" for offset, n in offsets.items())
        where = f" ({', '.join(named)})" if n_positional else ""
        said.append(f"{n_positional} {'is' if n_positional == 1 else 'are'} positional{where}")
    if n_rare is not None:
        said.append(f"{n_rare} {'points' if n_rare == 1 else 'point'} to rare words")
    return f"Over {counted(n_texts, 'text')}, of **{counted(n_heads, 'head')}**, {'; '.join(said)}."


def interval(alpha: float) -> str:
    """What an interval covers."""
    return f"{100 * (1 - alpha):g} % interval"


def offset_name(offset: int) -> str:
    """An offset with its sign: −1 is the previous token."""
    return f"{offset:+d}".replace("-", "\N{MINUS SIGN}")


def most_of_layers(layers: Mapping[str, Sequence[int]]) -> str:
    """Layers that put over half of their attention on something, by what it is."""
    named = {
        name: ", ".join(map(str, of_name[:NAMED_LAYERS])) + (" and more" if len(of_name) > NAMED_LAYERS else "")
        for name, of_name in layers.items()
    }
    said = [f"to {name} in {'layer' if len(layers[name]) == 1 else 'layers'} {named[name]}" for name in named]
    return f"Over half of a layer's attention goes {' and '.join(said)}."


def without_specials(names: Sequence[str]) -> str:
    """Special tokens that a checkpoint's texts do not have."""
    return (
        f"This checkpoint's texts have no {' and no '.join(names)}: what is said of that is not applicable. "
        "All else applies."
    )


def by_offset(share: float) -> str:
    """Why a head is positional."""
    return f"most attended by {share:.0%} of the tokens that have it"


def by_rarest(share: float, chance: float) -> str:
    """Why a head is for rare words."""
    return f"{share:.0%} of the tokens attend most to one of the two rarest words, by chance {chance:.0%}"


def rare_texts(n_texts: int, n_all: int, source: str) -> str:
    """How many texts say something about rare words, and by which list."""
    return (
        f"Rare words: {n_texts:,} of {counted(n_all, 'text')} count, those with a word that is not among the most "
        f"frequent. Frequencies: {source}; others can be chosen below."
    )


def few_cases(least: int, usual: int) -> str:
    """That Voita's rule was asked of relations with few cases."""
    return (
        f"Syntactic by argmax: relations with at least {counted(least, 'case')} count, since these texts have few with "
        f"{usual:,}; the fewer the cases, the more heads pass the rule by luck."
    )


def on_gradients(n_texts: int, n_masked: int) -> str:
    """What the gradients were taken over."""
    return f"Over {counted(n_texts, 'text')} with {counted(n_masked, 'masked token')}."
