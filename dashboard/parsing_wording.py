"""Every sentence of the page Heads as parsers and of its section Relations, once."""

from collections.abc import Mapping, Sequence
from typing import Final

from core.parsing_heads import NO_CASE
from core.roles import Overlap
from dashboard.figures.figure import counted

SEE: Final = (
    "Which heads find a word's syntactic head, which find what a mention refers to, and how much syntax can be read "
    "off all heads together. No head was trained to do any of it."
)
RELATIONS: Final = "Relations"
COREFERENCE: Final = "Coreference"
PROBES: Final = "Probes"

# Relations
RELATIONS_SEE: Final = (
    "A head's guess for a word is the word it attends to most. For each relation the head that guesses best stands "
    "below, beside the best that a fixed offset does."
)
CROSS: Final = (
    "Across, queries and keys are words of two different texts, and a dependency tree joins words of one. Choose the "
    "encoder or the decoder in the sidebar."
)
LOOKS_BACK: Final = (
    "This attention looks back only: a word never attends to a later one. So a head that stands after its dependent "
    "cannot be found from the dependent, only the other way round."
)
FROM_WORD: Final = "Attention from a word of several pieces"
FROM_MEAN: Final = "mean of its pieces"
FROM_FIRST: Final = "its first piece"
FROM_WORD_HELP: Final = (
    "The paper takes the mean over a word's pieces, its code the row of the first piece. Attention to a word is always "
    "the sum over its pieces."
)
LEAST: Final = "Least cases of a relation"
LEAST_HELP: Final = (
    "The paper shows relations with at least 100 cases. With fewer, the best of many heads is good by luck. "
    "Automatic takes 100 where five relations have them, or else the next smaller number."
)
AUTOMATIC: Final = "automatic"
POSS: Final = "Read poss at 's"
POSS_HELP: Final = (
    "Where the next word depends on the possessor as possessive or case, as 's does, its guess is read in the row of "
    "that word. The authors' code goes by the word's form instead, 's or s', and by a slip beyond poss."
)
AS_IN_CODE: Final = "As in the authors' code"
AS_IN_CODE_HELP: Final = (
    "A word attends by its first piece, poss is read at 's, 'all' counts punct and root, and the baseline chooses from "
    "offsets of -3 to 2. No head can find a root, while an offset does where it leads out before the first word. The "
    "'s is told by the tree, in their code by its form."
)
CONTROL: Final = "Random weights beside"
CONTROL_HELP: Final = (
    "The same architecture with weights as they are before any training, on the same texts. What it reaches is what "
    "searching many heads gives by luck, and by word order alone."
)
RULE: Final = "Syntactic by argmax where accuracy is at least"
POINTS: Final = "baseline + 10 points"
RELATIVE: Final = "baseline × 1.1"
RULE_HELP: Final = "Voita et al. ask for 10 % above the baseline; whether points or relative is not stated."
TABLE: Final = "Best head of each relation"
TABLE_NOTE: Final = (
    "The best head is chosen on one half of the texts and **reported on the other half**, both ways round: that is the "
    "held-out share."
)
CHOOSE_ROW: Final = "Choose a row to look at its relation and head below."
NO_HALVES: Final = (
    "A held-out share needs two texts with the relation, one in each half, and here no relation has them. The share "
    "on all texts is that of the best of many heads, which is partly luck."
)
NO_BARS: Final = "The bars show held-out shares, for which two texts with the relation are needed."
NOT_HELD_OUT: Final = "Rows without that share (–) lack two texts with the relation, one in each half."
OFF_STILL_ATTENDS: Final = (
    "A head that is switched off still attends, so it can be the best one here; (off) marks it. What is computed "
    "without it is the attention of later layers."
)
TABLE_PAPER: Final = (
    "Corresponds to table 1 of Clark et al. (2019), where the best head is chosen and reported on the same sentences."
)
COLUMNS: Final = {
    "relation": (
        "relation",
        "Relation of a word to its head; 'all': all but punct and root, or as in code every word.",
    ),
    "cases": ("cases", "Words with this relation."),
    "chosen": (
        "best head",
        "The head that is best on one half of the texts, or those of each half. dep → head: it guesses the word that "
        "the dependent attends to most. head → dep: the word that attends most to it.",
    ),
    "held_out": ("held out", "Share of cases right where the head that is best on one half is scored on the other."),
    "low": ("from", "Lower end of the Wilson interval of the held-out share."),
    "high": ("to", "Upper end of the Wilson interval of the held-out share."),
    "baseline": ("baseline", "Share of cases that the best fixed offset gets right."),
    "offset": ("offset", "That offset, in words: +1 guesses the next word, -1 the one before."),
    "gain": ("gain", "Held-out share less the baseline, in points."),
    "p": (
        "p",
        "Chance that the best of all heads, in both directions, beats the offset so often where none is better than "
        "it.",
    ),
    "control": ("random", "Held-out share of random weights of the same shape."),
    "name": ("best on all", "The head that gets most cases right on all texts."),
    "way": ("guess", "How that head guesses."),
    "best_on_all": ("its share", "Share that it gets right on all texts: too good, as it was chosen there."),
}
RELATION: Final = "Relation"
WAY: Final = "Direction"
GRID: Final = "Every head on this relation"
GRID_TITLE: Final = "accuracy − baseline, in points"
LOWER: Final = "worse"
HIGHER: Final = "better"
OUTLINE: Final = "outlined: syntactic by argmax"
OUTLINE_ROW: Final = "outlined: syntactic by argmax, by the head's own row"
GRID_PAPER: Final = "Outlines correspond to the green cells of figure 1 of Voita et al. (2019)."
SETTINGS: Final = "Settings of this section"
BARS_PAPER: Final = "Corresponds to figure 4 of Voita et al. (2019)."
DISTANCES_PAPER: Final = "Corresponds to figure 3 of Voita et al. (2019)."
BARS: Final = "Best heads against baselines"
DISTANCES: Final = "Distances"
TWO_RULES: Final = "Argmax and sieve"
ARCS: Final = "The head on a sentence"
ARCS_HINT: Final = "Click a head in the grid to see its guesses on a sentence."
ARCS_READ: Final = (
    "Above, arrows lead from a head to its dependent. Below, from the word that attends to the one it attends to most: "
    "**solid with ✓** where that is right, **dashed** where it is not. ← and → stand for a word of another sentence."
)
ARCS_PAPER: Final = "Corresponds to figure 5 of Clark et al. (2019)."
ARCS_LEGEND: Final = (
    "Above: from a head to its dependent; roots are underlined. Below: from the word that attends to the one it "
    "attends to most, solid with ✓ where that is right, dashed where it is not; ← and → stand for a word of another "
    "sentence."
)
SENTENCE: Final = "Sentence"
EVERY_WORD: Final = "Guesses for every word"
SIEVE_GRID: Final = "Syntactic by the sieve"
SIEVE_TITLE: Final = "its pooled syntactic role, mean score (× uniform)"
SIEVE_OUTLINE: Final = "outlined: holds the pooled role by the test"
ARGMAX_GRID: Final = "Syntactic by argmax"
ARGMAX_TITLE: Final = "best accuracy − baseline, in points"
TWO_RULES_SEE: Final = (
    "Two rules for the same word. **By argmax** (Voita et al.): the most attended word is the right one often enough, "
    "for nsubj, dobj, amod or advmod in either direction. **By the sieve** (Pande et al.): the right word gets more "
    "than tau times uniform attention on average, whether or not it gets most; counted here is its pooled role, the "
    "mean over these relations."
)
TWO_RULES_PAPER: Final = (
    "By argmax: corresponds to the green cells of figure 1 of Voita et al. (2019). By the sieve, and the two beside "
    "each other: to no figure of a paper."
)
NO_RULE_RELATION: Final = (
    "None of nsubj, dobj, amod and advmod has enough cases here, so no head can be syntactic by argmax."
)

METHOD: Final = r"""
**Words.** Attention to a word is the sum over its pieces, from a word the mean over them (or its first piece). Special
tokens are left out, and so is a word's attention to itself.

**Guess.** *dep → head*: the guess for dependent $i$ is $\arg\max_j A_{ij}$. *head → dep*: it is $\arg\max_j A_{ji}$,
the word that attends most to $i$. A guess is right where it is the head of $i$ in the tree. A root has no head and
is no case. Accuracy is the share of right guesses over all words with the relation; 'all' is every relation but punct
and root.

**Baseline.** The best fixed offset of -5 to 5 words: the guess is the word that stands so many words further on in
the same segment, or its last one; of all offsets the one that is right most often, on the same cases.

**Held out.** Every second text makes one half. The head and direction that are best on one half are scored on the
other, and the other way round; the share of all cases that are right then is reported, with a Wilson interval. What
the best head gets right on *all* texts is partly luck: it is the best of many.

**p.** McNemar's exact test on the cases that only one of head and offset gets right, one-sided, on all texts, of the
head that is best there; multiplied by the number of heads in both directions, for having searched them all
(Bonferroni's correction). Relations are not corrected for, and cases of one text count as independent. The offset was
chosen on the very cases, which is in its favour.

**As in the authors' code** (Clark et al.): a word attends by its first piece; poss is read at 's, here the word that
follows the possessor and depends on it as *possessive* or *case*, while their code goes by the forms 's and s'; 'all'
is every word, punct and root too, where no head can be right for a root while an offset is that leads out before the
segment's first word; and offsets are -3 to 2.

**Syntactic by argmax** (Voita et al.): accuracy of at least the baseline plus 10 points, or 1.1 times the baseline,
for any of nsubj, dobj, amod and advmod in any direction. Their second direction reads the head's own row: is the word
that the head attends to most its dependent? The table reads the dependent's column, as Clark et al. do, so that both
directions guess heads.

Sources: Clark et al., *What Does BERT Look At?*, BlackboxNLP 2019, section 4.2, and their code; Voita et al.,
*Analyzing Multi-Head Self-Attention*, ACL 2019, section 5.2.
"""
PAPER: Final = """
**Clark et al. (2019), table 1**, BERT-base on the development set of the Penn Treebank in Stanford Dependencies; best
head of 144 in two directions, chosen and reported on the same sentences (their heads, counted from 1). All guess from
dependent to head but pobj.

| relation | head | accuracy | baseline (offset) |
|---|---|---|---|
| all | 7-6 | 34.5 | 26.3 (1) |
| prep | 7-4 | 66.7 | 61.8 (-1) |
| pobj | 9-6 | 76.3 | 34.6 (-2) |
| det | 8-11 | 94.3 | 51.7 (1) |
| nn | 4-10 | 70.4 | 70.2 (1) |
| nsubj | 8-2 | 58.5 | 45.5 (1) |
| amod | 4-10 | 75.6 | 68.3 (1) |
| dobj | 8-10 | 86.8 | 40.0 (-2) |
| advmod | 7-6 | 48.8 | 40.2 (1) |
| aux | 4-10 | 81.1 | 71.5 (1) |
| poss | 7-6 | 80.5 | 47.7 (1) |
| auxpass | 4-10 | 82.5 | 40.5 (1) |
| ccomp | 8-1 | 48.8 | 12.4 (-2) |
| mark | 8-2 | 50.7 | 14.5 (2) |
| prt | 6-7 | 99.1 | 91.4 (-1) |

Their notebook prints 94.1 against 82.5 for auxpass, and 34.7 against 26.7 for all.

**Voita et al. (2019)**, encoder of a translation model of 6 layers x 8 heads, English to
Russian: accuracy of the best head / baseline, in percent, trained on WMT and on OpenSubtitles.

| relation | direction | WMT | OpenSubtitles |
|---|---|---|---|
| nsubj | verb → subject | 45 / 35 | 77 / 45 |
| nsubj | subject → verb | 52 / 35 | 70 / 45 |
| dobj | verb → object | 78 / 41 | 61 / 46 |
| dobj | object → verb | 73 / 41 | 84 / 46 |
| amod | noun → adjective | 74 / 72 | 81 / 80 |
| amod | adjective → noun | 82 / 72 | 81 / 80 |
| advmod | verb → adverb | 48 / 46 | 38 / 33 |
| advmod | adverb → verb | 52 / 46 | 42 / 33 |

These are their numbers, on their checkpoints and texts; they are here to compare with, not to match.
"""


def source(n_gold: int, n_texts: int, parser: str) -> str:
    """Where the relations come from."""
    if n_gold == n_texts:
        return f"Relations: **gold**, as the file brought them, for {counted(n_texts, 'text')}."
    if not n_gold:
        return f"Relations: of **spaCy** ({parser}), a parser that errs; {counted(n_texts, 'text')}."
    return (
        f"Relations: **gold** for {counted(n_gold, 'text')} that brought them, of **spaCy** ({parser}) for the other "
        f"{n_texts - n_gold:,}."
    )


def best_found(relation: str, heads: Sequence[str], accuracy: float, baseline: float) -> str:
    """The best head, or those of each half, and how often they are right on the other half."""
    return (
        f"{_who(heads)} stands furthest above the baseline, on **{relation}**: {accuracy:.1%} right on held-out texts, "
        f"where a fixed offset gets {baseline:.1%}."
    )


def none_above(relation: str, heads: Sequence[str], accuracy: float, baseline: float) -> str:
    """That no best head is above its baseline on held-out texts, and which comes nearest."""
    return (
        f"No head stands above its baseline on held-out texts. Nearest comes {_who(heads)} on **{relation}**: "
        f"{accuracy:.1%} right, where a fixed offset gets {baseline:.1%}."
    )


def _who(heads: Sequence[str]) -> str:
    """The best head, or those of each half."""
    return heads[0] if len(heads) == 1 else f"{' or '.join(heads)}, each chosen on one half of the texts,"


def against_baseline(n_above: int, n_judged: int, n_beat: int, n_relations: int, alpha: float) -> str:
    """How many relations have a head that is better than the baseline, by held-out shares and by the test."""
    test = f"by the test in **{n_beat:,}** (p corrected for all heads and directions, below {alpha:g})"
    of = f"Of **{counted(n_relations, 'relation')}** ('all' left out), the best head"
    if not n_judged:
        return f"{of} beats the best fixed offset on all texts {test}."
    of_judged = f" of the {n_judged:,} with a held-out share" if n_judged < n_relations else ""
    return (
        f"{of} is above the best fixed offset on held-out texts in **{n_above:,}**{of_judged}, and on all texts {test}."
    )


def not_enough(least: int) -> str:
    """That no relation has enough cases, and what helps."""
    if least > 1:
        return f"No relation has {least:,} cases in these texts. Lower the least number of cases, or give more texts."
    return NO_CASE


def n_syntactic(n_heads: int, n_all: int, by_relation: Mapping[str, int], rule: str) -> str:
    """How many heads Voita's rule calls syntactic, and for which relations."""
    found = [f"{n:,} for {relation}" for relation, n in by_relation.items() if n]
    *others, last = [relation for relation, n in by_relation.items() if not n] or [""]
    without = [f"none for {', '.join(others)} or {last}" if others else f"none for {last}"] if last else []
    listed = ", ".join([*found, *without])
    return f"**{n_heads:,} of {counted(n_all, 'head')}** are *syntactic by argmax* ({rule}): {listed}."


def fewer_cases(least: int, usual: int) -> str:
    """Why relations with fewer cases are shown than usual."""
    return (
        f"Relations with at least {counted(least, 'case')} are shown, since these texts have few with {usual:,}; the "
        "fewer the cases, the wider the intervals."
    )


def both_rules(shared: Overlap, n_all: int) -> str:
    """How the two rules overlap."""
    neither = n_all - shared.first - shared.second + shared.both
    return (
        f"Of {counted(n_all, 'head')}, **{shared.first:,}** are syntactic by argmax, **{shared.second:,}** by the "
        f"sieve (its pooled syntactic role), **{shared.both:,}** by both and {neither:,} by neither. The page Surface "
        "also counts heads that hold the finer role of one relation only, so it can have more by the sieve."
    )


def n_right(n_right: int, n_guesses: int) -> str:
    """How many guesses of a sentence are right."""
    return f"**{n_right:,} of {n_guesses:,}** right in this sentence."
