import gzip
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_sieve.core.errors import AnalysisError, ColumnsNeeded, TextError
from attention_sieve.core.knowledge.files import labelled as module
from attention_sieve.core.knowledge.files.folders import ABOUT, read_tasks
from attention_sieve.core.knowledge.files.labelled import (
    TaskColumns,
    is_senteval,
    read_labelled_task,
    read_senteval,
    write_senteval,
)
from attention_sieve.core.knowledge.task import PARTS, Task, TaskExample
from attention_sieve.core.texts.text import Text

REAL = "tr\t10\tWho knew who would be there ?\nte\t9\tShe left .\nva\t10\tThis is my Eve Christmas .\n"


def read(content, **options):
    return read_senteval("depth", content.encode() if isinstance(content, str) else content, **options)


# SentEval's format


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_of_senteval_are_examples(end):
    task = read(REAL.replace("\n", end) + end)
    assert task.examples == (
        TaskExample(Text(("Who knew who would be there ?",)), "10", "train"),
        TaskExample(Text(("She left .",)), "9", "test"),
        TaskExample(Text(("This is my Eve Christmas .",)), "10", "validation"),
    )
    assert (task.name, task.is_regression, task.source) == ("depth", False, "a file in SentEval's format, depth")
    assert task.classes == ("9", "10")


def test_many_different_numbers_are_a_regression_unless_told_otherwise():
    content = "".join(f"tr\t{number / 2}\tText {number}.\n" for number in range(11))
    assert read(content).is_regression
    assert not read(content, is_regression=False).is_regression
    assert read(REAL, is_regression=True).is_regression


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"^The file has no rows\. Write a part \(tr, va or te\)"),
        (REAL + "tr\tx\n", r"^Line 4 has 2 cells and 3 are expected: a part, a label and a sentence"),
        (REAL + "train\tx\ta\n", r'^Line 4: the part is "train"\. Write tr, va or te\.$'),
        (REAL + "te\t\ta\n" * 7, r"^Lines 4, 5, 6, 7, 8 and 2 more: the label is empty"),
        (REAL + "tr\ta\u202eb\ta\n", r"^Line 4: the label has characters that cannot be shown\."),
        (REAL + "tr\tx\t \n", r"^Line 4: the text is empty\."),
    ],
)
def test_a_broken_file_is_named_with_its_line(content, message):
    with pytest.raises(TextError, match=message):
        read(content)


def test_too_many_rows_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    for read_rows in (read, lambda content: read_labelled_task("x.csv", TABLE.encode())):
        with pytest.raises(TextError, match=r"^There are more than 2 rows\. Choose fewer\.$"):
            read_rows(REAL)


SENTENCES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=9)


@given(st.lists(st.tuples(SENTENCES, SENTENCES, st.sampled_from(PARTS)), min_size=1, max_size=9))
def test_what_is_written_is_read_again(rows):
    examples = sorted(
        (TaskExample(Text((text,)), label, part) for text, label, part in rows), key=lambda one: PARTS.index(one.part)
    )
    task = Task("x", tuple(examples), False, "a file in SentEval's format, x")
    assert read_senteval("x", write_senteval(task).encode(), is_regression=False) == task


def test_pairs_have_no_place_in_the_format_which_is_known_by_its_first_line():
    task = Task("same", (TaskExample(Text(("a", "b")), "x", "test"),))
    with pytest.raises(AnalysisError, match="same is about pairs"):
        write_senteval(task)
    assert is_senteval(REAL.encode())
    assert is_senteval(b"\xef\xbb\xbfva\tx\ta")
    assert not is_senteval(b"text\tlabel\tpart\n")
    assert not is_senteval(b"")


# Labelled tables

TABLE = "text,label,Split\nHe left.,past,train\nShe runs.,present,DEV\nIt ran.,past,te\n"


def test_a_column_names_the_parts():
    task = read_labelled_task("tense.csv", TABLE.encode())
    assert [(one.text.segments, one.label, one.part) for one in task.examples] == [
        (("He left.",), "past", "train"),
        (("She runs.",), "present", "validation"),
        (("It ran.",), "past", "test"),
    ]
    assert (task.name, task.source) == ("tense", "the labelled table tense.csv, parts from its column Split")


def test_pairs_and_all_columns_can_be_chosen():
    table = "a\tb\tscore\tset\nx y\tz\t0.5\ttest\n"
    task = read_labelled_task("x.tsv.gz", gzip.compress(table.encode()), TaskColumns(("b", "a"), "score", "set"))
    assert task.examples == (TaskExample(Text(("z", "x y")), "0.5", "test"),)


def labelled(rows, name="x.csv", **options):
    content = "sentence1,sentence2,label\n" + "".join(f"{a},{b},{label}\n" for a, b, label in rows)
    return read_labelled_task(name, content.encode(), **options)


def test_without_a_column_rows_are_split_evenly_in_each_class():
    content = "text,label\n" + "".join(f"text {row},{'xy'[row % 2]}\n" for row in range(120))
    task = read_labelled_task("x.csv", content.encode())
    counts = Counter((one.part, one.label) for one in task.examples)
    assert [counts[part, label] for part in PARTS for label in "xy"] == [40, 40, 10, 10, 10, 10]
    assert task == read_labelled_task("x.csv", content.encode())
    assert task != read_labelled_task("x.csv", content.encode(), seed=1)


@given(
    st.lists(
        st.tuples(*[st.sampled_from([f"s{n}" for n in range(40)])] * 2, st.sampled_from("xy")), min_size=1, max_size=30
    )
)
def test_no_sentence_of_a_pair_is_in_two_parts(rows):
    try:
        task = labelled(rows)
    except TextError:  # what it says is asked of the next test
        return
    parts_of = {}
    for one in task.examples:
        for segment in one.text.segments:
            parts_of.setdefault(segment, set()).add(one.part)
    assert all(len(parts) == 1 for parts in parts_of.values())


def test_rows_that_all_share_a_sentence_cannot_be_split():
    with pytest.raises(TextError, match=r"they fall into 1 groups of different size, and no split gives every part"):
        labelled([("same", f"other {row}", "xy"[row % 2]) for row in range(30)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            TABLE + "He sat.,past,dev2\n",
            r'^Line 5: the part is "dev2"\. Write train, validation, test, or tr, va or te',
        ),
        ("text,label\na,x\nb,\nc,\n", r"^Lines 3, 4: the label is empty"),
        ("sentence\nHe sat.\n", r'^The table has one column, "sentence", and texts and labels need a column each\.'),
        ("text,label,part\n", r"^The table has a header but no rows"),
        ("text,class\na,b\n", r'^There is no column "label"\. Pick from the header: 2 columns, "text", "class"'),
    ],
)
def test_a_broken_table_is_named_with_its_line(content, message):
    with pytest.raises(TextError, match=message):
        read_labelled_task("x.csv", content.encode())


def test_unknown_columns_and_double_meanings_are_said():
    with pytest.raises(ColumnsNeeded):
        read_labelled_task("x.csv", b"a,label\nb,c\n")
    with pytest.raises(TextError, match=r'^The column "label" cannot have two meanings at once'):
        read_labelled_task("x.csv", b"text,label\nb,c\n", TaskColumns(("label",)))
    with pytest.raises(TextError, match=r'^"x\.txt" is not a table'):
        read_labelled_task("x.txt", b"text,label\nb,c\n")


# Files and folders


def test_a_folder_is_one_task_a_file(tmp_path):
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(REAL.encode()))
    (tmp_path / "a.tsv").write_text(REAL)
    (tmp_path / "c.csv").write_text(TABLE)
    (tmp_path / "notes.md").write_text("other")
    (tmp_path / "folder.txt").mkdir()
    assert [task.name for task in read_tasks(tmp_path)] == ["a", "b", "c"]
    (single,) = read_tasks(tmp_path / "b.txt.gz")
    assert single.examples == read_tasks(tmp_path)[0].examples


def test_the_file_beside_the_tasks_says_where_they_come_from(tmp_path):
    (tmp_path / "a.txt").write_text(REAL)
    (tmp_path / "b.txt").write_text(REAL)
    (tmp_path / ABOUT).write_text(json.dumps({"tasks": [{"name": "a", "source": "trees"}]}))
    assert [task.source for task in read_tasks(tmp_path)] == ["trees", "a file in SentEval's format, b"]


@pytest.mark.parametrize("about", ["{", '{"tasks": [{"name": "a"}]}'])
def test_a_broken_file_beside_the_tasks_is_said(about, tmp_path):
    (tmp_path / "a.txt").write_text(REAL)
    (tmp_path / ABOUT).write_text(about)
    with pytest.raises(TextError, match=r"^tasks\.json: .* Or remove the file, which is not needed\."):
        read_tasks(tmp_path)


def test_errors_name_the_file(tmp_path):
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(TextError, match=r"^a\.txt: Line 1 has 1 cell"):
        read_tasks(tmp_path)
    (tmp_path / "a.csv").write_text("x,y\n")
    with pytest.raises(ColumnsNeeded, match=r"^a\.csv: The first line names no column") as error:
        read_tasks(tmp_path / "a.csv")
    assert error.value.columns == ("x", "y")


def test_what_is_no_task_is_said(tmp_path):
    with pytest.raises(TextError, match="holds no task"):
        read_tasks(tmp_path)
    with pytest.raises(TextError, match=r"^x\.md cannot be read\. Choose a file that ends in \.txt"):
        read_tasks(tmp_path / "x.md")
    (tmp_path / "a.csv.gz").write_bytes(b"no archive")
    with pytest.raises(TextError, match=r"^a\.csv\.gz: The file cannot be unpacked"):
        read_tasks(tmp_path)
    for number in range(100):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(TextError, match="holds 101 files and at most 100 are read"):
        read_tasks(tmp_path)
