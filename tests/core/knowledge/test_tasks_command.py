import gzip
import json

import pytest
from made_trees import conllu, corpus, flat

from attention_sieve.__main__ import main
from attention_sieve.core.knowledge import tasks_command as module
from attention_sieve.core.knowledge.files.folders import read_tasks
from attention_sieve.core.knowledge.task import PARTS
from attention_sieve.core.running import ask_to_stop, read_progress


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "trees.conllu.gz"
    path.write_bytes(gzip.compress(conllu(*corpus()).encode()))
    return path


def make(output, *texts, more=()):
    return main(["tasks", "--texts", *map(str, texts), "--output", str(output), *more])


def test_a_folder_of_tasks_is_written_and_read_again(trees, tmp_path, capsys):
    assert make(tmp_path / "new" / "tasks", trees) == 0
    made = {task.name: task for task in read_tasks(tmp_path / "new" / "tasks")}
    assert set(made) == {"bigram_shift", "tense", "subject_number"}
    assert made["tense"].source.startswith("trees of trees.conllu.gz; 400 sentences of 5 to 28 words, split into parts")
    about = json.loads((tmp_path / "new" / "tasks" / "tasks.json").read_text("utf-8"))
    told = next(task for task in about["tasks"] if task["name"] == "tense")
    assert told["rows"] == {part: made["tense"].count(part) for part in PARTS}
    assert told["classes"]["PAST"] == {"train": 133, "validation": 34, "test": 33}
    assert "Conneau et al. 2018, Tense" in told["definition"]
    printed = capsys.readouterr().out.splitlines()
    assert about["left_out"][0]["reason"] in printed
    assert printed[0].split() == ["task", "classes", *PARTS]
    assert ["tense", "2", "266", "68", "66"] in [line.split() for line in printed]
    assert printed[-1] == f"3 tasks were written to {tmp_path / 'new' / 'tasks'}; tasks.json describes them."


def test_other_texts_are_parsed_and_the_parser_is_named(tmp_path):
    nouns, verbs = ("dog", "cat", "bird", "child"), ("saw", "found", "sees", "finds")
    texts = [f"The {noun} {verb} a red house number {row}." for row in range(25) for noun in nouns for verb in verbs]
    (tmp_path / "a.txt").write_text("\n".join(texts))
    assert make(tmp_path / "tasks", tmp_path / "a.txt") == 0
    sources = [task.source for task in read_tasks(tmp_path / "tasks")]
    assert sources
    assert all(source.startswith("a.txt, parsed by en_core_web_sm") for source in sources)


def test_too_few_sentences_for_any_task_are_said(tmp_path, capsys):
    (tmp_path / "few.conllu").write_text(conllu(flat("a b c d e")))
    assert make(tmp_path / "tasks", tmp_path / "few.conllu") == 2
    assert capsys.readouterr().err.startswith(
        "No task could be created. length is left out: 0 balanced rows were found"
    )
    assert not (tmp_path / "tasks").exists()


def test_a_folder_with_files_and_too_few_rows_are_refused(trees, tmp_path, capsys):
    assert make(tmp_path, trees) == 2
    assert capsys.readouterr().err == f"{tmp_path} already exists and is not an empty folder. Choose a new one.\n"
    assert make(tmp_path / "tasks", trees, more=("--rows", "10")) == 2
    assert "A task of at most 10 rows is too small." in capsys.readouterr().err


def test_the_sample_is_made_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    snippets = tuple(
        f"The {'dog' if row % 3 else 'cat'} {'sees' if row % 2 else 'saw'} film {row}." for row in range(400)
    )
    asked = []
    monkeypatch.setattr(module, "movie_snippets", lambda folder: asked.append(folder) or snippets)
    assert main(["sample-tasks"]) == 0
    folder = tmp_path / "tasks" / "movie-snippets"
    assert read_tasks(folder)[0].source.startswith("400 movie review snippets (Hutto & Gilbert 2014, from vaderSent")
    assert f"tasks were written to {folder}; " in capsys.readouterr().out
    assert main(["sample-tasks"]) == 0
    assert capsys.readouterr().out == f"The sample tasks already exist. They are in {folder}\n"
    assert asked == [tmp_path / "downloads"]


def test_the_sample_tasks_are_made_in_pieces_of_a_hundred_texts_and_can_be_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    monkeypatch.setattr(
        module, "movie_snippets", lambda folder: [f"A film of {number} jokes." for number in range(250)]
    )
    journal = tmp_path / "journal"
    reported, asked = module._reported, []

    def ask_after(texts, of_run):
        for number, text in enumerate(reported(texts, of_run)):
            if number == 150:
                ask_to_stop(journal)
                asked.append(read_progress(journal))
            yield text

    monkeypatch.setattr(module, "_reported", ask_after)
    assert main(["sample-tasks", "--journal", str(journal)]) == 0
    assert [(progress.step, progress.steps, progress.n_all) for progress in asked] == [(1, 3, 250)]
    assert read_progress(journal).state == "stopped"
    assert "Stopped after 1 of 3." in capsys.readouterr().err
    assert not module.sample_tasks_folder().exists()
