import numpy as np
import pytest
from made_trees import HE_SAW_DOGS, conllu, flat

from attention_sieve.core.errors import TextError
from attention_sieve.core.knowledge.from_trees import sentences as module
from attention_sieve.core.knowledge.from_trees.sentences import (
    ParsedSentence,
    conllu_sentences,
    is_punctuation,
    n_documents,
    parsed_sentences,
    usable,
)
from attention_sieve.core.texts.relations import ROOT, Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import Words


def test_a_conllu_file_gives_its_trees_with_tags_and_documents():
    content = "# newdoc id = story\n" + conllu(HE_SAW_DOGS)
    (found,) = conllu_sentences("a.conllu", content.encode())
    assert found == ParsedSentence(
        HE_SAW_DOGS.words, HE_SAW_DOGS.tags, HE_SAW_DOGS.heads, HE_SAW_DOGS.relations, "a.conllu: story"
    )
    assert found.root == 1
    assert found.children_by(1, "nsubj", "dobj") == (0, 4)
    assert found.subtree(4) == {2, 3, 4}


@pytest.mark.parametrize(
    ("universal", "expected"),
    [("obj", "dobj"), ("nsubj:pass", "nsubjpass"), ("nsubj:outer", "nsubj"), ("obl:tmod", "obl"), ("iobj", "iobj")],
)
def test_relations_of_universal_dependencies_get_the_parsers_names(universal, expected):
    content = conllu(HE_SAW_DOGS).replace("dobj", universal)
    (found,) = conllu_sentences("a", content.encode())
    assert found.relations[4] == expected


def test_sentences_of_several_roots_are_left_out():
    content = conllu(HE_SAW_DOGS).replace("\t2\tdobj", "\t0\tdobj") + conllu(HE_SAW_DOGS)
    assert len(list(conllu_sentences("a", content.encode()))) == 1


def test_a_broken_conllu_file_is_named_with_its_line():
    with pytest.raises(TextError, match=r"^Line 2: the number of columns is 2 and CoNLL-U has 10\."):
        list(conllu_sentences("a", b"# c\n1\tHe\n"))
    with pytest.raises(TextError, match=r"^a holds no sentence\.$"):
        list(conllu_sentences("a", b"# nothing\n"))


def test_too_many_sentences_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_SENTENCES", 2)
    content = conllu(HE_SAW_DOGS, HE_SAW_DOGS, HE_SAW_DOGS).encode()
    with pytest.raises(TextError, match=r"^a has more than 2 sentences\. Split it"):
        list(conllu_sentences("a", content))
    with pytest.raises(TextError, match=r"^There are more than 2 sentences\."):
        usable(flat(f"a b c d {number}") for number in range(3))


def test_the_parser_gives_each_sentence_of_a_text():
    first, second = parsed_sentences([Text(("The black cat sat  down. Two dogs ran!",), document="story")])
    assert first.words == ("The", "black", "cat", "sat", "down", ".")
    assert first.tags == ("DT", "JJ", "NN", "VBD", "RP", ".")
    assert (first.root, first.heads[2], first.relations[2]) == (3, 3, "nsubj")
    assert second.words == ("Two", "dogs", "ran", "!")
    assert second.heads[second.root] == ROOT
    assert {first.document, second.document} == {"story"}
    found = parsed_sentences([Text(("He sat. She ran.",)), Text(("It works.", "They know."))])
    assert [sentence.document for sentence in found] == ["text 1", "text 1", "text 2", "text 2"]


def test_a_sentence_that_another_one_interrupts_is_left_out(monkeypatch):
    """Words 1 and 4 are of one tree, words 2 and 3 of another, word 5 is alone."""
    words = Words(segments=np.zeros(5, int), spans=np.array([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]))
    heads, relations = np.array([ROOT, ROOT, 1, 0, ROOT]), ("root", "root", "dep", "dep", "root")
    crossed = Dependencies(words=words, heads=heads, relations=relations, tags=("X",) * 5)
    monkeypatch.setattr(module, "tagged_dependencies", lambda texts: iter([crossed]))
    assert [one.words for one in parsed_sentences([Text(("a b c d e",))])] == [("b", "c"), ("e",)]


def test_short_long_and_equal_sentences_are_not_used():
    of = {length: flat(" ".join(["w"] * length), f"d{length}") for length in (4, 5, 28, 29)}
    assert [len(one.words) for one in usable([*of.values(), of[5]])] == [5, 28]


def test_few_documents_are_split_by_sentence():
    sentences = [flat(f"a b c d {number}", f"document {number // 2}") for number in range(60)]
    assert n_documents(usable(sentences)) == 30
    assert n_documents(usable(sentences[:58])) == 58


def test_punctuation_has_no_letter_and_no_digit():
    assert all(map(is_punctuation, (".", "''", "``", "--", "$", "(", "…")))
    assert not any(map(is_punctuation, ("n't", "'s", "3", "é", "e-mail")))
