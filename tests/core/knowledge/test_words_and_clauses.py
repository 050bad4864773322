from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_trees import HE_SAW_DOGS, SHE_SANG, flat, tree

from attention_sieve.core.knowledge.from_trees.changes import FREQUENCIES, coordination_inversion, odd_man_out
from attention_sieve.core.knowledge.from_trees.properties import object_number, subject_number, tense
from attention_sieve.core.knowledge.from_trees.rows import balanced_rows
from attention_sieve.core.knowledge.task import PARTS

DOGS_SEE = tree("Dogs/NNS/2/nsubj see/VBP/0/root a/DT/4/det Cat/NN/2/dobj ././2/punct")
IS_SEEN = tree("The/DT/2/det cat/NN/4/nsubjpass is/VBZ/4/auxpass seen/VBN/0/root often/RB/4/advmod")


@pytest.mark.parametrize(
    ("task", "sentence", "label", "form"),
    [
        (tense, HE_SAW_DOGS, "PAST", "saw"),
        (tense, DOGS_SEE, "PRES", "see"),
        (subject_number, DOGS_SEE, "NNS", "dogs"),
        (subject_number, IS_SEEN, "NN", "cat"),
        (object_number, HE_SAW_DOGS, "NNS", "dogs"),
        (object_number, DOGS_SEE, "NN", "cat"),
    ],
)
def test_the_label_is_that_of_the_key_word(task, sentence, label, form):
    (found,) = task([sentence], Random(0))
    assert (found.words, found.label, found.unit) == (sentence.words, label, form)


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        (tense, IS_SEEN),
        (subject_number, HE_SAW_DOGS),
        (subject_number, SHE_SANG),
        (object_number, SHE_SANG),
        (object_number, IS_SEEN),
        (object_number, tree("Give/VB/0/root dogs/NNS/1/dobj cats/NNS/1/dobj now/RB/1/advmod ././1/punct")),
    ],
)
def test_other_sentences_are_left_out(task, sentence):
    assert task([sentence], Random(0)) == []


def odd_corpus():
    """Words a to j as nouns between the same two words, each often enough to replace any other of its kind."""
    tags = ("DT", "NN", "VBD", "CD", ".")
    nouns = [f"noun{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    return [
        flat(f"The {noun} sat {row} .", f"{noun}{row}", tags) for noun in nouns for row in range(FREQUENCIES.start + 1)
    ]


def test_one_word_is_replaced_by_one_of_the_same_tag_that_is_in_no_other_part():
    sentences = odd_corpus()
    original = {sentence.document: sentence.words for sentence in sentences}
    found = odd_man_out(sentences, Random(0))
    counts = Counter(one.label for one in found)
    assert abs(counts["O"] - counts["C"]) <= 1
    parts_of = {}
    for one in found:
        changed = [place for place, (was, now) in enumerate(zip(original[one.unit], one.words)) if was != now]
        assert changed == ([1] if one.label == "C" else [])
        if changed:
            parts_of.setdefault(one.words[1], set()).add(one.part)
    assert set.union(*parts_of.values()) == set(PARTS)
    assert all(len(parts) == 1 for parts in parts_of.values())


@pytest.mark.parametrize(
    ("noun", "others", "tag"), [("Nouna", "nounb", "NN"), ("nouna", "nounb", "JJ"), ("noun-a", "noun-b", "NN")]
)
def test_names_other_kinds_of_words_and_compounds_are_not_replaced(noun, others, tag):
    tags = ("DT", tag, "RB", "CD", ".")
    sentences = [flat(f"The {one} up {row} .", f"{one}{row}", tags) for one in (noun, others) for row in range(20)]
    assert not any(one.words[1] != noun and one.words[1] != others for one in odd_man_out(sentences, Random(0)))
    assert not [one for one in odd_man_out(sentences, Random(0)) if one.words[1].istitle() and one.label == "C"]


@pytest.mark.parametrize("n_rows", [FREQUENCIES.start - 1, 401])
def test_rare_and_very_frequent_words_are_not_replaced(n_rows):
    tags = ("DT", "NN", "IN", "CD", ".")
    sentences = [flat(f"The {noun} up {row} .", f"{noun}{row}", tags) for noun in ("a", "b") for row in range(n_rows)]
    assert odd_man_out(sentences, Random(0)) == []


def test_a_word_that_never_stands_beside_the_neighbours_replaces_no_common_pair():
    """Both words are equally frequent, but one stands after "the" and the other after "of", many times."""
    sentences = [flat(f"x the alpha {row} . y", f"a{row}", ("X", "DT", "NN", "CD", ".", "X")) for row in range(20)]
    sentences += [flat(f"x of omega {row} . y", f"o{row}", ("X", "DT", "NN", "CD", ".", "X")) for row in range(20)]
    assert odd_man_out(sentences, Random(0)) == []


def forms_of(sentence, seeds=range(20)):
    """Words of a sentence by label, over several seeds."""
    found = [odd for seed in seeds for odd in coordination_inversion([sentence, SHE_SANG], Random(seed))]
    return {one.label: " ".join(one.words) for one in found if set(one.words) & {"quick", "sang"}}


def test_two_clauses_change_places_and_nothing_else():
    assert forms_of(SHE_SANG) == {
        "O": "Ann sang loudly , but the birds left again .",
        "I": "The birds left again , but Ann sang loudly .",
    }


def test_the_old_first_word_loses_its_upper_case_unless_it_is_a_name():
    of = tree("He/PRP/2/nsubj is/VBZ/0/root quick/JJ/2/acomp and/CC/2/cc I/PRP/6/nsubj am/VBP/2/conj !/./2/punct")
    found = [one for seed in range(9) for one in coordination_inversion([of, of], Random(seed))]
    assert {" ".join(one.words) for one in found} == {"He is quick and I am !", "I am and he is quick !"}
    back = tree("I/PRP/2/nsubj am/VBP/0/root quick/JJ/2/acomp and/CC/6/cc he/PRP/6/nsubj is/VBZ/2/conj ././2/punct")
    found = [one for seed in range(9) for one in coordination_inversion([back, back], Random(seed))]
    assert {" ".join(one.words) for one in found} == {"I am quick and he is .", "He is and I am quick ."}


@pytest.mark.parametrize(
    "written",
    [
        # no second clause; no subject in it; no conjunction; two of them
        "Ann/NNP/2/nsubj sang/VBD/0/root and/CC/2/cc very/RB/5/advmod loudly/RB/2/advmod",
        "Ann/NNP/2/nsubj sang/VBD/0/root and/CC/2/cc left/VBD/2/conj again/RB/4/advmod",
        "Ann/NNP/2/nsubj sang/VBD/0/root ,/,/2/punct he/PRP/5/nsubj left/VBD/2/conj",
        "And/CC/3/cc Ann/NNP/3/nsubj sang/VBD/0/root and/CC/3/cc he/PRP/6/nsubj left/VBD/3/conj",
        # no conjunction by its tag; a clause of one word; a word of the first clause behind the second
        "Ann/NNP/2/nsubj sang/VBD/0/root as/IN/2/cc he/PRP/5/nsubj left/VBD/2/conj",
        "Ann/NNP/2/nsubj sang/VBD/0/root and/CC/2/cc left/VBD/2/conj it/PRP/4/nsubj ,/,/2/punct too/RB/2/advmod",
        "Then/RB/6/advmod Ann/NNP/3/nsubj sang/VBD/0/root and/CC/3/cc he/PRP/6/nsubj left/VBD/3/conj",
        # three clauses; a quotation mark; a bracket; punctuation at the beginning
        "Ann/NNP/2/nsubj sang/VBD/0/root he/PRP/4/nsubj sat/VBD/2/conj and/CC/2/cc I/PRP/7/nsubj left/VBD/2/conj",
        "Ann/NNP/2/nsubj sang/VBD/0/root and/CC/2/cc \"/``/5/punct left/VBD/2/conj he/PRP/5/nsubj",
        "Ann/NNP/2/nsubj sang/VBD/0/root and/CC/2/cc he/PRP/5/nsubj left/VBD/2/conj )/-RRB-/5/punct",
        "-/:/3/punct Ann/NNP/3/nsubj sang/VBD/0/root and/CC/3/cc he/PRP/6/nsubj left/VBD/3/conj",
    ],
)  # fmt: skip
def test_sentences_of_another_form_are_left_out(written):
    assert coordination_inversion([tree(written)], Random(0)) == []


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40), st.integers(0, 5))
def test_the_longer_clause_is_first_equally_often_in_both_classes(lengths, seed):
    sentences = [
        tree(
            f"he{row}/PRP/2/nsubj ran/VBD/0/root "
            + "so/RB/2/advmod " * first
            + f"and/CC/2/cc she/PRP/{first + 5}/nsubj sat/VBD/2/conj"
            + f" then/RB/{first + 5}/advmod" * second,
            str(row),
        )
        for row, (first, second) in enumerate(lengths)
    ]
    found = coordination_inversion(sentences, Random(seed))
    assert len(found) == len(sentences)
    made = balanced_rows(found, 10_000, Random(seed))
    orders = Counter()
    for row in made:
        words = row.text.segments[0].split()
        before = words.index("and")
        orders[row.part, row.label, before - (len(words) - before - 1) > 0] += 1
    for part in ("train", "validation", "test"):
        for longer in (True, False):
            assert orders[part, "O", longer] == orders[part, "I", longer]
