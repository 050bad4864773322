"""The analysis of relations: how often each head attends most to the syntactic head of a word, as one value."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from attention_sieve.core.answering import Analysis, Arrays, Question, Reduction, text_itself
from attention_sieve.core.attention.settings import ONE_STACK, PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.relations.cases import ParsedText, RelationAccuracy, WordPredictions, beats_baseline
from attention_sieve.core.relations.finding import RelationFinding, relation_finding
from attention_sieve.core.relations.settings import AS_IN_CODE, AS_IN_PAPER, DIRECTIONS, OFFSETS, RelationSettings
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.statistics.series import Series, Values
from attention_sieve.core.texts.relations import RELATIONS, ROOT, UNIVERSAL
from attention_sieve.core.texts.text import text_fields
from attention_sieve.core.texts.tokens import FromWord
from attention_sieve.core.usage import HEAD_COLUMNS, Example, Option, Usage
from attention_sieve.core.wording import documents_note

if TYPE_CHECKING:
    import pandas as pd

RELATION_CASES: Final = "relations cases"
RELATION_RIGHT: Final = "relations right"
OFFSET_RIGHT: Final = "relations offset right"
RELATION_SQUARES: Final = "relations squares"
"""Of the right cases of a text, of these times its cases, and of its cases; only of texts with cases."""
RELATION_NAMES: Final = ("all", *RELATIONS)
"""Relations whose words are counted; "all" is without punct and root."""
COLUMNS: Final = {
    "relation": "relation of a word to its syntactic head, or of a pair that a file marks, whose first word counts as "
    "the dependent and whose second as the head; all: every relation except punct and root",
    "direction": "dependent-to-head: the word that the dependent attends to most is predicted as its head; "
    "head-to-dependent: the word that attends most to the dependent is, or, read by row, the word that the head "
    "attends to most is predicted as its dependent",
    **HEAD_COLUMNS,
    "cases": "number of words with this relation, or of marked pairs; a token that two words share counts only for "
    "the one in which it starts",
    "left_out": "words that are not cases, because they or their heads have no tokens",
    "documents": "number of documents with cases; empty if documents are unknown",
    "accuracy": "share of the cases in which the head predicts the right word",
    "low": "lower end of the confidence interval of the accuracy, with documents as units, or texts if no document is "
    "known; empty with fewer than two",
    "high": "upper end of this interval",
    "design_effect": "variance of the accuracy with documents (or texts) as units, divided by that with independent "
    "cases: with 2, it takes two cases to say as much as one independent case",
    "baseline": "accuracy of the best fixed offset",
    "offset": "the best fixed offset in words: 1 predicts the next word, -1 the previous one; in pairs that join two "
    "segments, from the same place in the other one",
    "nearest": "accuracy of a baseline that knows which words of the text are the right word of some case of the "
    "relation, and chooses the nearest of them before the word, or after it, whichever is right more often",
    "random_choice": "accuracy of a random choice among these words, the word itself excepted",
    "p": "one-sided p-value of the accuracy being above the baseline, corrected for all heads and directions: an upper "
    "bound of the probability that the best of them would exceed it by this much if none were really better",
    "beats_baseline": "whether the accuracy exceeds the baseline by the margin of the settings; Voita et al.'s rule "
    "reads head-to-dependent by row",
    "best": "whether this is the best head of the relation, among those with beats_others if there are any",
    "held_out": "accuracy of the head that is best on one half of the documents (or texts), evaluated on the other "
    "half; the same in all rows of a relation, as all held_out columns are",
    "held_out_low": "lower end of the interval of the held-out accuracy",
    "held_out_high": "upper end of this interval",
    "held_out_design_effect": "design effect of the held-out accuracy",
    "held_out_where_wrong": "held-out accuracy in the cases in which the best fixed offset is wrong",
    "held_out_heads": "the head that is best on each half, or both if they differ, with their directions",
    "compared": "number of cases in which the right word can get attention both from the word that the relation joins "
    "to it and from words that no relation joins to it: the control of the columns that follow",
    "attention_to_right": "mean attention to the right word from the word that the relation joins to it",
    "attention_of_others": "mean attention to the same word from the other words of the text",
    "times_others": "how many times as much attention the right word gets from the word that the relation joins to it "
    "as from the other words of the text",
    "p_others": "one-sided p-value of attention_to_right being above attention_of_others, paired by document (or text) "
    "and corrected like p",
    "beats_others": f"whether p_others is significant, and times_others at least {LEAST_TIMES:g}",
    "from_everywhere": f"whether the right word gets less than {LEAST_TIMES:g} times as much attention from the word "
    "that the relation joins to it as from the others: the head attends to it from everywhere, and does not follow the "
    "relation",
    "held_out_times_others": "times_others of the heads of held_out",
    "held_out_from_everywhere": "from_everywhere of the heads of held_out",
}
"""What each column of the table holds."""


STORED: Final = tuple(field.name for field in fields(WordPredictions))
"""Arrays of an answer, which are part of its key."""


@cache
def prediction_question(from_word: FromWord) -> Question[ParsedText, WordPredictions]:
    """The predictions of every head for each word of each text."""

    def compute(
        checkpoint: Checkpoint, items: Sequence[ParsedText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, WordPredictions]]]:
        from attention_sieve.core.relations.observer import predictions

        return predictions(checkpoint, prepared, [item.tree for item in items], settings, from_word=from_word)

    def depends_on(item: ParsedText) -> Mapping[str, object]:
        """Words and heads; the names of relations do not matter. The stored arrays are named because older entries had
        fewer."""
        text = text_fields(replace(item.text, heads=None, relations=None, spans=None))
        tree = {"segments": item.segments, "spans": item.spans, "heads": item.heads}
        return {"text": text, **tree, "from word": from_word, "kept": STORED}

    return Question(
        name="predictions",
        text_of=lambda item: item.text,
        depends_on=depends_on,
        compute=compute,
        pack=_pack,
        unpack=lambda arrays: WordPredictions(**{name: arrays[name] for name in STORED}),
        kinds=(*ONE_STACK, "encoder", "decoder"),
        why_not="Cross-attention is between two texts, but a parse tree is of one. Choose encoder or decoder "
        "attention.",
    )


def _pack(result: WordPredictions) -> Arrays:
    """Indices of words in the fewest bytes, mostly two."""
    small = np.int16 if len(result.has_tokens) <= np.iinfo(np.int16).max else np.int32
    arrays = {name: getattr(result, name) for name in STORED}
    return arrays | {"predicted": result.predicted.astype(small)}


def _values(texts: Sequence[ParsedText], predictions: Sequence[WordPredictions], _: RelationSettings) -> Values:
    counts = [_text_cases(text, predicted) for text, predicted in zip(texts, predictions, strict=True)]
    cases, right, at_offset = (np.stack(arrays).astype(float) for arrays in zip(*counts, strict=True))
    head_cases = np.broadcast_to(cases[..., None, None, None], right.shape)
    squares = np.stack([right * right, right * head_cases, head_cases * head_cases], axis=1)
    squares[np.broadcast_to(head_cases[:, None] == 0, squares.shape)] = np.nan
    return {RELATION_CASES: cases, RELATION_RIGHT: right, OFFSET_RIGHT: at_offset, RELATION_SQUARES: squares}


def _text_cases(text: ParsedText, predictions: WordPredictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cases "relation", right ones "relation direction layer head", and those at an offset "relation offset"."""
    tree = text.tree
    names = np.array([UNIVERSAL.get(relation, relation) for relation in tree.relations], str)
    is_of = np.stack([~np.isin(names, ("punct", "root")), *(names == target for target in RELATIONS)])
    has_head = tree.heads != ROOT
    has_tokens, predicted = predictions.has_tokens, predictions.predicted
    is_case = is_of & has_head & has_tokens & has_tokens[np.where(has_head, tree.heads, 0)]
    right = (predicted == tree.heads).reshape(len(DIRECTIONS), -1, len(tree.heads))
    distance = tree.heads - np.arange(len(tree.heads))
    at_offset = distance == np.array(OFFSETS)[:, None]
    weights = is_case.astype(float)
    n_right = np.einsum("rw,dhw->rdh", weights, right.astype(float))
    shape = (len(is_case), *predicted.shape[:-1])
    return weights.sum(axis=1), n_right.reshape(shape), weights @ at_offset.T


def _series(values: Values, _: Any) -> Mapping[str, Series]:
    return {name: Series(values=array) for name, array in values.items()}


def _cells(_: Any, n_layers: int, n_heads: int) -> dict[str, tuple[int, ...]]:
    n_relations = len(RELATION_NAMES)
    return {
        RELATION_CASES: (n_relations,),
        RELATION_RIGHT: (n_relations, len(DIRECTIONS), n_layers, n_heads),
        OFFSET_RIGHT: (n_relations, len(OFFSETS)),
        RELATION_SQUARES: (3, n_relations, len(DIRECTIONS), n_layers, n_heads),
    }


RELATION_REDUCTION: Final = Reduction(values=_values, series=_series, cells=_cells, columns=lambda _: {})
"""Number of words for which each head, and each fixed offset, predicts the syntactic head."""


def relation_table(finding: RelationFinding) -> "pd.DataFrame":
    """A row per relation, direction, layer and head, with COLUMNS.

    Raises: AnalysisError where no relation has enough cases.
    """
    import pandas as pd  # which the first page does without

    if not (accuracies := finding.accuracies):
        raise AnalysisError(finding.why_empty)
    return pd.concat([_rows(accuracy, finding.settings) for accuracy in accuracies], ignore_index=True)


def _rows(accuracy: RelationAccuracy, settings: RelationSettings) -> "pd.DataFrame":
    import pandas as pd

    control = accuracy.best_key_matched
    direction, layer, head = (indices.ravel() for indices in np.indices(accuracy.accuracy.shape))
    directions = np.array(DIRECTIONS)[direction]
    columns = {
        "relation": accuracy.relation,
        "direction": directions,
        "layer": layer,
        "head": head,
        "cases": accuracy.n_cases,
        "left_out": accuracy.n_left_out,
        "documents": pd.array([accuracy.n_documents] * accuracy.accuracy.size, dtype="Int64"),
        "accuracy": accuracy.accuracy.ravel(),
        "low": accuracy.low.ravel(),
        "high": accuracy.high.ravel(),
        "design_effect": accuracy.design_effect.ravel(),
        "baseline": accuracy.baseline.share,
        "offset": accuracy.baseline.offset,
        "nearest": accuracy.nearest,
        "random_choice": accuracy.random_choice,
        "p": accuracy.p_values.ravel(),
        "beats_baseline": beats_baseline(accuracy, by=settings.by, margin=settings.margin).ravel(),
        "best": [
            head_of_row == accuracy.best for head_of_row in zip(directions.tolist(), layer.tolist(), head.tolist())
        ],
        "held_out": accuracy.best_accuracy,
        "held_out_low": accuracy.best_low,
        "held_out_high": accuracy.best_high,
        "held_out_design_effect": accuracy.best_design_effect,
        "held_out_where_wrong": accuracy.best_where_wrong,
        "held_out_heads": " or ".join(
            f"{head_name(*best)} {way}" for way, *best in dict.fromkeys(accuracy.best_of_halves)
        ),
        **accuracy.key_matched.columns(),
        "held_out_times_others": float(control.times) if accuracy.best_of_halves else math.nan,
        "held_out_from_everywhere": bool(accuracy.best_of_halves and control.from_everywhere),
    }
    return pd.DataFrame(columns)


DETAILS: Final = """\
Relations are taken from the file if it has trees or pairs; otherwise spaCy parses the texts. The relation `all`
includes every relation except punct and root. If a file names documents (CoNLL-U by # newdoc, JSON with pairs by
"document"), these are the units of halves, intervals and tests; otherwise texts are. The number of documents, and what
is left out, are printed to standard error.

Pairs are marked in JSON, such as {"text": "f(x)", "document": "a.py", "pairs": [{"relation": "bracket", "from": [3,
4], "to": [1, 2]}]}: spans of the first character, counted from 0, and the one after the last. From each span at most
one pair begins. Of two segments, "text_a" and "text_b", the keys are "from_a" or "from_b", and "to_a" or "to_b".
Marked spans are words, and line breaks are read as spaces."""
RELATION_ANALYSIS: Final = Analysis(
    name="relations",
    sentence="Measure how well each head predicts syntactic relations, or pairs that a file marks; a row per relation, "
    "direction, layer and head.",
    settings=AS_IN_PAPER,
    text_of=text_itself,
    items=lambda texts, trees, _: [ParsedText.of(text, tree) for text, (_, tree) in zip(texts, trees, strict=True)],
    question=lambda settings: prediction_question(settings.from_word),
    judge=relation_finding,
    table=relation_table,
    columns=COLUMNS,
    facts=lambda finding, _: finding.facts,
    reads_pairs=True,
    reduction=RELATION_REDUCTION,
    usage=Usage(
        details=DETAILS,
        parses=True,
        options={
            "as_in_code": Option(
                sentence="evaluate as the code of Clark et al. does; the same as --from-word first --at-clitic "
                "--every-word --offsets {} {}".format(*AS_IN_CODE.offsets),
                usual=False,
            )
        },
        usual=lambda options: AS_IN_CODE if options.as_in_code else AS_IN_PAPER,
        notes=lambda finding: filter(None, (documents_note(finding.n_documents), finding.left_out_note)),
        example=Example(keywords="least_cases=1"),
    ),
)
"""Which word each head attends to most, with the tree of every text.

Source: Clark et al. 2019, section 4.2; Voita et al. 2019, section 5.2.
"""
