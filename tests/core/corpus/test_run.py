"""Corpora from the plan to what the statistics say."""

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from corpus_material import SENTENCES, corpus, run_corpus, write_corpus, written
from full_disk import files_up_to
from safetensors import safe_open
from safetensors.numpy import save_file
from small_checkpoints import save

from attention_sieve.core import analysis, progress
from attention_sieve.core.answering import find
from attention_sieve.core.corpus.manifest import (
    DONE_FOLDER,
    MANIFEST,
    SCORES_FOLDER,
    STATISTICS,
    read_manifest,
    score_path,
)
from attention_sieve.core.corpus.paired import read_differences
from attention_sieve.core.corpus.results import open_results
from attention_sieve.core.corpus.run import REDUCTIONS, alone
from attention_sieve.core.corpus.score_files import highest, read_role_scores
from attention_sieve.core.corpus.statistics import EVERYTHING, Stratum
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS, RELATION_NAMES
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion, few_texts, role_tests
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES, scores_question
from attention_sieve.core.roles.roles import FURTHER_ROLES, ROLES
from attention_sieve.core.roles.uncertainty.anytime import role_evidence
from attention_sieve.core.running import PROGRESS, ask_to_stop, read_progress
from attention_sieve.core.statistics.series import TAUS, quantile
from attention_sieve.core.surface.analysis import surface_question
from attention_sieve.core.surface.frequencies import english_frequencies
from attention_sieve.core.surface.per_text import USUAL_ROWS
from attention_sieve.core.surface.statistics import (
    head_labels,
    head_statistics,
    layer_statistics,
    positional,
    rare_shares,
)
from attention_sieve.core.texts.text import read_typed

ROOT = Path(__file__).parents[3]
N_TEXTS = 23
"""Of 5 shards, the last of which is smaller."""


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("texts"), N_TEXTS)


@pytest.fixture(scope="module")
def checkpoint(folders):
    return folders("bert")


@pytest.fixture(scope="module")
def done(tmp_path_factory, checkpoint, texts):
    """A finished corpus; a test must not change it."""
    folder = tmp_path_factory.mktemp("results") / "done"
    assert run_corpus(checkpoint, texts, folder) == 0
    return folder


def test_a_run_that_names_no_question_answers_all_that_pages_ask_of_results(done, folders, texts, tmp_path):
    assert read_manifest(done).settings.questions == tuple(REDUCTIONS) == ("roles", "surface", "relations")
    planned = (
        "--checkpoint",
        folders("bart"),
        "--texts",
        texts,
        "--attention",
        "cross",
        "--output",
        tmp_path / "cross",
    )
    assert corpus("plan", *planned) == 0
    assert read_manifest(tmp_path / "cross").settings.questions == ("roles", "surface")


def typed():
    """The texts of the corpus."""
    return read_typed("\n".join(f"{SENTENCES[n % len(SENTENCES)]} {n}" for n in range(N_TEXTS)))


def scores_of(folder):
    manifest = read_manifest(folder)
    parts = [read_role_scores(score_path(folder, shard), ROLES) for shard in manifest.shards]
    return np.concatenate([scores for scores, _ in parts]), np.concatenate([uniform for _, uniform in parts])


def test_scores_are_those_of_the_pass(done, loaded):
    scores, uniform = scores_of(done)
    direct = role_scores(
        analysis.results(loaded("bert"), scores_question(ROLES, parses=False), typed()), ScoreSettings()
    )
    np.testing.assert_allclose(scores, direct.scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(uniform, direct.uniform, rtol=1e-6, atol=1e-6)
    assert np.isnan(scores[:, ROLES.index("syntactic")]).all()


def test_further_roles_are_scored_shown_and_compared_where_they_are_asked_for(checkpoint, texts, loaded, tmp_path):
    folder, names, output = tmp_path / "all", (*ROLES, *FURTHER_ROLES), tmp_path / "all.csv"
    assert run_corpus(checkpoint, texts, folder, "--roles", "all") == 0
    direct = find(ROLE_ANALYSIS, loaded("bert"), typed(), RoleSettings(ScoreSettings(roles=names, parses=False)))
    found = open_results(folder).part().tests(Criterion())
    assert found.roles == names
    np.testing.assert_allclose(found.mean, direct.tests.mean, rtol=1e-4, atol=1e-5)
    assert np.isfinite(found.mean[names.index("previous")]).all()
    assert corpus("show", folder, "--output", output) == 0
    assert tuple(pd.read_csv(output)["role"].unique()) == names
    assert corpus("compare", folder, folder) == 0
    results = open_results(folder)
    assert read_differences(results, results, Criterion()).difference.shape == found.mean.shape


def test_a_folder_of_the_version_before_opens_and_its_shards_are_done(done, tmp_path, capsys):
    folder = shutil.copytree(done, tmp_path / "before")
    manifest = json.loads((folder / MANIFEST).read_bytes())
    del manifest["settings"]["roles"]
    (folder / MANIFEST).write_text(json.dumps(manifest | {"format": 1}))
    assert open_results(folder).part().tests(Criterion()).roles == ROLES
    (folder / PROGRESS).unlink()
    assert corpus("verify", folder) == 0
    first = manifest["shards"][0]["sha256"]
    ingredients = [2, manifest["fingerprint"], manifest["settings"], manifest["versions"], first]
    key = hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()
    assert key == read_manifest(done).key(read_manifest(done).shards[0])
    (folder / DONE_FOLDER / "000004.json").unlink()
    (folder / STATISTICS).unlink()
    assert corpus("run", "--output", folder, "--workers", 1) == 0, "does what is left and merges it"
    assert written(folder)[STATISTICS] == written(done)[STATISTICS]
    assert corpus("verify", folder) == 0


@pytest.mark.parametrize("criterion", [Criterion(), Criterion(tau=1.2, rule="paper", ddof=0, correction="holm")])
def test_tests_are_those_of_the_scores(done, criterion):
    scores, uniform = scores_of(done)
    direct, found = role_tests(scores, ROLES, criterion, uniform), open_results(done).part().tests(criterion)
    for name in ("texts", "mean", "std", "t", "p", "p_uniform", "p_adjusted", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(direct, name), rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_array_equal(found.holds, direct.holds)


def test_evidence_is_the_product_over_the_texts_and_between_two_thresholds_that_of_the_higher_one(done):
    (scores, uniform), part = scores_of(done), open_results(done).part()
    for tau, bet_on in (*zip(TAUS, TAUS), (2.5, 3.0)):
        expected = role_evidence(scores, Criterion(tau=bet_on), uniform)
        np.testing.assert_allclose(part.by_evidence(Criterion(tau=tau)).evidence, expected, rtol=1e-9, atol=1e-9)
    with pytest.raises(AnalysisError, match="Choose a lower tau"):
        part.by_evidence(Criterion(tau=7.0))


def test_parts_are_the_texts_that_they_name(done):
    results, (scores, uniform) = open_results(done), scores_of(done)
    half = N_TEXTS // 2
    rows = {
        EVERYTHING: range(N_TEXTS),
        Stratum("data set", "news"): range(half),
        Stratum("data set", "web"): range(half, N_TEXTS),
        Stratum("language", "de"): range(half, N_TEXTS, 2),
    }
    for stratum, of in rows.items():
        direct = role_tests(scores[list(of)], ROLES, Criterion(), uniform[list(of)])
        np.testing.assert_allclose(results.part(stratum).tests(Criterion()).mean, direct.mean, rtol=1e-9)
    lengths = [results.part(each).n_texts for each in results.strata if each.kind == "length"]
    assert sum(lengths) == N_TEXTS
    with pytest.raises(AnalysisError, match="no texts of language fr"):
        results.part(Stratum("language", "fr"))


def test_histograms_tell_the_median(done):
    part, (scores, _) = open_results(done).part(), scores_of(done)
    counts = part.role_counts
    assert counts[0].sum() == N_TEXTS * scores.shape[2] * scores.shape[3]
    found = quantile(counts[0, 1, 2], 0.5, part.bins)
    assert abs(found - np.median(scores[:, 0, 1, 2])) < 0.06 * (1 + found)


def test_the_highest_texts_of_a_head_are_read_from_one_column(done):
    scores, _ = scores_of(done)
    shard = read_manifest(done).shards[0]
    rows, found = highest(score_path(done, shard), "local", (1, 2), 3)
    expected = np.argsort(-scores[:5, 0, 1, 2], kind="stable")[:3]
    assert rows.tolist() == expected.tolist()
    np.testing.assert_array_equal(found, scores[expected, 0, 1, 2].astype(np.float32))


def test_roles_with_syntactic_ones_surface_and_relations_reduce_to_the_same_numbers(
    tmp_path, checkpoint, loaded, texts, capsys
):
    folder, small = tmp_path / "results", loaded("bert")
    assert corpus(
        "run", "--checkpoint", checkpoint, "--texts", texts, "--output", folder, "--workers", 1,
        "--shard-size", 9, "--questions", "roles,surface,relations",
    ) == 0  # fmt: skip
    scored = role_scores(analysis.results(small, SCORES, typed()), ScoreSettings())
    np.testing.assert_allclose(scores_of(folder)[0], scored.scores, rtol=1e-3, atol=1e-3)
    part = open_results(folder).part()
    direct = analysis.results(small, surface_question(USUAL_ROWS), typed())
    ranks = [english_frequencies().ranks(text.key_words) for text in direct]
    held = [name != "first" for name in head_statistics(direct, 0.05, ranks).names]  # which the role sink gives
    for name in ("mean", "low", "high"):
        expected = getattr(head_statistics(direct, 0.05, ranks), name)[held]
        np.testing.assert_allclose(getattr(part.surface(0.05), name), expected, rtol=1e-3, atol=1e-4)
    layers = layer_statistics(direct)
    np.testing.assert_allclose(part.layers(0.05).mean[:2], layers.mean, rtol=1e-4, atol=1e-6)
    expected, (labels, rare) = head_labels(positional(direct), rare_shares(direct, ranks)), part.labels()
    np.testing.assert_array_equal(labels.positional.offset, expected.positional.offset)
    np.testing.assert_array_equal(labels.rare, expected.rare)
    assert rare.n_texts == N_TEXTS
    finding = find(RELATION_ANALYSIS, small, typed(), RelationSettings(least_cases=1))
    by_name = {each.relation: each for each in finding.accuracies}
    found = part.relations(0.05)
    for place, name in enumerate(RELATION_NAMES):
        if name in by_name:
            assert found.n_cases[place] == by_name[name].n_cases
            direct = by_name[name]
            np.testing.assert_allclose(found.accuracy[place], direct.accuracy, atol=0.02)
            same = np.isclose(found.accuracy[place], direct.accuracy, atol=1e-9)
            assert same.mean() > 0.5
            np.testing.assert_allclose(found.low[place][same], direct.low[same], atol=1e-6)
            np.testing.assert_allclose(found.high[place][same], direct.high[same], atol=1e-6)
            assert found.offset_accuracy[place] == pytest.approx(by_name[name].baseline.share)
    capsys.readouterr()
    output = tmp_path / "relations.csv"
    assert corpus("show", folder, "--question", "relations", "--output", output) == 0
    printed = capsys.readouterr().out.splitlines()
    (titles,) = (line.split() for line in printed if line.split()[:1] == ["relation"])
    assert " ".join(titles) == "relation direction layer head accuracy low high cases offset baseline"
    best = {words[0]: float(words[4]) for line in printed if (words := line.split()) and words[0] in RELATION_NAMES}
    assert best["all"] == pytest.approx(np.nanmax(found.accuracy[0]), abs=1e-5)
    table = pd.read_csv(output, comment="#")
    assert len(table) == found.accuracy.size
    for name in ("accuracy", "low", "high"):
        np.testing.assert_allclose(table[name], getattr(found, name).ravel(), rtol=1e-5, atol=1e-6)
    of_all = table[table["relation"] == "all"]
    assert set(of_all["cases"]) == {found.n_cases[0]}
    assert set(of_all["offset"]) == {found.offset[0]}
    np.testing.assert_allclose(of_all["baseline"], found.offset_accuracy[0], rtol=1e-5, atol=1e-6)
    assert corpus("show", folder, "--question", "surface") == 0
    assert "statistic" in capsys.readouterr().out


def test_another_run_computes_nothing_and_keeps_every_byte(done, checkpoint, texts, capsys):
    before, times = written(done), times_of_scores(done)
    assert run_corpus(checkpoint, texts, done) == 0
    assert corpus("run", "--output", done) == 0
    assert corpus("merge", done) == 0
    assert corpus("verify", done) == 0
    assert "5 of 5 shards are complete and unchanged" in capsys.readouterr().out
    assert written(done) == before
    assert times_of_scores(done) == times, "a shard was computed twice"


def times_of_scores(folder):
    return {path: path.stat().st_mtime_ns for path in (folder / SCORES_FOLDER).iterdir()}


def test_damaged_and_foreign_shards_are_named_and_computed_anew(done, tmp_path, capsys):
    folder, before = shutil.copytree(done, tmp_path / "r"), written(done)
    (folder / SCORES_FOLDER / "000001.parquet").write_bytes(b"cut off")
    record = json.loads((folder / DONE_FOLDER / "000003.json").read_text())
    (folder / DONE_FOLDER / "000003.json").write_text(json.dumps(record | {"key": "another"}))
    (folder / DONE_FOLDER / "000004.json").unlink()
    assert corpus("verify", folder) == 2
    said = capsys.readouterr().err
    assert "Shard 000004: missing. Shard 000001: damaged. Shard 000003: foreign." in said
    assert corpus("merge", folder) == 2
    assert "scored with another checkpoint" in capsys.readouterr().err
    assert corpus("run", "--output", folder, "--workers", 1) == 0
    said = capsys.readouterr().err
    assert "Shard 000001: damaged, computed again." in said
    assert "Shard 000003: computed with other settings, computed again." in said
    assert written(folder) == before


def test_a_shard_that_a_process_of_ray_computes_has_the_same_bytes(done, tmp_path):
    folder = shutil.copytree(done, tmp_path / "ray")
    for path in (folder / DONE_FOLDER / "000003.json", folder / SCORES_FOLDER / "000003.parquet"):
        path.unlink()
    assert corpus("run", "--output", folder, "--engine", "ray", "--workers", 1) == 0
    assert written(folder) == written(done)


def test_a_run_that_is_killed_goes_on_to_the_same_bytes_in_another_process(checkpoint, texts, tmp_path):
    """Smaller than `benchmarks/corpora/corpus_kills.py`, which kills at 50 moments."""
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    for output in (folder, whole):
        assert corpus("plan", *options(checkpoint, texts, shard_size=12), "--output", output) == 0
    assert corpus("run", "--output", whole, "--workers", 1) == 0
    arguments = [sys.executable, "-m", "attention_sieve", "corpus", "run", "--output", str(folder), "--workers", "1"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not list((folder / DONE_FOLDER).glob("*.json")) and process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
        assert read_progress(folder).state == "running"
        process.send_signal(signal.SIGKILL)
    assert read_progress(folder).state == "left"
    (folder / SCORES_FOLDER / "x.part").write_bytes(b"half")
    assert corpus("run", "--output", folder, "--workers", 2) == 0
    assert (read_progress(folder).state, read_progress(folder).step) == ("finished", 2)
    assert written(folder) == written(whole)
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize("engine", [("--workers", 1), ("--workers", 2), ("--workers", 1, "--engine", "ray")])
def test_a_run_that_is_asked_to_stop_ends_in_the_middle_of_a_shard_and_goes_on(checkpoint, tmp_path, engine, capsys):
    folder, texts = tmp_path / "stopped", tmp_path / "a.txt"
    texts.write_text("\n".join(SENTENCES * 100))
    assert corpus("plan", *options(checkpoint, texts, shard_size=400), "--output", folder) == 0
    capsys.readouterr()

    def stop_once_it_scores():
        while getattr(read_progress(folder), "steps", 0) == 0:
            time.sleep(0.01)
        ask_to_stop(folder)

    Thread(target=stop_once_it_scores, daemon=True).start()
    assert corpus("run", "--output", folder, *engine) == 0
    assert capsys.readouterr() == ("", "Stopped after 0 of 2. Run the same command again to continue.\n")
    assert (read_progress(folder).state, read_progress(folder).step) == ("stopped", 0)
    assert not list((folder / DONE_FOLDER).iterdir())
    assert corpus("show", folder) == 2
    assert "stopped is not finished: it has 0 of 2 shards. To continue, " in capsys.readouterr().err
    assert corpus("run", "--output", folder, "--workers", 1) == 0
    assert (read_progress(folder).state, read_progress(folder).step) == ("finished", 2)


def test_progress_is_told_in_a_file_now_and_then(checkpoint, texts, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 1e-9)
    assert corpus("plan", *options(checkpoint, texts), "--output", tmp_path / "r") == 0
    assert capsys.readouterr().err.splitlines()[0].startswith("reading: 1 texts after")
    assert corpus("run", "--output", tmp_path / "r", "--workers", 1) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"5 of 5 shards after \d\d:\d\d, about 00:00 to go", last)


def test_a_second_run_in_the_same_folder_is_refused_until_the_first_has_ended(done, tmp_path, capsys):
    folder = shutil.copytree(done, tmp_path / "r")
    with alone(folder):
        assert corpus("run", "--output", folder) == 2
    assert f"Another run is in progress in {folder}. Wait" in capsys.readouterr().err
    assert corpus("run", "--output", folder) == 0
    assert written(folder) == written(done)


def options(checkpoint, texts, shard_size=5):
    return ("--checkpoint", checkpoint, "--texts", texts, "--shard-size", shard_size, "--no-parser")


def test_a_full_disk_stops_with_a_sentence_and_goes_on_later(done, checkpoint, texts, tmp_path, capsys):
    folder = tmp_path / "full"
    assert corpus("plan", *options(checkpoint, texts), "--output", folder) == 0
    with files_up_to(10_000):
        assert corpus("run", "--output", folder, "--workers", 1) == 2
    assert "There is no space left for shard 000000" in capsys.readouterr().err
    progress = read_progress(folder)
    assert (progress.state, [failed.piece for failed in progress.failed]) == ("failed", ["000000"])
    assert not list(folder.rglob("*.part"))
    assert corpus("run", "--output", folder, "--workers", 1) == 0
    assert written(folder) == written(done)


def test_show_writes_roles_by_test_and_by_evidence(done, tmp_path, capsys):
    output = tmp_path / "roles.csv"
    assert corpus("show", done, "--output", output, "--part", "data set=web", "--tau", "1.5") == 0
    table = pd.read_csv(output)
    assert {"role", "layer", "head", "p_adjusted", "holds", "evidence", "holds_anytime"} <= set(table)
    assert "data set web: 12 texts of" in capsys.readouterr().out


def test_show_says_what_was_not_tested_and_that_few_texts_say_little(done, capsys):
    assert corpus("show", done) == 0
    said = capsys.readouterr()
    assert re.search("^block +not tested$", said.out, re.MULTILINE)
    assert "Not tested: syntactic; the corpus was scored without the parser." in said.out
    assert "Not tested: block; it needs pairs of segments, and these are single texts." in said.out
    assert said.err == ""  # 23 texts are enough
    assert corpus("show", done, "--part", "data set=web") == 0
    assert capsys.readouterr().err == f"{few_texts(12)}\n"


def test_texts_that_are_left_out_keep_their_rows(checkpoint, tmp_path, capsys):
    (tmp_path / "a.txt").write_text("the cat\n" + "the cat sat " * 60 + "\nthe dog\n\u200b x\n")
    assert run_corpus(checkpoint, tmp_path / "a.txt", tmp_path / "r") == 0
    assert corpus("show", tmp_path / "r") == 0
    assert "1 too long" in capsys.readouterr().out
    scores, _ = scores_of(tmp_path / "r")
    assert np.isnan(scores).all(axis=(1, 2, 3)).tolist()[:3] == [False, True, False]
    assert run_corpus(checkpoint, tmp_path / "a.txt", tmp_path / "e", "--too-long", "error") == 2
    assert "Shard 000000: Text 2 has" in capsys.readouterr().err


def test_bad_input_is_a_sentence(done, checkpoint, texts, tmp_path, capsys):
    newer = shutil.copytree(done, tmp_path / "newer")
    told = json.loads((newer / MANIFEST).read_text())
    (newer / MANIFEST).write_text(json.dumps(told | {"format": 99}))
    of_newer = shutil.copytree(done, tmp_path / "statistics of a newer version")
    with safe_open(of_newer / STATISTICS, "np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = json.loads(file.metadata()["corpus"])
    save_file(arrays, of_newer / STATISTICS, {"corpus": json.dumps(facts | {"format": 99})})
    broken = shutil.copytree(done, tmp_path / "broken")
    (broken / MANIFEST).write_text('{"format": 1, "checkpoint": ')
    foreign = shutil.copytree(done, tmp_path / "foreign")
    record = json.loads((foreign / DONE_FOLDER / "000002.json").read_text())
    (foreign / DONE_FOLDER / "000002.json").write_text(json.dumps(record | {"tokenizer": "another"}))
    table = tmp_path / "a.parquet"
    pd.DataFrame({"a": ["x"]}).to_parquet(table)
    other = save("roberta", tmp_path / "roberta")
    of_roles = tmp_path / "roles"
    assert run_corpus(checkpoint, texts, of_roles, "--questions", "roles") == 0
    run = ("run", "--checkpoint", checkpoint, "--output", tmp_path / "new")
    for arguments, said in (
        (("run", "--output", newer), "newer version of this program (format 99"),
        (("show", of_newer), "newer version of this program (format 99"),
        (("merge", broken), "is damaged"),
        (("merge", foreign), "Shard 000002 was scored with another tokenizer"),
        (("run", "--checkpoint", other, "--texts", table, "--output", done), "shards for another tokenizer"),
        ((*run, "--texts", table, "--text-columns", "b"), "There is no column 'b'"),
        (("run", "--output", done, "--address", "auto"), "Add --engine ray"),
        (("show", tmp_path), "is not a results folder"),
        (run, "Add --texts"),
        ((*run, "--texts", done, "--questions", "colour"), "There is no question 'colour'. Choose among roles"),
        (("run", "--output", done, "--workers", "0"), "number of workers is 0"),
        ((*run, "--texts", table, "--shard-size", "0"), "A shard has 0 texts"),
        (("show", done, "--part", "colour=red"), "is not a part of the texts"),
        (("show", of_roles, "--question", "surface"), "does not include the question surface"),
    ):
        assert corpus(*arguments) == 2
        assert said in capsys.readouterr().err


def test_shares_above_chance_have_no_bets(checkpoint, texts, tmp_path, capsys):
    assert run_corpus(checkpoint, texts, tmp_path / "r", "--scale", "share") == 0
    part = open_results(tmp_path / "r").part()
    assert part.wealth is None
    with pytest.raises(AnalysisError, match="Use the test instead"):
        part.by_evidence(Criterion(tau=0.5))
    assert corpus("show", tmp_path / "r") == 0
