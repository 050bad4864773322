"""The finding of relations: which relations are shown, what is read off them, and its table."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_attention import along_no_tree

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.analysis import COLUMNS, RELATION_ANALYSIS
from attention_sieve.core.relations.cases import ALL, OffsetBaseline, RelationAccuracy, TextPredictions
from attention_sieve.core.relations.finding import BestRelation, Evaluation, RelationFinding
from attention_sieve.core.relations.settings import AS_IN_PAPER, RelationSettings
from attention_sieve.core.statistics.cases import Joined, key_matched
from attention_sieve.core.texts.relations import ROOT, Dependencies
from attention_sieve.core.texts.tokens import Words


def accuracy(relation, n_cases, best=0.5, share=0.4):
    shape = (2, 2, 3)
    zeros = np.zeros(shape)
    untested = Joined(to_right=zeros[..., None], from_others=zeros[..., None], unit=np.zeros(1, int))
    return RelationAccuracy(
        **{"relation": relation, "n_cases": n_cases, "n_left_out": 0, "accuracy": zeros + best, "low": zeros},
        **{"n_documents": None, "design_effect": zeros, "best_design_effect": float("nan")},
        best_where_wrong=float("nan"),
        **{"high": zeros + 1, "p_values": zeros, "best": ("dependent-to-head", 0, 0), "best_of_halves": ()},
        **{"key_matched": key_matched(untested, 0.05), "best_key_matched": key_matched(untested, 0.05).at((0, 0, 0))},
        **{"best_accuracy": best, "best_low": 0.1, "best_high": 0.9, "p_value": 0.5},
        baseline=OffsetBaseline(offset=1, share=share, shares={1: share}),
        nearest=share,
        random_choice=share,
    )


def finding(accuracies, by_row=(), **settings):
    """A finding with these accuracies, as if they had been computed."""
    settings = RelationSettings(**settings)
    evaluation = Evaluation((), settings)
    vars(evaluation).update(accuracies=list(accuracies), by_row=list(by_row))
    return RelationFinding((), evaluation, settings)


@pytest.mark.parametrize(
    ("n_cases", "asked", "least"),
    [
        ((900, 100, 100, 100, 100, 99), None, 50),
        ((900, 30, 9, 8, 7, 6), None, 5),
        ((900,), None, 1),
        ((900, 3), 200, 200),
    ],
)
def test_as_many_cases_are_asked_for_as_five_relations_have_or_all_of_fewer(n_cases, asked, least):
    names = [ALL, *(f"r{number}" for number in range(len(n_cases) - 1))]
    accuracies = [accuracy(name, n) for name, n in zip(names, n_cases, strict=True)]
    found = finding(accuracies, least_cases=asked)
    assert found.least_cases == least
    assert [one.n_cases for one in found.accuracies] == [n for n in n_cases if n >= least]


def test_the_largest_gain_is_of_a_relation_where_there_is_one():
    rows = [accuracy(ALL, 9, 0.99), accuracy("det", 5, 0.5, 0.45), accuracy("amod", 4, 0.4, 0.1)]
    assert finding(rows, least_cases=1).largest_gain.relation == "amod"
    assert finding(rows[:1], least_cases=1).largest_gain.relation == ALL
    no_halves = replace(rows[2], best_accuracy=float("nan"))
    assert finding([rows[1], no_halves], least_cases=1).largest_gain.relation == "det"


def test_voitas_rule_takes_the_best_of_its_relations_and_directions():
    base = accuracy("det", 5).accuracy * 0
    subject, object_, other = base.copy(), base.copy(), base.copy()
    subject[1, 0, 2], object_[0, 0, 2], other[0, 1, 1] = 0.62, 0.65, 0.95
    rows = [
        replace(accuracy("nsubj", 9, share=0.52), accuracy=subject),
        replace(accuracy("obj", 9, share=0.6), accuracy=object_),
        replace(accuracy("det", 9, share=0.1), accuracy=other),
    ]
    found = finding((), rows, least_cases=1).by_argmax
    assert found.n_heads == {"nsubj": 1, "obj": 0}
    assert np.argwhere(found.heads).tolist() == [[0, 2]]
    assert found.gain[0, 2] == pytest.approx(0.1)
    assert found.gain[1, 1] == pytest.approx(-0.52)
    assert found.best[0][2] == BestRelation("nsubj", "head-to-dependent", 0.62)
    assert finding((), rows[2:], least_cases=1).by_argmax is None
    assert finding((), rows, least_cases=1, margin="relative").by_argmax.heads[0, 2]
    assert finding((), rows, least_cases=10).by_argmax is None
    assert not finding((), rows, least_cases=1, by=0.11).by_argmax.heads.any()


@pytest.mark.parametrize(("n_words", "looks_back"), [(11, False), (12, True)])
def test_looking_back_is_said_of_enough_words_that_have_a_later_one(n_words, looks_back):
    """Of two texts; the first word sees no other one, the last has none after it."""
    before = np.broadcast_to(np.arange(n_words) - 1, (2, 3, 4, n_words))
    assert relations(before, before).looks_back == looks_back
    ahead = before.copy()
    ahead[0, 2, 1, 5] = 6
    assert not relations(before, ahead).looks_back


def relations(*predicted):
    n_words = predicted[0].shape[-1]
    tree = Dependencies(
        words=Words(segments=np.zeros(n_words, int), spans=np.zeros((n_words, 2), int)),
        heads=np.full(n_words, ROOT),
        relations=("root",) * n_words,
    )
    found = tuple(
        TextPredictions(dependencies=tree, predicted=each, has_tokens=np.ones(n_words, bool), **along_no_tree(each))
        for each in predicted
    )
    return RelationFinding((), Evaluation(found, AS_IN_PAPER), AS_IN_PAPER)


def test_the_table_names_every_column_and_both_heads_of_the_halves():
    halves = (("dependent-to-head", 0, 1), ("head-to-dependent", 1, 2))
    rows = [replace(accuracy(ALL, 9), best_of_halves=halves), accuracy("det", 5)]
    table = RELATION_ANALYSIS.table(finding(rows, least_cases=1))
    assert list(table) == list(COLUMNS)
    assert len(table) == 2 * 2 * 2 * 3
    named = table.groupby("relation")["held_out_heads"].unique().map(list).to_dict()
    assert named == {ALL: ["L0 H1 dependent-to-head or L1 H2 head-to-dependent"], "det": [""]}
    assert pd.isna(table[table["relation"] == "det"]["held_out_times_others"]).all()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"alpha": 1.0}, "alpha is 1.0. Choose a number between 0 and 1"),
        ({"by": float("nan")}, "by is nan. Choose a share of 0 or more"),
        ({"offsets": (0, 0)}, "The offsets 0 to 0 are not a range"),
        ({"offsets": (2, -3)}, "The offsets 2 to -3 are not a range"),
        ({"offsets": (-101, 1)}, "Choose two numbers between -100 and 100"),
    ],
)
def test_settings_out_of_range_are_a_sentence(wrong, says):
    with pytest.raises(AnalysisError, match=says):
        RelationSettings(**wrong)
    assert RelationSettings(offsets=(-2, 1)).candidates == (-2, -1, 1)
