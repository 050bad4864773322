import gzip

import numpy as np
import pytest

import attention_sieve.core.surface.frequencies
from attention_sieve.core.errors import TextError
from attention_sieve.core.surface.frequencies import (
    UNREADABLE,
    FrequencyList,
    english_frequencies,
    frequencies_of,
    read_frequencies,
    token_words,
)
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize


def ranked(found):
    return sorted(found.rank_of, key=found.rank_of.__getitem__)


def test_words_of_texts_are_ranked_by_count_and_alphabet():
    texts = [Text(("The cat, the dog.",)), Text(("a dog ran.", "It's the CAT."))]
    found = frequencies_of(texts, fewest=1)
    assert ranked(found) == [".", "the", "cat", "dog", ",", "a", "it's", "ran"]
    assert found.rank_of["."] == 1
    assert found.source == "the texts themselves (14 words)"


def test_ranks_of_words_and_of_what_is_none():
    found = FrequencyList("made up", {"the": 1, "cat": 2, "000": 3, "1999": 4})
    ranks = found.ranks(("", "the", "cat", "unheard", "!", "1999", "357", "7", UNREADABLE))
    assert ranks.tolist() == [0, 1, 2, 5, 1, 4, 3, 5, 5]
    assert found.ranks(()).tolist() == []


def test_few_texts_are_ranked_by_english_and_many_by_themselves():
    texts = [Text(("the mat sat on the mat",))]
    assert frequencies_of(texts) is english_frequencies()
    assert frequencies_of(texts, fewest=7) is english_frequencies()
    assert ranked(frequencies_of(texts, fewest=6)) == ["mat", "the", "on", "sat"]


def test_english_is_ordered_from_the_most_frequent_on():
    found = english_frequencies()
    assert found.ranks(["the"])[0] == 1
    ranks = found.ranks(["and", "house", "purple", "antelope", "qwzx"])
    assert (np.diff(ranks) > 0).all()
    assert ranks[-1] == len(found.rank_of) + 1
    assert found.ranks(["2014"])[0] < 500, "numbers are counted by their digits"
    assert found.ranks([","])[0] == 1, "the list leaves signs out"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_a_list_is_a_word_a_line_or_a_table(pack):
    end = ".gz" if pack is gzip.compress else ""
    listed = read_frequencies(f"words.txt{end}", pack("\ufeffthe\nCat\n\nthe\nmat\n".encode()))
    assert listed.rank_of == {"the": 1, "cat": 2, "mat": 3}
    assert listed.source == f"words.txt{end} (3 words)"
    table = read_frequencies(
        f"words.TSV{end}", pack(b"count\trank\tword\n5\t2\tcat\n9\t1\tThe\n1\t7\tmat\n1\t9\tthe\n")
    )
    assert table.rank_of == {"the": 1, "cat": 2, "mat": 3}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("words.csv", b"the", r'"words.csv" has a format that cannot be read. Choose a file that ends in .txt'),
        ("words.txt", b"\n\n", r"The file has no words. Choose one"),
        ("words.txt", b"the\n" + b"a" * 201, r"Line 2 holds no single word of at most 200"),
        ("words.txt", b"the\n\nca\xe9\n", r"Line 3 is not UTF-8: byte 0xE9"),
        ("words.txt.gz", b"the", r"cannot be unpacked .*Pack it again"),
        ("words.tsv", b"rank\ttoken\n1\tthe", r'The first line names no column "word"'),
        ("words.tsv", b"rank\tword\n1\tthe\t7\n", r"Line 2 has 3 cells and the header 2"),
        ("words.tsv", b"rank\tword\n1\tthe\n-2\tcat\n", r"Line 3 has the rank '-2'"),
        ("words.tsv", "rank\tword\n²\tthe\n".encode(), r"Line 2 has the rank '²'"),
    ],
)
def test_a_list_that_cannot_be_read_is_told_with_its_line(name, content, message):
    with pytest.raises(TextError, match=message):
        read_frequencies(name, content)


def test_lists_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(attention_sieve.core.surface.frequencies, "MAX_WORDS", 2)
    with pytest.raises(TextError, match="more than 2 words"):
        read_frequencies("words.txt", b"a\nb\nc")
    with pytest.raises(TextError, match="larger than 20 MB"):
        read_frequencies("words.txt.gz", gzip.compress(b"a\n" * 10_000_001, 1))


TEXT = Text(("It's 3.5 UNBELIEVABLE cats,", "don't (quickly) sat."))
EXPECTED = ["it's", "3", ".", "5", "unbelievable", "cats", ",", "don't", "(", "quickly", ")", "sat", "."]


@pytest.mark.parametrize("family", ["bert", "gpt2", "roberta", "t5", "llama"])
def test_tokens_belong_to_the_same_words_under_every_tokenizer(family):
    from small_checkpoints import TOKENIZERS

    tokens = tokenize(TEXT, TOKENIZERS[family](), 1000)
    words = token_words(tokens)
    assert len(words) == len(tokens.ids)
    assert all(
        (word == "") == (segment < 0 or start == end)
        for word, segment, (start, end) in zip(words, tokens.segments, tokens.spans)
    )
    seen = [word for place, word in enumerate(words) if word and (place == 0 or words[place - 1] != word)]
    assert seen == EXPECTED
    counted = frequencies_of([TEXT], fewest=1)
    assert set(seen) == set(counted.rank_of), "texts are counted by the same words"


def test_what_the_tokenizer_does_not_know_is_no_word_of_any_list():
    from small_checkpoints import TOKENIZERS

    tokens = tokenize(Text(("the 猫 sat",)), TOKENIZERS["bert"](), 100)
    assert "[UNK]" in tokens.tokens
    assert token_words(tokens) == ("", "the", UNREADABLE, "sat", "")


def test_a_published_list_can_be_read(shared):
    path = shared / "data" / "freq" / "wiki_top5000.tsv.gz"
    found = read_frequencies(path.name, path.read_bytes())
    assert ranked(found)[:4] == ["the", ",", ".", "of"]
    assert len(found.rank_of) == 5000
    assert found.ranks(["the", "of"]).tolist() == [1, 4]
