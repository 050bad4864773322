"""Sentences of the section Relations of the page Grammar."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from attention_sieve.core.relations.analysis import COLUMNS
from attention_sieve.core.relations.cases import OffsetBaseline
from attention_sieve.core.relations.finding import FEWEST_RELATIONS, BestRelation
from attention_sieve.core.relations.settings import AS_IN_CODE as CODE
from attention_sieve.core.relations.settings import AS_IN_PAPER, FARTHEST, USUAL_CASES, VOITA_MARGIN
from attention_sieve.core.statistics.by_role import Overlap
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.texts.relations import RELATIONS
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES
from attention_sieve.dashboard.wording import DEPENDENT_AND_HEAD

NUMBERS: Final = {
    "offsets": AS_IN_PAPER.facts["offsets"],
    "far_offsets": f"-{FARTHEST} to {FARTHEST}",
    "code_offsets": CODE.facts["offsets"],
    "points": f"{100 * VOITA_MARGIN:g}",
    "factor": f"{1 + VOITA_MARGIN:g}",
    "times": f"{LEAST_TIMES:g}",
    "rule_relations": ", ".join(RELATIONS),
}
"""Numbers in `method.md`."""

SEE: Final = (
    "A head's guess for a word is the word that it looks at most: from a subject, is that its verb? The map counts how "
    "often every head is right, compared with always guessing the word at a fixed distance."
)
LOOKS_BACK: Final = (
    "This attention only looks back: no word attends to a later one. A syntactic head that follows its dependent can "
    "therefore be predicted in the direction head → dep only."
)
SETTINGS: Final = "Settings of this section"
MIN_CASES: Final = "Minimum cases per relation"
MIN_CASES_HELP: Final = (
    f"The paper shows relations with at least {USUAL_CASES} cases. With fewer, the best of many heads can look good by "
    f"chance. Automatic: {USUAL_CASES} if at least {FEWEST_RELATIONS} relations have that many, otherwise the largest "
    f"smaller number that {FEWEST_RELATIONS} relations reach."
)
AUTOMATIC: Final = "automatic"
POSS: Final = "Read poss at 's"
POSS_HELP: Final = (
    "If the word after a possessor depends on it as possessive or case, as 's does, the prediction is read from "
    "that word's row. The authors' code recognises 's and s' by their form instead and, by mistake, also for other "
    "relations."
)
AS_IN_CODE: Final = "As in the authors' code"
AS_IN_CODE_HELP: Final = (
    "Attention from a word is that of its first piece, poss is read at 's, 'all' includes punct and root, and the "
    f"baseline chooses among offsets of {NUMBERS['code_offsets']}. No attention head can predict a root; an offset "
    "can, when it points before the first word. We recognise 's from the tree, the authors' code from its form."
)
RANDOM_WEIGHTS_HELP: Final = (
    "The same architecture with untrained, random weights, on the same texts: what searching many heads yields by "
    "chance and by word order alone."
)
RULE: Final = "Syntactic by its most attended word (argmax) if accuracy is at least"
POINTS: Final = f"baseline + {NUMBERS['points']} points"
RELATIVE: Final = f"baseline × {NUMBERS['factor']}"
RULE_HELP: Final = (
    f"Voita et al. require {NUMBERS['points']}% above the baseline, but do not say whether they mean points or a "
    "relative increase."
)
FURTHER: Final = {"every_word": "Count punctuation and roots in all", "offsets": "Baseline offsets, from"}
"""Labels of further settings."""
TABLE: Final = "Every relation"
CHOOSE_ROW: Final = "Choose a row to see its relation and head above."
OFF_STILL_ATTENDS: Final = (
    "A head that is switched off still attends, so it can be the best one here; it is marked (off). Switching it off "
    "changes the attention of later layers."
)
TABLE_PAPER: Final = (
    "Corresponds to table 1 of Clark et al. (2019), where the best head is chosen and evaluated on the same sentences."
)
LABELS: Final = {
    "relation": "relation",
    "cases": "cases",
    "held_out_heads": "best head",
    "held_out": "held out",
    "held_out_low": "low",
    "held_out_high": "high",
    "held_out_design_effect": "design effect",
    "baseline": "baseline",
    "offset": "offset",
    "nearest": "nearest",
    "random_choice": "random choice",
    "gain": "gain",
    "p": "p",
    "times_others": "× other words",
    "from_everywhere": "from everywhere",
    "random": "random weights",
    "name": "best on all texts",
    "direction": "direction",
    "accuracy": "its accuracy",
}
"""Columns of the table, in their order."""
HELP: Final = COLUMNS | {
    "gain": "held-out accuracy minus the baseline, in points",
    "random": "held-out accuracy with random weights",
    "name": "the most accurate head on all texts, among those that give the right word significantly more attention "
    f"than other words do, and at least {LEAST_TIMES:g} times as much, if there are any",
    "accuracy": "share right on all texts, on which the head was also chosen, so this is too optimistic",
}
"""What they hold."""
RELATION: Final = "Relation"
_JOINED: Final = ", ".join("{} joins {} to {}".format(name, *DEPENDENT_AND_HEAD[name]) for name in (*RELATIONS, "det"))
RELATION_HELP: Final = f"How one word depends on another, as the parser names it: {_JOINED}."
DIRECTION: Final = "Direction"
DIRECTION_HELP: Final = (
    "dep → head: the guess is where the dependent word looks, such as a subject at its verb. head → dep: it is the "
    "word that looks most at the dependent. (This head is the word that another depends on, not an attention head.)"
)
GRID_TITLE: Final = "accuracy − baseline, in points"
LOWER: Final = "worse"
HOW_CHOSEN: Final = "How was the best head chosen, and by which grammar?"
HIGHER: Final = "better"
MARK: Final = "syntactic by the most attended word (argmax)"
MARK_ROW: Final = "syntactic by the most attended word (argmax), by the head's own row"
GRID_PAPER: Final = "Marked heads: figure 1 of Voita et al. (2019)."
BARS: Final = "As bars"
BARS_PAPER: Final = "Corresponds to figure 4 of Voita et al. (2019)."
DISTANCES: Final = "Distances"
DISTANCES_PAPER: Final = "Corresponds to figure 3 of Voita et al. (2019)."
ARCS_HINT: Final = "Click a head in the grid to see its predictions on a sentence."
ARCS_ENDS: Final = "← and → stand for a word in another sentence."
ARCS_PAPER: Final = "Corresponds to figure 5 of Clark et al. (2019)."
_PREDICTIONS: Final = (
    "Below: predictions, from the attending word to the attended word, solid with a check mark if right, dashed if "
    "wrong; an arrow at the end of a line stands for a word"
)
ARCS_LEGEND: Final = (
    f"Above: from each syntactic head to its dependents; roots are underlined. {_PREDICTIONS} in another sentence."
)
PAIRED_LEGEND: Final = f"Above: the marked pairs, from their first word to their second. {_PREDICTIONS} outside."
PAIRED: Final = (
    "Of a marked pair, *dep* is the word where it begins (from), and *head* the word where it ends (to); no parser is "
    "used."
)
OWN_PAIRS: Final = (
    "In place of grammar, uploaded texts may mark pairs of their own, such as brackets, or names and their "
    "definitions: *How it is computed* says how."
)
PAIRS_EXAMPLE: Final = "Example of texts with pairs"
SENTENCE: Final = "Sentence"
EVERY_WORD: Final = "For every word"
TWO_RULES: Final = "Argmax and sieve"
TWO_RULES_SEE: Final = (
    "Two rules for what makes a head syntactic. **By argmax** (Voita et al.): the most attended word is often enough "
    f"the right one, for one of {', '.join(RELATIONS)} in either direction. **By the sieve** (Pande et al.): the "
    "attention to the right word is on average above tau, on the scale of *Test settings*, whether or not it is the "
    "most. Heads by the sieve are those with the pooled role, the mean over these relations."
)
TWO_RULES_PAPER: Final = (
    "By argmax: corresponds to the green cells of figure 1 of Voita et al. (2019). By the sieve, and the comparison of "
    "the two: no figure in either paper."
)
ARGMAX_GRID: Final = "Syntactic by argmax"
ARGMAX_TITLE: Final = "best accuracy − baseline, in points"
SIEVE_GRID: Final = "Syntactic by the sieve"
SIEVE_MARK: Final = "holds the pooled role, as on the page Roles"
NO_RULE_RELATION: Final = (
    f"None of the relations {', '.join(RELATIONS)} has enough cases here, so no head can be syntactic by argmax."
)


def arcs_read(*, is_paired: bool) -> str:
    marked = "the marked pairs" if is_paired else "the grammar, an arrow from each word to those that depend on it"
    return (
        f"Above the words: {marked}. Below: the head's guesses, from the word that looks to the word it looks at, "
        "**solid with ✓** if right, **dashed** if wrong."
    )


def among_right_words(nearest: float, random_choice: float) -> str:
    return (
        f"Among the words where such a pair ends, the nearest is right in {percent(nearest, 1)}, a random one in "
        f"{percent(random_choice, 1)}."
    )


def table_note(unit: str) -> str:
    """What the held-out accuracy is; the unit of halves is "document" or "text"."""
    return (
        f"The best head is chosen on one half of the {unit}s and **evaluated on the other half**, both ways round: "
        "this is the held-out accuracy."
    )


def no_halves(unit: str) -> str:
    return (
        f"Held-out accuracy needs two {unit}s with the relation, one in each half, and no relation here has them. The "
        "accuracy on all texts is that of the best of many heads, which is partly chance."
    )


def no_bars(unit: str) -> str:
    return f"The bars show held-out accuracy, which needs two {unit}s with the relation."


def not_held_out(unit: str) -> str:
    return f"Rows without it (–) lack two {unit}s with the relation, one in each half."


def not_tested(n_untested: int) -> str:
    return (
        f"{counted(n_untested, 'relation')} with cases in one document only {'has' if n_untested == 1 else 'have'} no "
        "test."
    )


def source(n_gold: int, n_texts: int, parser: str) -> str:
    if n_gold == n_texts:
        return f"Relations: **gold**, from the file, for {counted(n_texts, 'text')}."
    if not n_gold:
        return f"Relations: from **spaCy** ({parser}), whose parses contain errors, for {counted(n_texts, 'text')}."
    return (
        f"Relations: **gold** for the {counted(n_gold, 'text')} that have them in the file, from **spaCy** ({parser}) "
        f"for the other {n_texts - n_gold:,}."
    )


def finding(relation: str, heads: Sequence[str], accuracy: float, baseline: OffsetBaseline) -> str:
    """The best heads, or that none is above its baseline."""
    if not accuracy > baseline.share:
        return "No head finds a relation in unseen texts more often than guessing at a fixed distance does."
    finds = "finds" if len(heads) == 1 else "find"
    return (
        f"{' and '.join(heads)} {finds} **{relation}** in {percent(accuracy, 0)} of unseen cases, a fixed distance in "
        f"{percent(baseline.share, 0)}."
    )


def where_wrong(accuracy: float) -> str:
    return "" if math.isnan(accuracy) else f"Where the distance is wrong: {percent(accuracy, 0)}."


def best_head(
    relation: str, heads: Sequence[str], accuracy: float, where_wrong: float, baseline: OffsetBaseline
) -> str:
    """The best heads; where they are not above their baseline on unseen texts, nor is any other.

    Args:
        where_wrong: accuracy in the cases in which the baseline is wrong; NaN where it never is.
    """
    found = (
        "Best find"
        if accuracy > baseline.share
        else "No head finds a relation in unseen texts more often than guessing at a fixed distance does. Closest"
    )
    named = heads[0] if len(heads) == 1 else f"{' or '.join(heads)} (one chosen on each half of the texts)"
    words = DEPENDENT_AND_HEAD.get(relation)
    phrase = f"**{relation}**" if words is None else f"**{relation}** ({words[0]} and {words[1]})"
    side = "after" if baseline.offset > 0 else "before"
    offset = (
        f"{counted(abs(baseline.offset), 'word')} {side}" if baseline.offset else "the same place of the other text"
    )
    return (
        f"{found}: {named} on {phrase}, right in {percent(accuracy, 1)} of unseen cases. Always guessing {offset} gets "
        f"{percent(baseline.share, 1)}{_where_wrong(where_wrong)}."
    )


def _where_wrong(accuracy: float) -> str:
    return "" if math.isnan(accuracy) else f"; in the other cases, the head is right in {percent(accuracy, 1)}"


def against_baseline(n_above: int, n_held_out: int, n_significant: int, n_relations: int, alpha: float) -> str:
    """In how many relations the best head beats the baseline, by held-out accuracy and by the test.

    Args:
        n_above: relations whose held-out accuracy is above the baseline.
        n_held_out: relations with a held-out accuracy.
        n_significant: relations whose best head beats the baseline by the test.
    """
    test = f"(p < {alpha:g}, corrected for all heads and directions)"
    relations = f"{counted(n_relations, 'relation')} ('all' not counted)"
    if not n_held_out:
        return (
            f"Of {relations}, the best head beats the best fixed offset significantly in **{n_significant:,}** {test}."
        )
    return (
        f"| The best head beats the best fixed offset | of {relations} |\n|:--|--:|\n"
        f"| on held-out texts | **{n_above:,}** of {n_held_out:,} |\n"
        f"| significantly, on all texts {test} | **{n_significant:,}** of {n_relations:,} |\n\n"
    )


def n_syntactic(n_heads: int, n_all: int, by_relation: Mapping[str, int], rule: str) -> str:
    counts = [f"{n:,} for {relation}" for relation, n in by_relation.items() if n]
    *absent, last = [relation for relation, n in by_relation.items() if not n] or [""]
    without = [f"none for {', '.join(absent)} or {last}" if absent else f"none for {last}"] if last else []
    listed = ", ".join([*counts, *without])
    return f"**{n_heads:,} of {counted(n_all, 'head')}** are *syntactic by argmax* ({rule}): {listed}."


def fewer_cases(least: int, usual: int) -> str:
    return (
        f"Relations with at least {counted(least, 'case')} are shown, since few relations have {usual:,} in these "
        "texts. The fewer the cases, the wider the intervals."
    )


def both_rules(shared: Overlap, n_all: int) -> str:
    neither = n_all - shared.first - shared.second + shared.both
    return (
        f"Of {counted(n_all, 'head')}, **{shared.first:,}** are syntactic by argmax, **{shared.second:,}** by the "
        f"sieve (its pooled syntactic role), **{shared.both:,}** by both and {neither:,} by neither. The page Where "
        "heads look also counts heads that hold the role of a single relation, so it can show more by the sieve."
    )


def best_at(best: BestRelation) -> str:
    return f"{best.relation}, {DIRECTION_NAMES[best.direction]}: {best.accuracy:.1%}"


def n_right(n_right: int, n_cases: int) -> str:
    return f"**{n_right:,} of {n_cases:,}** right."
