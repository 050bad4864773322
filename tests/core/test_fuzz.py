"""Whatever a file, a folder or a link holds, a reader gives what it holds or a sentence, soon.

`ATTENTION_SIEVE_FUZZ=20000 pytest tests/core/test_fuzz.py` tries so many inputs for each reader, others every time.
"""

import gzip
import io
import json
import os
import re
import resource
import shutil
import sys
import time
from functools import partial
from pathlib import Path

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from corpus_files import manifest, statistics
from hypothesis import HealthCheck, given
from mutations import spoilt
from pyarrow import parquet

from attention_sieve.cache.store.results_file import checksum_of, pack, unpack
from attention_sieve.core.checkpoints.checkpoint import REMOVED_HEADS, read_removed
from attention_sieve.core.checkpoints.checks.bounds import check_tokenizer_files
from attention_sieve.core.checkpoints.checks.files import checked_config, n_saved
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.corpus.manifest import MANIFEST, STATISTICS, read_manifest
from attention_sieve.core.corpus.plan import corpus_texts
from attention_sieve.core.corpus.results import open_results
from attention_sieve.core.corpus.texts.inputs import read_inputs
from attention_sieve.core.corpus.texts.parsed import PARSED_FOLDER, PARSING, parsed_path
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.data import column_names, read_training_data
from attention_sieve.core.finetuning.journal import RECORD, read_record
from attention_sieve.core.importance.gates.settings import HISTORY, read_history
from attention_sieve.core.knowledge.files.folders import read_tasks
from attention_sieve.core.knowledge.files.labelled import read_senteval
from attention_sieve.core.knowledge.trials.command import read_trials
from attention_sieve.core.knowledge.trials.result import fingerprint_of, read_result
from attention_sieve.core.options import heads
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.tables import READ_COLUMNS, read_score_table
from attention_sieve.core.running import PROGRESS, read_progress
from attention_sieve.core.statistics.series import BINS
from attention_sieve.core.surface.frequencies import read_frequencies
from attention_sieve.core.texts.text import read_columns, read_file, read_labelled, read_typed
from attention_sieve.dashboard.components.arcs.look import NAMES, read_look

N_INPUTS = int(os.environ.get("ATTENTION_SIEVE_FUZZ", "25"))
IS_ALWAYS_THE_SAME = "ATTENTION_SIEVE_FUZZ" not in os.environ
MOST_SECONDS = 5
"""Of the processor, for one input."""
MOST_KILOBYTES = 2**20
"""By which one input, of less than a megabyte, may raise the most memory that the process has held."""

PLAIN = b"The cat sat.\nTwo ||| segments\none\ttwo\n"
TABLE = b'sentence1,sentence2,label\n"The cat, she sat",on the mat,1\nIt ran,home,0\n"a ""b""",c,1\n'
TABS = b"sentence1\tsentence2\tlabel\nThe cat\ton the mat\t1\nIt ran\thome\t0\n"
CONLLU = (
    b"# newdoc id = d1\n# sent_id = 1\n1\tCats\tcat\tNOUN\t_\t_\t2\tnsubj\t_\t_\n"
    b"2\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\t_\n"
    b"\n1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n1\tdo\tdo\tAUX\t_\t_\t0\troot\t_\t_\n"
    b"2\tn't\tnot\tPART\t_\t_\t1\tadvmod\t_\t_\n\n"
)
OBJECTS = [
    {"text": "The cat sat."},
    {"text_a": "one", "text_b": "two"},
    {"words": ["The", "cat"], "heads": [2, 0], "relns": ["det", "root"]},
    {"tokens": ["[CLS]", "un", "##do", "[SEP]"]},
]
JSON = json.dumps(OBJECTS).encode()
LINES = "\n".join(map(json.dumps, OBJECTS)).encode()
MENTIONS = (
    b'{"text": "Ann left. She was tired.", "clusters": [[[0, 3], [10, 13]]]}\n{"text": "Bob ran.", "clusters": []}',
    b"ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    b"x-1\tAnn met Eve when she left.\tshe\t17\tAnn\t0\tTRUE\tEve\t8\tFALSE\thttp://x\n",
)
SENTEVAL = b"tr\tA\tthe cat sat\ntr\tB\ta dog ran\nva\tA\ttwo birds\nva\tB\tit sat\nte\tA\tthe mat\nte\tB\tred apples\n"
TRIALS_TABLE = b"checkpoint,data,pooling,seed\nbundled,tasks/tense.txt,cls,0\nbundled,length,mean,1\n"
FREQUENCIES = (b"the\nof\nand\n", b"rank\tword\tcount\n1\tthe\t500\n2\tof\t30\n", gzip.compress(b"the\nof\n"))
PROGRESS_LINES = (
    b'{"event": "start", "step": 0, "steps": 4, "pid": 1, "created": 1.5, "state": null, "message": "", '
    b'"checkpoint": "x"}\n{"event": "loss", "step": 1, "loss": 0.5}\n{"event": "note", "note": "slow"}\n'
    b'{"event": "piece", "piece": "a", "message": ""}\n{"event": "part", "message": "b", "n_done": 1, "n_all": 2}\n'
    b'{"event": "done", "step": 2, "seconds_left": 3.0}\n{"event": "failed", "piece": "a", "why": "too few"}\n'
    b'{"event": "end", "state": "finished", "step": 4, "message": ""}\n{}'
)
RECORD_FILE = json.dumps({"settings": {"steps": 4}, "data": "x.csv", "result": {"accuracy": 0.5}}).encode()
HISTORY_LINES = (
    b'{"step": 1, "log_alpha": [[0.5, 1.0], [2.0, -1.0]]}\n{"step": 2, "log_alpha": [[0.4, 1.0], [2.0, 0.0]]}\n'
)
REMOVED = b'{"format": 1, "removed": {"encoder": [[0, 1], [1, 2]]}}'


def tensors():
    """A stored result: safetensors with arrays and a text."""
    return pack({"scores": np.arange(6.0).reshape(2, 3), "holds": np.array([True, False])})


def score_table():
    columns = {name: np.zeros(8) for name in READ_COLUMNS} | {"role": ["local"] * 8, "text": np.arange(8) // 4}
    columns |= {"layer": np.arange(8) // 2 % 2, "head": np.arange(8) % 2}
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def read_statistics(folder):
    results = open_results(folder)
    results.file.read()
    for stratum in results.strata:
        part = results.part(stratum)
        with np.errstate(all="ignore"):  # finite numbers of a spoilt file may still be too large to be squared
            part.tests(Criterion())
            part.by_evidence(Criterion())
            part.surface(0.05)
            part.relations(0.05)
        assert (part.n_texts > 0, len(part.n_tokens), part.role_counts.shape[-1]) == (True, 2, BINS)


WORDS = json.dumps([None, [[2, 0]], [["det", "root"]], [[0, 3, 4, 7]]]).encode()
PARSED = {"text": "The cat", "second": None, "words": WORDS.decode(), "document": "d", "dataset": "", "language": ""}
PARSED_FILE = (
    b'{"format": 1, "texts": "a.txt", "text_columns": null, "inputs": ["a1"], "shard_size": 5, "parser": "p", '
)
PARSED_FILE += b'"n_texts": 1, "n_shards": 1}'


def table_of(row):
    file = io.BytesIO()
    parquet.write_table(pa.table({name: pa.array([value], pa.string()) for name, value in row.items()}), file)
    return file.getvalue()


def parsed_corpus(parts_of):
    """A reader of a folder of parsed texts.

    Args:
        parts_of: makes of the content the description of the folder, and its only shard.
    """

    def read(content, folder):
        described, shard = parts_of(content)
        (folder / PARSED_FOLDER).mkdir(exist_ok=True)
        (folder / PARSING).write_bytes(described)
        parsed_path(folder, "000000").write_bytes(shard)
        list(corpus_texts(str(folder), None))

    return read


def with_words(content):
    return PARSED_FILE, table_of(PARSED | {"words": content.decode("utf-8", "replace")})


def in_file(name, read):
    """A reader of a folder that holds one file."""

    def reader(content, folder):
        (folder / name).write_bytes(content)
        read(folder)

    return reader


def of_content(read):
    return lambda content, _: read(content)


def of_text(read):
    return lambda content, _: read(content.decode("utf-8", "replace"))


def labelled(content):
    return list(read_labelled(content, ".csv", ("sentence1", "sentence2"), "label"))


def stored(content):
    unpack("key", checksum_of("key", content), content)


SAMPLES = {".txt": PLAIN, ".csv": TABLE, ".tsv": TABS, ".json": JSON, ".jsonl": LINES, ".conllu": CONLLU}
READERS = {
    "typed texts": (of_text(read_typed), (PLAIN,)),
    **{
        f"texts, {suffix}": (of_content(partial(read_file, f"a{suffix}")), (sample,))
        for suffix, sample in SAMPLES.items()
    },
    "columns": (of_content(lambda content: read_columns(content, ".csv")), (TABLE,)),
    "labelled texts": (of_content(labelled), (TABLE,)),
    "columns to train on": (of_content(lambda content: column_names("a.csv", content)), (TABLE,)),
    "training data": (
        of_content(lambda content: read_training_data("a.csv", content, ("sentence1",), "label")),
        (TABLE + TABLE.partition(b"\n")[2],),
    ),
    "mentions": (of_content(read_mentions), MENTIONS),
    "tasks": (of_content(lambda content: read_senteval("tense.txt", content)), (SENTEVAL,)),
    "tasks, gzipped": (
        in_file("tense.txt.gz", lambda folder: list(read_tasks(folder / "tense.txt.gz"))),
        (gzip.compress(SENTEVAL, mtime=0),),
    ),
    "tables of trials": (of_content(lambda content: read_trials(".csv", content)), (TRIALS_TABLE,)),
    "frequencies": (of_content(lambda content: read_frequencies("a.tsv", content)), FREQUENCIES[1:2]),
    "frequencies, a word a line": (of_content(lambda content: read_frequencies("a.txt", content)), FREQUENCIES[:1]),
    "frequencies, gzipped": (of_content(lambda content: read_frequencies("a.txt.gz", content)), FREQUENCIES[2:]),
    "stored results": (of_content(stored), (tensors(),)),
    "tables of scores": (in_file("a.parquet", lambda folder: read_score_table(folder / "a.parquet")), (score_table(),)),
    "results of trials": (in_file("a.parquet", lambda folder: read_result(folder / "a.parquet")), (score_table(),)),
    "checkpoints of trials": (
        in_file("a.parquet", lambda folder: fingerprint_of(folder / "a.parquet")), (score_table(),)
    ),
    "runs": (in_file(PROGRESS, read_progress), (PROGRESS_LINES,)),
    "records of runs": (in_file(RECORD, read_record), (RECORD_FILE,)),
    "histories of gates": (in_file(HISTORY, read_history), (HISTORY_LINES,)),
    "removed heads": (
        in_file(REMOVED_HEADS, lambda folder: read_removed("x", folder, {"encoder": (2, 3)})), (REMOVED,)
    ),
    "headers of weights": (in_file("model.safetensors", lambda folder: _size(folder)), (tensors(),)),
    "manifests": (in_file(MANIFEST, read_manifest), (manifest(),)),
    "statistics": (in_file(STATISTICS, read_statistics), (statistics(),)),
    "tables of a corpus": (
        in_file("a.parquet", lambda folder: list(read_inputs(str(folder), None))), (table_of(PARSED),)
    ),
    "parsed corpora": (parsed_corpus(lambda content: (content, table_of(PARSED))), (PARSED_FILE,)),
    "shards of parsed texts": (parsed_corpus(lambda content: (PARSED_FILE, content)), (table_of(PARSED),)),
    "words of parsed texts": (parsed_corpus(with_words), (WORDS,)),
    "arcs of links": (
        of_text(lambda text: [read_look({name: text}) for name in NAMES]), (b"from-5", b"0.35", b"3-7,2-5", b"A-B")
    ),
}  # fmt: skip


def _size(folder):
    from safetensors import SafetensorError

    try:
        n_saved(folder)
    except SafetensorError:
        return  # `check_size` makes a sentence of it


def most_held():
    """Kilobytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 1024 if sys.platform == "darwin" else most  # macOS tells bytes


def spoil(reader, samples, folder):
    """Give a reader many spoilt inputs."""
    settings = hypothesis.settings(
        max_examples=N_INPUTS,
        derandomize=IS_ALWAYS_THE_SAME,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    @settings
    @given(spoilt(samples))
    def every_input_is_read_or_gets_a_sentence(content):
        began, held = time.process_time(), most_held()
        try:
            reader(content, folder)
        except AnalysisError as error:
            said = str(error)
            assert "\n" not in said
            assert len(said) <= 1_000
            assert re.search(r"[.?]$|: python -m attention_sieve [a-z -]+$", said), said
        assert time.process_time() - began < MOST_SECONDS
        assert len(content) < 10**6
        assert most_held() - held < MOST_KILOBYTES

    every_input_is_read_or_gets_a_sentence()


@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_a_sentence_for_whatever_it_cannot_read(name, tmp_path):
    reader, samples = READERS[name]
    for sample in samples:
        reader(sample, tmp_path)
    spoil(reader, samples, tmp_path)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_spoilt_settings_of_a_checkpoint_get_a_sentence(file, folders, tmp_path):
    folder = shutil.copytree(folders("bert"), tmp_path / "bert")

    def read(folder: Path):
        checked_config("x", folder)
        check_tokenizer_files("x", folder)

    spoil(in_file(file, read), ((folder / file).read_bytes(),), folder)


def test_heads_of_a_command_get_a_sentence():
    from argparse import ArgumentTypeError

    def read(text):
        try:
            heads(text)
        except ArgumentTypeError as error:
            raise AnalysisError(f"{error}.") from None

    spoil(of_text(read), (b"3-7,2-5",), None)
