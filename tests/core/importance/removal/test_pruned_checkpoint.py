"""A checkpoint without some heads, asked what any other is asked: holes where the heads were, and for those left what
gates give."""

import numpy as np
import pandas as pd
import pytest

from attention_sieve.__main__ import main
from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import REMOVED_HEADS
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.comparison.in_step import compare_batch
from attention_sieve.core.finetuning.data import read_training_data
from attention_sieve.core.finetuning.finetune import finetune
from attention_sieve.core.finetuning.journal import open_run, plan_of
from attention_sieve.core.finetuning.settings import TrainingSettings
from attention_sieve.core.importance.effects import kept_alone
from attention_sieve.core.importance.metrics import TextOutcomes, label_score
from attention_sieve.core.importance.removal.remove import remove
from attention_sieve.core.importance.verdicts import LEAST_UNITS
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.running import saved_checkpoints
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.similarity.distances import closest_pair, layer_distances, nearest_heads, present_heads
from attention_sieve.core.similarity.layout import head_plane, head_tree
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.texts.text import Text

GONE = ((0, 1), (1, 2))
SENTENCES = ("The black cat chased two birds.", "She eats red apples.", "A dog ran quickly.", "The dog sat on the mat.")
CATS = Text(("The black cat quickly chased the two birds.",)), Text(("She eats red apples on the mat.",))


@pytest.fixture(scope="module")
def opened(pruned):
    return load_checkpoint(find_checkpoint(str(pruned)), device="cpu", dtype="float64")


@pytest.fixture(scope="module")
def pruned(folders, tmp_path_factory):
    """BERT of 2 layers x 3 heads without head 1 of layer 0 and head 2 of layer 1."""
    folder = tmp_path_factory.mktemp("pruned") / "bert"
    remove(find_checkpoint(str(folders("bert"))), GONE, folder)
    return folder


ENOUGH = "\n".join(SENTENCES * (LEAST_UNITS // len(SENTENCES)))
"""As many texts as a test of changes needs."""


@pytest.mark.parametrize(
    ("analysis", "settings", "columns"),
    [
        (ROLE_ANALYSIS, None, ("mean",)),
        (SURFACE_ANALYSIS, None, ("mean",)),
        (RELATION_ANALYSIS, RelationSettings(least_cases=1), ("accuracy", "low", "high")),
        (SIMILARITY_ANALYSIS, None, ("divergence", "relative_a_b")),
    ],
    ids=["roles", "surface", "relations", "similarity"],
)
def test_tables_give_the_heads_left_what_gates_give_and_nothing_to_those_removed(
    analysis, settings, columns, opened, loaded
):
    texts = [Text((sentence,)) for sentence in SENTENCES]
    gated, found = (
        analysis.table(find(analysis, checkpoint, texts, settings, pass_settings))
        for checkpoint, pass_settings in ((loaded("bert", "float64"), PassSettings(off=GONE)), (opened, None))
    )
    if "head" in found:  # rows of whole layers have none, and are means over the heads left only
        gated, found = (table[table["head"].notna()] for table in (gated, found))
    heads = [("layer", "head")] if "head" in found else [("layer_a", "head_a"), ("layer_b", "head_b")]
    is_gone = np.any([[head in GONE for head in zip(found[a], found[b])] for a, b in heads], axis=0)
    assert is_gone.any()
    assert not is_gone.all()
    for column in columns:
        assert found.loc[is_gone, column].isna().all()
        left = gated.loc[~is_gone, column].to_numpy(float)
        np.testing.assert_allclose(found.loc[~is_gone, column].to_numpy(float), left, atol=1e-6)
        assert np.isfinite(left).any()


def test_importance_and_ablation_give_the_heads_left_what_gates_give_and_nothing_to_those_removed(
    pruned, folders, tmp_path, capsys
):
    texts = tmp_path / "texts.txt"
    texts.write_text(ENOUGH)
    off = ",".join(f"{layer}-{head}" for layer, head in GONE)
    of_command = {
        "ablate": (),
        "importance": ("--replace", "mean", "--normalise", "--agreement", str(tmp_path / "agreement.csv")),
    }
    tables = {}
    for name, checkpoint, more in (("gated", folders("bert"), ("--off", off)), ("pruned", pruned, ())):
        common = ("--checkpoint", str(checkpoint), "--texts", str(texts), "--dtype", "float64", "--resamples", "100")
        for command, own in of_command.items():
            output = tmp_path / f"{name}-{command}.parquet"
            assert main([command, *common, *more, *own, "--output", str(output)]) == 0
            tables[name, command] = pd.read_parquet(output)
        said = capsys.readouterr().err
        assert "Without" not in said, "no measure is left out"
        assert name == "gated" or said == "", (
            "heads that were removed have no change, those switched off one by rounding"
        )
    for command, columns in (("ablate", ("without", "delta", "low", "high", "p")), ("importance", ("value",))):
        gated, found = tables["gated", command], tables["pruned", command]
        is_gone = np.array([head in GONE for head in zip(found["layer"], found["head"])])
        assert is_gone.any()
        assert found.loc[is_gone, list(columns)].isna().all(axis=None)
        # flap is standardised over the heads of a layer, of which those switched off are some and those removed none
        compared = ~is_gone & (found.get("measure", "") != "flap")
        for column in columns:
            left = gated.loc[compared, column].to_numpy(float)
            np.testing.assert_allclose(found.loc[compared, column].to_numpy(float), left, atol=1e-9)
            assert np.isfinite(left).all()
    flap = found[found["measure"] == "flap"].groupby("layer")["value"]
    np.testing.assert_allclose(flap.sum(), 0, atol=1e-9)
    agreement = pd.read_csv(tmp_path / "agreement.csv")
    assert np.isfinite(agreement.loc[agreement["layer"].isna(), ["spearman", "low", "high"]]).all(axis=None)


def test_distances_are_laid_out_among_the_heads_left(opened):
    found = find(SIMILARITY_ANALYSIS, opened, CATS).mean
    present = present_heads(found)
    assert {tuple(head) for head in np.argwhere(~present).tolist()} == set(GONE)
    assert np.isfinite(head_plane(found).places[present]).all()
    assert np.isnan(head_plane(found).places[~present]).all()
    leaves = {head for leaf in head_tree(found).leaves for head in leaf}
    assert leaves == {tuple(head) for head in np.argwhere(present).tolist()}
    assert len(nearest_heads(found, (0, 0))) == 3
    assert not {closest_pair(found)[0], closest_pair(found)[1]} & set(GONE)
    assert layer_distances(found)[0, 0] == pytest.approx(found[0, 0, 0, 2])


def test_a_pruned_checkpoint_is_compared_with_its_original_in_step(opened, loaded):
    both = (loaded("bert", "float64"), opened)
    settings = (PassSettings(), PassSettings())
    prepared = tuple([prepare(one, text, settings[0]) for text in CATS] for one in both)
    divergences = compare_batch(*both, *prepared, *settings).divergence
    for divergence in divergences:
        is_there = ~np.isnan(divergence)
        assert {tuple(head) for head in np.argwhere(~is_there).tolist()} == set(GONE)
        np.testing.assert_allclose(divergence[0][is_there[0]], 0, atol=1e-6)
        assert (divergence[1][is_there[1]] > 1e-6).all(), "what layer 0 lost, layer 1 sees"


def test_a_pruned_checkpoint_is_fine_tuned_and_stays_pruned(pruned, tmp_path):
    table = "text,label\n" + "".join(f"{text},{int('cat' in text or 'dog' in text)}\n" for text in SENTENCES * 3)
    data = read_training_data("cats.csv", table.encode(), ("text",), "label")
    files, settings = (
        find_checkpoint(str(pruned)),
        TrainingSettings(epochs=1.0, batch_size=4, held_out=0.3, save_steps=1),
    )
    with open_run(tmp_path / "run", plan_of(files, data, None, settings), resume=False) as journal:
        assert finetune(files, data, settings, journal, device="cpu").state == "finished"
    for folder in (tmp_path / "run", *saved_checkpoints(tmp_path / "run")):
        assert (folder / REMOVED_HEADS).read_bytes() == (pruned / REMOVED_HEADS).read_bytes()
        tuned = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
        assert (tuned.attentions["self"].removed, tuned.head) == (GONE, "classes")


def test_a_removed_head_has_no_accuracy_and_cannot_be_kept_alone():
    logits = np.random.default_rng(0).normal(size=(6, 2, 3, 2))
    logits[:, 0, 1] = logits[:, 1, 2] = np.nan
    classes = np.array([0, 1, 1, 0, 1, 0], float)
    for name in ("accuracy", "matthews", "f1", "loss"):
        assert np.argwhere(np.isnan(label_score(name, classes, 2).of(logits))).tolist() == list(map(list, GONE))
    outcomes = [TextOutcomes(full=of_text[0, 0], without=of_text) for of_text in logits]
    kept = kept_alone(outcomes, label_score("loss", classes, 2), [None] * 6)
    assert not {(layer, int(head)) for layer, head in enumerate(kept.head[0])} & set(GONE)
    assert np.isfinite(kept.effects.delta).all()
