import itertools
import subprocess
import sys
import time
from threading import Event

import numpy as np
import pandas as pd
import pytest
import torch
from command_help import columns_in_help, own_columns

from attention_sieve.__main__ import main
from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.measures import damage
from attention_sieve.core.importance.metrics import TextOutcomes, label_score, mean_score
from attention_sieve.core.importance.pruning.curves import (
    Curve,
    Removable,
    allowed_loss,
    gatings,
    kept_functions,
    n_removed,
    removable,
    removal_order,
)
from attention_sieve.core.importance.pruning.orders import Pruning, greedy_trial, whole_greedy_order
from attention_sieve.core.running import PROGRESS, ask_to_stop, read_progress

IMPORTANCE = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 0.1]])


def test_the_least_important_head_goes_first_and_the_best_of_a_layer_may_stay():
    assert removal_order(IMPORTANCE).tolist() == [[1, 2], [1, 0], [0, 1], [0, 2], [0, 0], [1, 1]]
    assert removal_order(IMPORTANCE, 1).tolist() == [[1, 2], [1, 0], [0, 1], [0, 2]]
    assert removal_order(IMPORTANCE, 3).tolist() == []
    with pytest.raises(AnalysisError, match="has 3 heads, so 4 cannot be kept"):
        removal_order(IMPORTANCE, 4)


def test_a_head_that_is_gone_is_in_no_order_and_does_not_stay_in_place_of_another():
    importance = np.where(IMPORTANCE == 4.0, np.nan, IMPORTANCE)
    assert removal_order(importance).tolist() == [[1, 2], [1, 0], [0, 1], [0, 2], [0, 0]]
    assert removal_order(importance, 1).tolist() == [[1, 2], [0, 1], [0, 2]]
    assert removal_order(importance, 3).tolist() == []


def test_steps_are_tenths_of_all_heads_rounded_down_as_far_as_heads_may_go():
    assert n_removed(72, 72).tolist() == [0, 7, 14, 21, 28, 36, 43, 50, 57, 64, 72]
    assert n_removed(72, 40).tolist() == [0, 7, 14, 21, 28, 36, 40]
    gates = gatings(removal_order(IMPORTANCE), np.array([0, 2]), 2, 3)
    assert gates.tolist() == [[[1, 1, 1], [1, 1, 1]], [[1, 1, 1], [0, 1, 0]]]


def curve_of(order, draw, n_removed, delta, drawn):
    """A curve of a score that is 5 with all heads on."""
    none = np.full(len(delta), np.nan)
    return Curve(
        **{"order": order, "draw": draw, "n_removed": n_removed, "score": 5 + delta, "delta": delta, "drawn": drawn},
        **{"low": none, "high": none, "by_unit": none[None], "differs": np.zeros((1, len(delta)), bool)},
    )


def test_removable_heads_end_where_the_score_first_falls_too_far():
    counts = np.array([0, 2, 4, 6])
    deltas = (("a", 0, [0, -0.005, -0.2, 0]), ("random", 0, [0, 0.2, 0, -1]), ("random", 1, [0, -0.3, -0.1, -1]))
    drawn = np.array([[0, 0, 0, 0]] * 30 + [[0, -0.02, 0, 0]] * 970)

    def found(tolerance, drawn):
        curves = [curve_of(name, draw, counts, np.array(delta), drawn) for name, draw, delta in deltas]
        return removable(curves, label_score("accuracy", np.zeros(1), 2), tolerance)

    assert [(each.order, each.n) for each in found(0.01, drawn)] == [("a", 2), ("random", 0)]
    assert found(0.06, drawn)[1] == Removable(order="random", n=4, low=6.0, high=6.0)
    assert (found(0.01, drawn)[0].low, found(0.01, drawn)[0].high) == (0, 6), "3% of the corpora lose nothing"
    assert np.isnan(found(0.01, drawn * np.nan)[0].low)


def test_a_loss_may_rise_by_a_share_of_itself_and_another_score_by_points():
    assert allowed_loss(mean_score("loss"), 5.0, 0.01) == 0.05
    assert allowed_loss(mean_score("change"), 0.0, 0.01) == 0.01
    curve = curve_of("a", 0, np.arange(3), np.array([0, 0.04, 0.06]), np.full((1, 3), np.nan))
    assert [removable([curve], mean_score("loss"), within)[0].n for within in (0.005, 0.01, 0.02)] == [0, 1, 2]


@pytest.mark.usefixtures("few_random_orders")
def test_prune_judges_each_half_of_the_texts_by_the_order_of_the_other(tmp_path, loaded):
    checkpoint = loaded("bert", "float64")
    texts = ["the cat ran", "who sat on the mat", "a dog", "she eats red apples"]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    table = curves_of(tmp_path, checkpoint, "--greedy", "--at-least", "1", "--orders", str(tmp_path / "orders.csv"))
    counts = [0, 1, 2, 3, 4]
    assert table.groupby(["order", "draw"])["removed"].apply(list).tolist() == [counts] * (3 + 7 + 2)
    assert table[table["removed"] == 0]["score"].abs().max() < 1e-12
    assert set(table["order"]) >= {"ablation", "reverse", "greedy", "random", "flap", "relevance"}
    by_order = table.set_index(["order", "draw", "removed"])["score"]
    # By hand: single ablations of the other half decide what is removed from a text.
    ids = [torch.tensor(checkpoint.tokenizer(text)["input_ids"])[None] for text in texts]

    def change(place, gates):
        full, without = (
            observe(checkpoint.model, {"input_ids": ids[place]}, Pass(gates=of))[0][0].mean(0) for of in (None, gates)
        )
        return 1 - float(torch.cosine_similarity(full, without, dim=0))

    changes, of_halves = [], []
    for half, other in (((0, 2), (1, 3)), ((1, 3), (0, 2))):
        of_half = np.zeros((2, 3))
        for head in np.ndindex(2, 3):
            gates = torch.ones((2, 3))
            gates[head] = 0
            of_half[head] = np.mean([change(place, gates) for place in half])
        of_halves.append(of_half)
        gates = torch.ones((2, 3))
        for layer, head in removal_order(of_half, 1)[:3]:
            gates[layer, head] = 0
        changes += [change(place, gates) for place in other]
    assert by_order["ablation", 0, 3] == pytest.approx(np.mean(changes), abs=1e-10)
    assert by_order["greedy", 0, 1] != by_order["reverse", 0, 1]
    whole = pd.read_csv(tmp_path / "orders.csv")
    assert own_columns(whole) == columns_in_help("prune", "Columns of --orders")
    whole = whole.set_index(["order", "removed"])
    first = [f"{layer}-{head}" for layer, head in removal_order(np.mean(of_halves, axis=0), 1)[:3]]
    assert whole.loc[("ablation", 3), "heads"] == ",".join(first)
    assert whole.loc[("ablation", 3), ["layer", "head"]].tolist() == list(map(int, first[-1].split("-")))
    assert whole.loc["greedy", "heads"].iloc[-1].count(",") == 3, "one head of each layer stays"


class Twins:
    """A checkpoint of one layer in which heads 0 and 1 stand in for each other, and head 2 is needed a little."""

    def __init__(self):
        self.questions = []

    def ask(self, question, places, off):
        self.questions.append((places.tolist(), off))
        gone = {head for _, head in off}

        def loss(more):
            without = gone | more
            return 10.0 * ({0, 1} <= without) + 1.0 * (2 in without) + 0.1 * (0 in without)

        by_head = [[[loss({head})] for head in range(3)]]
        return [TextOutcomes(full=np.array([loss(set())]), without=np.array(by_head)) for _ in places]


def test_the_greedy_order_sees_what_single_ablations_cannot():
    pruning = Pruning(metric="lm", score=mean_score("loss"), documents=[None] * 4, is_there=np.ones((1, 3), bool))
    twins = Twins()
    first, second = greedy_trial(pruning, np.zeros((4, 1)), twins.ask).by_half
    # Alone, the twins cost 0.1 and 0, and head 2 costs 1; once head 1 is off, head 0 is needed most.
    assert first.tolist() == second.tolist() == [[0, 1], [0, 2], [0, 0]]
    assert twins.questions[:3] == [([1, 3], ()), ([1, 3], ((0, 1),)), ([1, 3], ((0, 1), (0, 2)))]
    whole = Twins()
    assert whole_greedy_order(pruning, whole.ask).tolist() == first.tolist()
    assert whole.questions[0] == ([0, 1, 2, 3], ())
    once = damage(Twins().ask(None, np.arange(4), ()), pruning.score).values(4)
    assert pruning.order(once).tolist() == [[0, 1], [0, 0], [0, 2]]


@pytest.mark.usefixtures("few_random_orders")
def test_a_curve_drawn_by_another_process_is_the_same_and_each_is_drawn_once(tmp_path, loaded, monkeypatch):
    checkpoint = loaded("bert", "float64")
    (tmp_path / "texts.txt").write_text("the cat ran\nwho sat on the mat\na dog\nshe eats red apples")
    rows = ("--rows", str(tmp_path / "rows"))
    here = curves_of(tmp_path, checkpoint, *rows)
    kept = {path: path.read_bytes() for path in (tmp_path / "rows").glob("*.parquet")}
    assert len(kept) == here[["order", "draw"]].drop_duplicates().shape[0]
    assert sum(len(pd.read_parquet(path)) for path in kept) == len(here)
    (tmp_path / "rows" / PROGRESS).unlink()  # as in folders of earlier versions
    # What is kept is read, and what is not is drawn elsewhere: in this process no curve can be drawn any more.
    reverse = next(path for path in kept if set(pd.read_parquet(path)["order"]) == {"reverse"})
    reverse.unlink()
    monkeypatch.setattr("attention_sieve.core.importance.pruning.orders.pruning_curve", None)
    pd.testing.assert_frame_equal(curves_of(tmp_path, checkpoint, *rows, "--workers", "2"), here, rtol=1e-5, atol=1e-6)
    assert {path: path.read_bytes() for path in kept} == kept


def prune_command(folder, checkpoint, *more):
    names = ["--checkpoint", checkpoint, "--texts", folder / "texts.txt", "--output", folder / "curves.csv"]
    rows = ["--rows", folder / "rows", "--dtype", "float64", *more]
    return [sys.executable, "-m", "attention_sieve", "prune", *map(str, (*names, *rows))]


def until_curves_are_drawn(folder, program, least):
    """Wait until a run has drawn so many curves."""
    while program.poll() is None:
        progress = read_progress(folder)
        if progress is not None and progress.state == "running" and progress.steps and progress.step >= least:
            return
        Event().wait(0.02)
    pytest.fail(program.stderr.read())


def begun(command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def stopped_in(rows, command):
    """The run that a command begins and that is asked to stop once it has drawn a curve; it says so."""
    (rows.parent / "texts.txt").write_text("".join(f"the cat saw {n} birds, who sat on the mat.\n" for n in range(100)))
    with begun(command) as program:
        until_curves_are_drawn(rows, program, 1)
        ask_to_stop(rows)
        asked = time.monotonic()
        said = program.communicate()[1]
        assert time.monotonic() - asked < 10, "2 s on a machine of its own"
    stopped = read_progress(rows)
    assert (program.returncode, stopped.state) == (0, "stopped")
    assert f"Stopped after {stopped.step} of {stopped.steps}.\n" in said
    assert len(list(rows.glob("*.parquet"))) == stopped.step
    assert not (rows.parent / "curves.csv").exists()
    return stopped


def test_a_run_that_was_stopped_and_killed_goes_on_from_the_curves_that_it_drew(tmp_path, folders):
    command, rows = prune_command(tmp_path, folders("bert")), tmp_path / "rows"
    stopped = stopped_in(rows, command)
    with begun(command) as program:
        until_curves_are_drawn(rows, program, stopped.step + 1)
        program.kill()
    assert read_progress(rows).state == "left"
    kept = {path: path.read_bytes() for path in rows.glob("*.parquet")}
    assert main(command[3:]) == 0
    assert (read_progress(rows).state, read_progress(rows).share) == ("finished", 1.0)
    assert {path: path.read_bytes() for path in kept} == kept, "none is drawn again"
    gone_on = pd.read_csv(tmp_path / "curves.csv")
    assert main([*command[3:], "--rows", str(tmp_path / "other rows")]) == 0
    pd.testing.assert_frame_equal(gone_on, pd.read_csv(tmp_path / "curves.csv"), rtol=1e-6, atol=1e-9)


def test_a_run_in_several_processes_stops_as_soon(tmp_path, folders):
    stopped_in(tmp_path / "rows", prune_command(tmp_path, folders("bert"), "--workers", "2"))


def curves_of(folder, checkpoint, *more):
    options = ["--checkpoint", str(checkpoint.files.folder), "--dtype", "float64", "--texts", str(folder / "texts.txt")]
    assert main(["prune", *options, "--output", str(folder / "curves.csv"), *more]) == 0
    curves = pd.read_csv(folder / "curves.csv")
    assert own_columns(curves) == columns_in_help("prune", "Columns:")
    return curves


ORDER = np.array([[0, 1], [1, 2], [0, 0], [1, 0], [0, 2], [1, 1]])
EVERY = np.ones((2, 3), bool)


def with_heads(*heads):
    has = np.zeros((2, 3), bool)
    for head in heads:
        has[head] = True
    return has


def test_kept_heads_of_a_function_are_counted_down_the_order():
    functions = {"first": with_heads((0, 1), (1, 1)), "none": with_heads(), "all": EVERY}
    first, every = kept_functions(functions, ORDER, [0, 1, 3, 6], EVERY)
    assert (first.name, every.name) == ("first", "all"), "a function of no head is left out"
    assert first.kept.tolist() == [2, 1, 1, 0]
    assert every.kept.tolist() == every.expected.tolist() == [6, 5, 3, 0]
    assert every.low.tolist() == every.high.tolist() == every.kept.tolist()


def test_random_removal_is_that_of_all_draws():
    has = with_heads((0, 0), (0, 1), (1, 2))
    (kept,) = kept_functions({"some": has}, ORDER, [3], EVERY)
    counts = sorted(sum(has.ravel()[list(stay)]) for stay in itertools.combinations(range(6), 3))
    assert kept.expected[0] == np.mean(counts)
    assert (kept.low[0], kept.high[0]) == (counts[0], counts[-1]), "1 of 20 draws keeps none, 1 of 20 keeps all"


def test_heads_that_were_gone_before_count_nowhere():
    is_there = ~with_heads((0, 0))
    (kept,) = kept_functions({"some": with_heads((0, 0), (0, 1))}, ORDER[[0, 1, 3]], [0, 1], is_there)
    assert kept.kept.tolist() == [1, 0]
    assert kept.expected.tolist() == [1, 0.8]
