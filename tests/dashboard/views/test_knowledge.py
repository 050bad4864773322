"""Knowledge, without a browser: tasks, what is known of them, and every tab."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from probing_files import write_task
from reading import button, charts, command_of, said, sent, told

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.folders import trials_folder
from attention_sieve.core.knowledge.erasure.command import erasure_table
from attention_sieve.core.knowledge.erasure.erasure import Erasure, judged
from attention_sieve.core.knowledge.files.folders import ABOUT
from attention_sieve.core.knowledge.reconstruction import gain
from attention_sieve.core.knowledge.report import corrected
from attention_sieve.core.knowledge.tasks_command import sample_tasks_folder
from attention_sieve.core.knowledge.trials.result import read_result
from attention_sieve.core.knowledge.trials.run import Trials, run_table
from attention_sieve.core.running import PROGRESS, FailedPiece, Journal, Progress
from attention_sieve.dashboard import runs as all_runs
from attention_sieve.dashboard.figures.head_map import round_bound
from attention_sieve.dashboard.plain import WORD_JOINER
from attention_sieve.dashboard.run_kinds import KINDS
from attention_sieve.dashboard.state import HEADS, WITH
from attention_sieve.dashboard.views import by_role
from attention_sieve.dashboard.views import probed as probed_results
from attention_sieve.dashboard.views.knowledge import numbers, runs, task_files, wording
from attention_sieve.dashboard.views.knowledge.sample import next_command
from attention_sieve.dashboard.views.knowledge.task_files import (
    TELLING,
    TableColumns,
    TaskFile,
    before_others,
    keep_columns,
    keep_task,
    own_tasks,
)

SIZES = {"tr": 60, "va": 24, "te": 36}
OWN = {"tasks from": wording.OWN}


TASKS = {
    "tense": lambda words: words[0],
    "tree_depth": lambda words: "deep" if len(words) > 4 else "flat",
    "values": lambda words: str(sum(place * len(word) for place, word in enumerate(words))),
}


@pytest.fixture(scope="module")
def bert(small):
    return small("bert")


@pytest.fixture(scope="module")
def given(store, tmp_path_factory):
    """Three tasks that a reader gave."""
    folder = tmp_path_factory.mktemp("tasks")
    for name, label in TASKS.items():
        keep_task(f"{name}.txt", write_task(folder, name, label, SIZES).read_bytes())


@pytest.fixture(scope="module")
def probed(given, bert):
    """The small BERT and its random twin, probed for all of it."""
    trials = [replace(each.trial(bert), too_long="skip") for each in own_tasks() if not each.problem]
    twins, folder = [replace(each, random_weights=0) for each in trials], Trials(trials_folder(), "cpu", "float32")
    run_table(trials, folder, ("heads", "controls", "together"), Journal(None))
    run_table(twins, folder, ("heads",), Journal(None))
    results = map(read_result, trials_folder().glob("*"))
    return {result.report.task: result for result in results if result.trial.random_weights is None}


@pytest.fixture
def opened(app, probed, bert):
    """opened(tab, **link) -> a tab of the page with the reader's tasks, shown for `tense`."""

    def of(tab=wording.EACH, **link):
        return app("knowledge", **({"checkpoint": bert, "own task": "tense", "knowledge details": tab} | OWN | link))

    return of


def assert_shows(shown, values):
    """The map has these numbers on its scale."""
    bound = round_bound(float(np.nanmax(np.abs(values))))
    parts = np.frombuffer(base64.b64decode(shown["parts"]), "<f4").reshape(values.shape)
    np.testing.assert_allclose(parts * bound, values, rtol=1e-6, atol=1e-7)


def beats_all(report, probed):
    reports, beats = [result.report for result in probed.values()], np.ones(len(report.layer), bool)
    for baseline in range(3):
        beats &= corrected(reports, baseline, "bh")[reports.index(report)] < 0.05
    return beats


def test_the_best_head_is_the_validation_parts_its_score_the_test_parts_and_what_beats_every_baseline_is_outlined(
    opened, probed
):
    at = opened()
    report = probed["tense"].report
    place = int(np.flatnonzero(report.is_head)[report.validation[report.is_head].argmax()])
    assert f"**L{report.layer[place]} H{report.head[place]}**" in told(at)
    assert f"accuracy {report.accuracy[place]:.1%}" in told(at)
    best = max(report.baselines, key=lambda baseline: baseline.score)
    names = f"L{report.layer[place]} H{report.head[place]}", "tense", f"{report.accuracy[place]:.1%}"
    assert wording.finding(
        names[1], (names[0], names[2]), (best.name, f"{best.score:.1%}"), beats=beats_all(report, probed)[place]
    ) in told(at)
    n_rivals = int(report.rivals.sum())
    rivals = "another head" if n_rivals == 1 else f"{n_rivals} other heads"
    unsettled = f"L{report.layer[place]} H{report.head[place]} is not clearly better than {rivals}"
    assert n_rivals
    assert f"So few texts do not settle which head is best: {unsettled}" in told(at)
    assert "the best head of random weights" in told(at)
    for one in report.baselines:
        assert f"{one.name} {one.score:.1%}" in told(at)
    shown = sent(at, "above the best baseline")
    best = max(baseline.score for baseline in report.baselines)
    assert best > report.baselines[0].score, "here the majority is not the best baseline"
    assert_shows(shown, report.grid(report.accuracy - best))
    expected = beats_all(report, probed)[report.is_head]
    marked = np.frombuffer(base64.b64decode(shown["marked"]), np.uint8) == 1
    assert np.array_equal(marked, expected)
    curve = charts(at)[0].query("kind == 'head' and series == 0").sort_values(["layer", "head"])
    assert np.array_equal(curve["pale"].astype(bool), ~expected)


def test_the_map_shows_what_is_asked(opened, probed):
    report = probed["tense"].report
    code = sent(opened(**{"knowledge measure": wording.CODE}), wording.CODE)
    wanted = report.grid(1 - probed["tense"].bits / probed["tense"].uniform_bits)
    assert_shows(code, wanted)
    control = sent(opened(**{"knowledge measure": wording.SELECTIVITY}), wording.SELECTIVITY)
    assert_shows(control, report.grid(probed["tense"].selectivity.selectivity))


def test_numbers_are_judged_by_their_correlation(opened, probed):
    at = opened(**{"own task": "values"})
    shown = sent(at, "Pearson correlation")
    report = probed["values"].report
    assert_shows(shown, report.grid(report.accuracy))
    assert wording.REGRESSION in told(at)
    assert "beat every baseline" not in told(at)
    assert f"For comparison: length {report.baselines[1].score:.2f};" in told(at)  # the mean has no correlation
    for tab in (wording.LAYERS, wording.SIDE_BY_SIDE, wording.TOGETHER, wording.CHECKPOINTS):
        opened(tab, **{"own task": "values"})


@pytest.mark.parametrize("tab", [wording.LAYERS, wording.SIDE_BY_SIDE, wording.TOGETHER, wording.CHECKPOINTS])
def test_every_tab_draws_its_charts(tab, opened):
    at = opened(tab)
    assert not said(at)
    assert len(at.get("vega_lite_chart")) == (2 if tab == wording.CHECKPOINTS else 3)  # the picture, too


def test_roles_are_compared_over_the_corpus(opened):
    at = opened(wording.ROLES)
    assert by_role.TESTS in told(at)
    assert "nothing to compare" in told(at)


def test_the_table_of_gains_is_that_of_the_trials_and_its_command_runs_them(opened, probed):
    at = opened(wording.TOGETHER)
    table = next(each.value for each in at.dataframe if "gain in percent" in each.value)
    assert table["task"].tolist() == ["tense", "tree_depth", "values"]
    for row in table.itertuples():
        result = probed[row.task]
        gained = gain(result.together, result.report, result.n_heads_of_layer)
        assert row.together == result.together.estimate(result.n_heads_of_layer).value
        assert row[table.columns.get_loc("gain in percent") + 1] == gained.percent
    command = ["trials", "--table=trials.jsonl", "--output=trials"]
    assert command_of(at, "table of heads together") == [command]


def test_random_weights_come_before_the_checkpoint_and_can_be_left_out(opened):
    at = opened(wording.CHECKPOINTS)
    slider = next(each for each in at.select_slider if each.label == wording.SHOWN_CHECKPOINT)
    assert slider.options[0] == wording.RANDOM_LABEL
    without = opened(wording.CHECKPOINTS, **{"no random weights": "true"})
    assert wording.ONE_CHECKPOINT in told(without)
    assert wording.NO_RANDOM in told(without)


def test_a_checkpoint_that_cannot_be_found_is_said_and_the_map_of_the_others_shows_the_chosen_heads(opened):
    at = opened(**{WITH: "no/such", HEADS: "1-2"})
    assert any("no/such" in sentence for sentence in said(at))
    assert at.session_state[HEADS] == [(1, 2)]
    assert sent(at, "above the best baseline")["chosen"] == [[1, 2]]


@pytest.fixture
def begun(monkeypatch):
    """Commands of the runs that are begun, none of which is."""
    commands = []
    monkeypatch.setattr(all_runs, "begin", lambda folder, command: commands.append(command))
    return commands


def test_what_is_not_probed_yet_is_offered_and_begun(opened, begun):
    at = opened(**{"vectors at": "mean"})
    assert wording.not_probed("tense", is_on=False) in told(at)
    button(at, "Probe: 3 tasks in 2 checkpoints").click().run()
    (command,) = begun
    assert command[0] == "trials"
    lines = [json.loads(line) for line in (KINDS["trials"].folder() / runs.TABLE).read_text().splitlines()]
    assert len(lines) == 6
    assert {line["pooling"] for line in lines} == {"mean"}
    assert [line.get("random_weights") for line in lines] == [None] * 3 + [0] * 3
    assert "--stages=heads" in command


def unescaped(said):
    return said.replace("\\", "").replace(WORD_JOINER, "")


def test_how_a_run_ended_is_said_as_it_is_where_it_was_about_what_is_on_screen(opened, begun, monkeypatch):
    button(opened(**{"vectors at": "mean"}), "Probe: 3 tasks in 2 checkpoints").click().run()

    def shown(progress, **link):
        monkeypatch.setattr(all_runs, "look", lambda folder: progress if folder == KINDS["trials"].folder() else None)
        at = opened(**link)
        boxes = (*at.info, *at.error, *at.warning)
        return " ".join(unescaped(each.value) for each in boxes)

    stopped = Progress(state="stopped", step=2, steps=6)
    for progress, expected in (
        (stopped, "was stopped after 2 of 6 steps"),
        (Progress(state="left", step=1, steps=6), "ended before it was done after 1 of 6 steps"),
        (Progress(state="stopped"), "was stopped before its first step"),
        (Progress(state="failed", message="The disk is <b>full</b>."), "The disk is <b>full</b>."),
        (Progress(state="finished", failed=(FailedPiece("odd, *x*", "too few"),)), "odd, *x*: too few"),
    ):
        assert expected in shown(progress, **{"vectors at": "mean"})
    assert "was stopped" not in shown(stopped, **{"vectors at": "last token"}) + shown(stopped)


def test_files_of_readers_say_what_is_wrong_with_them(app, given, bert, monkeypatch):
    added = [
        keep_task("one class.txt", b"tr\tx\ta b\nva\tx\tc d\nte\tx\te f\n"),
        keep_task("../../evil <b>.csv", b"words,kind\n" + b"".join(b"a cat %d,%d\n" % (i, i % 2) for i in range(60))),
        keep_task("broken.csv.gz", b"not gzip"),
    ]
    assert all(task_files.own_folder() in path.resolve().parents for path in added)
    try:
        at = app("knowledge", checkpoint=bert, **OWN)
        table = at.dataframe[0].value.set_index("task")
        assert table["note"].str.len().gt(0).sum() >= 3
        asked = next(each for each in own_tasks() if each.header)
        assert asked.header == ("words", "kind")
        keep_columns(asked.path, TableColumns(text_columns="words", label_column="kind"))
        good = next(each for each in own_tasks() if each.path == asked.path)
        assert (good.problem, sum(good.n_rows)) == ("", 60)
    finally:
        for each in own_tasks():
            if each.path in added:
                task_files.forget(each)
    assert len(own_tasks()) == 3


def test_the_sample_is_made_on_request(app, bert, begun, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    at = app("knowledge", checkpoint=bert)
    assert wording.NO_SAMPLE in told(at)
    button(at, wording.MAKE_SAMPLE).click().run()
    assert begun == [("sample-tasks", f"--journal={KINDS['sample-tasks'].folder()}")]
    Journal(KINDS["sample-tasks"].folder()).end("stopped")
    runs.make_sample()
    assert not (KINDS["sample-tasks"].folder() / PROGRESS).exists(), "the reports of the last run do not pile up"


def test_the_page_opens_on_what_is_prepared_beside_the_dashboard(app, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    assert next_command() == ("sample-tasks", f"--journal={KINDS['sample-tasks'].folder()}")
    folder = sample_tasks_folder()
    folder.mkdir(parents=True)
    for name, label in zip(TELLING, TASKS.values()):
        write_task(folder, name, label, SIZES)
    (folder / ABOUT).write_text("{}", "utf-8")
    assert main(next_command()) == 0
    at = app("knowledge")
    assert not said(at)
    assert "alone tells" in told(at) or "not clearly better" in told(at)
    assert charts(at)[0]["checkpoint"].dropna().unique().tolist() == ["all-MiniLM-L6-v2", wording.RANDOM_LABEL]
    rows = {path: path.stat().st_mtime_ns for path in trials_folder().glob("*.parquet")}
    assert len(rows) == 2 * len(TELLING)
    assert main(next_command()) == 0
    assert {path: path.stat().st_mtime_ns for path in trials_folder().glob("*.parquet")} == rows, "nothing runs twice"
    Journal(KINDS["trials"].folder())
    assert next_command() == (), "what a reader has begun is left to it"


def test_while_the_sample_is_made_the_page_says_how_far_it_is(app, bert, begun, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    journal = Journal(KINDS["sample-tasks"].folder(), message="Downloading film reviews.")
    at = app("knowledge", checkpoint=bert)
    (bar,) = at.get("progress")
    assert unescaped(bar.proto.text) == "Downloading film reviews."
    journal.plan(107)
    journal.part("Parsing", 3_000, 10_605)
    (bar,) = at.run().get("progress")
    assert unescaped(bar.proto.text) == "Parsing film reviews: text 3,000 of 10,605."
    assert wording.MAKE_SAMPLE not in [each.label for each in at.button]
    button(at, "Stop").click().run()
    assert journal.stop_asked()
    journal.end("stopped")
    assert wording.MAKE_SAMPLE in [each.label for each in at.run().button]


def test_an_erasure_is_offered_and_its_table_is_told(opened, begun):
    at = opened(wording.USED, **{HEADS: "1-2,0-1"})
    button(at, "Erase it from L0 H1, L1 H2").click().run()
    ((command, *given),) = begun
    assert command == "erase"
    options = dict(option.removeprefix("--").split("=", 1) for option in given)
    assert options["heads"] == "0-1,1-2"
    assert options["pooling"] == "cls"
    assert options["tests"] == "6"  # two heads times the three tasks of the page
    row = Erasure(
        head=(0, 1), metric="output", rank=1, n_channels=8, n_texts=36, full=0.0, erased=0.2, random=np.full(120, 0.1),
        excess=0.1, low=0.05, high=0.15, p=1 / 121, variance=0.3, accuracy=0.8, accuracy_erased=0.5, least_effect=5e-7,
    )  # fmt: skip
    others = (replace(row, rank=8), replace(row, erased=3e-9, excess=1e-9), replace(row, p=1 / 2))
    erasure_table(judged((row, *others), 6)).assign(task="tense").to_parquet(options["output"])
    at = opened(wording.USED, **{HEADS: "1-2,0-1"})
    said_of = re.findall(r"\*\*L0 H1\*\*.*?\n", f"{told(at)}\n".replace("**L0 H1**", "\n**L0 H1**"))
    assert len(said_of) == 4
    assert "a probe gets 80.0% before and 50.0% after erasing 1 direction of 8." in said_of[0]
    assert "**more than at random**, a sign that the model uses it" in said_of[0]
    assert "p = 0.0083 with 120 draws, the smallest possible; corrected p = 0.0496" in said_of[0]
    assert "All 8 directions are erased" in said_of[1]
    assert "**too little to count** as use (least: 5e-07)" in said_of[2]
    assert "not clearly more than at random" in said_of[3]
    assert "for 6 tests: 2 chosen heads times 3 tasks of this page" in told(at)


def test_the_page_opens_on_a_task_with_enough_test_texts():
    def file(name, *n_rows):
        return TaskFile(path=Path(name), columns=TableColumns(), name=name, n_rows=n_rows)

    tiny, few = file("tiny", 300, 90, 90), file("few", 4000, 100, 384)
    enough, many = file("enough", 1200, 400, 385), file("many", 8000, 2000, 2000)
    telling, next_best = file("bigram_shift", 6400, 1600, 1600), file("tense", 300, 90, 90)
    ordered = [telling, next_best, enough, many, few, tiny]
    assert sorted([tiny, many, next_best, telling, few, enough], key=before_others) == ordered


def test_the_page_opens_on_a_task_that_a_head_was_found_to_know(opened, probed, monkeypatch):
    def beaten_on(name):
        monkeypatch.setattr(
            numbers,
            "beat_all",
            lambda reports, *_: [np.full(len(report.layer), report.task == name) for report in reports],
        )

    beaten_on("tree_depth")
    assert opened(**{"own task": None}).selectbox(key="own task").value == "tree_depth"
    beaten_on(None)
    assert opened(**{"own task": None}).selectbox(key="own task").value == "tense"


def test_the_card_of_a_head_says_what_it_knows(app, probed, bert, monkeypatch):
    kept = [result for result in probed.values() if not result.report.is_regression]
    monkeypatch.setattr(
        probed_results, "beat_all", lambda reports, *_: [np.arange(len(report.layer)) == 1 for report in reports]
    )
    at = app("inspect", checkpoint=bert, text="The cat sat.", **{HEADS: "0-1"})
    line = next(each.value for each in at.markdown if "probed tasks" in each.value).replace(WORD_JOINER, "")
    assert "Of 2 probed tasks, its output alone predicts better than every baseline:" in line.replace("\\", "")
    for result in kept:
        assert f"{result.report.task.replace('_', chr(92) + '_')} {result.report.accuracy[1]:.1%}" in line
    at = app("inspect", checkpoint=bert, text="The cat sat.", **{HEADS: "0-2"})
    assert any("predicts none of 2 probed tasks" in each.value for each in at.markdown)
