"""Every sentence a reader sees, once."""

from collections.abc import Sequence
from typing import Final

from core.texts import MAX_BYTES, MAX_TEXTS
from dashboard.figures.figure import counted

TITLE: Final = "Attention Sieve"
NAMED_TEXTS: Final = 3
NAMED_HEADS: Final = 4

# Sidebar
CHECKPOINT: Final = "Checkpoint"
CHECKPOINT_HELP: Final = (
    "`bundled` is all-MiniLM-L6-v2, a BERT of 6 layers x 12 heads. Type any hub id (organisation/name) or a "
    "folder saved by save_pretrained. Only safetensors weights are read, and no code from a checkpoint is ever "
    "run."
)
ATTENTION: Final = "Attention"
ATTENTION_HELP: Final = (
    "An encoder-decoder attends three times: in its encoder (source to source), in its decoder (target to target, "
    "looking back only), and across (target to source). Give source and target as a pair."
)
DEVICE_HELP: Final = "auto takes CUDA, else Apple's MPS, else the CPU."
DTYPE_HELP: Final = (
    "Number format of the weights; auto is float32, on which all checks are made. "
    "Scores are summed in float32, or in float64 for float64."
)
CORPUS: Final = "Texts for the test"
CORPUS_HELP: Final = (
    "The corpus: a head's roles are tested over these texts. "
    "The text you type on the page Inspect is scored on its own."
)
UPLOAD: Final = "Upload texts"
UPLOAD_LIMITS: Final = (
    f"At most {MAX_BYTES // 10**6} MB and {MAX_TEXTS:,} texts. .txt: one text a line. .csv, .tsv: a header row; "
    "known names (sentence, sentence1/sentence2, question, text_a/text_b, premise/hypothesis, ...) are "
    "recognised. .json, .jsonl: text, or text_a and text_b, or words (with heads and relns, if you have them), or "
    "tokens. .conllu: one text a sentence, with its relations. Uploaded texts are not part of the link."
)
CORPUS_TYPED: Final = "Texts, one a line"
PAIRS_HOWTO: Final = "One text a line. A tab or ` ||| ` between two segments makes a pair."
WAIT_UPLOAD: Final = "Upload a file of texts in the sidebar, or choose the sample texts there."
WAIT_TYPED: Final = "Type texts for the test in the sidebar, one a line, or choose the sample texts there."
COLUMN_FIRST: Final = "Column with the text"
COLUMN_SECOND: Final = "Column with the second segment"
NO_SECOND: Final = "none (single texts)"
TAU_HELP: Final = "A role asks for a mean score above tau. 1 is what uniform attention scores."
ALPHA_HELP: Final = "Level of the test; intervals cover 1 - alpha."
CORRECTION_HELP: Final = (
    "Hundreds of tests are made at once, one for each head and role. Benjamini-Hochberg, the default, bounds "
    "the share of false roles among those given; Holm bounds the chance of any; none is what the paper did."
)
METHOD_HELP: Final = "The mean alone is the paper's simpler rule: mean score above tau, no test."
DDOF_HELP: Final = "1: sample standard deviation (default). 0: population standard deviation, as in the authors' code."
DIRECTION_HELP: Final = "Does the dependent attend to its head, the head to its dependent, or the mean of both."
ENTROPY_HELP: Final = (
    "As in the authors' code, block scores are multiplied by the entropy of the row in nats; without it the "
    "ratio is at most about 2 and no head can pass tau = 3."
)

ALL_ON: Final = "Switch all on"
ARCS_OF: Final = "Arcs"
WITHOUT: Final = "without the heads that are off"
ALL_HEADS_ON: Final = "with all heads on"


def heads_off(names: Sequence[str]) -> str:
    """Which heads are switched off."""
    return (
        f"**Switched off: {', '.join(names)}.** All that this page shows is computed without what they would hand on; "
        "where they themselves look is shown all the same."
    )


NOT_IN_LINK: Final = "These texts are too long for the link, which restores everything else. Send them along with it."
COMPARE: Final = "Score the corpus with all heads on too, to see which roles change"
AGAINST: Final = "against all heads on"


def off_again(names: Sequence[str]) -> str:
    """The button that undoes switching all heads on."""
    return f"Switch {some_of(names)} off again"


def some_of(names: Sequence[str]) -> str:
    """Names on a button, which has room for a few."""
    more = len(names) - NAMED_HEADS
    return f"{', '.join(names[:NAMED_HEADS])} and {more} more" if more > 0 else ", ".join(names)


def roles_against(n_gained: int, n_lost: int) -> str:
    """How many roles come and go when heads are switched off."""
    return f"Against all heads on, {counted(n_gained, 'role')} gained and {n_lost:,} lost."


SWITCH_HELP: Final = (
    "A head that is off hands zeros to the rest of the model. Its own arcs stay as they are; what changes are the "
    "later layers and the model's output."
)
WHAT_CHANGES: Final = "What changes without them"
COSINE: Final = "Cosine of the text's two vectors"
COSINE_HELP: Final = (
    "Between the vectors with all heads on and without these. Each is the mean of the last hidden states over all "
    "tokens; 1 means that nothing changed."
)
NO_HEAD_OUTPUT: Final = "This checkpoint has no head that names tokens or classes for this text."
GUESS: Final = "Token to guess"
GUESS_HELP: Final = (
    "A masked language model guesses this token with a mask in its place; a causal one guesses the token after it."
)


def switch(to: str, names: Sequence[str]) -> str:
    """The button that switches heads off or on."""
    return f"Switch {some_of(names)} {to}"


def output_moves(unit: str, distance: float | None) -> str:
    """How far the output's probabilities move."""
    if distance is None:
        return f"What the checkpoint's head says, each a {unit}."
    return (
        f"{100 * distance:.1f} % of the probability moves to another choice (total variation distance). "
        "The most likely ones, before and after:"
    )


def roles_change(n_heads: int, n_later: int, tau: float) -> str:
    """How many heads gain or lose a role on the text."""
    heads = {0: "No head gains or loses", 1: "1 head gains or loses"}.get(n_heads, f"{n_heads:,} heads gain or lose")
    return f"{heads} a role on this text (score above {tau:g}), of {n_later:,} in the layers that follow."


STOP: Final = "Stop scoring"
STOPPED: Final = "Stopped. Finished texts are kept; going on takes up where it stopped."
GO_ON: Final = "Go on"
BEGUN: Final = "Getting ready to score texts ..."
SCORING: Final = "Scoring texts"
PARSING: Final = "Parsing texts"

# Inspect
INSPECT_SEE: Final = (
    "Each cell is a head: a corner is filled where the head's score for that role on your text is above tau, and "
    "tinted where it is not. Click a head to see where it looks."
)
YOUR_TEXTS: Final = "Your texts"
ON_SCREEN: Final = "Text on screen"
BY: Final = "Fill corners by"
BY_TEXT: Final = "score on this text"
BY_CORPUS: Final = "test over the corpus"
FINER: Final = "Finer roles"
OVERLAY: Final = "Lay a role's sieve over the arcs"
NO_OVERLAY: Final = "none"
ARCS_HINT: Final = "Click a head in the grid to see its arcs here. Shift-click adds a head, up to 12."
TOO_LONG: Final = "Texts too long"
LEAVE_OUT: Final = "leave them out"
CUT: Final = "cut them"

# Roles
ROLES_SEE: Final = (
    "What every head is for, tested over all texts of the corpus. Move tau, alpha or the correction in the sidebar: "
    "roles change at once, and no model runs."
)
PAPER: Final = (
    "On BERT-base and four GLUE tasks, Pande et al. (2021) report at tau = 3: 73 % of heads are delimiter "
    "heads; 42 to 88 % of local and syntactic heads overlap (89 % in their article; the denominator is not "
    "recoverable); heads with several roles lie mostly in layers 5 to 9; about 98 % of p-values are near 0 or "
    "1. These are their numbers, on their checkpoints, uncorrected and with a population standard deviation; "
    "they are here to compare with, not to match."
)
NOT_EXPLANATION: Final = (
    "Attention is not explanation: a role is a statement about where a head looks over a corpus, not about what the "
    "checkpoint would do without the head."
)

HOW: Final = "How it is computed"
FORMULA: Final = r"""
For query token $i$ with attention $A_{ij}$ over the $n$ tokens $j$ of a text, and the **sieve** $S_i$ of a role:

$$
b_i = \frac{\frac{1}{|S_i|}\sum_{j \in S_i} A_{ij}}{\frac{1}{n}\sum_{j} A_{ij}}
$$

The **score** of the role in the text is the mean of $b_i$ over the queries whose sieve is not empty.
1 is uniform attention, 3 is three times as much. Sieves: **local** the token and two to each side; **delimiter**
[CLS]- and [SEP]-like tokens; **block** the tokens of the query's own segment (times the row's entropy in nats);
**syntactic** the word pieces at the other end of a dependency relation (nsubj, dobj, amod, advmod), averaged over the
relations of the text. Where a text has no such sieve the score is *not applicable*, never 0, and the text takes no
part in that role's test.

A head **holds** a role when a one-sided one-sample t-test over the texts finds its mean score above tau, at level
alpha after correction over all heads and roles. A score that hardly varies (standard deviation under a thousandth of
its mean) has no test and is decided by its mean alone.

Source: Pande et al., *The Heads Hypothesis*, AAAI 2021. Differences from the authors' code: the local band stops at
the text's edge, relations come from the raw text, the test uses the sample standard deviation, and p-values are
corrected.
"""


def scoring(done: int, total: int, seconds_left: float | None, n_before: int, doing: str = SCORING) -> str:
    """Progress of a pass over many texts."""
    left = "" if seconds_left is None else f", about {seconds_left:.0f} s left"
    before = f" {counted(n_before, 'request')} of other readers first." if n_before else ""
    return f"{doing}: {done:,} of {total:,}{left}.{before} Finished texts are kept if you go elsewhere."


def looking(seconds_left: float | None, n_before: int) -> str:
    """While the text on screen waits for its pass."""
    left = "" if seconds_left is None else f", about {seconds_left:.0f} s left"
    before = f" {counted(n_before, 'request')} of other readers first." if n_before else ""
    return f"Looking at your text{left}.{before}"


def finding(name: str) -> str:
    """While a checkpoint is looked up, or fetched from the hub."""
    return f"Finding {name} ..."


def loading(name: str) -> str:
    """While a checkpoint is being loaded."""
    return f"Loading {name} ..."


def too_long(texts: Sequence[tuple[int, int]], guilty: str = "") -> str:
    """Which texts are longer than the checkpoint takes, or those that are named; the first few by name."""
    named = ", ".join(f"text {place + 1} ({n_tokens:,} tokens)" for place, n_tokens in texts[:NAMED_TEXTS])
    more = f" and {len(texts) - NAMED_TEXTS:,} more" if len(texts) > NAMED_TEXTS else ""
    takes = f"some checkpoints take ({guilty})" if guilty else "the checkpoint takes"
    return f"Longer than {takes}: {named}{more}."


def text_summary(names: list[str], tau: float) -> str:
    """Roles of one head by its score on one text."""
    roles = ", ".join(names) if names else "no role"
    return f"On this text: {roles} (score above {tau:g})."


def corpus_summary(names: list[str], n_texts: int, is_tested: bool) -> str:
    """Roles of one head by the test."""
    if not is_tested:
        return f"Over {counted(n_texts, 'text')}: not tested; a test needs at least 2."
    return f"Over {counted(n_texts, 'text')}: {', '.join(names) if names else 'no role'}."


CUT_THIS: Final = "Cut it to what the checkpoint takes"
COLUMN_HERE: Final = "Score on the text above; 1 is uniform attention."
COLUMN_MEAN: Final = "Mean score over the texts that take part, and its two-sided confidence interval."
COLUMN_P: Final = "p-value of 'mean score is above tau', after the correction."
COLUMN_TEXTS: Final = "Texts that take part: those where the role is applicable."
COLUMN_CONSTANT: Final = "(mean): the score hardly varies, so there is no test and its mean decided."


def alike(heads: list[tuple[str, float]]) -> str:
    """Heads with similar mean scores."""
    named = ", ".join(f"{name} ({distance:.2f})" for name, distance in heads)
    return f"Most alike by mean scores: {named}. In parentheses the distance of log scores over all roles; 0 is equal."


def about(model_type: str, shape: tuple[int | None, int | None], where: str, fingerprint: str) -> str:
    """What the checkpoint is and where it runs."""
    layers, heads = shape
    size = f", {layers} layers x {heads} heads" if layers and heads else ""
    return f"**{model_type}**{size}, {where}. Fingerprint `{fingerprint[:12]}`."


def last_heads(n_drawn: int, n_chosen: int) -> str:
    """More heads are chosen than can be drawn."""
    return f"Arcs of the last {n_drawn} of {n_chosen} chosen heads."


def runs_on(device: str, dtype: str) -> str:
    """Where a loaded checkpoint runs."""
    return f"on **{device}** in {dtype}"


LOADING_BEHIND: Final = "loading behind this page"


def kept(folder: str, n_results: int, n_bytes: int) -> str:
    """Where results are kept."""
    return f"Results are kept in {folder} ({n_results:,} so far, {n_bytes / 1e6:,.1f} MB)."


ACROSS: Final = (
    "Across, queries and keys are different texts: only the delimiter roles apply, to the source's special tokens. "
    "Local, syntactic and block are not applicable."
)


def without_target(n_left_out: int, n_texts: int) -> str:
    """Texts of a corpus that a decoder cannot read."""
    return (
        f"{n_left_out:,} of {counted(n_texts, 'text')} have no target for the decoder to read, and are left out. "
        "A pair is read as source and target."
    )


def untested(reasons: dict[str, str]) -> str:
    """Roles that could not be tested, by reason."""
    by_reason: dict[str, list[str]] = {}
    for role, reason in reasons.items():
        by_reason.setdefault(reason, []).append(role)
    return " ".join(f"{', '.join(roles)}: {reason}." for reason, roles in by_reason.items())


def roles_summary(n_any: int, n_heads: int, counts: dict[str, int], n_texts: int, tau: float) -> str:
    """The corpus view in one sentence."""
    named = ", ".join(f"{count} {role}" for role, count in counts.items())
    return f"Over {counted(n_texts, 'text')} at tau {tau:g}, **{n_any} of {n_heads} heads** hold a role: {named}."


OVERLAP: Final = (
    "Shares of the heads that hold both roles, over the heads of the first, of the second, and of either: a "
    "share means little without its denominator."
)
PAPER_TITLE: Final = "What the paper found"

NOT_LOADED: Final = "not loaded"


def filled_by_text(tau: float) -> str:
    """What a filled corner means by score on the text."""
    return f"Filled letters: score above {tau:g} on this text."


def filled_by_test(tau: float) -> str:
    """What a filled corner means by the test."""
    return f"Filled letters: roles this head holds by the test (tau {tau:g})."
