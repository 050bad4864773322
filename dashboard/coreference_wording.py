"""Every sentence of the section Coreference of the page Heads as parsers, once."""

from collections.abc import Mapping, Sequence
from typing import Final

from core.coreference import BASELINES
from core.texts import MAX_BYTES
from dashboard.figures.figure import counted

SEE: Final = (
    "Does a head find what *she*, *the bakery* or *Falk* refers to? For each mention that refers back, look at the "
    "earlier mention that its head word attends to most: right, if both refer to the same."
)
SOURCE: Final = "Texts with mentions"
EXAMPLE: Final = "example texts"
UPLOAD: Final = "a file of your own"
UPLOAD_LABEL: Final = "Upload texts with gold mentions"
UPLOAD_LIMITS: Final = (
    f"UTF-8, at most {MAX_BYTES // 10**6} MB; told apart by what is in it. **JSON** with `text` (or `words`) and "
    "`clusters`: for each thing that is referred to, its mentions as `[start, end]`, in characters (or words) from 0, "
    "the end one past the last; `types` (pronoun, proper, nominal) and `name` if you like (texts of "
    "one name are parts of one document). **UD GUM** as JSON, documents or windows. **GAP** as its table with tabs. "
    "The texts of the sidebar bring no mentions, so they play no part here; an uploaded file is not part of the link."
)
TEMPLATE: Final = "Example file"
WAIT: Final = "Upload a file with mentions above, or choose the example texts."
ONE_TEXT: Final = (
    "Mentions stand in one text, which the encoder reads. Choose **encoder** under Attention in the sidebar to look at "
    "coreference."
)
FEW_CASES: Final = 100
"""Below which numbers are called an illustration."""
CANDIDATES: Final = "A mention may choose"
AMONG_MENTIONS: Final = "earlier mentions"
AMONG_WORDS: Final = "all words"
CANDIDATES_HELP: Final = (
    "The paper does not say among which words it looked. Earlier mentions: their head words, as both baselines choose. "
    "All words: any other word of the text, which is harder; special tokens are left out."
)
FROM_WORD: Final = "Attention from a word of several pieces"
FROM_MEAN: Final = "mean of its pieces"
FROM_FIRST: Final = "its first piece"
FROM_WORD_HELP: Final = (
    "The paper takes the mean over a word's pieces; its published code for relations the row of the first piece. "
    "Attention to a word is always the sum over its pieces."
)
WINDOW: Final = "Tokens of a window"
WINDOW_HELP: Final = (
    "Longer documents are cut at ends of sentences into windows of at most so many tokens; the paper cut at 128. GUM's "
    "windows and GAP's snippets stay whole where the checkpoint can take them."
)
TABLE: Final = "Antecedents found, in percent of mentions that refer back"
TABLE_PAPER: Final = (
    "Corresponds to table 2 of Clark et al. (2019). The rules and the neural system of that table are quoted below, "
    "not computed here."
)
MAP_PAPER: Final = "The paper has no figure of this: its table 2 gives the best head only."
WHO: Final = "who chooses"
MAP: Final = "Every head"
MENTIONS: Final = "Mentions"
AGAINST: Final = "Minus"
NOTHING: Final = "nothing"
OUTLINE: Final = "outlined: beats it (p corrected for all heads)"
LOWER: Final = "worse"
HIGHER: Final = "better"
TO_BEST: Final = "Look at the best head"
TEXT: Final = "What the head chooses in a text"
PICK_TEXT: Final = "Text"
LEGEND: Final = (
    "Numbers count the mentions, at the word each is about. she³ → ¹ ✓: mention 3 attends most to mention 1, which "
    "refers to the same. ✗ (¹): it attends most to another, and mention 1 is the nearest that refers to the same. "
    "Grey: refers back to nothing in this text."
)
NO_HEAD: Final = "Click a head in the map to see what it chooses."
NOTHING_CHOSEN: Final = "nothing"
NOT_READ: Final = "not read"
AS_TABLE: Final = "The same as a table"

METHOD: Final = r"""
**Words.** Attention to a word is the sum over its pieces, from a word the mean over them, or the first piece alone (a
setting). A mention is looked at through its *head word*: what the file says, else the word of the mention whose
syntactic head, by spaCy, is outside it, else its last word. Of several mentions with one head word the longest stays.

**Cases** are mentions with an *antecedent*: a mention of the same entity whose head word comes before. A head is right
in a case where, among the candidates, the head word of the mention attends most to the head word of an antecedent.
Candidates are the head words of all earlier mentions, or all other words; special tokens are none.

**Types** are what the file says; else a mention is a *pronoun* by a list of personal, possessive, reflexive and
relative pronouns, *proper* if its head word has a capital inside a sentence, and *nominal* otherwise. Demonstratives
are nominal.

**Baselines.** The nearest mention before; the nearest one with the same head word (but for capitals); and a random
earlier mention, which is what guessing gets. That the nearest mention is taken where no earlier one has the same head
word is a choice of this project.

**Held out.** Every second document makes one half; its windows, and texts of one name, stay together. The head that is
best on one half is scored on the other, and the other way round; the share of all cases that are right then is
reported. What the best head gets right on *all* texts is partly luck: it is the best of many.

**p.** McNemar's exact test on the cases that only one of head and baseline gets right, one-sided. For the map it is
multiplied by the number of heads, for having searched them all; for the held-out row nothing is corrected, since its
heads were chosen on other documents. Cases of one text count as independent, which they are not quite. Intervals are
Wilson's.

Source: Clark et al., *What Does BERT Look At?*, BlackboxNLP 2019, section 4.3. Their code for it was not published;
they cut documents to 128 tokens, here the rest is read in further windows.
"""
PAPER: Final = """
**Clark et al. (2019), table 2**, BERT-base on documents of CoNLL-2012, cut to 128 tokens: antecedents found, in
percent.

| | all | pron. | prop. | nom. |
|---|---|---|---|---|
| nearest | 27 | 29 | 29 | 19 |
| same head word | 52 | 47 | 67 | 40 |
| rules | 69 | 70 | 77 | 60 |
| neural system | 83 | | | |
| head 5-4 | 65 | 64 | 73 | 58 |

The rules are a sieve of matching strings, head words, number, gender and person; they and the neural system are quoted
here, not computed. The head is counted from 1. These are their numbers, on their checkpoint and texts; they are here to
compare with, not to match. Baselines differ with what a corpus marks, such as mentions of what is named once only: hold
a head against those beside it.
"""


def read(name: str, n_texts: int, n_cases: int, n_mentions: int) -> str:
    """What was read."""
    found = f"{counted(n_texts, 'text')} with {counted(n_mentions, 'mention')}"
    return f"{name}: {found}, of which **{n_cases:,}** refer back."


def few(n_cases: int, *, is_example: bool) -> str | None:
    """A warning where there are few cases."""
    if n_cases >= FEW_CASES:
        return None
    written = ", in texts that were written for this page" if is_example else ""
    return f"Only {counted(n_cases, 'case')}{written}: take the numbers as an illustration, not a result."


def left_out(n_without: int, n_apart: int, n_unread: int) -> str:
    """What takes no part, if anything."""
    said = []
    if n_without:
        said.append(f"{counted(n_without, 'text')} without a mention that refers back left out")
    if n_apart:
        said.append(f"{counted(n_apart, 'mention')} whose antecedents all stand in earlier windows")
    if n_unread:
        said.append(f"{counted(n_unread, 'mention')} without a token, beyond what this checkpoint takes")
    return f"Not counted: {'; '.join(said)}." if said else ""


def headline(heads: Sequence[str], accuracy: float, n_cases: int, baselines: Sequence[float], held_out: bool) -> str:
    """How often the best head is right, or those that are best on each half, beside the baselines."""
    names = list(dict.fromkeys(heads))
    who = " and ".join(f"**{name}**" for name in names)
    right = f"the antecedent in **{accuracy:.1%}** of {counted(n_cases, 'case')}"
    if not held_out:
        found = f"{who}, the best of all heads, finds {right}"
    elif len(names) == 1:
        found = f"{who}, best on either half of the documents and scored on the other, finds {right}"
    else:
        found = f"{who}, each best on one half of the documents and scored on the other, find {right}"
    nearest, same = (f"{share:.1%}" for share in baselines)
    return (
        f"{found}; the nearest mention is right in {nearest}, one with the same head word (else the nearest) in {same}."
    )


def beats(p_values: Mapping[str, float], alpha: float) -> str:
    """Which baselines are beaten."""
    beaten = [f"the {name} (p {_p(p)})" for name, p in p_values.items() if p < alpha]
    others = [f"the {name} (p {_p(p)})" for name, p in p_values.items() if not p < alpha]
    said = [f"That beats {' and '.join(beaten)}"] if beaten else []
    said += [f"{'but not' if beaten else 'That does not beat'} {' or '.join(others)}"] if others else []
    return f"{', '.join(said)}."


def _p(p: float) -> str:
    return f"= {p:.2g}" if p >= 1e-4 else "< 0.0001"


def column(group: str, n_cases: int) -> str:
    """The head of a column of the table."""
    return f"{group} ({n_cases:,})"


def map_title(group: str, against: str) -> str:
    """What the map's numbers are."""
    return f"{group} mentions: " + ("right, in percent" if against == NOTHING else f"right − {against}, in points")


def in_text(name: str, n_right: int, n_cases: int) -> str:
    """How often a head is right in one text."""
    return f"**{name}** is right in **{n_right:,} of {n_cases:,}** cases of this text."


MINUS: Final = (BASELINES[1], BASELINES[0], NOTHING)
