"""Sentences of the section Probes of the page Grammar."""

from collections.abc import Mapping
from typing import Final

from attention_sieve.core.tree_probes.probe import LEVEL, N_RESAMPLES, RIGHT_BRANCHING, ProbeKind, TreeProbeSettings
from attention_sieve.dashboard.figures.figure import counted

NUMBERS: Final = {
    "batch_size": str(TreeProbeSettings.texts_per_step),
    "level": f"{LEVEL:.0%}",
    "resamples": f"{N_RESAMPLES:,}",
}
"""Numbers in `method.md`."""

SEE: Final = (
    "How much grammar is in the attention of **all heads together**? A probe is a simple classifier that learns to "
    "name, for each word, the word it depends on (its syntactic head), and is then tested on texts that it has not "
    "seen."
)
WHAT: Final = "Probes"
ALONE: Final = ProbeKind(words=False, control=False).name
AND_WORDS: Final = ProbeKind(words=True, control=False).name
WHAT_HELP: Final = (
    "Attention alone: one weight per head and direction. Attention and words: these numbers depend on the vectors of "
    "the two words, so the probe can follow one head for determiners and another for objects."
)
VECTORS: Final = "Word vectors"
OWN_VECTORS: Final = "the checkpoint's input embeddings"
FILE_VECTORS: Final = "a text file"
VECTORS_HELP: Final = (
    "They are not trained further. The checkpoint's own are the mean of the input embeddings of a word's pieces. The "
    "paper uses GloVe: a text file with a word and its numbers on each line."
)
VECTORS_FILE: Final = "File with word vectors"
VECTORS_FILE_HELP: Final = (
    "Plain text (.txt or .vec): on each line a word and its numbers, separated by spaces, as in GloVe. Words are "
    "looked up in lower case. Up to 20 MB, for example the first 20,000 lines of a 100-dimensional GloVe file; "
    "the command line reads larger files."
)
RANDOM_WEIGHTS_HELP: Final = (
    "Also trains these probes on the same architecture with untrained, random weights: what a probe learns from "
    "word order and word vectors alone. This takes twice as long."
)
SETTINGS: Final = "Settings"
NUMBER_INPUTS: Final[dict[str, tuple[str, float]]] = {
    "epochs": ("Maximum epochs", 1),
    "patience": ("Patience", 1),
    "learning_rate": ("Learning rate", 0.001),
    "held_out": ("Validation split", 0.05),
    "seed": ("Seed", 1),
}
"""Label and step of each number of TreeProbeSettings."""
TEST_SHARE: Final = "Test split"
TEST_SHARE_HELP: Final = "Share of the corpus to test on, unless there is a file with test texts."
BIAS: Final = "Add a bias per head"
BIAS_HELP: Final = "As in the authors' code: besides the weights that depend on words, each head has one that does not."
TEST_FILE: Final = "Test texts (instead of a test split)"
TEST_FILE_HELP: Final = (
    "Any format that the sidebar reads, such as .conllu, or .jsonl with words, heads and relns. The whole corpus of "
    "the sidebar is then used for training."
)
TRAIN: Final = "Train"
PIECE: Final = "Probe"
PICK: Final = "Pick at least one probe."
PICK_FILE: Final = "Choose a file with word vectors, or use the checkpoint's own."
UNTRAINED: Final = "–"
STOPPED: Final = (
    "Stopped. Results so far are shown below. *Continue* trains the missing probes, and the stopped one from its "
    "beginning."
)
STOPPED_EARLY: Final = "Stopped before anything was trained. Press Train to start again, which reads all texts again."

SCORES: Final = "Accuracy of predicted heads"
SCORES_NOTE: Final = (
    "UAS (unlabelled attachment score): share of words whose syntactic head is predicted correctly, including ROOT and "
    f"excluding punctuation, with its {LEVEL:.0%} interval over texts."
)
COLUMNS: Final[dict[str, tuple[str, str]]] = {
    "name": ("probe", "What predicts a word's head."),
    "uas": ("UAS", "Share of test words whose head is predicted correctly."),
    "low": ("low", "Lower end of the interval."),
    "high": ("high", "Upper end of the interval."),
    "training": (
        "epoch",
        "Best epoch, of all epochs trained. An epoch is one pass over all training texts; the weights of the best one "
        "are kept.",
    ),
}
SCORES_PAPER: Final = (
    "Corresponds to table 3 of Clark et al. (2019). That table's distances with GloVe and its structural probe are "
    "quoted below, not computed here."
)
SHOWN: Final = "Probe shown below"
BEST: Final = "the best of these"
WEIGHTS: Final = "Weight of each head"
WEIGHTS_PAPER: Final = "The paper has no figure of this: its table 3 gives these probes' scores only."
W_TITLE: Final = "w: candidate to word"
U_TITLE: Final = "u: word to candidate"
W_WORDS: Final = "norm of W: candidate to word"
U_WORDS: Final = "norm of U: word to candidate"
OTHER_WAY: Final = "in the other direction"
LESS: Final = "evidence against"
MORE: Final = "evidence for"
WEIGHTS_NOTE: Final = (
    "**w** is the weight of a head's attention from a candidate to the word, **u** from the word to the candidate. The "
    "larger the weight, the more this attention makes the candidate likely to be the word's syntactic head."
)
WEIGHTS_WORDS_NOTE: Final = (
    "Each head has a vector of weights for each direction; the map shows its norm. The words for which the probe "
    "follows the head depend on the vector's direction, which a norm does not show."
)
CURVE: Final = "Training"
CURVE_PAPER: Final = "The paper has no figure of this."


def offset_name(offset: int, *, is_best: bool) -> str:
    if offset != RIGHT_BRANCHING:
        return f"best fixed offset ({offset:+d})"
    return "right-branching (also the best offset)" if is_best else "right-branching"


def size(n_train: int, n_test: int, n_train_words: int, megabytes: float | None, n_gold: int) -> str:
    """How much there is to train on and to test on, and how much memory it takes.

    Args:
        megabytes: that their attention takes at most; None where the checkpoint's size is not known yet.
        n_gold: of all these texts, those whose file brought their trees.
    """
    trees = {n_train + n_test: "The trees are gold, from the file.", 0: "The trees are from spaCy."}.get(
        n_gold, f"The trees of {counted(n_gold, 'text')} are gold, from the file; the others are from spaCy."
    )
    texts = f"{counted(n_train, 'text')} ({n_train_words:,} words) to train on, {counted(n_test, 'text')} to test on."
    if megabytes is None:
        return f"{texts} {trees}"
    memory = "less than 1 MB" if megabytes < 1 else f"up to **{megabytes:,.0f} MB**"
    return f"{texts} {trees} Their attention takes {memory} of memory during training."


def epochs(n_epochs: int, best: int, is_finished: bool) -> str:
    return f"{best} of {n_epochs}{'' if is_finished else ', stopped'}"


def headline(name: str, share: float, offsets: Mapping[int, float], control: float | None) -> str:
    """The accuracy of the best probe, next to fixed offsets and random weights.

    Args:
        share: of words whose head it predicts correctly.
        offsets: the same share for right-branching and, if it is another one, the best fixed offset.
        control: the same share for the probe on random weights, if it was trained.
    """
    baselines = [f"{offsets[RIGHT_BRANCHING]:.1%} by right-branching"]
    baselines += [
        f"{baseline:.1%} by the {offset_name(offset, is_best=True)}"
        for offset, baseline in offsets.items()
        if offset != RIGHT_BRANCHING
    ]
    baselines += [] if control is None else [f"{control:.1%} with random weights"]
    comparison = " and ".join([", ".join(baselines[:-1]), baselines[-1]] if len(baselines) > 1 else baselines)
    return f"The probe **{name}** predicts the head of **{share:.1%}** of words correctly, compared with {comparison}."
