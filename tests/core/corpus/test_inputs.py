import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attention_sieve.core.corpus.plan import MOST_NAMES, texts_read
from attention_sieve.core.corpus.texts.inputs import CorpusText, read_inputs
from attention_sieve.core.corpus.texts.text_shards import read_texts, shards_of, write_texts
from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.running import Journal
from attention_sieve.core.texts.text import Text, read_file

ROOT = Path(__file__).parents[3]
CONLLU = "# newdoc id = d1\n1\tShe\tshe\tP\tPRP\t_\t2\tnsubj\t_\t_\n2\truns\trun\tV\tVBZ\t_\t0\troot\t_\t_\n\n"


def read(path, *columns):
    return list(read_inputs(str(path), columns or None))


def test_files_of_every_kind_are_read_in_the_order_of_their_names(tmp_path):
    (tmp_path / "a.txt").write_text("One.\n\nTwo ||| three.\n", encoding="utf-8-sig")
    (tmp_path / "b.jsonl").write_text('{"text": "Four.", "language": "en"}\n\n{"words": ["A", "b"]}\n')
    (tmp_path / "c.conllu").write_text(CONLLU)
    pq.write_table(pa.table({"sentence": ["Five."], "dataset": ["named"], "other": [1]}), tmp_path / "d.parquet")
    (tmp_path / "ignored.md").write_text("no")
    texts = read(tmp_path)
    assert [each.text.segments for each in texts] == [
        ("One.",), ("Two", "three."), ("Four.",), ("A b",), ("She runs",), ("Five.",),
    ]  # fmt: skip
    assert [each.language for each in texts] == ["", "", "en", "", "", ""]
    assert texts[-1].dataset == "named"
    assert texts[4].text == read_file("c.conllu", CONLLU.encode())[0]


def test_texts_are_streamed(tmp_path):
    """The first ones are there before what comes later in their file, and before the next file."""
    (tmp_path / "a.txt").write_bytes(b"One.\n" * 10_000 + b"\xff\n")
    (tmp_path / "b.parquet").write_bytes(b"not parquet")
    streamed = read_inputs(str(tmp_path), None)
    assert next(streamed).text.segments == ("One.",)
    with pytest.raises(TextError, match=r"a\.txt: The bytes after line [0-9,]+ are not UTF-8"):
        list(streamed)


def test_folders_name_data_set_and_language(tmp_path):
    for folder in ("news", "language=de/dataset=wiki"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.txt").write_text("Text.\n")
    named = [(each.dataset, each.language) for each in read(tmp_path)]
    assert named == [("wiki", "de"), ("news", "")]


def test_marked_pairs_are_refused_by_their_line(tmp_path):
    pair = '{"relation": "x", "from": [0, 1], "to": [2, 3]}'
    (tmp_path / "a.jsonl").write_text(f'{{"text": "Fine."}}\n{{"text": "a b", "pairs": [{pair}]}}\n')
    with pytest.raises(TextError, match=r"a\.jsonl: Line 2 marks pairs, which corpora do not keep\. Give this file to"):
        read(tmp_path)


def test_columns_choose_pairs(tmp_path):
    pq.write_table(pa.table({"a": ["One."], "b": ["Two."]}), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl").write_text(json.dumps({"a": "Three.", "b": "Four."}))
    assert [each.text.segments for each in read(tmp_path, "a", "b")] == [("One.", "Two."), ("Three.", "Four.")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"fine\n\xff\xfe\n", r"a.txt: The bytes after line 0 are not UTF-8"),
        ("a.txt", b"one\ttwo\tthree\n", "Line 1 has 3 segments"),
        ("a.jsonl", b'{"text": 3}', '"text" is a number'),
        ("a.jsonl", b'{"text": "x", "language": ["en"]}', "'language' is"),
        ("a.conllu", b"1\tShe\n", "CoNLL-U has 10"),
        ("a.parquet", b"not parquet", "not a Parquet file that can be read"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TextError, match=said):
        read(tmp_path)


def test_a_column_that_is_not_there_is_named(tmp_path):
    pq.write_table(pa.table({"a": ["One."], "b": [None]}), tmp_path / "a.parquet")
    with pytest.raises(TextError, match=r"No column is known to hold texts. Its columns are 'a, b'"):
        read(tmp_path)
    with pytest.raises(TextError, match="There is no column 'c'"):
        read(tmp_path, "c")
    with pytest.raises(TextError, match="Row 1: 'b' holds nothing"):
        read(tmp_path, "b")


def peak_of(code, *arguments):
    """What a program prints, and by how many megabytes its memory grew at most."""
    program = (
        "import resource, sys, pyarrow.parquet\n"
        "from attention_sieve.core.corpus.texts.inputs import read_inputs\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"try: {code}\n"
        "except Exception as error: print(error)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=200, cwd=ROOT)
    *said, megabytes = done.stdout.splitlines()
    return "\n".join(said), int(megabytes)


def test_a_column_whose_name_is_not_utf_8_gets_a_sentence(tmp_path):
    """The name stands in the schema, and again in the row group, where nothing reads it."""
    pq.write_table(pa.table({"text": ["The cat."]}), tmp_path / "a.parquet")
    in_schema = (tmp_path / "a.parquet").read_bytes().replace(b"text", b"\x80ext", 1)
    (tmp_path / "a.parquet").write_bytes(in_schema)
    with pytest.raises(TextError, match="not a Parquet file that can be read"):
        list(read_inputs(str(tmp_path), None))


DAMAGED = """
import sys
from pathlib import Path
from attention_sieve.core.corpus.texts.inputs import read_inputs
from attention_sieve.core.errors import AnalysisError
path = Path(sys.argv[1])
whole = path.read_bytes()
end = len(whole) - 8
for at in range(end - int.from_bytes(whole[end : end + 4], "little"), end):
    for bits in (1, 2, 255):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])
        try:
            list(read_inputs(str(path), ["text"]))
        except AnalysisError:
            pass
"""


def test_whatever_is_damaged_in_the_footer_of_a_table_the_process_goes_on(tmp_path):
    pq.write_table(pa.table({"text": ["The cat sat."], "words": [["The", "cat"]]}), tmp_path / "a.parquet")
    subprocess.run([sys.executable, "-c", DAMAGED, tmp_path / "a.parquet"], check=True, timeout=200, cwd=ROOT)


def test_a_small_table_of_a_text_that_is_too_long_takes_little_memory(tmp_path):
    """The text of every row, which takes a few hundred bytes."""
    path = tmp_path / "a.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["a" * 2_000_000]))
    pq.write_table(pa.table({"text": text}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 2_000
    said, megabytes = peak_of("next(read_inputs(sys.argv[1], None))", path)
    assert said == (
        f"{path}: Row 1: the text has 2,000,000 characters and at most 500,000 are read. Cut it, or put line breaks "
        "between its parts."
    )
    assert megabytes < 1_500


def test_texts_that_do_not_fit_in_memory_together_are_no_shard():
    full, one = CorpusText(Text(("a" * 2**20,))), CorpusText(Text(("b",)))
    shards = shards_of(iter([*[full] * 256, *[full] * 255, one, full]), 256)
    assert next(shards) == [full] * 256
    assert len(next(shards)) == 256
    said = (
        "Shard 000001: its first 257 texts have 268,435,457 characters, and a shard has at most 268,435,456. Choose a "
        "smaller --shard-size."
    )
    shards = shards_of(iter([*[full] * 257, *[full] * 256, one]), 257)
    with pytest.raises(AnalysisError, match=r"^Shard 000000: its first 257 texts"):
        next(shards)
    shards = shards_of(iter([*[one] * 257, *[full] * 256, one]), 257)
    next(shards)
    with pytest.raises(AnalysisError, match=f"^{re.escape(said)}$"):
        next(shards)


def test_a_row_group_that_is_larger_than_memory_should_hold_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("attention_sieve.core.corpus.texts.parquet_files.LARGEST_GROUP", 10**6)
    pq.write_table(pa.table({"text": ["a", "b" * 2_000_000, "c"]}), tmp_path / "a.parquet", row_group_size=1)
    with pytest.raises(TextError, match=r"Row group 2 holds 0\.0 GB, and at most 0\.0 GB are read at once"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"text": pa.array([2**62], pa.timestamp("us"))}, "'text' holds values of type timestamp"),
        ({"text": pa.array([2**31 - 1], pa.date32())}, "'text' holds values of type date32"),
        ({"text": pa.array([["x"]])}, "'text' holds values of type list<"),
        ({"text": ["x"], "language": pa.array([2**62], pa.timestamp("us"))}, "'language' holds values of type time"),
    ],
)
def test_a_column_of_other_values_than_texts_is_refused_with_its_name(tmp_path, columns, said):
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(TextError, match=said):
        read(tmp_path)


@pytest.mark.parametrize("name", ["text", "language"])
def test_two_columns_of_one_name_are_refused(tmp_path, name):
    table = pa.Table.from_arrays([pa.array(["One."])] * 3, ["text", name, name])
    pq.write_table(table, tmp_path / "a.parquet")
    n = 3 if name == "text" else 2
    with pytest.raises(TextError, match=rf"a\.parquet: The table has {n} columns named '{name}'\. Give each its own"):
        read(tmp_path)


def test_folders_without_texts_are_refused(tmp_path):
    with pytest.raises(AnalysisError, match="holds no file"):
        read(tmp_path)
    with pytest.raises(AnalysisError, match="There is no folder"):
        read(tmp_path / "nowhere")
    (tmp_path / "a.docx").write_text("x")
    with pytest.raises(AnalysisError, match="cannot be streamed"):
        read(tmp_path / "a.docx")


def test_data_sets_of_the_hub_need_their_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(AnalysisError, match="pip install datasets"):
        next(read_inputs("hub:somebody/something", None))


def test_a_data_set_of_the_hub_is_streamed_and_a_connection_that_breaks_is_a_sentence(monkeypatch):
    def broken(first):
        yield from first
        raise ConnectionError("the line is dead\nand more")

    class Hub:
        rows, asked = (), []

        @classmethod
        def load_dataset(cls, name, split, streaming):
            cls.asked.append((name, split, streaming))
            return broken(cls.rows)

    monkeypatch.setitem(sys.modules, "datasets", Hub)
    said = r"^The data set a/b cannot be read \(the line is dead\)\. Check its name and the connection\.$"
    with pytest.raises(AnalysisError, match=said):
        next(read_inputs("hub:a/b", None))
    Hub.rows = ({"sentence": "One.", "label": 1},)
    texts = read_inputs("hub:a/b:test", None)
    only = next(texts)
    assert (only.text.segments, only.dataset) == (("One.",), "a/b")
    with pytest.raises(AnalysisError, match=said):
        next(texts)
    assert Hub.asked == [("a/b", "train", True), ("a/b", "test", True)]


def test_shards_bring_texts_back_as_they_were(tmp_path):
    texts = [CorpusText(text, "d", "en") for text in read_file("c.conllu", CONLLU.encode())]
    texts += [CorpusText(text) for text in read_file("a.txt", b"One ||| two\nThree\n")]
    texts += [
        CorpusText(text)
        for text in read_file("a.jsonl", b'{"ids": [3, 4]}\n{"ids": [3, 3], "needle": [0, 1], "answer": [1, 2]}')
    ]
    write_texts(tmp_path / "texts", texts)
    assert read_texts(tmp_path / "texts") == texts
    assert read_texts(tmp_path / "texts", [2, 0]) == [texts[2], texts[0]]
    with pytest.raises(AnalysisError, match="There is no file"):
        read_texts(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"bad")
    with pytest.raises(AnalysisError, match="does not hold the texts"):
        read_texts(tmp_path / "bad")


def test_too_many_data_sets_are_refused_while_they_are_read(tmp_path):
    file = tmp_path / "a.jsonl"
    rows = [json.dumps({"text": "One", "dataset": f"set {number % MOST_NAMES}"}) for number in range(MOST_NAMES + 1)]
    file.write_text("\n".join(rows))
    assert len(list(texts_read(str(file), None, Journal(None)))) == MOST_NAMES + 1
    file.write_text("\n".join([*rows, json.dumps({"text": "One", "dataset": "one more"})]))
    with pytest.raises(AnalysisError, match=f"more than {MOST_NAMES} data sets"):
        list(texts_read(str(file), None, Journal(None)))
