"""The command in a file's facts computes what the page shows, from the texts of the archive."""

import shlex

import pandas as pd
import pytest

from attention_sieve.__main__ import main
from attention_sieve.cache.engine import Engine
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.texts.text import read_file, texts_sha256
from attention_sieve.dashboard.files import commands
from attention_sieve.dashboard.state import Choice

FILES = {
    "a.txt": b"The old dog ran.\nWho sat? ||| A cat sat.\n",
    "a.json": b'[{"words": ["Dogs", "run"], "heads": [2, 0], "relns": ["nsubj", "root"]}, {"text": "\\u00e9t\\u00e9"}]',
    "b.jsonl": b'{"ids": [5, 6, 7, 5, 6], "needle": [1, 2], "answer": [4, 5]}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_texts_are_the_same_when_they_are_read_again(name):
    texts = read_file(name, FILES[name])
    again = read_file("texts.jsonl", commands.lines_of(texts))
    assert again == texts
    assert texts_sha256(again) == texts_sha256(texts)


def test_the_command_scores_as_the_page_does(folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = find_checkpoint(str(folders("bert")))
    engine, texts = Engine(files, device="cpu", dtype="float32"), read_file("a.txt", FILES["a.txt"])
    choice = Choice(
        checkpoint=files.name, device="cpu", dtype="float32", kind="self", off=((0, 1), (1, 2)), corpus="typed",
        criterion=Criterion(tau=1.5), score_settings=ScoreSettings(direction="both", block_entropy=False),
    )  # fmt: skip
    commands.begin_page()
    fact = commands.command("score", choice, engine, texts, *commands.role_options(choice, engine))["command"]
    program, *arguments = shlex.split(fact)
    assert program == "attention-sieve"
    ((name, read),) = commands.texts_read().items()
    (tmp_path / name).write_bytes(commands.lines_of(read))
    assert main(arguments) == 0
    facts = pd.read_parquet("score.parquet").attrs
    assert facts["heads off"] == "L0 H1, L1 H2"
    assert (facts["direction"], facts["block entropy"]) == ("both", "no")
    assert facts["texts sha256"] == texts_sha256(texts)
