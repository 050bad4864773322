"""Files of texts: each room that reads them takes exactly the suffixes that it names, and no other of the table."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attention_sieve.__main__ import main
from attention_sieve.core.commands import read_texts
from attention_sieve.core.corpus.texts.inputs import read_inputs
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import READERS
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.views.importance import two_sets
from attention_sieve.dashboard.views.importance.two_sets import KEY, UPLOAD_KEY

CONTENTS = {
    ".txt": "The cat.\n",
    ".csv": "sentence\nThe cat.\n",
    ".tsv": "sentence\nThe cat.\n",
    ".json": '["The cat."]',
    ".jsonl": '{"text": "The cat."}\n',
    ".conllu": "1\tThe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tcat.\t_\t_\t_\t_\t0\troot\t_\t_\n\n",
}
SUFFIX = re.compile(r"(?<![\w.])\.[a-z]+\b")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of each format of the table with the same text, and one of none of them."""
    folder = tmp_path_factory.mktemp("files")
    for suffix, content in CONTENTS.items():
        (folder / f"texts{suffix}").write_text(content)
    pq.write_table(pa.table({"sentence": ["The cat."]}), folder / "texts.parquet")
    (folder / "texts.md").write_text("The cat.\n")
    assert {path.suffix for path in folder.iterdir()} == {*(reader.suffix for reader in READERS), ".md"}
    return sorted(folder.iterdir())


def accepted(read, files):
    """Suffixes of the files in which this finds the text; each other is refused with a sentence that names the same."""
    suffixes, refusals = set(), []
    for path in files:
        try:
            (text,) = read(path)
        except AnalysisError as error:
            refusals.append(str(error))
        else:
            assert text.segments == ("The cat.",)
            suffixes.add(path.suffix)
    assert refusals
    for refusal in refusals:
        assert set(SUFFIX.findall(refusal.split("format that cannot be")[1])) == suffixes
    return suffixes


def named_in_help(capsys, *command):
    """Suffixes that the help of a command names for its option --texts."""
    with pytest.raises(SystemExit):
        main([*command, "--help"])
    of_option = " ".join(capsys.readouterr().out.split()).split("--texts TEXTS ")[-1].split(" --")[0]
    return set(SUFFIX.findall(of_option))


@pytest.mark.parametrize("command", ["score", "surface", "tree-probes"])
def test_a_command_reads_the_files_that_its_help_names(command, files, capsys):
    assert accepted(read_texts, files) == named_in_help(capsys, command)


def test_a_corpus_reads_the_files_that_its_help_names(files, capsys):
    read = accepted(lambda path: [each.text for each in read_inputs(str(path), None)], files)
    assert read == named_in_help(capsys, "corpus", "plan")


@pytest.mark.parametrize(
    ("page", "key", "link"),
    [
        ("roles", "upload", {"corpus": controls.UPLOAD}),
        ("importance", UPLOAD_KEY, {"importance details": two_sets.TAB, KEY: two_sets.UPLOAD}),
        ("grammar", "probe test file", {"grammar section": "Probes"}),
    ],
)
def test_an_uploader_takes_what_a_command_reads(page, key, link, app, files):
    at = app(page, **link)
    assert not at.exception
    assert set(at.file_uploader(key=key).proto.type) == accepted(read_texts, files)


def test_the_sidebar_says_what_each_kind_of_file_can_hold(app, files):
    (said,) = [
        each.value for each in app("roles", corpus=controls.UPLOAD).markdown if "one text per line" in each.value
    ]
    assert set(SUFFIX.findall(said)) == accepted(read_texts, files)
