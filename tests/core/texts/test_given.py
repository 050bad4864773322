"""Texts with words, heads and relations: CoNLL-U, Clark's JSON, and word pieces joined back to a text."""

import gzip
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_checkpoints import TOKENIZERS

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.given import checked_tree, read_conllu
from attention_sieve.core.texts.text import MAX_TEXTS, Text, read_file
from attention_sieve.core.texts.tokens import tokenize

HE_SAW = Text(("He saw her .",), (("He", "saw", "her", "."),), ((2, 0, 2, 2),), (("nsubj", "root", "obj", "punct"),))
IT_RAN = Text(("It ran",), (("It", "ran"),), ((2, 0),), (("nsubj", "root"),))
CONLLU = """\
# newdoc id = first
# text = He saw her.
1\tHe\the\tPRON\tPRP\tCase=Nom\t2\tnsubj\t2:nsubj\t_
2\tsaw\tsee\tVERB\tVBD\t_\t0\troot\t0:root\t_
3\ther\tshe\tPRON\tPRP\t_\t2\tobj\t2:obj\tSpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t2:punct\t_

1\tIt\tit\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\t_
"""


def row(number, form="x", head="0", relation="root"):
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"


def read(content, name="a.conllu"):
    return read_file(name, content.encode())


def without_documents(texts):
    return tuple(replace(text, document=None) for text in texts)


# CoNLL-U


@pytest.mark.parametrize("name", ["a.conllu", "A.CoNLLU"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_sentence_is_a_text_of_its_words(name, end):
    assert without_documents(read(CONLLU.replace("\n", end), name)) == (HE_SAW, IT_RAN)


def test_the_tags_of_a_language_are_read():
    assert [sentence.tags for sentence in read_conllu(CONLLU)] == [("PRP", "VBD", "PRP", "."), ("PRP", "VBD")]


def test_ranges_and_empty_nodes_are_no_words():
    content = row("1-2", "don't", "_", "_") + row(1, "do", 2, "aux") + row(2, "n't") + row("2.1", "said", "_", "_")
    (found,) = read(row("0.1", "so", "_", "_") + content + row(3, "go", 2, "dep"))
    assert found == Text(("do n't go",), (("do", "n't", "go"),), ((2, 0, 2),), (("aux", "root", "dep"),))


def test_comments_may_stand_anywhere_and_many_lines_between_sentences():
    content = (
        "\n\n# a\n" + row(1, "One") + "# 2\tTwo\n" + row(2, "more", 1, "amod") + " \n\n# only comments\n\n" + row(1)
    )
    assert [text.segments for text in read(content)] == [("One more",), ("x",)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_documents_begin_with_a_comment_and_last_until_the_next(end):
    """A document without an id is one of its own; an id that comes again is the same document."""
    content = (
        (row(1) + "\n")
        + ("# newdoc id = first one \n# newpar\n" + row(1) + "\n" + row(1) + "\n")
        + ("#newdoc\n" + row(1) + "# newdoc id = second\n" + row(2, head=1) + "\n")
        + ("# newdocument\n# about = # newdoc\n" + row(1) + "\n# newdoc id =\n\n" + row(1) + "\n")
        + ("# newdoc id=first one\n" + row(1))
    )
    found = [text.document for text in read(content.replace("\n", end))]
    assert found == [None, "first one", "first one", "from line 9", "second", "from line 18", "first one"]


def test_a_form_may_hold_blanks_which_are_kept_in_the_word():
    (found,) = read(row(1, " 20 000 ", 2, "nummod") + row(2, "cats"))
    assert (found.segments, found.words) == (("20 000 cats",), (("20 000", "cats"),))


def test_a_sentence_may_have_several_roots():
    (found,) = read(row(1, "Yes") + row(2, "No"))
    assert found.heads == ((0, 0),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\tHe\t_\n", r"^Line 4: the number of columns is 3 and CoNLL-U has 10\. Separate them by tabs"),
        (row(1).rstrip() + "\t_\n", r"^Line 4: the number of columns is 11 and"),
        (row(2), r'^Line 4 begins with "2" and word 1 of the sentence is expected\. Number the words from 1'),
        (row("x" * 5000), r'^Line 4 begins with "x{40}" and word 1'),
        (row(1, head="_"), r'^Line 4: the head is "_"\. Write the number of the head, 0 for a root, in column 7'),
        (row(1, head="٣"), r"^Line 4: the head is"),
        (row(1, head="2"), r"^The sentence from line 4: word 1 has head 2 and the last word is 1\. Count heads from 1"),
        (row(1, relation=" "), r"^The sentence from line 4: word 1 has a relation without a name"),
        (row(1) + row(2, form=" ", head=1), r"^The sentence from line 4: word 2 is empty\. Remove it or fill it in"),
        (
            row(1, head=1),
            r"^The sentence from line 4: following the heads from word 1 leads back to it\. Every word must",
        ),
        (row(1, head=2) + row(2, head=3) + row(3, head=1), r"following the heads from word \d leads back to it"),
        (row(1, "a\0"), r"^Line 4 holds a NUL byte"),
        (row(1, "x" * 500_001), r"^The sentence from line 4: the text has 500,001 characters and at most 500,000"),
    ],
)
def test_a_broken_sentence_is_named_with_its_line(content, message):
    with pytest.raises(TextError, match=message):
        read("# text = Fine.\n" + row(1) + "\n" + content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# nothing\n\n# here\n", r"^The file holds no sentence\."),
        ((row(1) + "\n") * (MAX_TEXTS + 1), r"^There are 5,001 texts and at most 5,000 are read"),
    ],
)
def test_a_file_without_sentences_or_with_too_many_is_refused(content, message):
    with pytest.raises(TextError, match=message):
        read(content)


# Trees


@st.composite
def trees(draw):
    """Heads of a tree, words in any order."""
    order = draw(st.permutations(range(1, draw(st.integers(1, 12)) + 1)))
    above = [draw(st.sampled_from([0, *order[:place]])) for place in range(len(order))]
    return [head for _, head in sorted(zip(order, above))]


@given(trees())
def test_every_tree_is_taken(heads):
    assert checked_tree(heads, ["x"] * len(heads), len(heads), "Here").heads == tuple(heads)


@given(trees(), st.data())
def test_a_word_hung_below_itself_is_found(heads, data):
    word = data.draw(st.integers(1, len(heads)))
    below = [word]
    for place in range(1, len(heads) + 1):
        above = place
        while above and above != word:
            above = heads[above - 1]
        below += [place] if above == word else []
    heads[word - 1] = data.draw(st.sampled_from(below))
    with pytest.raises(TextError, match=r"^Here: following the heads from word (\d+) leads back to it") as caught:
        checked_tree(heads, ["x"] * len(heads), len(heads), "Here")
    named = start = int(str(caught.value).split("word ")[1].split()[0])
    for _ in heads:
        named = heads[named - 1]
        if named == start:
            return
    raise AssertionError("the word named does not lead back to itself")


def test_a_very_long_chain_is_checked_at_once():
    n_words = 200_000
    assert len(checked_tree(range(n_words), ["x"] * n_words, n_words, "Here").heads) == n_words


# Clark's JSON


def clark(text):
    (words,), (heads,), (relations,) = text.words, text.heads, text.relations
    return {"words": words, "heads": heads, "relns": relations, "sent_id": "extra keys are passed over"}


def test_words_with_heads_and_relations_in_all_three_forms():
    items = [clark(HE_SAW), clark(IT_RAN)]
    assert read("\n".join(map(json.dumps, items)), "a.jsonl") == (HE_SAW, IT_RAN)
    assert read(json.dumps(items), "a.json") == (HE_SAW, IT_RAN)
    lists = {key: [item[key] for item in items] for key in ("words", "heads", "relns")}
    assert read(json.dumps(lists), "a.json") == (HE_SAW, IT_RAN)
    assert read(json.dumps(items[0]), "a.json") == (HE_SAW,)


@pytest.mark.parametrize(
    ("item", "segments"),
    [
        ({"text": ["One.", "Two."]}, [("One.",), ("Two.",)]),
        ({"text_a": ["a", "b"], "text_b": ["c", "d"], "label": 3}, [("a", "c"), ("b", "d")]),
        ({"tokens": [["[CLS]", "a", "##b", "[SEP]"], ["c"]]}, [("ab",), ("c",)]),
        ({"words": [["a", "b"], ["c"]]}, [("a b",), ("c",)]),
        ({"words": ["a", "b"]}, [("a b",)]),
        ({"tokens": ["a", "b"]}, [("a b",)]),
    ],
)
def test_an_object_may_hold_one_text_or_a_list_under_each_key(item, segments):
    assert [text.segments for text in read(json.dumps(item), "a.json")] == segments


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": None}, r'^Line 2: "heads" is null\. Write a list of whole numbers'),
        ({"heads": [2, 0]}, r"^Line 2: the number of words is 4 and of heads 2\. Give one for each word"),
        ({"heads": [2, 0, 2, 5]}, r"^Line 2: word 4 has head 5 and the last word is 4"),
        ({"heads": [2, 0, 3, 2]}, r"^Line 2: following the heads from word 3 leads back to it"),
        ({"heads": [2, 0, 2, 1.5]}, r"^Line 2: head 4 is 1\.5\. Write the number of the word's head, counted from 1"),
        ({"heads": [2, 0, 2, True]}, r"^Line 2: head 4 is true or false"),
        ({"heads": [2, 0, 2, 10**400]}, r"^Line 2: head 4 is inf"),
        ({"relns": ["a", "b", "c", ""]}, r"^Line 2: word 4 has a relation without a name"),
        ({"relns": ["a", "b", "c", 4]}, r"^Line 2: relation 4 is a number\. Write a list of strings"),
        (
            {"relns": ["a", "b", "c", "d" * 101]},
            r"^Line 2: the relation of word 4 has a name of more than 100 characters",
        ),
        ({"relns": ["a", "b\ud800", "c", "d"]}, r"^Line 2: the relation of word 2 has .* that cannot be shown"),
        ({"relns": ...}, r'^Line 2 has no "relns"\. Give both "heads" and "relns", or neither'),
        ({"heads": ...}, r'^Line 2 has no "heads"\. Give both'),
        ({"words": ..., "text": "He saw her ."}, r'^Line 2 has "heads" but no "words"'),
        ({"words": ["He", "\ufeff", "her", "."]}, r"^Line 2: word 2 is empty"),
        ({"tokens": ["He"]}, r"^Line 2 has both words and tokens\. Keep one of them"),
    ],
)
def test_a_broken_tree_in_json_is_named_with_its_item(change, message):
    item = {key: value for key, value in (clark(HE_SAW) | change).items() if value is not ...}
    with pytest.raises(TextError, match=message):
        read('{"text": "Fine."}\n' + json.dumps(item), "a.jsonl")


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            {"words": [["a"], ["b"]], "heads": [[0]]},
            r'^The lists in the object differ in length: 2 under "words" and 1 under "heads"\. Give each text an entry',
        ),
        (
            {"words": [["a"], ["b"]], "heads": 1, "relns": [["x"]]},
            r'^The object: "heads" is a number\. Write a list of',
        ),
        ({"text_a": ["a"], "text_b": "b"}, r'^The object: "text_b" is a string\. Write a list of one entry per text'),
        ({"words": [["a"], []]}, r"^Item 2: the text is empty"),
        ({"text": []}, r"^The list in the file is empty"),
    ],
)
def test_broken_lists_in_an_object_are_named(item, message):
    with pytest.raises(TextError, match=message):
        read(json.dumps(item), "a.json")


# Word pieces


@pytest.mark.parametrize(
    ("pieces", "segments"),
    [
        ("[CLS] un ##believ ##able cats [SEP]", ("unbelievable cats",)),
        ("[CLS] who ? [SEP] the cat . [SEP]", ("who ?", "the cat .")),
        ("who ? [SEP] me", ("who ?", "me")),
        ("##able cats", ("able cats",)),
        ("[CLS] a [SEP] ##b ##c", ("a", "bc")),
        ("a ## b [UNK] [MASK]", ("a ## b [UNK] [MASK]",)),
    ],
)
def test_pieces_are_joined_to_the_text_they_were_made_from(pieces, segments):
    assert read(json.dumps({"tokens": pieces.split()}), "a.jsonl") == (Text(segments),)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["[CLS]", "a", "[CLS]"], r"^Line 1: token 3 is \[CLS\], which only begins a text\. Remove it"),
        (
            ["a", "[SEP]", "b", "[SEP]", "c"],
            r"^Line 1: its tokens have 3 segments and a text has one or two\. Keep one",
        ),
        (["[CLS]", "[SEP]"], r"^Line 1: the text is empty"),
        (["a", None], r"^Line 1: token 2 is null\. Write a list of strings"),
        ("a b", r'^Line 1: "tokens" is a string\. Write a list of strings'),
    ],
)
def test_broken_pieces_are_named(tokens, message):
    with pytest.raises(TextError, match=message):
        read(json.dumps({"tokens": tokens}), "a.jsonl")


@given(st.lists(st.text("abz1.,'é", min_size=1, max_size=9), min_size=1, max_size=9).map(" ".join), st.booleans())
@settings(deadline=None)
def test_the_tokens_of_a_text_come_back_as_the_same_tokens(text, is_pair):
    tokenizer = TOKENIZERS["bert"]()
    given_text = Text((text, "she's un-believably old")) if is_pair else Text((text,))
    tokens = tokenize(given_text, tokenizer, 500)
    if "[UNK]" in tokens.tokens:
        return
    names = tokenizer.convert_ids_to_tokens(tokens.ids.tolist())
    (found,) = read(json.dumps({"tokens": names}), "a.json")
    assert len(found.segments) == 1 + is_pair
    assert tokenize(found, tokenizer, 500).ids.tolist() == tokens.ids.tolist()


# Real files


def unpacked(path):
    return path.name.removesuffix(".gz"), gzip.decompress(path.read_bytes())


@pytest.mark.parametrize(
    ("path", "n_texts", "n_documents"),
    [
        ("ud_ewt/en_ewt-ud-dev.conllu.gz", 2_001, 318),
        ("ud_ewt/en_ewt-ud-train3000.conllu.gz", 3_010, 137),
        ("pud/en_pud-ud-test.conllu.gz", 1_000, 397),
        ("ud_gum/en_gum-ud-dev.conllu.gz", 1_575, 30),
    ],
)
def test_treebanks_are_read_whole(path, n_texts, n_documents, shared):
    name, content = unpacked(shared / "data" / path)
    texts = read_file(name, content)
    lines = [line.split("\t") for line in content.decode().splitlines() if line and not line.startswith("#")]
    words = [cells for cells in lines if cells[0].isdigit()]
    assert len(texts) == n_texts
    assert len({text.document for text in texts}) == n_documents
    assert sum(len(text.words[0]) for text in texts) == len(words)
    assert [head for text in texts for head in text.heads[0]] == [int(cells[6]) for cells in words]
    assert [name for text in texts for name in text.relations[0]] == [cells[7] for cells in words]


def test_the_same_treebank_as_conllu_and_as_json_is_the_same(shared):
    folder = shared / "data" / "ud_ewt"
    of_conllu, of_json = (
        read_file(*unpacked(folder / name)) for name in ("en_ewt-ud-dev.conllu.gz", "ewt_dev.clark_ud.jsonl.gz")
    )
    assert without_documents(of_conllu) == of_json
