"""Heads that stand in for one another: which are ablated together, and what goes beyond the damage of each alone."""

import runpy
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from own_hooks import without
from small_checkpoints import save_with_head
from transformers import AutoModelForCausalLM

from attention_sieve.__main__ import main
from attention_sieve.core.analysis import results
from attention_sieve.core.answering import Reading, find, find_in
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.copying.published import second_copies
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS, NO_BACKUPS_OF_VECTORS
from attention_sieve.core.importance.backups import (
    MOST_IN_SET,
    SAME,
    BackupAnswers,
    BackupFinding,
    gates_of,
    sets_of_alike,
)
from attention_sieve.core.importance.metrics import TextOutcomes, label_score
from attention_sieve.core.importance.passes.backups import divergence
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import (
    BACKUP_DISTANCES,
    HEAD_OUTPUTS,
    ablation_question,
    gated_question,
    mean_outputs,
)
from attention_sieve.core.importance.settings import AblationSettings, MetricSettings
from attention_sieve.core.importance.verdicts import Changes, verdicts
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.probe_texts.make import ProbeTextSettings, probe_texts
from attention_sieve.core.texts.text import Text, read_typed

TEXTS = read_typed("The two black dogs ran.\nWho sat on the mat?\nShe eats red apples.")
LOSS = AblationSettings(metric_settings=MetricSettings(metric="lm"), resamples=999)
COPIES, COPY = (1, 0), (1, 5)
"""The head that copies, and the one that is made a copy of it."""


def distances_of(near, shape=(2, 3)):
    """Far from all others, but for some pairs, of which the first head is ablated."""
    distances = np.full((*shape, *shape), 0.6)
    for (head, other), distance in near.items():
        distances[(*head, *other)] = distance
    return distances


def test_pairs_that_look_at_the_same_are_ablated_whichever_of_them_is_off():
    near = {((1, 2), (0, 1)): SAME, ((0, 0), (1, 1)): 0.02, ((0, 2), (1, 0)): 1.1 * SAME}
    writes = np.ones((2, 3), bool)
    assert sets_of_alike(distances_of(near), writes) == (((0, 0), (1, 1)), ((0, 1), (1, 2))), "the nearest first"
    writes[0, 0] = False
    assert len(sets_of_alike(distances_of(near), writes)) == 2, "the other one writes"
    writes[1, 1] = False
    assert sets_of_alike(distances_of(near), writes) == (((0, 1), (1, 2)),)
    removed = distances_of(near)
    removed[0, 1], removed[:, :, 0, 1] = np.nan, np.nan
    assert sets_of_alike(removed, np.ones((2, 3), bool)) == (((0, 0), (1, 1)),)


def test_of_four_heads_that_look_at_the_same_all_and_three_are_ablated_too_and_of_too_many_pairs_alone():
    alike = [(0, 0), (0, 2), (1, 1), (1, 2)]
    near = {(head, other): 0.01 for head in alike for other in alike if head < other}
    sets = sets_of_alike(distances_of(near), np.ones((2, 3), bool))
    assert [len(heads) for heads in sets] == [2] * 6 + [3] * 4 + [4]
    assert sets[-1] == tuple(alike)
    six = sets_of_alike(np.zeros((1, 6, 1, 6)), np.ones((1, 6), bool))
    assert Counter(map(len, six)) == {2: 12, 4: 15, 5: 6, 6: 1}, "twelve pairs at most"
    zero, writes = np.zeros((1, MOST_IN_SET + 1) * 2), np.ones((1, MOST_IN_SET + 1), bool)
    many = sets_of_alike(zero, writes)
    assert {len(heads) for heads in many} == {2}
    assert len(many) == 2 * (MOST_IN_SET + 1)
    writes[0, 3:] = False
    assert [heads for heads in sets_of_alike(zero, writes) if len(heads) > 2] == [((0, 0), (0, 1), (0, 2))]
    assert sets_of_alike(np.zeros((1, 2, 1, 2)), np.ones((1, 2), bool)) == (((0, 0), (0, 1)),)


def found_in(alone, together, sets):
    """A finding of losses of 0 with all heads on, from [text layer head] and [text set]."""
    full = np.zeros((len(alone), 1))
    outcomes = tuple(TextOutcomes(full=f, without=w[..., None]) for f, w in zip(full, np.asarray(alone, float)))
    answers = BackupAnswers(
        sets=sets,
        distances=np.zeros((1, len(alone[0][0])) * 2),
        alone=outcomes,
        together=np.asarray(together, float)[..., None],
    )
    return BackupFinding(tuple(LabelledText(Text((f"{row}",))) for row in range(len(alone))), answers, LOSS)


def test_what_goes_beyond_the_damage_of_each_alone_is_by_hand_and_few_texts_get_no_test():
    alone = [[[1.0, 0.0, 3.0]], [[0.0, 0.5, -1.0]]]
    found = found_in(alone, [[7, 4], [6, -1]], (((0, 0), (0, 1)), ((0, 1), (0, 2))))
    effects = found.effects
    assert effects.together.tolist() == [6.5, 1.5]
    assert effects.most_alone.tolist() == [0.5, 1]
    assert effects.beyond.tolist() == [6.5 - 0.75, 1.5 - 1.25]
    assert np.isnan([effects.low, effects.high, effects.p, effects.p_adjusted]).all()
    assert found.is_redundant.tolist() == [True, False], "of the second, most is lost with one head alone"
    assert found.redundant == [0]
    assert found.without_verdict.startswith("There are 2 texts, and intervals and p-values need at least 100")
    assert found.facts["without a verdict"] == found.without_verdict


def test_the_test_is_that_of_the_differences_and_is_corrected_over_the_sets(chance):
    alone, together = chance.normal(size=(150, 1, 3)), chance.normal([1, 0], size=(150, 2))
    sets = (((0, 0), (0, 1)), ((0, 0), (0, 1), (0, 2)))
    found = found_in(alone, together, sets)
    by_unit = together - np.stack([alone[:, 0, :2].sum(1), alone[:, 0].sum(1)], axis=1)
    differs = np.ones((150, 2), bool)
    expected = verdicts(Changes(delta=by_unit.mean(0), by_unit=by_unit, differs=differs), 999)
    for name in ("low", "high", "p"):
        assert getattr(found.effects, name) == pytest.approx(getattr(expected, name))
    p = np.sort(expected.p)
    assert found.effects.p_adjusted.max() == pytest.approx(max(p[1], min(1, 2 * p[0])))
    assert found.is_redundant.tolist() == [True, False]


def test_a_damage_that_may_be_chance_is_none_and_a_smaller_set_comes_before_one_around_it(chance):
    noise = chance.normal(size=150)
    together = np.stack([noise - noise.mean() + 0.2, np.full(150, 5.0), np.full(150, 6.0)], axis=1)
    together[:, 1:] += 0.1 * chance.normal(size=(150, 2))
    sets = (((0, 0), (0, 1)), ((0, 1), (0, 2)), ((0, 0), (0, 1), (0, 2)))
    found = found_in(np.zeros((150, 1, 3)), together, sets)
    assert found.is_redundant.tolist() == [False, True, False]


def test_a_lower_accuracy_is_worse():
    labels = np.array([0, 1] * 75, float)
    items = tuple(LabelledText(Text((f"{row}",)), label) for row, label in enumerate(labels))
    right = np.stack([1 - labels, labels], axis=1)
    together = np.where(np.arange(150)[:, None] % 3 > 0, 1 - right, right)  # two of three are wrong
    answers = BackupAnswers(
        sets=(((0, 0), (0, 1)),),
        distances=np.zeros((1, 2, 1, 2)),
        alone=tuple(TextOutcomes(full=row, without=np.stack([[row, row]])) for row in right),
        together=together[:, None],
    )
    settings = AblationSettings(metric_settings=MetricSettings(metric="labels", n_classes=2), resamples=999)
    effects = BackupFinding(items, answers, settings).effects
    assert (effects.together[0], effects.beyond[0]) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert 0 < effects.low[0] < 2 / 3 < effects.high[0]
    assert label_score("accuracy", labels, 2).of(together[:, None]).tolist() == [pytest.approx(1 / 3)]


def test_divergence_is_that_of_scipy(chance):
    from scipy.spatial.distance import jensenshannon

    rows = chance.dirichlet(np.ones(7), size=(2, 5))
    rows[0, 0], rows[1, 0] = np.eye(7)[:2]
    found = divergence(*torch.from_numpy(rows)).numpy()
    assert found == pytest.approx(jensenshannon(*rows, axis=-1) ** 2)
    assert found[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_where_heads_look_with_one_off_is_what_plain_hooks_show(family, loaded):
    checkpoint = loaded(family, "float64")
    (distances,) = results(checkpoint, BACKUP_DISTANCES, TEXTS[:1])
    model, n_heads = checkpoint.model, distances.shape[1]
    ids = torch.from_numpy(checkpoint.tokenizer(TEXTS[0].segments[0], return_tensors="np")["input_ids"])
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")
    layers = model.encoder.layer if family == "bert" else model.h
    projections = [layer.attention.output.dense if family == "bert" else layer.attn.c_proj for layer in layers]

    def maps(off=None):
        hook = off and projections[off[0]].register_forward_pre_hook(
            lambda _, given: given[0].unflatten(-1, (n_heads, -1)).index_fill(-2, torch.tensor([off[1]]), 0).flatten(-2)
        )
        with torch.no_grad():
            attentions = model(ids, output_attentions=True).attentions
        if hook:
            hook.remove()
        return torch.stack(attentions, 1)[0]

    try:
        for head in [(0, 1), (1, 2)]:
            expected = divergence(maps()[head], maps(head)).mean(-1).numpy()
            assert distances[head] == pytest.approx(expected, abs=1e-6)
    finally:
        model.set_attn_implementation(implementation)


def test_heads_that_are_off_together_are_replaced_by_their_means_as_one_is(headed):
    checkpoint = headed("causal")
    means = mean_outputs(results(checkpoint, HEAD_OUTPUTS, TEXTS))
    one = results(checkpoint, ablation_question("lm", means=means), TEXTS)
    gates = gates_of((((0, 1),), ((1, 2),)), means.values.shape[:2])
    together = results(checkpoint, gated_question("lm", gates, means), TEXTS)
    for of_text, expected in zip(together, one, strict=True):
        assert of_text[:, 0] == pytest.approx([expected.without[0, 1, 0], expected.without[1, 2, 0]], abs=1e-10)
    zero = results(checkpoint, gated_question("lm", gates), TEXTS)
    assert np.abs(np.array(zero) - together).max() > 1e-6


@pytest.fixture(scope="module")
def copying_twice(shared, tmp_path_factory):
    """The model written by hand, in which a second head copies as the first one does, and texts of repeats."""
    folder, written = tmp_path_factory.mktemp("twice"), runpy.run_path(str(shared / "planted" / "known.py"))
    model = written["known"]()
    size, attention = written["D"], model.transformer.h[COPIES[0]].attn
    at = [slice(head * size, (head + 1) * size) for head in (COPIES[1], COPY[1])]
    with torch.no_grad():
        attention.c_proj.weight[at[1]] = attention.c_proj.weight[at[0]]
        for part in range(3):
            one, other = (slice(part * written["E"] + s.start, part * written["E"] + s.stop) for s in at)
            attention.c_attn.weight[:, other] = attention.c_attn.weight[:, one]
            attention.c_attn.bias[other] = attention.c_attn.bias[one]
    for part in (model, written["tokenizer"]()):
        part.save_pretrained(folder)
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    return checkpoint, probe_texts(checkpoint.tokenizer, ProbeTextSettings(number=4, block=18))


def loss_by_hooks(checkpoint, text, heads):
    """Loss on second copies, by transformers' own model with hooks."""
    ids, after = torch.tensor(text.given.ids), torch.from_numpy(second_copies(np.array(text.given.ids)))
    logits = without(checkpoint.files.folder, AutoModelForCausalLM, {"input_ids": ids[None]}, heads)
    return torch.nn.functional.cross_entropy(logits[after], ids[after + 1]).item()


def test_two_heads_that_copy_alike_are_found_though_neither_matters_alone(copying_twice):
    checkpoint, texts = copying_twice
    prepared = {}
    for row, text in enumerate(texts):
        tokens = prepare(checkpoint, text, PassSettings())
        prepared[row] = replace(tokens, predicts_after=tuple(second_copies(tokens.queries.ids).tolist()))
    inputs = tuple(map(LabelledText, texts))
    reading = Reading(checkpoint=checkpoint, pass_settings=PassSettings(), inputs=inputs, prepared=prepared)
    found = find_in(BACKUP_ANALYSIS, reading, LOSS)
    assert [found.sets[index] for index in found.redundant] == [(COPIES, COPY)]
    (index,) = found.redundant
    all_on = loss_by_hooks(checkpoint, texts[0], [])
    assert found.answers.together[0, index, 0] == pytest.approx(
        loss_by_hooks(checkpoint, texts[0], [COPIES, COPY]), abs=1e-3
    )
    alone = loss_by_hooks(checkpoint, texts[0], [COPIES])
    assert found.answers.alone[0].without[COPIES][0] == pytest.approx(alone, abs=1e-3)
    assert alone - all_on < 0.1 < 1 < found.effects.together[index]
    table = BACKUP_ANALYSIS.table(found)
    assert table["heads"][index] == "1-0,1-5"
    assert table["distance"][index] == pytest.approx(0, abs=1e-6)


def command(folder, tmp_path, *more):
    (tmp_path / "texts.txt").write_text("the cat sat on the mat.\na dog ran.", "utf-8")
    files = [f"--texts={tmp_path / 'texts.txt'}", f"--output={tmp_path / 'out.csv'}"]
    return main(["ablate", f"--checkpoint={folder}", *files, f"--backups={tmp_path / 'backups.csv'}", *more])


def test_the_command_says_that_no_two_heads_look_at_the_same(headed, tmp_path, capsys):
    assert command(headed("causal").files.folder, tmp_path, "--metric=lm") == 0
    assert "No two heads look at the same" in capsys.readouterr().err
    assert list(pd.read_csv(tmp_path / "backups.csv"))[:10] == list(BACKUP_ANALYSIS.columns)


def test_a_change_of_the_text_vector_is_refused_before_the_work(headed, tmp_path, capsys):
    assert command(headed("causal").files.folder, tmp_path) == 2
    assert NO_BACKUPS_OF_VECTORS in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    settings = AblationSettings()
    with pytest.raises(AnalysisError, match="grows with the square of what heads write"):
        find(BACKUP_ANALYSIS, headed("causal"), tuple(map(LabelledText, TEXTS)), settings)


def test_heads_of_which_no_two_look_at_the_same_are_no_backups_that_are_known(tmp_path):
    folder = save_with_head("bert", tmp_path, "MaskedLM", num_hidden_layers=1, num_attention_heads=1)
    checkpoint, texts = load_checkpoint(find_checkpoint(str(folder)), device="cpu"), TEXTS
    found = find(BACKUP_ANALYSIS, checkpoint, tuple(map(LabelledText, texts)), LOSS)
    assert (found.sets, found.redundant) == ((), [])
    assert BACKUP_ANALYSIS.facts(found, LOSS)["metric"] == "lm"
    assert BACKUP_ANALYSIS.table(found).empty
    (note,) = BACKUP_ANALYSIS.usage.notes(found)
    assert note.startswith(
        "No two heads look at the same: their attention differs by more than 0.1 nats, of at most 0.69"
    )
