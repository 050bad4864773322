"""Every sentence of the section Probes, once."""

from collections.abc import Mapping
from typing import Final

from cache.probing import ProbeKind, Stand
from core.attachment import LEVEL, RIGHT_BRANCHING
from dashboard.figures.figure import counted

SEE: Final = (
    "A probe reads a word's syntactic head off the attention of **all heads together**. It learns one weight per head "
    "and direction, or weights that depend on the two words, and is tested on texts it has not seen."
)
WHAT: Final = "Probes"
ALONE: Final = "attention alone"
AND_WORDS: Final = "attention and words"
WHAT_HELP: Final = (
    "Attention alone: one number per head and direction. Attention and words: these numbers depend on the vectors of "
    "the two words, so the probe can follow one head for determiners and another for objects."
)
VECTORS: Final = "Word vectors"
OWN_VECTORS: Final = "the checkpoint's input embeddings"
FILE_VECTORS: Final = "a text file"
VECTORS_HELP: Final = (
    "They stay as they are. The checkpoint's own are the mean over a word's pieces, before any layer. The paper takes "
    "GloVe: a text file with a word and its numbers on each line."
)
VECTORS_FILE: Final = "File with word vectors"
VECTORS_FILE_HELP: Final = (
    "Plain text, a word and its numbers on each line, blanks between, as GloVe has it; .txt or .vec. Words are looked "
    "up in lower case. Up to 20 MB: the first 20,000 lines of a 100-dimensional GloVe file, say. The command line "
    "reads larger ones."
)
CONTROL: Final = "Random weights beside"
CONTROL_HELP: Final = (
    "The same probes on the same architecture with weights as they are before any training: what the probe learns from "
    "word order and word vectors alone. Takes as long again."
)
SETTINGS: Final = "Settings"
NUMBERS: Final[dict[str, tuple[str, str, float]]] = {
    "epochs": ("Epochs at most", "How often every text is learned from, at most.", 1),
    "patience": ("Patience", "Epochs without a lower loss on the texts held out, after which training ends.", 1),
    "learning_rate": ("Learning rate", "Of Adam; the paper's is 0.002.", 0.001),
    "held_out": ("Share held out", "Of the texts to learn from: they only say when training ends.", 0.05),
    "seed": ("Seed", "Of which texts are held out or tested on, of their order, and of the random weights.", 1),
}
"""Label, help and step of each number of ProbeSettings."""
TEST_SHARE: Final = "Share tested on"
TEST_SHARE_HELP: Final = "Of the corpus; without a file of its own to test on."
BIAS: Final = "Weights of their own beside words"
BIAS_HELP: Final = "As in the authors' code: beside what the words say, a head has a weight that no word changes."
TEST_FILE: Final = "Texts to test on (instead of a share)"
TEST_FILE_HELP: Final = (
    "Of any kind that the sidebar reads, such as .conllu, or .jsonl with words, heads and relns. The corpus of the "
    "sidebar is then all for learning."
)
TRAIN: Final = "Train"
TRAIN_AGAIN: Final = "Train from the beginning"
PICK: Final = "Pick at least one probe."
PICK_FILE: Final = "Choose a file with word vectors, or take the checkpoint's own."
STOP: Final = "Stop"
STOP_HELP: Final = "What a probe has learned so far is tested and shown."
UNTRAINED: Final = "–"
STOPPED: Final = "Stopped: what was learned until then stands below."
GETTING_READY: Final = "Getting ready ..."
STOPPED_EARLY: Final = (
    "Stopped before anything was learned. Press Train to begin anew; texts that were passed are passed again."
)

SCORES: Final = "How often a word's head is found"
SCORES_NOTE: Final = (
    f"UAS (unlabelled attachment score): share of words whose head is the right one, ROOT included, punctuation left "
    f"out; with its {LEVEL:.0%} interval over texts."
)
COLUMNS: Final[dict[str, tuple[str, str]]] = {
    "name": ("probe", "What tells a word's head."),
    "uas": ("UAS", "Share of the words tested on whose head is found."),
    "low": ("from", "Lower end of the interval."),
    "high": ("to", "Upper end of the interval."),
    "training": (
        "epoch",
        "The best, of how many. An epoch is once through all texts; the best one's weights are kept.",
    ),
}
SCORES_PAPER: Final = (
    "Corresponds to table 3 of Clark et al. (2019). That table's distances with GloVe and its structural probe are "
    "quoted below, not computed here."
)
WEIGHTS_PAPER: Final = "The paper has no figure of this: its table 3 gives these probes' scores only."
CURVE_PAPER: Final = "The paper has no figure of this."
SHOWN: Final = "Probe shown below"
BEST: Final = "the best of these"
WEIGHTS: Final = "What each head weighs"
W_TITLE: Final = "w: candidate to word"
U_TITLE: Final = "u: word to candidate"
W_WORDS: Final = "norm of W: candidate to word"
U_WORDS: Final = "norm of U: word to candidate"
LESS: Final = "speaks against"
MORE: Final = "speaks for"
WEIGHTS_NOTE: Final = (
    "**w** weighs a head's attention from a candidate to the word, **u** from the word to the candidate. The larger "
    "the weight, the more this attention speaks for the candidate being the word's syntactic head."
)
WEIGHTS_WORDS_NOTE: Final = (
    "Each head has a vector of weights for each direction; shown is its length. Which words it follows is in the "
    "vector's direction, which a norm does not show."
)
CURVE: Final = "How it learned"

METHOD: Final = rf"""
For word $j$ every word $i$ of the text, and ROOT, is a candidate. With $\alpha^k_{{ij}}$ the attention of head $k$ from
word $i$ to word $j$ (to a word the sum over its pieces, from a word the mean),

$$p(i \mid j) \propto \exp \sum_k w_k\, \alpha^k_{{ij}} + u_k\, \alpha^k_{{ji}}$$

where the sum runs over all heads of all layers. For *attention and words* the number $w_k$ becomes
$W_k (v_i \oplus v_j)$ with the vectors of the two words, which stay as they are, and $u_k$ likewise. ROOT has no
attention of its own: in its place stand $a_1$ times the attention to and from [CLS] plus $a_2$ times that of the other
special tokens, and a vector that is learned. Words without tokens, such as those beyond the cut of a text, are no
candidates; they and the words whose head is one of them are neither learned from nor counted, for fixed offsets too.

Cross-entropy over all candidates is made small with Adam, one text a step. A share of the texts is held out; training
ends when the loss on them has not fallen for some epochs, and the weights of the best epoch are kept. The score is then
taken **on other texts**, with an interval from drawing texts anew ({LEVEL:.0%}, 1,000 times): words of one sentence are
right or wrong together, so an interval that counts single words would be too narrow.

*Right-branching* takes the next word as the head; *best offset* the fixed distance that is right most often on the
texts to learn from. A probe on **random weights** shows what it can learn without anything the checkpoint knows; its
word vectors are still the real checkpoint's, where the paper's are GloVe's in both.

Where paper and code differ: the formula has no bias, the code's dense layer has one (a setting); in the code ROOT
stands first in the attention and last in the word vectors, which shifts the words by one candidate, here it stands
first in both; the code goes once through 36,160 sentences and does not stop early.

Source: Clark et al., *What Does BERT Look At?*, BlackboxNLP 2019, section 5.
"""
PAPER: Final = """
BERT-base, trained and tested on the Wall Street Journal with Stanford Dependencies (Clark et al. 2019, Table 3):

| | UAS |
|---|---|
| right-branching | 26 |
| distances and GloVe, no attention | 58 |
| random weights and GloVe | 30 |
| attention alone | 61 |
| attention and GloVe | 77 |
| structural probe (Hewitt and Manning 2019), undirected | 80 |

Distances with GloVe and the structural probe are quoted here, not computed. Other texts, trees and checkpoints give
other numbers: compare those of one table only.
"""


def kind_name(kind: ProbeKind) -> str:
    """A probe as figures and tables call it."""
    what = AND_WORDS if kind.words else ALONE
    return f"{what}, random weights" if kind.control else what


def offset_name(offset: int, *, is_best: bool) -> str:
    """A fixed offset as figures and tables call it."""
    if offset != RIGHT_BRANCHING:
        return f"best fixed offset ({offset:+d})"
    return "right-branching (also the best offset)" if is_best else "right-branching"


def size(n_train: int, n_test: int, n_train_words: int, megabytes: float | None, n_gold: int) -> str:
    """What there is to learn from and to test on, and what it costs."""
    memory = "" if megabytes is None else f" Their attention takes up to **{megabytes:,.0f} MB** of memory meanwhile."
    if megabytes is not None and megabytes < 1:
        memory = " Their attention takes less than 1 MB of memory meanwhile."
    n = n_train + n_test
    trees = {n: "Trees are gold, from the file.", 0: "Trees are spaCy's."}.get(
        n_gold, f"Trees of {counted(n_gold, 'text')} are gold, from the file; the others are spaCy's."
    )
    return (
        f"{counted(n_train, 'text')} with {n_train_words:,} words to learn from, {counted(n_test, 'text')} to test on. "
        f"{trees}{memory}"
    )


def stand(at: Stand, most_epochs: int) -> str:
    """How far the work is."""
    if at.stage == "waiting":
        return "Waiting until another reader's training has ended ..."
    if at.stage == "passing":
        return f"Passing texts: {at.share:.0%}"
    if at.kind is None or at.training is None:
        return GETTING_READY
    last = at.training.epochs[-1]
    number = len(at.training.epochs) - (at.training.done == at.training.n_texts)
    return (
        f"Training {kind_name(at.kind)}: epoch {number} of at most {most_epochs}, text {at.training.done:,} of "
        f"{at.training.n_texts:,}; UAS of the texts held out {last.held_out_score:.1%}"
    )


def ended(epochs: int, best: int, is_finished: bool) -> str:
    """Which epoch is kept of a training."""
    return f"{best} of {epochs}{'' if is_finished else ', stopped'}"


def headline(name: str, share: float, against: Mapping[int, float], control: float | None) -> str:
    """The main finding, beside what fixed offsets and random weights reach."""
    reached = [f"{against[RIGHT_BRANCHING]:.1%} by right-branching"]
    reached += [
        f"{one:.1%} by the {offset_name(offset, is_best=True)}"
        for offset, one in against.items()
        if offset != RIGHT_BRANCHING
    ]
    reached += [] if control is None else [f"{control:.1%} with random weights"]
    listed = " and ".join([", ".join(reached[:-1]), reached[-1]] if len(reached) > 1 else reached)
    return f"The probe of **{name}** finds the head of **{share:.1%}** of the words, against {listed}."
