"""Sentences of the tab on how many heads can go."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.importance.metrics import ScoreName
from attention_sieve.core.importance.pruning.curves import RANDOM_ORDERS, STEPS, KeptFunction, Removable
from attention_sieve.core.importance.pruning.orders import RANDOM, REVERSE
from attention_sieve.core.running import Progress
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.runs import UNWATCHED_SECONDS

SHOWN_RUNS: Final = 3
TAB: Final = "How many heads can go?"
SEE: Final = (
    "Heads are switched off one after the other, the least important first. A curve shows what is left of the score. "
    "Which heads come first depends on how importance is measured, so every measure has a curve; random orders "
    "are the control."
)
WITHIN: Final = "Allowed loss"
WITHIN_HELP: Final = (
    "How much worse the score may get. Of a loss it is a share: 1% of what it is with all heads. Of every other score "
    "it is an absolute change: 1 point of accuracy (0.01), or a text vector turned by 1 - cosine = 0.01."
)
AT_LEAST: Final = "Heads of a layer that stay"
AT_LEAST_HELP: Final = (
    "With 0, whole layers may lose all their heads; what a layer then does is its feed-forward part. The paper keeps 0."
)
GREEDY: Final = "Greedy order"
GREEDY_HELP: Final = (
    f"At each of {STEPS} steps every head that is left is switched off in turn once more, since heads can stand in "
    "for one another. This takes many times as long as all other orders together."
)
ORDER: Final = "Order"
ORDER_HELP: Final = (
    "The order in which heads are removed, the least important first. **ablation**: by the effect of switching off "
    "each head alone. **reverse**: the same, but the most important first. **gradient**, **attribution**, "
    "**wanda-sp**, **flap**, **confidence**, **relevance**: cheaper measures of importance, which switch nothing "
    "off. **random**: a control. The interval is drawn for the order chosen here."
)
BEGIN: Final = "Draw the curves"
STOPPED: Final = "Stopped. What was computed is kept, and *Continue* goes on from there."
PASSES: Final = "forward passes with heads removed"
MICHEL_3: Final = "Corresponds to Figures 3 and 6 of Michel et al. (2019)."
TABLE: Final = "All orders in a table"

_ELSEWHERE: Final = f"The work goes on for {UNWATCHED_SECONDS / 60:.0f} minutes while you are elsewhere."
_PART_IS_STORED: Final = "drawn from stored results; the others have yet to be computed."


def waiting(n_known: int, n_passes: int, cost: str) -> str:
    if n_known:
        return f"{counted(n_known, 'curve')} {_PART_IS_STORED}"
    return (
        f"The curves take about {n_passes:,} forward passes of single texts: {cost}. They are drawn one by one, can be "
        f"stopped and continued, and are stored. {_ELSEWHERE}"
    )


def running(progress: Progress) -> str:
    return shared_wording.running(progress, "Curve")


def refused(sentences: Sequence[str]) -> str:
    return "Left out: " + " ".join(sentences)


def allowed(name: ScoreName, within: float) -> str:
    if name == "loss":
        return f"a loss at most {percent(within)} higher"
    if name == "change":
        return f"a text vector turned by at most {within:g} (1 - cosine)"
    return f"a score at most {within:g} lower"


def summary(results: Sequence[Removable], order: str, n_heads: int, allowance: str) -> str:
    by_name = {result.order: result for result in results}
    sentences = [
        f"With {allowance}, **{by_name[order].n} of {counted(n_heads, 'head')}** can go in the order of "
        f"{order}{_interval(by_name[order])}."
    ]
    controls = []
    if RANDOM in by_name and order != RANDOM:
        controls.append(
            f"{by_name[RANDOM].n}{_interval(by_name[RANDOM])} at random (mean score of {RANDOM_ORDERS} orders)"
        )
    if REVERSE in by_name and order != REVERSE:
        controls.append(f"{by_name[REVERSE].n}{_interval(by_name[REVERSE])} in the reverse order of ablation")
    if controls:
        sentences.append(f"Controls: {', '.join(controls)}.")
    sentences.append(
        f"Counted in steps of {percent(1 / STEPS)}, up to the first step that costs more; every text is judged by an "
        "order found on the other half of the texts."
    )
    return " ".join(sentences)


def _interval(result: Removable) -> str:
    return "" if result.low != result.low else f" (95% interval {result.low:.0f} to {result.high:.0f})"


REMOVE: Final = "Save a checkpoint without some heads"
REMOVE_SEE: Final = (
    "The heads are cut out of the weights, and the new checkpoint is checked: it has to compute what the original "
    "computes with these heads switched off. It can then be chosen in the sidebar like any other."
)
WHICH: Final = "Heads to remove"
BY_ORDER: Final = "first of the order"
CHOSEN: Final = "chosen heads"
WHICH_HELP: Final = (
    "**First of the order**: the least important heads in the order chosen above, as found on all texts. (The curve "
    "judges orders found on halves, which can differ a little.) **Chosen heads**: those chosen in the map."
)
HOW_MANY: Final = "How many"
EXPORT: Final = "Export"
REMOVED: Final = "removed"
ZEROED: Final = "zeroed"
EXPORT_HELP: Final = (
    "**Removed**: the weights are sliced, so the checkpoint is smaller and faster; this program loads it, others do "
    "not. **Zeroed**: the weights that read the heads' outputs are set to 0, so it has the same shape, loads anywhere, "
    "and is no faster."
)
MAY_GROW: Final = "Save the larger checkpoint"
MAY_GROW_HELP: Final = (
    "It has more weights than the original, because heads that shared keys and values get copies of their own."
)
NAME: Final = "Name"
MAKE: Final = "Remove"
REMOVING: Final = "Removing heads and checking the result ..."
NO_ORDER: Final = (
    "This order has not been found on all texts yet. Continue with the curves, or choose another order, or the "
    "chosen heads."
)
NO_CHOICE: Final = "No head is chosen. Choose heads in the map of the tab Each head, or remove by an order."
INSPECT: Final = "Inspect it"
COMPARE: Final = "Compare with the original"
SPEED: Final = "Measure its speed"
SPEED_HELP: Final = (
    "Times the model on made-up texts, with the original and the new checkpoint alternately; this takes about half "
    "a minute for a small one. Other work on this machine makes the result less certain, as the spread shows."
)
MEASURING: Final = "Measuring speed"
MICHEL_T4: Final = "Corresponds to Table 4 of Michel et al. (2019)."
SPEED_COLUMNS: Final = {
    "batch_size": "texts in a batch",
    "before": "original (texts a second)",
    "after": "without the heads (texts a second)",
    "ratio": "how many times as fast",
    "low": "lower quartile",
    "high": "upper quartile",
    "n_rounds": "rounds",
}


def steps(counts: Sequence[int], n_heads: int) -> dict[str, int]:
    return {f"{count} of {n_heads} ({percent(count / n_heads, 0)})": count for count in counts}


def suggested_name(checkpoint: str, n_heads: int) -> str:
    return f"{checkpoint}-without-{n_heads}-head{'s' * (n_heads != 1)}"


def made(name: str, n_removed: int, n_heads: int, n_weights: tuple[int, int], difference: float, folder: str) -> str:
    before, after = n_weights
    weights = f"{after:,} weights, as before"
    if after != before:
        share = f"{percent(abs(1 - after / before), 1)} {'fewer' if after < before else 'more'}"
        weights = f"{before:,} weights before, {after:,} now ({share})"
    return (
        f"{name} is made: {n_removed} of {counted(n_heads, 'head')} are gone, {weights}. Its output differs by "
        f"{difference:.1e} from that of the original with these heads switched off. It lies in {folder}."
    )


def speed_note(n_tokens: int) -> str:
    return (
        f"Medians over rounds in which each checkpoint runs once, on texts of {n_tokens} tokens; the factor compares "
        "the two within a round, and is given with its quartiles."
    )


FUNCTIONS: Final = "Functions that stay"
FUNCTIONS_HELP: Final = (
    "Which of the heads with a role, or with a label, are still there at each step of the order chosen above (as "
    "found on all texts). This needs forward passes of its own, unless other pages have made them."
)
BY: Final = "Functions by"
BY_SIEVE: Final = "roles"
BY_ARGMAX: Final = "most attended word"
BY_HELP: Final = (
    "**Roles**: local, syntactic, block and delimiter heads over the corpus, as on the page Roles. **Most attended "
    "word**: positional, syntactic and rare-word heads as Voita et al. label them, as on the page Where heads look."
)
POSITIONAL: Final = "positional"
SYNTACTIC: Final = "syntactic"
RARE: Final = "rare words"
NO_FUNCTION: Final = "No head has one of these functions over these texts, so there is none to keep."
VOITA_8: Final = "Corresponds to Figure 8 of Voita et al. (2019)."


def functions_summary(functions: Sequence[KeptFunction], n_heads: int) -> str:
    step = len(functions[0].n_removed) // 2
    longer = [function.name for function in functions if function.kept[step] > function.high[step]]
    sooner = [function.name for function in functions if function.kept[step] < function.low[step]]
    opening = [f"With {functions[0].n_removed[step]} of {counted(n_heads, 'head')} removed,"]
    parts = []
    if longer:
        parts.append(f"more heads are left than 95% of random removals leave for: {', '.join(longer)}")
    if sooner:
        parts.append(f"fewer for: {', '.join(sooner)}")
    if not parts:
        parts.append("every function has as many heads left as random removal could leave (95% of draws)")
    return f"{opening[0]} {'; '.join(parts)}. No correction is made for the number of functions."


OVER_TRAINING: Final = "Over training"
OVER_TRAINING_HELP: Final = (
    "How many heads can go at each saved step of the fine-tuning run that the chosen checkpoint belongs to, or that "
    "started from it."
)
RUN: Final = "Fine-tuning run"
ORDER_OVER_TRAINING_HELP: Final = (
    "The order in which heads are removed, the least important first, determined again at each step. The paper "
    "takes the gradient per token. **Ablation** and **reverse** switch off each head in turn at every step, which "
    "takes many times as long. **Random** is a control: the mean of the random orders."
)
INTERVAL_AT: Final = "Interval at"
INTERVAL_AT_HELP: Final = (
    "The number of removed heads whose 95% interval is drawn as a bar: that of the change against all heads on at "
    "the same step. Point at a mark to see the interval of another number."
)
ALL_STAY: Final = "All heads of each layer stay, so none can be removed. Let fewer stay."
MICHEL_5: Final = "Corresponds to Figure 5 of Michel et al. (2019)."
NO_SHARES: Final = (
    "With all heads on, this score is 0 or less at every step, so shares of it cannot be drawn. Choose a score of "
    "labelled texts, or the loss of predicted words."
)
STEPS_TABLE: Final = "All steps in a table"


def no_run(names: Sequence[str]) -> str:
    some = ", ".join(names[:SHOWN_RUNS]) + (", ..." if len(names) > SHOWN_RUNS else "")
    return (
        f"Curves over training are drawn for a checkpoint that was fine-tuned here ({some}), or that a run started "
        "from. Choose one in the sidebar."
    )


def without_beginning(reason: str) -> str:
    return f"Without step 0, the checkpoint before fine-tuning: {reason}"


def waiting_over_training(n_known: int, n_steps: int, n_passes: int, cost: str) -> str:
    if n_known:
        return f"{n_known} of {counted(n_steps, 'step')} {_PART_IS_STORED}"
    return (
        f"The curves of {counted(n_steps, 'step')} take about {n_passes:,} forward passes of single texts: {cost}. "
        f"They are drawn step by step, can be stopped and continued, and are stored. {_ELSEWHERE}"
    )


def over_training(results: Sequence[tuple[int, Removable]], order: str, n_heads: int, allowance: str) -> str:
    numbers = [
        f"**{result.n} of {counted(n_heads, 'head')}**{_interval(result)} at step {step:,}"
        for step, result in dict((results[0], results[-1])).items()
    ]
    return (
        f"With {allowance}, against all heads on at the same step, {' and '.join(numbers)} can go in the order of "
        f"{order}. A checkpoint that has learned little has little to lose, so read the share together with the "
        "score itself."
    )
