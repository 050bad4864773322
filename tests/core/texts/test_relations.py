import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_checkpoints import TOKENIZERS

from attention_sieve.cache.memory import Memory
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts import parsers, parsing
from attention_sieve.core.texts import relations as parses
from attention_sieve.core.texts.parsers import english_parser, parser_name
from attention_sieve.core.texts.relations import (
    ROOT,
    Relation,
    dependencies,
    parse,
    tagged_dependencies,
    token_pairs,
    token_pairs_of,
)
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize

KINDS = ("bert", "roberta", "albert", "gpt2", "llama")


def relations(*segments, words=None):
    (found,) = parse([Text(segments, words)])
    return found


def as_words(segments, found):
    return {
        (r.name, r.segment, segments[r.segment][slice(*r.dependent)], segments[r.segment][slice(*r.head)])
        for r in found
    }


def test_relations_of_a_sentence_are_the_four_that_roles_are_made_of():
    sentence = "The black cat quickly chased two birds."
    assert as_words([sentence], relations(sentence)) == {
        ("amod", 0, "black", "cat"),
        ("nsubj", 0, "cat", "chased"),
        ("advmod", 0, "quickly", "chased"),
        ("dobj", 0, "birds", "chased"),
    }


def test_a_passive_subject_is_no_subject():
    assert not {r.name for r in relations("The birds were chased by dogs.")} & {"nsubj", "nsubjpass"}


def test_the_words_a_file_brought_are_used():
    """Left to itself the parser would cut "well-known" into three words."""
    words = ("The", "well-known", "cat", "chased", "e.g.", "two", "birds")
    segment = " ".join(words)
    found = relations(segment, words=(words,))
    borders = {(segment.index(word), segment.index(word) + len(word)) for word in words}
    assert {relation.dependent for relation in found} | {relation.head for relation in found} <= borders
    assert ("amod", 0, "well-known", "cat") in as_words([segment], found)
    assert ("amod", 0, "well-known", "cat") not in as_words([segment], relations(segment))


# Whole trees


def tree(text):
    """(word, relation, head's word or None) of each word of one text."""
    (found,) = dependencies([text])
    words = found.words.shown(text)
    heads = [None if head == ROOT else words[head] for head in found.heads]
    return list(zip(words, found.relations, heads))


BROUGHT = Text(
    ("He saw her .", "Red apples"),
    (("He", "saw", "her", "."), ("Red", "apples")),
    ((2, 0, 2, 2), (2, 0)),
    (("nsubj", "ROOT", "obj", "punct"), ("amod", "frag")),
)


def test_every_word_has_its_head_punctuation_among_them():
    assert tree(Text(("The black cat sat.", "It ran."))) == [
        ("The", "det", "cat"),
        ("black", "amod", "cat"),
        ("cat", "nsubj", "sat"),
        ("sat", "root", None),
        (".", "punct", "sat"),
        ("It", "nsubj", "ran"),
        ("ran", "root", None),
        (".", "punct", "ran"),
    ]


def test_blanks_are_no_words_though_the_parser_makes_tokens_of_them():
    text = Text(("The  black \u2003 cat   sat.",))
    assert [word for word, *_ in tree(text)] == ["The", "black", "cat", "sat", "."]
    (found,) = dependencies([text])
    assert all(text.segments[0][start] != " " for start, _ in found.words.spans)
    assert (found.heads < 5).all()


def test_a_head_that_is_a_blank_hands_on_to_its_own_head(monkeypatch):
    """As another pipeline might hang words; the blanks are words 1 and 4 of the parser's."""
    from spacy.tokens import Doc

    pipeline = parsing._pipeline(english_parser())
    text = Text(("red  apples it  ran",))

    def hanging(batch, **_):
        for doc in batch:
            words, spaces = [token.text for token in doc], [bool(token.whitespace_) for token in doc]
            assert [word.isspace() for word in words] == [False, True, False, False, True, False]
            relations = ["amod", "dep", "nsubj", "nsubj", "ROOT", "advcl"]
            yield Doc(doc.vocab, words=words, spaces=spaces, heads=[1, 2, 4, 5, 4, 4], deps=relations)

    monkeypatch.setattr(pipeline, "pipe", hanging)
    assert tree(text) == [
        ("red", "amod", "apples"),
        ("apples", "root", None),
        ("it", "nsubj", "ran"),
        ("ran", "root", None),
    ]


def test_a_text_keeps_the_tree_that_it_brought():
    (found,) = dependencies([BROUGHT])
    assert found.words.shown(BROUGHT) == ("He", "saw", "her", ".", "Red", "apples")
    assert found.words.spans.tolist() == [[0, 2], [3, 6], [7, 10], [11, 12], [0, 3], [4, 10]]
    assert found.heads.tolist() == [1, ROOT, 1, 1, 5, ROOT]
    assert found.relations == ("nsubj", "root", "obj", "punct", "amod", "root")


def test_brought_and_parsed_texts_come_in_the_order_given():
    texts = [Text(("She ran.",)), BROUGHT, Text(("He saw two dogs.", "It sat.")), BROUGHT]
    found = [of_text.words.shown(text) for text, of_text in zip(texts, dependencies(texts), strict=True)]
    assert [(words[0], len(words)) for words in found] == [("She", 3), ("He", 6), ("He", 8), ("He", 6)]


def test_parts_of_speech_come_with_the_same_trees():
    text = Text(("The black cat sat  down.", "She doesn't eat."))
    (plain,), (tagged,) = dependencies([text]), tagged_dependencies([text])
    assert tagged.tags == ("DT", "JJ", "NN", "VBD", "RP", ".", "PRP", "VBZ", "RB", "VB", ".")
    assert plain.tags is None
    assert tagged.heads.tolist() == plain.heads.tolist()
    assert tagged.relations == plain.relations


def test_words_that_were_brought_are_tagged_and_parsed_anew():
    (found,) = tagged_dependencies([BROUGHT])
    assert found.words.shown(BROUGHT) == ("He", "saw", "her", ".", "Red", "apples")
    assert found.tags == ("PRP", "VBD", "PRP", ".", "JJ", "NNS")
    assert found.relations[2] == "dobj"


def test_a_long_text_is_parsed_in_pieces_whose_places_are_those_in_the_text(monkeypatch):
    sentences = "She can't see  seven dogs. He won't eat. "
    text = Text((sentences * 5, sentences))
    whole = tree(text)
    monkeypatch.setattr(parsing, "PIECE_WORDS", 13)
    assert tree(text) == whole
    (found,) = dependencies([text])
    assert found.words.shown(text) == tuple(word for word, *_ in whole)


def test_the_parser_keeps_the_words_of_few_texts_and_forgets_those_of_later_ones(monkeypatch):
    """It keeps every word that it meets for good, unless it is told not to, and a server would grow with each text."""
    strings = parsing._pipeline(english_parser()).vocab.strings
    list(tagged_dependencies([Text(("A first text of blorxes.",))]))
    assert "blorxes" in strings
    monkeypatch.setattr(parsing, "KEPT_STRINGS", 0)
    monkeypatch.setattr(parsing, "PIECE_WORDS", 50)
    n_before = len(strings)
    typed = Text((" ".join(f"{name}ing wug{name}s ran." for name in map("x{:c}q".format, range(97, 123))),))
    brought = Text(("gloobs zorped",), (("gloobs", "zorped"),))
    words = [tree.words.shown(text) for text, tree in zip([typed, brought], tagged_dependencies([typed, brought]))]
    assert [len(of_text) for of_text in words] == [26 * 4, 2]
    assert len(strings) == n_before
    assert "gloobs" not in strings
    assert "wugxaqs" not in strings


def test_a_parse_is_kept_and_serves_what_it_was_parsed_for(monkeypatch):
    texts = [Text(("Ann's  dogs love Paris,", "and she ran.")), Text(("two dogs ran",), (("two", "dogs", "ran"),))]
    pipeline, n_parsed, asked = parsing._pipeline(english_parser()), [], []
    real = pipeline.pipe

    def counting(documents, **options):
        n_parsed.append(len(documents))
        asked.append(set(parsing.OPTIONAL) - set(options["disable"]))
        return real(documents, **options)

    monkeypatch.setattr(pipeline, "pipe", counting)
    named, words = parses.Wanted(entities=True), parses.Wanted(lemmas=True, tags=True, patterns=('[{"POS":"NOUN"}]',))
    memory = Memory(100_000)
    parsing.keep_parses_in(memory)
    fresh = [[dict(vars(tree)) for _, tree in parses.parse_for(texts, wanted)] for wanted in (named, words)]
    assert (n_parsed, asked) == ([3, 3], [{"ner"}, {"tagger", "morphologizer", "attribute_ruler", "lemmatizer"}])
    assert memory.size > 0
    for wanted, expected in zip((named, words), fresh):
        for (_, tree), of_fresh in zip(parses.parse_for(texts, wanted), expected, strict=True):
            for name in ("relations", "tags", "lemmas", "entities", "matches"):
                assert getattr(tree, name) == of_fresh[name]
            np.testing.assert_array_equal(tree.heads, of_fresh["heads"])
            np.testing.assert_array_equal(tree.words.spans, of_fresh["words"].spans)
    assert n_parsed[2:] == [0, 0]
    memory.forget(float("inf"))
    list(parses.parse_for(texts, named))
    assert n_parsed[4:] == [3]


def test_without_a_memory_the_parses_of_the_last_words_are_kept():
    last, two = parsing.LastParses(5), {"words": ["She", "ran"]}
    for key in ("a", "a", "b"):
        last.put("parse", key, two)
    assert last.get("parse", "a") is two, "the same text twice is two words"
    last.put("parse", "c", two)
    assert [last.get("parse", key) for key in "abc"] == [two, None, two]


def test_the_sieve_takes_relations_that_a_text_brought_and_knows_obj_as_dobj():
    assert as_words(BROUGHT.segments, next(parse([BROUGHT]))) == {
        ("nsubj", 0, "He", "saw"),
        ("dobj", 0, "her", "saw"),
        ("amod", 1, "Red", "apples"),
    }


def test_without_a_parser_the_reader_is_told_how_to_install_one_and_a_tree_that_was_brought_needs_none(monkeypatch):
    for package in parsers.PIPELINES:
        monkeypatch.setitem(sys.modules, package, None)  # what Python takes for a package that is not there
    assert len(list(dependencies([BROUGHT]))) == 1
    message = r"^No English parser is installed, so syntactic roles cannot be scored\. Install one with: pip install"
    with pytest.raises(AnalysisError, match=message):
        list(parse([Text(("She ran.",))]))
    with pytest.raises(AnalysisError, match=message):
        parser_name()


def test_the_parsers_name_tells_package_and_versions():
    assert parser_name().startswith("en_core_web_sm")
    assert "spacy 3." in parser_name()


def pieces(kind, *segments, of):
    """Token pairs of relations given as (segment, dependent, head), each by its words' places in the text."""
    text = tokenize(Text(segments), TOKENIZERS[kind](), 500)
    found = token_pairs(text, [Relation("amod", *relation) for relation in of])
    return text, found


def test_a_pair_keeps_every_piece_worked_by_hand():
    """[CLS] un ##believ ##able dog ##s [SEP]"""
    text, (pair,) = pieces("bert", "unbelievable dogs", of=[(0, (0, 12), (13, 17))])
    assert text.tokens[1:6] == ("un", "##believ", "##able", "dog", "##s")
    assert pair.dependent.tolist() == [1, 2, 3]
    assert pair.head.tolist() == [4, 5]


TRICKY = (
    "  The naïve café's black-coated cat doesn't eat 🙂 red apples; the cat sat.",
    "Unbelievably, the cat’s “new” house wasn't old.",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_of_the_parser_keeps_all_pieces_of_both_words_and_no_other(kind):
    found = relations(*TRICKY)
    assert len(found) >= 6
    text = tokenize(Text(TRICKY), TOKENIZERS[kind](), 500)
    pairs = token_pairs(text, found)
    assert len(pairs) == len(found)
    for relation, pair in zip(found, pairs):
        assert pair.name == relation.name
        for span, of_word in ((relation.dependent, pair.dependent), (relation.head, pair.head)):
            assert (text.segments[of_word] == relation.segment).all()
            assert (np.diff(of_word) == 1).all(), "pieces of a word are neighbours"
            assert characters(text.spans[of_word]) >= set(range(*span))
            for start, end in text.spans[of_word]:
                assert start < span[1]
                assert end > span[0]


def characters(spans):
    return {place for start, end in spans for place in range(start, end)}


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_word_keeps_all_its_pieces_wherever_it_stands(kind, data):
    words = data.draw(
        st.lists(st.sampled_from(("cat", "café", "zyxzyx", "don't", "🙂", "e-mail", "CAT", "naïve", "“x”")), min_size=2)
    )
    blanks = data.draw(st.lists(st.sampled_from((" ", "  ")), min_size=len(words), max_size=len(words)))
    starts, segment = [], ""
    for blank, word in zip(blanks, words):
        starts.append(len(segment + blank))
        segment += blank + word
    spans = [(start, start + len(word)) for start, word in zip(starts, words)]
    text, pairs = pieces(kind, segment, of=[(0, span, spans[0]) for span in spans])
    assert len(pairs) == len(words)
    for pair, span in zip(pairs, spans):
        assert characters(text.spans[pair.dependent]) == set(range(*span))
    standing = [place for pair in pairs for place in pair.dependent.tolist()]
    empty = (text.segments == 0) & (text.spans[:, 0] == text.spans[:, 1])
    assert sorted(standing) == np.flatnonzero((text.segments == 0) & ~empty).tolist()


def test_a_pair_whose_word_was_cut_off_is_dropped():
    text = tokenize(Text(("red cat",)), TOKENIZERS["bert"](), 3, truncate=True)
    assert text.tokens == ("[CLS]", "red", "[SEP]")
    assert token_pairs(text, [Relation("amod", 0, (0, 3), (4, 7))]) == ()
    assert len(token_pairs(text, [Relation("amod", 0, (0, 3), (0, 3))])) == 1


def test_two_threads_do_not_use_the_parser_at_once(monkeypatch):
    """The second begins while the first is inside, and has to wait."""
    real, inside, most = parsing._pipeline(english_parser()), 0, 0
    second = threading.Thread(target=lambda: list(parse([Text(("She left.",))])))

    class Watched:
        vocab, pipe_names = real.vocab, real.pipe_names

        def __init__(self, _):
            """In place of the package."""

        def make_doc(self, text):
            return real.make_doc(text)

        def pipe(self, documents, **options):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            if not second.ident:
                second.start()
                second.join(0.2)
            found = list(real.pipe(documents, **options))
            inside -= 1
            return found

    monkeypatch.setattr(parsing, "_pipeline", Watched)
    (found,) = parse([Text(("He sold it.",))])
    second.join()
    assert {relation.name for relation in found} == {"nsubj", "dobj"}
    assert most == 1


@pytest.mark.parametrize("at_once", [None, 40])
def test_pairs_of_many_texts_at_once_are_those_of_each_alone(at_once, monkeypatch):
    if at_once is not None:
        monkeypatch.setattr("attention_sieve.core.texts.relations.SPAN_CELLS", at_once)
    segments = [TRICKY, ("dogs",), ("She eats red apples.",), TRICKY[::-1], ("unbelievable cats ran",)]
    texts = [tokenize(Text(each), TOKENIZERS["bert"](), 500) for each in segments]
    found = list(parse([Text(each) for each in segments]))
    assert [bool(each) for each in found] == [True, False, True, True, True]
    for text, of_text, pairs in zip(texts, found, token_pairs_of(texts, found), strict=True):
        alone = token_pairs(text, of_text)
        assert [pair.name for pair in pairs] == [pair.name for pair in alone]
        assert bool(pairs) == bool(of_text)
        for one, other in zip(pairs, alone):
            np.testing.assert_array_equal(one.dependent, other.dependent)
            np.testing.assert_array_equal(one.head, other.head)
    assert token_pairs_of([], []) == []
