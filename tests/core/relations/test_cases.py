"""Accuracies of heads as parsers, from predictions and trees made by hand, by chance, and from treebanks."""

import gzip
import json
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_attention import along_no_tree
from passing import SELF
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS

from attention_sieve.core.checkpoints.find import load_checkpoint, randomly_initialised
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.relations.cases import (
    ALL,
    NO_RELATION,
    NONE,
    TextPredictions,
    among_right_words,
    beats_baseline,
    best_offset,
    cases_of,
    relation_accuracies,
)
from attention_sieve.core.relations.observer import predictions
from attention_sieve.core.relations.settings import AS_IN_CODE, DIRECTIONS, OFFSETS, RelationSettings
from attention_sieve.core.texts.relations import ROOT, Dependencies, dependencies
from attention_sieve.core.texts.text import read_file
from attention_sieve.core.texts.tokens import Words

LAYERS, HEADS = 2, 3
SHAPE = (2, LAYERS, HEADS)
RELATIONS = ("nsubj", "det", "punct", "amod")


def tree(heads, relations, segments=None):
    """A tree by heads counted from 0, ROOT for a root."""
    segments = [0] * len(heads) if segments is None else segments
    spans = [(2 * place, 2 * place + 1) for place in range(len(heads))]
    words = Words(segments=np.array(segments), spans=np.array(spans))
    relations = ("root" if head == ROOT else name for head, name in zip(heads, relations))
    return Dependencies(words=words, heads=np.array(heads), relations=tuple(relations))


def predicting(tree, predicted, has_tokens=True):
    every = np.broadcast_to(has_tokens, len(tree.heads))
    predicted = np.array(predicted)
    return TextPredictions(dependencies=tree, predicted=predicted, has_tokens=every, **along_no_tree(predicted))


def random_texts(n_texts, seed=0, longest=9, missing=0.0):
    """Trees and predictions by chance, every other text of two segments; some words have no tokens."""
    random = np.random.default_rng(seed)
    texts = []
    for number in range(n_texts):
        sizes = random.integers(2, longest + 1, 1 + number % 2)
        heads, n_words = [], int(sizes.sum())
        for size in sizes:
            heads += [head if head == ROOT else head + len(heads) for head in random_heads(size, random)]
        segments = np.repeat(np.arange(len(sizes)), sizes)
        predicted = random.integers(0, n_words, (*SHAPE, n_words))
        gone = random.random(n_words) < missing
        predicted[..., gone] = NONE
        predicted[np.isin(predicted, np.flatnonzero(gone))] = NONE
        texts.append(predicting(tree(heads, random.choice(RELATIONS, n_words), segments), predicted, ~gone))
    return texts


def random_heads(n_words, random):
    order = random.permutation(n_words)
    heads = [ROOT] * n_words
    for place in range(1, n_words):
        heads[order[place]] = int(order[random.integers(0, place)])
    return heads


def naive(texts, relation, reading="column"):
    """Cases and right ones [direction][layer][head] of a relation, one by one."""
    right, cases = {}, []
    for number, text in enumerate(texts):
        heads, names, predicted = text.dependencies.heads, text.dependencies.relations, text.predicted
        for word, (head, name) in enumerate(zip(heads, names)):
            wanted = name not in ("punct", "root") if relation == ALL else name == relation
            known = all(text.has_tokens[place] for place in (word, head))
            if head != ROOT and wanted and known:
                cases.append((number, word))
                for place in np.ndindex(SHAPE):
                    guess = predicted[(*place, word)] == head
                    if reading == "row" and place[0] == 1:
                        guess = predicted[(0, *place[1:], head)] == word
                    right.setdefault(place, []).append(bool(guess))
    return cases, right


def accuracy_of(accuracies, relation):
    (found,) = [one for one in accuracies if one.relation == relation]
    return found


# Worked by hand


CHASED = tree([1, 2, ROOT, 4, 2], ["det", "nsubj", "root", "det", "dobj"])
"""The cat chased a dog."""
NEXT_WORD = np.tile(np.array([1, 2, 3, 4, 4]), (*SHAPE, 1))
"""What the best fixed offset predicts there."""


def test_accuracies_worked_by_hand():
    predicted = np.zeros((*SHAPE, 5), int)
    predicted[0, 1, 2] = [1, 2, 0, 4, 1]  # both articles and the subject are right, the object is wrong
    predicted[1, 0, 1] = [2, 0, 0, 4, 2]  # one article and the object
    found = relation_accuracies([predicting(CHASED, predicted)])
    assert [(one.relation, one.n_cases) for one in found] == [(ALL, 4), ("det", 2), ("nsubj", 1), ("dobj", 1)]
    of_all, det, nsubj, dobj = found
    assert of_all.accuracy[0, 1, 2] == 0.75
    assert of_all.accuracy[1, 0, 1] == 0.5
    assert det.accuracy[0, 1, 2] == 1
    assert det.accuracy[1, 0, 1] == 0.5
    assert (nsubj.accuracy[0, 1, 2], nsubj.accuracy[1, 0, 1]) == (1, 0)
    assert (dobj.accuracy[0, 1, 2], dobj.accuracy[1, 0, 1]) == (0, 1)
    assert det.accuracy.sum() == 1.5
    assert det.best == ("dependent-to-head", 1, 2)
    assert dobj.best == ("head-to-dependent", 0, 1)


def test_the_baseline_worked_by_hand():
    found = relation_accuracies([predicting(CHASED, np.zeros((*SHAPE, 5), int))])
    of_all, det, nsubj, dobj = (one.baseline for one in found)
    assert (of_all.offset, of_all.share, of_all.shares[-2], of_all.shares[5]) == (1, 0.75, 0.25, 0.25)
    assert (det.offset, det.share) == (1, 1)
    assert (nsubj.offset, nsubj.share) == (1, 1)
    assert (dobj.offset, dobj.share) == (-2, 1)
    assert tuple(of_all.shares) == OFFSETS
    near = relation_accuracies(
        [predicting(CHASED, np.zeros((*SHAPE, 5), int))], settings=RelationSettings(offsets=(-1, 1))
    )
    assert near[-1].baseline.share == 0


def test_as_in_the_authors_code_all_counts_every_word_and_offsets_are_theirs():
    """Five words, of which 'sat' is a root and '.' punctuation; -3 leads out before 'sat', where a root is right."""
    sat = tree([1, 2, ROOT, 2, 2], ["det", "nsubj", "root", "advmod", "punct"])
    predicted = np.tile(np.array([1, 2, 4, 2, 2]), (*SHAPE, 1))
    predicted[0, 1, 0] = NONE  # its guess for a root is none, which is no root
    predicted[0, 0, 1, 4] = 3
    texts = [predicting(sat, predicted)]
    (of_all, *others), (usual, *_) = (relation_accuracies(texts, how) for how in (AS_IN_CODE, RelationSettings()))
    assert (of_all.n_cases, of_all.n_left_out, usual.n_cases) == (5, 0, 3)
    assert [one.relation for one in others] == ["det", "nsubj", "advmod"]
    assert (of_all.accuracy[0, 0, 0], of_all.accuracy[0, 0, 1], of_all.accuracy[0, 1, 0]) == (4 / 5, 3 / 5, 0)
    assert (usual.accuracy[0, 0, 0], usual.accuracy[0, 0, 1]) == (1, 1)
    assert of_all.baseline.shares == {-3: 1 / 5, -2: 1 / 5, -1: 1 / 5, 1: 2 / 5, 2: 0}
    assert others[0].baseline.offset == 1


def test_a_root_of_a_second_segment_is_where_an_offset_leads_out_of_it():
    two = tree([1, ROOT, 3, ROOT, 3], ["det", "root", "det", "root", "amod"], [0, 0, 1, 1, 1])
    texts = [predicting(two, np.zeros((*SHAPE, 5), int))]
    shares = relation_accuracies(texts, RelationSettings(every_word=True))[0].baseline.shares
    assert (shares[-1], shares[-2], shares[-5], shares[1]) == (1 / 5, 2 / 5, 2 / 5, 2 / 5)


def test_an_offset_beyond_the_segment_predicts_its_last_word():
    """So it does for 'a', whose head is the last word; a root is predicted before the first, and is never right."""
    assert best_offset(np.array([1]), np.array([[3], [1]])).shares[5] == 1
    assert best_offset(np.array([1]), np.array([[3], [2]])).shares[5] == 0
    two = tree([1, ROOT, 3, ROOT, 3], "abcde", [0, 0, 1, 1, 1])
    ends = cases_of([predicting(two, np.zeros((*SHAPE, 5), int))])
    assert ends.rooms.tolist() == [[0, 1, 0, 1, 2], [1, 0, 2, 1, 0]]
    assert ends.distances.tolist() == [1, -2, 1, -2, -1]


def test_of_several_offsets_the_nearest_is_the_best_and_of_these_the_one_ahead():
    rooms = np.full((2, 2), 9)
    assert best_offset(np.array([-3, 2]), rooms).offset == 2
    assert best_offset(np.array([-2, 2]), rooms).offset == 2
    assert best_offset(np.array([-2, 3]), rooms).offset == -2


def test_without_cases_in_a_half_there_is_no_accuracy_on_the_other_half():
    trees = [CHASED, tree([1, ROOT], ["amod", "root"])] * 2
    texts = [predicting(one, np.zeros((*SHAPE, len(one.heads)), int)) for one in trees]
    found = relation_accuracies(texts)
    det = accuracy_of(found, "det")
    assert det.best_of_halves == ()
    assert np.isnan([det.best_accuracy, det.best_low, det.best_high]).all()
    assert accuracy_of(found, ALL).best_of_halves


# Invariants


@pytest.mark.parametrize("reading", ["column", "row"])
@given(seed=st.integers(0, 2**32 - 1), missing=st.sampled_from([0.0, 0.3]), n_texts=st.integers(1, 8))
def test_accuracies_equal_a_loop_over_all_words(reading, seed, missing, n_texts):
    texts = random_texts(n_texts, seed, missing=missing)
    found = relation_accuracies(texts, RelationSettings(reading=reading))
    counted = {name: naive(texts, name, reading) for name in (ALL, "nsubj", "det", "amod")}
    assert {one.relation: one.n_cases for one in found} == {
        name: len(cases) for name, (cases, _) in counted.items() if cases
    }
    for one in found:
        cases, right = counted[one.relation]
        for place in np.ndindex(SHAPE):
            assert one.accuracy[place] == pytest.approx(float(Fraction(sum(right[place]), len(cases))), abs=1e-12)


def test_no_texts_and_no_cases_give_no_accuracies_and_a_relation_that_a_file_names_all_is_counted_once():
    named = tree([1, 2, ROOT, 2], ["all", "det", "root", "det"])
    found = relation_accuracies([predicting(named, np.zeros((*SHAPE, 4), int))])
    assert [(one.relation, one.n_cases) for one in found] == [(ALL, 3), ("det", 2)]
    assert relation_accuracies([]) == []
    alone = tree([ROOT], ["root"])
    assert relation_accuracies([predicting(alone, np.full((*SHAPE, 1), NONE))]) == []


def test_words_without_tokens_are_left_out_and_counted():
    """Of four cases one dependent has no tokens, and the head of another has none."""
    predicted = np.tile(np.array([1, 2, 0, 4, 2]), (*SHAPE, 1))
    predicted[..., [0, 4]] = NONE
    found = relation_accuracies([predicting(CHASED, predicted, [False, True, True, True, False])])
    assert [(one.relation, one.n_cases, one.n_left_out) for one in found] == [(ALL, 1, 3), ("nsubj", 1, 0)]
    np.testing.assert_array_equal(found[0].accuracy, 1)


def test_a_head_that_attends_to_no_other_word_is_wrong_and_its_cases_stay():
    """The first word of a causal model sees none; other heads, or the other direction, do predict for it."""
    predicted = np.tile(np.array([1, 2, 0, 4, 2]), (*SHAPE, 1))
    predicted[0, :, :, 0] = NONE
    of_all, det, *_ = relation_accuracies([predicting(CHASED, predicted)])
    assert (of_all.n_cases, of_all.n_left_out, det.n_cases) == (4, 0, 2)
    np.testing.assert_array_equal(det.accuracy[0], 0.5)
    np.testing.assert_array_equal(det.accuracy[1], 1)


def test_p_values_are_of_the_texts_times_the_heads_searched():
    texts, alpha = random_texts(40, seed=2), 0.2
    for text in texts:  # one head knows much of the tree
        knows = np.random.default_rng(3).random(len(text.dependencies.heads)) < 0.6
        text.predicted[1, 0, 2, knows] = np.maximum(text.dependencies.heads, 0)[knows]
    found = relation_accuracies(texts, RelationSettings(alpha=alpha))
    for one in found:
        cases, right = naive(texts, one.relation)
        of_baseline = [at_offset(texts[text].dependencies, word, one.baseline.offset) for text, word in cases]
        unit, ones = np.array([text for text, _ in cases]), np.ones(len(cases))
        if len(set(unit.tolist())) < 2:
            continue
        for place in np.ndindex(SHAPE):
            values = np.array(right[place], int) - np.array(of_baseline, int)
            fit = OLS(values, ones).fit(
                cov_type="cluster", cov_kwds={"groups": unit, "use_correction": True, "df_correction": True}, use_t=True
            )
            p = student.sf(fit.tvalues[0], len(set(unit.tolist())) - 1)
            if fit.bse[0] > 1e-9:
                assert one.p_values[place] == pytest.approx(min(1.0, p * 2 * LAYERS * HEADS), rel=1e-6)
    assert found[0].best == ("head-to-dependent", 0, 2)
    assert found[0].p_value == found[0].p_values.min() < 1e-6
    np.testing.assert_array_equal(relation_accuracies([predicting(CHASED, NEXT_WORD)] * 50)[0].p_values, 1)


def test_held_out_heads_are_counted_where_the_baseline_is_wrong_as_well():
    texts = random_texts(40, seed=2)
    for one in relation_accuracies(texts):
        cases, right = naive(texts, one.relation)
        of_baseline = [at_offset(texts[text].dependencies, word, one.baseline.offset) for text, word in cases]
        # Each text is judged with the head of the other half.
        places = [(DIRECTIONS.index(way), *head) for way, *head in reversed(one.best_of_halves)]
        judged = [right[places[text % 2]][case] for case, (text, _) in enumerate(cases)] if places else []
        wrong = [mine for mine, other in zip(judged, of_baseline) if not other]
        expected = np.mean(wrong) if wrong else np.nan
        np.testing.assert_allclose(one.best_where_wrong, expected)


# Documents


def dealt(texts, sizes):
    """The same texts, some after another of one document."""
    names = np.repeat([f"document {number}" for number in range(len(sizes))], sizes)
    return [replace(text, document=str(name)) for text, name in zip(texts, names, strict=True)]


def test_halves_never_split_a_document():
    """Chosen on documents 0, 2, ... as if these were all texts, and judged on the others, whatever their sizes."""
    sizes = [3, 1, 8, 2, 5, 6, 4, 11]
    texts = dealt(random_texts(sum(sizes), seed=11), sizes)
    number = np.repeat(np.arange(len(sizes)), sizes)
    halves = [[text for text, own in zip(texts, number % 2) if own == half] for half in (0, 1)]
    for one in relation_accuracies(texts):
        alone = [accuracy_of(relation_accuracies(half), one.relation) for half in halves]
        assert one.best_of_halves == tuple(half.best for half in alone)
        n_right = [
            other.accuracy[DIRECTIONS.index(best[0]), *best[1:]] * other.n_cases
            for best, other in zip(one.best_of_halves, alone[::-1])
        ]
        assert one.best_accuracy == pytest.approx(sum(n_right) / one.n_cases)
        assert one.n_documents == len(sizes)
        assert (one.design_effect > 0).all()
        assert ((one.low <= one.accuracy) & (one.accuracy <= one.high)).all()


def test_one_document_has_no_interval_no_test_and_no_halves():
    for one in relation_accuracies(dealt(random_texts(12), [12])):
        assert one.n_documents == 1
        assert np.isnan([one.low, one.high, one.p_values, one.design_effect]).all()
        assert one.best_of_halves == ()
        assert np.isnan([one.p_value, one.best_accuracy, one.best_low, one.best_high, one.best_design_effect]).all()


def at_offset(tree, word, offset):
    own = np.flatnonzero(tree.words.segments == tree.words.segments[word])
    place = min(word + offset, own[-1])
    return place >= own[0] and place == tree.heads[word]


def test_heads_that_guess_by_chance_are_seldom_significant():
    """The correction keeps the rate of false alarms over all heads: 12 heads x 20 corpora, at most 5 %."""
    n_false = 0
    for seed in range(20):
        texts = random_texts(30, seed, longest=4)
        n_false += accuracy_of(relation_accuracies(texts), ALL).p_values.min() < 0.05
    assert n_false <= 1


PLANTED = (0, 1, 2)


def planted_texts(relation="det"):
    """Every head looks at the previous or the next word; one looks at the head of each word that has the relation."""
    texts = []
    for text in random_texts(150, seed=7):
        segments = text.dependencies.words.segments
        places = np.arange(len(segments))
        predicted = np.empty((*SHAPE, len(segments)), int)
        predicted[0] = np.maximum(places - 1, 0)
        predicted[1] = np.minimum(places + 1, np.searchsorted(segments, segments, side="right") - 1)
        knows = np.array([name == relation for name in text.dependencies.relations])
        predicted[PLANTED][knows] = text.dependencies.heads[knows]
        texts.append(predicting(text.dependencies, predicted))
    return texts


@pytest.mark.parametrize("relation", ["det", "nsubj"])
@pytest.mark.parametrize("margin", ["points", "relative"])
def test_a_planted_head_is_labelled_with_its_relation_and_nothing_else_is(relation, margin):
    found = [one for one in relation_accuracies(planted_texts(relation)) if one.relation != ALL]
    for one in found:
        expected = np.zeros(SHAPE, bool)
        expected[PLANTED] = one.relation == relation
        np.testing.assert_array_equal(beats_baseline(one, margin=margin), expected)
        np.testing.assert_array_equal(one.p_values < 0.05, expected)
    planted = accuracy_of(found, relation)
    assert planted.best == ("dependent-to-head", 1, 2)
    assert planted.best_of_halves == (("dependent-to-head", 1, 2),) * 2
    assert planted.best_accuracy == 1


def test_the_rule_asks_for_ten_points_or_for_a_tenth_more():
    """Of 20 cases the baseline gets 4 right: 6 are 10 points more, 5 are a tenth more."""
    trees = [tree([1, ROOT], ["det", "root"])] * 4 + [tree([ROOT, *[0] * 16], ["root"] + ["det"] * 16)]
    texts = []
    for one in trees:
        texts.append(predicting(one, np.ones((*SHAPE, len(one.heads)), int)))
    texts[-1].predicted[0, 0, 0, 1:3] = 0
    texts[-1].predicted[0, 0, 1, 1:2] = 0
    found = accuracy_of(relation_accuracies(texts), "det")
    assert (found.n_cases, found.baseline.share) == (20, 0.2)
    assert found.accuracy[0, 0].tolist() == [0.3, 0.25, 0.2]
    assert beats_baseline(found)[0, 0].tolist() == [True, False, False]
    assert beats_baseline(found, margin="relative")[0, 0].tolist() == [True, True, False]
    assert beats_baseline(found, by=0.05)[0, 0].tolist() == [True, True, False]


DOGS = tree([3, 0, 3, ROOT], ["poss", "possessive", "amod", "root"])
"""Sam 's old dog"""


def test_a_possessor_is_read_at_the_clitic_that_follows_it():
    predicted = np.tile(np.array([1, 3, 3, 0]), (*SHAPE, 1))
    texts = [predicting(DOGS, predicted)]
    plain = accuracy_of(relation_accuracies(texts), "poss")
    np.testing.assert_array_equal(plain.accuracy, 0)
    assert plain.baseline.shares[2] == 0
    read_at = accuracy_of(relation_accuracies(texts, RelationSettings(at_clitic=True)), "poss")
    np.testing.assert_array_equal(read_at.accuracy, 1)
    assert read_at.baseline.offset == 2
    np.testing.assert_array_equal(
        accuracy_of(relation_accuracies(texts, RelationSettings(at_clitic=True)), "amod").accuracy, 1
    )


@pytest.mark.parametrize(
    ("heads", "relations"),
    [
        ([3, 2, 3, ROOT], ["poss", "amod", "nn", "root"]),
        ([3, 2, 3, ROOT], ["poss", "case", "nn", "root"]),  # the clitic of another word
        ([3, 0, 3, ROOT], ["amod", "case", "nn", "root"]),  # no possessor
        ([3, 2, 0, ROOT], ["poss", "amod", "case", "root"]),  # not the next word
        ([1, ROOT, 0], ["poss", "root", "case"]),  # only the next that has a head
    ],
)
def test_without_a_clitic_of_its_own_a_word_is_read_where_it_stands(heads, relations):
    one = tree(heads, relations)
    texts = [predicting(one, np.tile(np.maximum(one.heads, 0), (*SHAPE, 1)))]
    for found in relation_accuracies(texts, RelationSettings(at_clitic=True)):
        np.testing.assert_array_equal(found.accuracy, 1)


# Treebanks


@cache
def trees_of(path):
    texts = read_file(path.name.removesuffix(".gz"), gzip.decompress(path.read_bytes()))
    return texts, list(dependencies(texts))


def without_predictions(trees):
    """The trees as a pass without one right guess takes them; every word has tokens."""
    return [predicting(one, np.zeros((2, 1, 1, len(one.heads)), int)) for one in trees]


@pytest.mark.parametrize(
    ("folder", "file", "key"),
    [
        ("ud_ewt", "en_ewt-ud-dev.conllu.gz", "dev_ud"),
        ("pud", "pud_en.clark_sd.jsonl.gz", "pud_sd"),
    ],
)
def test_offset_baselines_equal_those_of_the_treebanks(folder, file, key, shared):
    _, trees = trees_of(shared / "data" / folder / file)
    cases = cases_of(without_predictions(trees))
    expected = json.loads((shared / "data" / folder / "offset_baselines.json").read_text())[key]
    of_all = {"all": cases.names, "all_no_punct_root": [name for name in cases.names if name not in NO_RELATION]}
    assert set(cases.names) == {*expected} - {*of_all}
    for name, row in expected.items():
        chosen = np.isin(cases.codes, [cases.names.index(each) for each in of_all.get(name, [name])])
        found = best_offset(cases.distances[chosen], cases.rooms[:, chosen])
        assert chosen.sum() == row["n"]
        assert found.offset == row["best_offset"]
        assert 100 * found.share == pytest.approx(row["best_acc"], abs=0.00501)
        shares = {str(offset): 100 * share for offset, share in found.shares.items()}
        assert shares == pytest.approx(row["acc_by_offset"], abs=0.00501)


def test_accuracies_have_the_baselines_of_the_treebank_and_as_in_code_all_counts_every_word(shared):
    _, trees = trees_of(shared / "data" / "ud_ewt" / "ewt_dev.clark_sd.jsonl.gz")
    expected = json.loads((shared / "data" / "ud_ewt" / "offset_baselines.json").read_text())["dev_sd"]
    texts = without_predictions(trees)
    usual, theirs = (
        relation_accuracies(texts, how) for how in (RelationSettings(), replace(AS_IN_CODE, at_clitic=False))
    )
    assert usual[0].n_cases == expected["all_no_punct_root"]["n"] == 20_085
    assert {one.relation for one in usual[1:]} == {*expected} - {"all", "all_no_punct_root", "punct", "root"}
    for one in usual[1:]:
        row = expected[one.relation]
        assert (one.n_cases, one.n_left_out, one.baseline.offset) == (row["n"], 0, row["best_offset"])
    of_all, row = theirs[0], expected["all"]
    assert (of_all.relation, of_all.n_cases, of_all.n_left_out) == (ALL, row["n"], 0)
    assert {str(offset): 100 * share for offset, share in of_all.baseline.shares.items()} == pytest.approx(
        {offset: share for offset, share in row["acc_by_offset"].items() if offset in ("-3", "-2", "-1", "1", "2")},
        abs=0.00501,
    )


@pytest.mark.parametrize("path", ["ud_ewt/ewt_dev.clark_sd.jsonl.gz", "pud/pud_en.clark_sd.jsonl.gz"])
def test_the_clitic_of_the_tree_is_the_one_that_its_form_tells(path, shared):
    """By forms, as the authors' code does, with those of web text and typeset apostrophes added."""
    texts, trees = trees_of(shared / "data" / path)
    n_right = n_cases = 0
    for text, one in zip(texts, trees):
        words = text.words[0]
        for place, relation in enumerate(one.relations):
            if relation == "poss":
                n_cases += 1
                follows = place + 1 < len(words) and words[place + 1] in ("'s", "’s", "'", "’", "s")
                n_right += min(place + follows + 1, len(words) - 1) == one.heads[place]
    cases = cases_of(without_predictions(trees), at_clitic=True)
    chosen = cases.codes == cases.names.index("poss")
    assert chosen.sum() == n_cases
    shares = best_offset(cases.distances[chosen], cases.rooms[:, chosen]).shares
    assert shares[1] == pytest.approx(n_right / n_cases)


def test_random_weights_find_no_relation_and_trained_ones_do(shared, bundled):
    """Searching all heads in both directions finds nothing by luck that holds on the other half of the texts."""
    texts, trees = (of[:50] for of in trees_of(shared / "data" / "pud" / "pud_en.clark_sd.jsonl.gz"))
    random = load_checkpoint(randomly_initialised(bundled.files), device="cpu")
    trained, control = (accuracies_of(checkpoint, texts, trees) for checkpoint in (bundled, random))
    assert len(control) == len(trained) > 10
    assert [one.relation for one in control if one.best_low > one.baseline.share] == []
    above = {one.relation for one in trained if one.best_low > one.baseline.share}
    assert above >= {"det", "dobj"}


def accuracies_of(checkpoint, texts, trees):
    prepared = [prepare(checkpoint, text, SELF) for text in texts]
    work = predictions(checkpoint, prepared, trees, SELF)
    found = dict(one for batch in work for one in batch)
    accuracies = relation_accuracies([TextPredictions.of(one, found[at]) for at, one in enumerate(trees)])
    return [one for one in accuracies if one.n_cases >= 25]


def test_the_nearest_and_a_random_one_of_the_right_words_by_hand():
    # Two texts, of brackets ( ( ) ) and ( ) ( ): each closing one to its opening one.
    heads = np.array([ROOT, ROOT, 1, 0, ROOT, 4, ROOT, 6])
    text = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    # The nearest before: 1 of 2 in the first text, both in the second; after, none. Two choices in every text.
    assert among_right_words(np.array([2, 3, 5, 7]), heads, text) == (0.75, 0.5)
    # A word that is right for another is no choice of its own: the chain 0 <- 1 <- 2 leaves one, and two.
    assert among_right_words(np.array([1, 2]), np.array([ROOT, 0, 1]), np.zeros(3, int)) == (1, 0.75)
    # Roots have no right word; and no word of another text is a choice.
    assert among_right_words(np.array([0, 1]), np.array([ROOT, 0, ROOT, 2]), np.array([0, 0, 1, 1])) == (0.5, 0.5)


def test_pairs_of_two_segments_are_counted_from_the_same_place_in_the_other_one():
    # Segments of 3 and 2 words: 0 -> 3 (same place), 2 -> 4 (one before), 4 -> 1 (same place), 3 -> 4 within.
    across = tree([3, ROOT, 4, 4, 1], ["x"] * 5, segments=[0, 0, 0, 1, 1])
    cases = cases_of([predicting(across, np.zeros((*SHAPE, 5), int))])
    assert cases.distances.tolist() == [0, -2, -1, 1, 0]
    assert cases.rooms.tolist() == [[0, 1, 2, 0, 1], [1, 1, -1, 1, 1]]
    pairs = [0, 2, 4]
    found = best_offset(cases.distances[pairs], cases.rooms[:, pairs])
    assert (found.offset, found.share) == (0, 1)  # beyond the end of the other segment is its last word
    assert found.shares[1] == pytest.approx(1 / 3)
