import csv
import gzip
import io
import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from attention_sieve.core.errors import ColumnsNeeded, TextError
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import (
    COUNTED_TEXTS,
    MAX_BYTES,
    MAX_CHARACTERS,
    MAX_TEXTS,
    Text,
    read_file,
    read_typed,
    text_fields,
    text_of_ids,
    texts_sha256,
    write_typed,
)

SEGMENTS = (
    st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), min_size=1)
    .map(lambda segment: re.sub(r"^[\s\ufeff]+|[\s\ufeff]+$", "", segment))
    .filter(lambda segment: segment and not re.search(r"(?<!\S)\|\|\|(?!\S)", segment))
)
ONE_OR_TWO = st.lists(SEGMENTS, min_size=1, max_size=2).map(tuple)


def segments_of(texts):
    return [text.segments for text in texts]


# Typed lines


def test_one_typed_line_is_one_text_and_blank_lines_are_ignored():
    assert read_typed("\nA cat slept.\n   \r\n\tA dog barked.".replace("\tA", "A")) == (
        Text(("A cat slept.",)),
        Text(("A dog barked.",)),
    )


@pytest.mark.parametrize("line", ["Who slept?\tThe cat.", "Who slept? ||| The cat.", " Who slept?  |||  The cat. "])
def test_a_tab_or_three_bars_make_a_pair(line):
    assert read_typed(line) == (Text(("Who slept?", "The cat.")),)


@pytest.mark.parametrize("line", ["a|||b", "a |||b", "a || b", "a |||| b", "a\u2028b\x0cc"])
def test_only_bars_between_blanks_and_only_real_line_ends_divide(line):
    assert segments_of(read_typed(line)) == [(line,)]


@given(st.lists(ONE_OR_TWO, min_size=1, max_size=5))
def test_typed_lines_come_back_as_they_were_written(given_segments):
    texts = tuple(Text(segments) for segments in given_segments)
    assert read_typed(write_typed(texts)) == texts


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", r"There is no text yet\. Type one text per line"),
        ("One.\n\na ||| b\tc", r"Line 3 has 3 segments and a text has one or two\. Keep at most one"),
        ("One.\nTwo ||| ", r"Line 2: segment 2 of 2 is empty\. Fill it in"),
        ("One \ud800.", r"Line 1: the text holds U\+D800 at character 5, which is not a character"),
        ("Nu\0l", r"Line 1: the text holds U\+0000 at character 3"),
        ("x\n" * (MAX_TEXTS + 1), r"^There are 5,001 texts and at most 5,000 are read\. Choose fewer"),
        ("x\n" * COUNTED_TEXTS, r"^There are at least 50,000 texts and at most 5,000 are read"),
        ("One.\n" + "x" * 500_001, r"^Line 2: the text has 500,001 characters and at most 500,000 are read\. Cut it"),
        ("a ||| " + "x" * 500_001, r"^Line 1: segment 2 of 2 has 500,001 characters and at most 500,000"),
        ("a ||| \ufeff", r"^Line 1: segment 2 of 2 is empty"),
    ],
)
def test_typed_input_that_cannot_be_read_is_named(value, message):
    with pytest.raises(TextError, match=message):
        read_typed(value)


def test_as_many_texts_and_characters_as_the_limits_are_read():
    assert len(read_typed("x\n" * MAX_TEXTS)) == MAX_TEXTS
    longest = "x" * MAX_CHARACTERS
    assert segments_of(read_typed(f" {longest} ||| {longest}")) == [(longest, longest)]


def test_counting_millions_of_short_lines_ends_early():
    """By what is read of them and not by the clock: a line far beyond the counted ones would be refused."""
    with pytest.raises(TextError, match=r"^There are at least 50,000 texts"):
        read_typed("x\n" * COUNTED_TEXTS + "a\tb\tc")


@pytest.mark.parametrize(
    "value", ["\ufeffOne.\n\ufeff\nTwo.\ufeff", "\ufeff\ufeff One. \r\n \ufeff \rTwo. \ufeff\ufeff"]
)
def test_byte_order_marks_around_typed_lines_are_no_part_of_them(value):
    assert segments_of(read_typed(value)) == [("One.",), ("Two.",)]


@pytest.mark.parametrize(
    "segments", [("a ||| b",), ("a\tb",), ("a\nb",), (" a",), ("a ||| b", "c"), ("a |||", "b"), ("",)]
)
def test_a_text_that_would_not_come_back_is_not_written(segments):
    with pytest.raises(TextError, match=r"Text 2 cannot be shown as one typed line.*Change it"):
        write_typed([Text(("Fine.",)), Text(segments)])


# Files by suffix


@pytest.mark.parametrize("name", ["texts.txt", "TEXTS.TXT", "a.csv.txt"])
def test_a_txt_file_holds_typed_lines(name):
    assert segments_of(read_file(name, b"Who?\tMe.\r\nOne.\r\n")) == [("Who?", "Me."), ("One.",)]


@pytest.mark.parametrize("name", ["a.pdf", "a", ".txt", "a.tsv.gz"])
def test_other_suffixes_are_refused_with_the_ones_that_are_read(name):
    with pytest.raises(
        TextError, match=r"cannot be read\. Choose a file that ends in \.txt, \.csv, \.tsv, \.json, \.jsonl, \.conllu\."
    ):
        read_file(name, b"One.")


def test_columns_are_for_tables_only():
    with pytest.raises(TextError, match=r"A \.txt file has no columns to pick from"):
        read_file("a.txt", b"One.", columns=("text",))


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.json", "a.jsonl", "a.conllu"])
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b" \r\n\n"])
def test_an_empty_file_is_named(name, content):
    with pytest.raises(TextError, match=r"The file is empty\. Choose one that holds at least one text"):
        read_file(name, content)


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not():
    content = (b"x" * 99_999 + b"\n") * (MAX_BYTES // 100_000)
    assert len(content) == MAX_BYTES
    assert {len(text.segments[0]) for text in read_file("a.txt", content)} == {99_999}
    with pytest.raises(TextError, match=r"The file has 20,000,001 bytes and at most 20,000,000 are read\. Split"):
        read_file("a.txt", content + b"x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"One.\r\nTwo caf\xe9.", r"Line 2 is not UTF-8: byte 0xE9 is not a character there\. Save the file as UTF-8"),
        ("Zwei Wörter.".encode("utf-16"), r"looks like UTF-16\. Save the file as UTF-8"),
        ("Two words.".encode("utf-16-le"), r"looks like UTF-16"),
        (b"One.\nPK\x03\x04 and \0 more", r"Line 2 holds a NUL byte, so this is not a text file"),
    ],
)
def test_bytes_that_are_no_utf8_text_are_named(content, message):
    with pytest.raises(TextError, match=message):
        read_file("a.txt", content)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("n_marks", [1, 2, 3])
def test_marks_at_the_beginning_of_a_file_are_no_part_of_it(name, n_marks):
    contents = {".txt": "One.", ".csv": "text\nOne.", ".tsv": "text\nOne.", ".json": '["One."]'}
    content = contents.get(name[1:], '{"text": "One."}')
    assert read_file(name, ("\ufeff" * n_marks + content).encode()) == (Text(("One.",)),)


# Tables


@pytest.mark.parametrize(
    ("header", "row", "segments"),
    [
        ("index\tquestion\tsentence", "0\tWho?\tMe.", ("Who?", "Me.")),
        ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", "1\t2\t3\tWho?\tWhy?\t0", ("Who?", "Why?")),
        ("\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t7\t8\tOne.\tTwo.", ("One.", "Two.")),
        ("sentence\tlabel", "One.\t1", ("One.",)),
        ("index\tsentence1\tsentence2", "0\tOne.\tTwo.", ("One.", "Two.")),
        ("TEXT_B\tText_A", "b\ta", ("a", "b")),
        ("text\tpremise\thypothesis", "t\tp\th", ("p", "h")),
        (" Text ", "One.", ("One.",)),
    ],
)
def test_known_headers_are_recognised_pairs_before_singles(header, row, segments):
    content = f"{header}\r\n{row}\r\n".encode()
    assert segments_of(read_file("a.tsv", content)) == [segments]
    assert segments_of(read_file("a.csv", content)) == [segments]


def test_in_tsv_quotes_are_data():
    content = b'sentence\tlabel\n"Lone quote.\t0\n5" of "rain"\t1\n\'quoted"\t1\n'
    assert segments_of(read_file("a.tsv", content)) == [('"Lone quote.',), ('5" of "rain"',), ("'quoted\"",)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_in_csv_a_quoted_cell_is_one_text_with_blanks_for_line_breaks(delimiter):
    rows = [["label", "text"], ["0", 'A, b; c\td "e"\r\nf'], ["1", "g"]]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    assert segments_of(read_file("a.csv", stream.getvalue().encode())) == [('A, b; c d "e" f',), ("g",)]


@given(st.lists(st.tuples(SEGMENTS, SEGMENTS), min_size=1, max_size=4), st.sampled_from(",;\t"))
def test_what_a_csv_writer_writes_is_read_back(pairs, delimiter):
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows([("text_a", "text_b"), *pairs])
    assert segments_of(read_file("a.csv", stream.getvalue().encode())) == pairs


SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".txt", ".conllu")


@given(st.sampled_from(SUFFIXES), st.text('ab"text,;\t\n\r|{}[]:\\ 12_-.#', max_size=80))
@example(".conllu", "1\ta\t\t\t\t\t1\tb\t\t")
@example(".csv", "\r:")
@example(".json", '[{"text": "a"}]')
def test_any_file_gives_texts_or_a_sentence(suffix, value):
    for content in (value, "text,b\n" + value, '[{"text":' + value):
        try:
            texts = read_file("a" + suffix, content.encode())
        except TextError:
            continue
        assert texts
        assert all(segment for text in texts for segment in text.segments)


def test_an_unknown_header_lists_its_columns_and_the_reader_picks():
    content = b"id,left,right\n1,One.,Two.\n"
    with pytest.raises(ColumnsNeeded, match=r'3 columns, "id", "left", "right"\. Pick the one or two') as caught:
        read_file("a.csv", content)
    assert caught.value.columns == ("id", "left", "right")
    assert segments_of(read_file("a.csv", content, columns=("left",))) == [("One.",)]
    assert segments_of(read_file("a.csv", content, columns=("right", "left"))) == [("Two.", "One.")]


def test_a_wide_or_long_header_is_shortened_in_the_sentence_only():
    names = tuple(f"column {place} {'x' * 50}" for place in range(14))
    with pytest.raises(ColumnsNeeded, match=r"14 columns, .*column 11 x+…\" and 2 more") as caught:
        read_file("a.csv", ",".join(names).encode())
    assert len(str(caught.value)) < 900
    assert caught.value.columns == names


def test_picked_columns_win_over_a_known_header():
    assert segments_of(read_file("a.csv", b"sentence,note\nOne.,Two.\n", columns=("note",))) == [("Two.",)]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (b"id,left\n1,a\n", ("Left",), r'no column "Left"\. Pick from the header: 2 columns, "id", "left"'),
        (b"id,left\n1,a\n", (), r"one column or from two different ones, got \(\)"),
        (b"left,left\n1,a\n", ("left",), r'The header has 2 columns named "left"\. Give each its own name'),
        (b"text,Text\n1,a\n", None, r'2 columns named "text"'),
        (b"text,id\n", None, r"The table has a header but no rows\. Add one row per text"),
        (b'text,id\na,1\n\n"b\nc",2\nd\n', None, r"Line 6 has 1 cell and the header 2\. Check the separators"),
        (b'text,id\na,1\n"b,2\nc,3\n', None, r"starts on line 3 opens a quote that is never closed"),
        (b'text,id\n"b,2\n"c",3\n', None, r"starts on line 2 goes on after a closing quote"),
        (b'text,id\na,1\n"",2\n', None, r"Line 3: the text is empty\. Fill it in or remove the text"),
        (b'text,id\na,1\n"' + b"x" * 131_073 + b'",2\n', None, r"line 3 has a cell of more than 131,072 characters"),
        (b'text\n"' + b"x" * 10_000_000 + b'"', None, r"line 2 has a cell of more than 131,072 characters"),
        (
            b"text" + b",a" * 1_000 + b"\n",
            None,
            r"^The first line has 1,001 columns and at most 1,000 are read\. Check",
        ),
    ],
)
def test_a_broken_table_is_named_with_its_line(content, columns, message):
    with pytest.raises(TextError, match=message):
        read_file("a.csv", content, columns)


# JSON


def test_a_json_list_holds_objects_or_strings():
    content = b'["One.", {"text": "Two\\nlines."}, {"text_a": "Who?", "text_b": "Me.", "id": 1' + b"0" * 5_000 + b"}]"
    assert segments_of(read_file("a.json", content)) == [("One.",), ("Two lines.",), ("Who?", "Me.")]


def test_one_json_object_is_one_text_over_many_lines():
    assert read_file("a.JSON", b'\xef\xbb\xbf{\n "text": "One.",\n "id": 1\n}\n') == (Text(("One.",)),)


@given(st.lists(st.text(" \t\n\ufeff\u2003ab", min_size=1, max_size=5).map("b".__add__), min_size=1, max_size=4))
@example(["b", "\ufeff \ufeffa"])
def test_a_segment_is_its_words_joined_by_blanks_whatever_they_hold(words):
    (text,) = read_file("a.json", json.dumps({"words": words}).encode())
    assert " ".join(text.words[0]) == text.segments[0]
    assert len(text.words[0]) == len(words)


@given(st.lists(ONE_OR_TWO, min_size=1, max_size=4), st.booleans())
def test_json_lines_and_a_json_list_of_the_same_objects_agree(given_segments, ascii_only):
    keys = {1: ("text",), 2: ("text_a", "text_b")}
    objects = [dict(zip(keys[len(segments)], segments, strict=True)) for segments in given_segments]
    lines = "\n".join(json.dumps(item, ensure_ascii=ascii_only) for item in objects)
    whole = json.dumps(objects, ensure_ascii=ascii_only)
    assert segments_of(read_file("a.jsonl", lines.encode())) == given_segments
    assert segments_of(read_file("a.json", whole.encode())) == given_segments


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "One.}', r"^Unterminated string starting at line 3, character 10: this is not JSON\. Correct it"),
        ('{"text": One.}', r"^Expecting value at line 3, character 10: this is not JSON"),
        ('{"text": "a"} {"text": "b"}', r"^Extra data at line 3, character 15"),
        ('"One."', r'Line 3 is a string\. Write an object, such as \{"text": "One text\."\}'),
        ("{}", r'Line 3 has no text\. Give it a key "text"'),
        (
            '{"sentences": [], "mentions": []}',
            r"Line 3 has mentions and no text: such files are read for coreference only\.",
        ),
        ('{"text": 5}', r'Line 3: "text" is a number\. Write a string'),
        ('{"text": " "}', r"Line 3: the text is empty"),
        ('{"text_b": "One."}', r'Line 3 has one half of a pair and no "text_a"'),
        ('{"text_a": "One.", "text_b": ""}', r"Line 3: segment 2 of 2 is empty"),
        ('{"text": "One.", "words": ["One."]}', r"Line 3 has both text and words\. Keep one of them"),
        ('{"words": "One."}', r'Line 3: "words" is a string\. Write a list of strings'),
        ('{"words": []}', r"Line 3: the text is empty"),
        ('{"words": ["One", 1.5]}', r"Line 3: word 2 is a number"),
        ('{"words": ["One", "\\t"]}', r"Line 3: word 2 is empty\. Remove it"),
        ('{"text": "One \\ud83d"}', r"Line 3: the text holds U\+D83D at character 5"),
        ('{"text": "One.", "more": ' + "[" * 100_000, r"The JSON that starts on line 3 is nested too deeply"),
        ('{"text": "One.", "text": "Two."}', r"line 3, an object has the key 'text' more than once"),
    ],
)
def test_a_broken_json_line_is_named(line, message):
    with pytest.raises(TextError, match=message):
        read_file("a.jsonl", f'{{"text": "Fine."}}\n\n{line}\n'.encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[\n {"text": "One."},\n {"text": "Two."\n]', r"line 4, character 1: this is not JSON"),
        ('["One.", {"text": []}]', r'Item 2: "text" is a list'),
        ('"One."', r"The file holds a string\. Write a list of objects, a list of texts, or one object"),
        ("[]", r"The list in the file is empty"),
        ("[" * 100_000, r"nested too deeply\. Write flat objects"),
    ],
)
def test_a_broken_json_file_is_named_with_its_item(content, message):
    with pytest.raises(TextError, match=message):
        read_file("a.json", content.encode())


# Real files


def test_no_reader_changes_the_limit_that_every_csv_reader_shares():
    read_file("a.csv", b"text\nOne.\n")
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize(("name", "n_segments"), [("QNLI", 2), ("SST-2", 1)])
def test_the_notebook_files_of_glue_are_read_whole(name, n_segments, shared):
    content = (shared / "data" / "glue" / "heads_hypothesis_20" / f"glue_data_{name}_test_small.tsv").read_bytes()
    texts = read_file("a.tsv", content)
    rows = [tuple(line.split("\t")[1:]) for line in content.decode().splitlines()[1:]]
    assert len(texts) == 20
    assert segments_of(texts) == [tuple(cell.strip() for cell in row) for row in rows]
    assert {len(text.segments) for text in texts} == {n_segments}


@pytest.mark.parametrize(
    ("path", "n_texts", "n_segments"),
    [
        ("QNLI/dev.tsv.gz", 1_000, 2),
        ("QQP/dev.tsv.gz", 1_000, 2),
        ("MRPC/train.tsv.gz", 4_076, 2),
        ("MRPC/test.tsv.gz", 1_725, 2),
        ("SST-2/dev.tsv.gz", 872, 1),
    ],
)
def test_every_row_of_a_glue_file_is_one_text(path, n_texts, n_segments, shared):
    content = gzip.decompress((shared / "data" / "glue" / path).read_bytes())
    texts = read_file(path.removesuffix(".gz"), content)
    assert len(texts) == n_texts
    assert {len(text.segments) for text in texts} == {n_segments}
    assert read_typed(write_typed(texts)) == texts


IDS = b'{"ids": [5, 0, 17], "needle": [0, 1], "answer": [2, 3]}'


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.txt"])
def test_an_object_gives_the_ids_of_tokens_wherever_texts_are_read(name):
    (text,) = read_file(name, IDS)
    assert text == text_of_ids(GivenTokens((5, 0, 17), (0, 1), (2, 3)))
    assert text.segments == ("5 0 17",)
    assert text.heads == ((0, 0, 0),), "so that it is never parsed"
    assert read_typed(write_typed([text, Text(("One.",))])) == (text, Text(("One.",)))
    assert write_typed([text]).encode() == IDS


CHAT = b'{"ids": [5, 0, 17, 9], "turns": [[1, 2], [3, 4]]}'


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_a_chat_is_given_by_ids_and_the_tokens_of_its_turns(name):
    (text,) = read_file(name, CHAT)
    assert text == text_of_ids(GivenTokens((5, 0, 17, 9), turns=((1, 2), (3, 4))))
    assert write_typed([text]).encode() == CHAT


def test_what_a_pass_depends_on_is_unchanged_where_there_are_no_turns():
    given, chat = GivenTokens((5, 0)), GivenTokens((5, 0), turns=((0, 1),))
    assert text_fields(text_of_ids(given))["given"] == {"ids": (5, 0), "needle": None, "answer": None}
    assert text_fields(text_of_ids(chat))["given"] != text_fields(text_of_ids(given))["given"]


def test_ids_and_the_same_numbers_as_words_are_different_texts():
    ids, words = text_of_ids(GivenTokens((5, 17))), Text(("5 17",), (("5", "17"),), ((0, 0),), (("root", "root"),))
    assert text_fields(ids) != text_fields(words)
    assert texts_sha256([ids]) != texts_sha256([words])


def test_a_json_object_of_lists_gives_the_ids_of_several_texts():
    texts = read_file("a.json", b'{"ids": [[5, 6], [7]]}')
    assert texts == (text_of_ids(GivenTokens((5, 6))), text_of_ids(GivenTokens((7,))))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"ids": [1, 2.5]}', "Line 1: id 2 is 2.5. Write the number of a token in the vocabulary, counted from 0."),
        ('{"ids": [-1]}', "Line 1 has the id -1."),
        ('{"ids": []}', "Line 1 has no token. Give it at least one id."),
        ('{"ids": 3}', 'Line 1: "ids" is a number. Write a list of whole numbers.'),
        ('{"ids": [1], "text": "a"}', "Line 1 has both text and ids. Keep one of them."),
        ('{"ids": [1, 2], "needle": [0, 1]}', 'Line 1 has no "answer". Give both "needle" and "answer", or neither.'),
        ('{"ids": [1, 2], "needle": [0, 1], "answer": [1, 3]}', 'Line 1: "answer" is [1, 3], in a text of 2 tokens.'),
        ('{"ids": [1, 2], "needle": [0, 2], "answer": [1, 2]}', "the answer begins at 1, before the needle ends at 2."),
        ('{"ids": [1, 2], "turns": [[0, 3]]}', 'Line 1: "turns" is [0, 3], in a text of 2 tokens.'),
        ('{"ids": [1, 2], "turns": [[0, 2], [1, 2]]}', "Line 1: two turns overlap, or do not stand in their order."),
        ('{"ids": [1, 2], "needle": [0, 1], "answer": [1, 2.5]}', 'Line 1: "answer": number 2 is 2.5.'),
    ],
)
def test_broken_ids_are_named(line, message):
    with pytest.raises(TextError, match=re.escape(message)):
        read_file("a.jsonl", line.encode())
