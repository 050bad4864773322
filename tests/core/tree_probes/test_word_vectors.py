import numpy as np
import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.tree_probes.word_vectors import vectors_from_file, vectors_from_lines

LINES = [b"the 1 2 3\n", b"cat -0.5 .25 1e2\n", b". . . 7 8 9\n", b"dog 4 5 6\n"]
TEXTS = [["The", "cat"], ["a", "CAT", ". . ."]]


def test_words_are_looked_up_in_lower_case_and_unknown_ones_are_zero():
    found = vectors_from_lines("glove.txt", LINES, TEXTS)
    assert found.table.dtype == np.float32
    vectors = [found.table[rows].tolist() for rows in found.rows]
    assert vectors == [[[1, 2, 3], [-0.5, 0.25, 100]], [[0, 0, 0], [-0.5, 0.25, 100], [7, 8, 9]]]
    assert len(found.table) == 4  # the dog is not asked for


def test_a_line_that_counts_the_others_is_passed_over(tmp_path):
    path = tmp_path / "vectors.vec"
    path.write_bytes(b"4 3\r\n" + b"".join(line.replace(b"\n", b" \r\n") for line in LINES))
    np.testing.assert_array_equal(
        vectors_from_file(path, TEXTS).table, vectors_from_lines("glove.txt", LINES, TEXTS).table
    )


def test_the_first_vector_of_a_word_counts():
    found = vectors_from_lines("glove.txt", [b"cat 1 2\n", b"cat 3 4\n"], [["cat"]])
    assert found.table[found.rows[0]].tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([b"the 1 2 3\n", b"cat 1 2\n"], "Line 2 of glove.txt has 2 numbers and 3 were expected"),
        ([b"the\n"], "Line 1 of glove.txt has 0 numbers and at least 1 were expected"),
        ([b"the 1 two\n"], "Line 1 of glove.txt has something other than numbers"),
        ([b"the 1 nan\n"], "Line 1 of glove.txt holds a number that is not finite"),
        ([b"th\xe9 1 2\n"], "Line 1 of glove.txt is not UTF-8"),
        ([b"the " + b"1 " * 2001 + b"\n"], "Line 1 of glove.txt has 2,001 numbers and at most 2,000 are read"),
        ([b"dog 1 2\n"], "glove.txt has a vector for none of the 4 words"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(lines, said):
    with pytest.raises(AnalysisError, match=said):
        vectors_from_lines("glove.txt", lines, TEXTS)


def test_a_file_is_read_line_by_line_and_within_limits(tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * 300_000)
    with pytest.raises(AnalysisError, match=r"Line 1 of long.txt has more than 100,000 bytes"):
        vectors_from_file(path, TEXTS)
    with path.open("r+b") as file:
        file.truncate(8 * 10**9 + 1)  # takes no room on the disk
    with pytest.raises(AnalysisError, match="8,000,000,001 bytes and at most 8,000,000,000 are read"):
        vectors_from_file(path, TEXTS)
    with pytest.raises(AnalysisError, match=r"nowhere.txt cannot be read \(No such file or directory\)"):
        vectors_from_file(tmp_path / "nowhere.txt", TEXTS)
