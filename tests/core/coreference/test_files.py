"""Readers of gold mentions, what they find out themselves, and texts cut to windows."""

import gzip
import json
import random

import pytest
from parses import unparsed

from attention_sieve.core.coreference.files import GAP_COLUMNS, read_mentions
from attention_sieve.core.coreference.mentions import MAX_MENTIONS, windows
from attention_sieve.core.errors import AnalysisError, TextError

CLUSTERS = {
    "text": "Mrs Ann Lee met the dog's owner.\tShe thanked Lee's friend.",
    "clusters": [[[0, 11], [33, 36], [45, 48]], [[16, 31]]],
}
DOCUMENT = {
    "doc": "story",
    "sentences": [["Ann", "saw", "this", "dog", "."], ["It", "saw", "her", "."]],
    "xpos": [["NNP", "VBD", "DT", "NN", "."], ["PRP", "VBD", "PRP", "."]],
    "mentions": [
        {"cluster": "1", "sent": 0, "start": 0, "end": 0, "head": 0},
        {"cluster": "2", "sent": 0, "start": 2, "end": 3, "head": 3},
        {"cluster": "2", "sent": 1, "start": 0, "end": 0, "head": 0},
        {"cluster": "1", "sent": 1, "start": 2, "end": 2, "head": 2},
    ],
}
WINDOW = {
    "doc": "story",
    "words": ["Ann", "saw", "this", "dog", ".", "It", "barked"],
    "mentions": [
        {"start": 2, "end": 3, "head": 3, "cluster": "2"},
        {"start": 2, "end": 2, "head": 2, "cluster": "9"},
        {"start": 3, "end": 3, "head": 3, "cluster": "8"},
        {"start": 5, "end": 5, "head": 5, "cluster": "2"},
    ],
    "anaphors": [{"head": 5, "type": "pronoun", "antecedent_heads": [3]}],
}


def read(value):
    return read_mentions((value if isinstance(value, str) else json.dumps(value)).encode())


def heads(text):
    return [(text.shown[one.head], one.type, one.entity) for one in text.mentions]


def test_clusters_in_running_text():
    (text,) = read(CLUSTERS)
    assert text.text.words is None
    assert text.text.segments[0] == CLUSTERS["text"].replace("\t", " ")
    # The head word of "the dog's owner" is its syntactic head; words end where mentions do, so Lee is apart from 's.
    assert heads(text) == [
        ("Lee", "proper", "1"),
        ("owner", "nominal", "2"),
        ("She", "pronoun", "1"),
        ("Lee", "proper", "1"),
    ]
    assert text.antecedents == ((), (), (0,), (0, 2))
    assert [text.shown[end - 1] for end in text.sentence_ends] == [".", "."]


def test_outer_blanks_do_not_shift_mentions():
    (text,) = read({"text": "\n\ufeff Bo sat. He ate.", "clusters": [[[3, 5], [11, 13]]]})
    assert heads(text) == [("Bo", "nominal", "1"), ("He", "pronoun", "1")]


def test_clusters_by_words_with_types_and_a_name():
    item = {"words": ["Bo", "ate", "his", "pie"], "clusters": [[[0, 1], [2, 3]], [[2, 4]]], "name": "pie"}
    (text,) = read([item | {"types": [["proper", "pronoun"], ["nominal"]]}])
    assert heads(text) == [("Bo", "proper", "1"), ("his", "pronoun", "1"), ("pie", "nominal", "2")]
    assert text.name == "pie"
    assert text.text.words == (("Bo", "ate", "his", "pie"),)
    assert text.spans == ((0, 2), (3, 6), (7, 10), (11, 14))


@pytest.mark.parametrize(
    "item",
    [
        {"words": ["The", "dog", "I", "saw", "ran"], "clusters": [[[0, 4]], [[2, 3]]], "heads": [[1], [2]]},
        {"text": "The dog I saw ran", "clusters": [[[0, 13]], [[8, 9]]], "heads": [[4], [8]]},
    ],
)
def test_given_head_words_need_no_parser(item):
    sentence = "The dog I saw ran"
    with unparsed(sentence, tuple(sentence.split())):
        assert heads(*read(item)) == [("dog", "nominal", "1"), ("I", "pronoun", "2")]


def test_objects_one_a_line_one_alone_and_in_a_list_are_the_same():
    line = json.dumps(CLUSTERS)
    alone, listed = read(CLUSTERS), read([CLUSTERS, CLUSTERS])
    lines = read(f"{line}\n\n{line}\n")
    assert [text.mentions for text in lines] == [text.mentions for text in listed] == [alone[0].mentions] * 2
    assert [text.name for text in lines] == ["Line 1", "Line 3"]
    assert read(json.dumps(CLUSTERS, indent=1))[0].mentions == alone[0].mentions


def test_a_document_of_gum():
    (text,) = read(DOCUMENT)
    assert heads(text) == [
        ("Ann", "proper", "1"),
        ("dog", "nominal", "2"),
        ("It", "pronoun", "2"),
        ("her", "pronoun", "1"),
    ]
    assert (text.name, text.sentence_ends, text.is_excerpt) == ("story", (5, 9), False)
    assert (text.mentions[1].start, text.mentions[1].end) == (2, 4)
    universal = {key: value for key, value in DOCUMENT.items() if key != "xpos"}
    universal["upos"] = [["PROPN", "VERB", "DET", "NOUN", "PUNCT"], ["PRON", "VERB", "PRON", "PUNCT"]]
    assert read(universal)[0].mentions == text.mentions


def test_a_window_of_gum_keeps_the_longest_mention_of_a_head_word():
    (text,) = read(WINDOW)
    assert heads(text) == [("this", "nominal", "9"), ("dog", "nominal", "2"), ("It", "pronoun", "2")]
    assert text.is_excerpt


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_windows_say_who_refers_back_to_whom(shared, gum, split):
    name = f"antecedent_windows_{split}"
    content = gunzipped(shared / "data" / "ud_gum" / f"gum_{name}.jsonl.gz")
    for line, text in zip(content.decode().splitlines(), gum(name), strict=True):
        expected = [(one["head"], one["type"], sorted(one["antecedent_heads"])) for one in json.loads(line)["anaphors"]]
        found = [
            (one.head, one.type, [text.mentions[place].head for place in before])
            for one, before in zip(text.mentions, text.antecedents)
            if before
        ]
        assert found == sorted(expected)


def gunzipped(path):
    return gzip.decompress(path.read_bytes())


def gap(*rows):
    return "\n".join("\t".join(cells) for cells in (("ID", *GAP_COLUMNS), *rows)) + "\n"


def gap_row(text, pronoun, a, a_flag, b, b_flag):
    places = [str(text.index(name)) for name in (pronoun, a, b)]
    return ("q-1", text, pronoun, places[0], a, places[1], a_flag, b, places[2], b_flag)


def test_gap_asks_for_the_pronoun_alone():
    quoted = 'Ann "Annie" Lee and Bo Ek met; her dog ran to Cy Ng.'
    later, earlier = read(gap(gap_row(quoted, "her", "Ann", "FALSE", "Cy", "TRUE"),
                              gap_row(quoted, "her", 'Ann "Annie" Lee', "TRUE", "Bo Ek", "FALSE")))  # fmt: skip
    # A name that comes after the pronoun is no antecedent and no candidate.
    assert heads(later) == [("Ann", "proper", "A"), ("her", "pronoun", "pronoun")]
    assert not any(later.antecedents)
    assert [one.entity for one in earlier.mentions] == ["pronoun", "B", "pronoun"]
    assert earlier.antecedents == ((), (), (0,))
    assert (earlier.name, earlier.is_excerpt) == ("q-1", True)
    assert earlier.shown[earlier.mentions[1].head] == "Ek"


def test_all_of_gap_can_be_read(shared):
    texts = read_mentions(gunzipped(shared / "data" / "gap" / "gap-validation.tsv.gz"))
    assert len(texts) == 454
    assert sum(any(text.antecedents) for text in texts) == 312  # pronouns with their name before them, counted by hand
    for text in texts:
        assert sum(one.type == "pronoun" for one in text.mentions) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "The file is empty. Choose JSON with clusters, UD GUM as JSON, or GAP as a table with tabs."),
        ("# sent_id = 1\n1\tAnn", "This looks like CoNLL-U, which does not mark mentions. Choose JSON with clusters"),
        ("\t".join("1234567890"), "This looks like CoNLL-U"),
        ("Ann left.", 'This is not JSON, and the first line names no column "Text". Choose JSON with clusters'),
        ('{"text": "a", }', "Illegal trailing comma|Expecting property name .* at line 1, character 1[45]"),
        ([3], 'Item 1 is a number. Write an object with clusters, such as {"text": "Ann left.'),
        ([{"text": "Ann left."}], "Item 1 has no mentions. Write an object with clusters, such as"),
        ([{"text": "Ann", "clusters": []}], "The file has 1 text and no mention. Choose JSON"),
        ([CLUSTERS | {"name": "a\udc80"}], r'Item 1: "name" holds U\+DC80 at character 2, which is not a character of'),
        ([{"clusters": []}], 'Item 1 has neither "text" and "words". Give one of them.'),
        ([{"text": 3, "clusters": []}], 'Item 1: "text" is a number. Write a string.'),
        ([{"text": "Ann", "clusters": {}}], 'Item 1: "clusters" is an object. Write a list.'),
        ([{"text": "Ann", "clusters": [[[0]]]}], r"Item 1, cluster 1 has a mention that is not a pair \[start, end\]."),
        ([{"text": "Ann", "clusters": [[[0, 1.5]]]}], 'Item 1, cluster 1: "end" is 1.5. Write a whole number, counted'),
        ([{"text": "Ann", "clusters": [[[2, 4]]]}], r"Item 1: a mention is \[2, 4\] and the text has 3 characters."),
        ([{"words": ["Ann"], "clusters": [[[0, 0]]]}], r"is \[0, 0\] and the text has 1 words. The first is 0"),
        ([{"text": "Ann  left", "clusters": [[[3, 5]]]}], r"the mention \[3, 5\] is '  ', which holds no word."),
        (
            [{"text": "Ann", "clusters": [[[0, 3]]], "types": [["name"]]}],
            "the type of a mention is 'name'. Write one of: pronoun, proper, nominal.",
        ),
        (
            [{"text": "Ann left", "clusters": [[[0, 3]]], "heads": [[4]]}],
            r"the mention \[0, 3\] has its head word at 4, outside of it. Correct one of them.",
        ),
        ([{"words": ["Ann", 3], "clusters": [[[0, 1]]]}], "Item 1: word 2 is a number. Write a string."),
        ([{"words": ["Ann", " "], "clusters": [[[0, 1]]]}], "Item 1, word 2: the text is empty."),
        ([WINDOW | {"mentions": [{"start": 0, "end": 1, "head": 2, "cluster": "1"}]}], "mention 1 has the words 0 to"),
        ([WINDOW | {"mentions": [{"start": 0, "end": 1, "head": 1}]}], 'Item 1, mention 1 has no "cluster". Add it.'),
        (
            [DOCUMENT | {"mentions": [{"start": 0, "end": 0, "head": 0, "sent": 2, "cluster": "1"}]}],
            'Item 1, mention 1: "sent" is 2 and there are 2 sentences, from 0.',
        ),
        (
            [DOCUMENT | {"xpos": [["NNP"], ["PRP"]]}],
            "Item 1 has 2 tags in xpos and 9 words. Give the same number of both.",
        ),
        (gap(("1", "Ann")), "Line 2 has 2 cells and 10 columns in the first line. Give the same number of both."),
        (gap(gap_row("Ann and Bo; her", "her", "Ann", "yes", "Bo", "FALSE")), 'A-coref is "YES". Write TRUE or'),
        (
            gap(("1", "Ann and Bo; her", "her", "11", "Ann", "0", "TRUE", "Bo", "8", "FALSE")),
            'Line 2: "her" is not at character "11" of the text. Correct Pronoun-offset.',
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(content, message):
    with pytest.raises(TextError, match=message):
        read(content)


def test_the_line_of_a_broken_object_is_named():
    with pytest.raises(TextError, match="at line 3, character"):
        read(f'{json.dumps(CLUSTERS)}\n\n{{"text": "Ann"\n')
    with pytest.raises(TextError, match=r"^Line 3, cluster 1: \"start\" is a string"):
        read(f'{json.dumps(CLUSTERS)}\n\n{{"text": "Ann", "clusters": [[["a", 1]]]}}')


def long_document(n_sentences):
    """Sentences of different lengths with two mentions of one dog in each, and one of a cat in the first."""
    chooser = random.Random(0)
    sentences = [["dog", *["sat"] * chooser.randint(1, 5), "dog", "."] for _ in range(n_sentences)]
    dogs = [(place, word) for place, words in enumerate(sentences) for word in (0, len(words) - 2)]
    mentions = [(0, 1, "cat"), *((place, word, "dog") for place, word in dogs)]
    return {
        "sentences": sentences,
        "mentions": [
            {"cluster": entity, "sent": place, "start": word, "end": word, "head": word}
            for place, word, entity in mentions
        ],
    }


def test_documents_are_cut_at_ends_of_sentences(loaded):
    checkpoint = loaded("bert")
    (whole,) = read([long_document(12)])
    cut = windows(checkpoint, [whole], 20)
    assert len({text.name for text in cut.texts}) == len(cut.texts) > 3
    assert {text.document for text in cut.texts} == {whole.name}
    assert [word for text in cut.texts for word in text.shown] == list(whole.shown)
    for text in cut.texts:
        assert len(checkpoint.tokenizer(text.text.segments[0])["input_ids"]) <= 20
        assert text.shown[-1] == "."
        assert text.shown == text.text.words[0] == tuple(text.text.segments[0].split(" "))
        dogs = [text.shown[one.head] for one in text.mentions if one.entity == "dog"]
        assert dogs == ["dog"] * 2 * len(text.sentence_ends)
    # The first dog of every window but the first has its antecedents in windows before.
    assert cut.n_apart == len(cut.texts) - 1
    assert cut.n_without == 0


def test_a_window_without_anything_that_refers_back_is_left_out(loaded):
    (whole,) = read([long_document(8) | {"mentions": long_document(8)["mentions"][:3]}])
    cut = windows(loaded("bert"), [whole], 20)
    assert [len(text.mentions) for text in cut.texts] == [3]
    assert cut.n_without >= 1
    assert cut.n_apart == 0
    with pytest.raises(AnalysisError, match=r"^None of the 1 mentions refers back to another one in its text\."):
        windows(loaded("bert"), read({"text": "Ann", "clusters": [[[0, 3]]]}))


def test_excerpts_and_short_texts_stay_whole(loaded):
    words = [word for sentence in long_document(4)["sentences"] for word in sentence]
    places = [place for place, word in enumerate(words) if word == "dog"]
    window = {"words": words, "mentions": [{"start": i, "end": i, "head": i, "cluster": "1"} for i in places]}
    short = {"text": "a dog ran. It sat.", "clusters": [[[0, 5], [11, 13]]]}
    texts = read([window, short])
    assert len(words) > 16
    cut = windows(loaded("bert"), texts, 16)
    assert cut.texts[0] is texts[0]
    assert windows(loaded("bert"), texts).texts == texts


def test_running_text_is_cut_where_sentences_seem_to_end(loaded):
    text = 'Ann saw Mr. Lee ate 3.5 pies in the U.S. of old. "He sat!" (Bo ran?) she said. ' * 2
    (found,) = read({"text": text, "clusters": [[[0, 3], [76, 79]]]})
    ends = [found.text.segments[0][: found.spans[end - 1][1]][-6:] for end in found.sentence_ends]
    assert ends[-1] == " said."
    assert " 3." not in "".join(ends)
    assert any(end.endswith('sat!"') for end in ends)


def test_a_text_of_very_many_mentions_is_refused_before_its_pairs_are_made():
    clusters = [[[word, word + 1] for word in range(MAX_MENTIONS + 1)]]
    content = json.dumps({"words": ["ant"] * (MAX_MENTIONS + 1), "clusters": clusters}).encode()
    with pytest.raises(TextError, match=r"has 3,001 mentions and at most 3,000 of a text are read\. Split the text\."):
        read_mentions(content)


def test_a_head_word_is_not_cut_at_its_symbols():
    line = "Dr. O*Malley of AT&T left the U.S. in May. He (Mr.) missed the U.S. then."
    spans = [("Dr. O*Malley", "a"), ("AT&T", "b"), ("the U.S.", "c"), ("He", "a"), ("Mr.", "d")]
    clusters = [[[line.index(words), line.index(words) + len(words)]] for words, _ in spans]
    clusters[2].append([line.rindex("the U.S."), line.rindex("the U.S.") + len("the U.S.")])
    (text,) = read_mentions(json.dumps({"text": line, "clusters": clusters}).encode())
    assert [text.shown[mention.head] for mention in text.mentions] == ["O*Malley", "AT&T", "U.S.", "He", "Mr.", "U.S."]
    assert all(text.shown[one.start : one.end][-1] == text.shown[one.head] for one in text.mentions)
    assert " ".join(text.shown) == "Dr . O*Malley of AT&T left the U.S. in May . He ( Mr. ) missed the U.S. then ."
    assert [text.shown[end - 1] for end in text.sentence_ends] == [".", "."]
