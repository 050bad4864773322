import json
import re
import shutil
import time

import numpy as np
import pytest
import torch
from passing import measures_of, pass_texts
from safetensors.torch import load_file
from small_checkpoints import save
from transformers import AutoModel

import attention_sieve.core.importance.removal.remove
from attention_sieve.__main__ import main
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import REMOVED_HEADS
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.errors import AnalysisError, CheckpointError, GrowsLarger
from attention_sieve.core.importance.removal.remove import remove
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

FAMILIES = ("bert", "distilbert", "t5", "bart", "gpt2", "llama", "gpt_oss", "mixtral")
EMPTY_LAYER = ((0, 1), (1, 0), (1, 1), (1, 2), (1, 3))
"""One head of layer 0, and all heads of layer 1."""
TEXTS = (Text(("The two dogs ran.", "A black cat sat.")), Text(("She eats red apples.", "Who sat on the mat?")))


def files_of(folder):
    return find_checkpoint(str(folder))


def opened(folder):
    return load_checkpoint(files_of(folder), device="cpu", dtype="float64")


def empty_layer(n_heads):
    return tuple(head for head in EMPTY_LAYER if head[1] < n_heads)


def scores(checkpoint, kind, off=()):
    settings = PassSettings(kind, off)
    return measures_of(checkpoint, [prepare(checkpoint, text, settings) for text in TEXTS], settings)


def described(folder, tmp_path, **content):
    changed = tmp_path / "changed"
    shutil.copytree(folder, changed)
    (changed / REMOVED_HEADS).write_text(json.dumps(content))
    return changed


@pytest.fixture(scope="module")
def pruned(folders, tmp_path_factory):
    """BERT without head 1 of layer 0 and all heads of layer 1."""
    folder = tmp_path_factory.mktemp("pruned") / "bert"
    remove(files_of(folders("bert")), empty_layer(3), folder)
    return folder


# Removed equals gated


@pytest.mark.parametrize("family", FAMILIES)
def test_a_removed_head_computes_what_a_gated_one_does_in_every_attention(family, folders, loaded, tmp_path):
    original = loaded(family, "float64")
    kinds = original.attentions if family != "bart" else ("cross",)  # T5 stands for the two others
    for kind in kinds:
        attention = original.attentions[kind]
        gone = empty_layer(attention.n_heads)
        done = remove(original.files, gone, tmp_path / kind, kind=kind)
        assert done.difference <= 1e-12
        assert done.n_weights[1] < done.n_weights[0]
        found, expected = scores(opened(tmp_path / kind), kind), scores(original, kind, gone)
        left = np.ones((attention.n_layers, attention.n_heads), bool)
        for head in gone:
            left[head] = False
        assert np.isnan(found[..., ~left]).all()
        np.testing.assert_allclose(found[..., left], expected[..., left], atol=1e-9, rtol=0)


@pytest.mark.parametrize("family", ["gpt_oss", "mixtral"])
def test_experts_without_heads_compute_what_their_own_code_does_with_the_outputs_of_these_at_zero(
    family, folders, tmp_path
):
    gone, ids = empty_layer(4), torch.tensor([[5, 9, 12, 7, 30, 9, 12]])
    remove(files_of(folders(family)), gone, tmp_path / "made")
    own = AutoModel.from_pretrained(folders(family), attn_implementation="eager").eval()
    usual = own(ids).last_hidden_state
    for layer, head in gone:
        weight = own.layers[layer].self_attn.o_proj.weight
        size = weight.shape[1] // 4
        weight.data[:, head * size : (head + 1) * size] = 0
    with torch.inference_mode():
        expected = own(ids).last_hidden_state
        found = load_checkpoint(files_of(tmp_path / "made"), device="cpu", dtype="float32").model(ids).last_hidden_state
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)
    assert (expected - usual).abs().max() > 1e-2


@pytest.mark.parametrize(("gone", "n_shared"), [(((0, 0), (0, 1)), 2), (((0, 1), (0, 2)), 1), (((0, 3),), 1)])
def test_grouped_keys_are_sliced_by_group_or_repeated_for_the_heads_left(gone, n_shared, folders, tmp_path):
    """Heads 0 and 1 share keys, and 2 and 3: a whole group, one head of each, one head of one."""
    remove(files_of(folders("llama")), gone, tmp_path / "made")
    weights = load_file(tmp_path / "made" / "model.safetensors")
    queries, keys, values = (weights[f"layers.0.self_attn.{name}_proj.weight"].shape[0] // 6 for name in "qkv")
    assert (queries, keys, values) == (4 - len(gone), (4 - len(gone)) // n_shared, (4 - len(gone)) // n_shared)


@pytest.mark.parametrize(
    ("gone", "grows"), [(((0, 0),), True), (((0, 0), (0, 3)), False), (((0, 0), (0, 1), (0, 2)), False)]
)
def test_a_checkpoint_that_only_grows_is_saved_on_demand_alone(gone, grows, tmp_path):
    """Heads 0 to 2 share keys, and 3 to 5: without one head, five of six keys need a copy of their own."""
    save("llama", tmp_path / "original", num_attention_heads=6, num_key_value_heads=2, hidden_size=24)
    files, made = files_of(tmp_path / "original"), tmp_path / "made"
    if grows:
        with pytest.raises(GrowsLarger, match=r"would have ([\d,]+) weights instead of ([\d,]+): several") as error:
            remove(files, gone, made)
        after, before = (int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", str(error.value))[-2:])
        assert after > before
        assert not made.exists()
    done = remove(files, gone, made, may_grow=grows)
    assert (done.n_weights[1] > done.n_weights[0]) == grows


def test_a_removal_that_changes_the_output_is_not_saved(folders, tmp_path, monkeypatch):
    """Weights that belong to other heads than those named."""
    right = attention_sieve.core.importance.removal.remove.remove_heads
    monkeypatch.setattr(
        attention_sieve.core.importance.removal.remove,
        "remove_heads",
        lambda name, model, _: right(name, model, (("self", ((0, 2),)),)),
    )
    with pytest.raises(CheckpointError, match=r"differs by .* nothing was saved"):
        remove(files_of(folders("bert")), ((0, 1),), tmp_path / "made")
    assert not list(tmp_path.iterdir())


def test_more_heads_can_be_removed_from_a_checkpoint_without_some(folders, tmp_path):
    first, more = (0, 0), (0, 3)
    remove(files_of(folders("llama")), (first,), tmp_path / "once")
    done = remove(files_of(tmp_path / "once"), (more,), tmp_path / "twice")
    remove(files_of(folders("llama")), (first, more), tmp_path / "at once")
    assert done.n_removed == 2
    twice, at_once = (opened(tmp_path / how) for how in ("twice", "at once"))
    assert twice.files.removed == at_once.files.removed == (("self", (first, more)),)
    np.testing.assert_allclose(scores(twice, "self"), scores(at_once, "self"), atol=1e-9, rtol=0)


def test_a_zeroed_export_has_the_same_shape_and_loads_anywhere(loaded, tmp_path):
    original = loaded("gpt2", "float64")
    done = remove(original.files, empty_layer(3), tmp_path / "made", export="zeroed")
    assert done.n_weights[0] == done.n_weights[1]
    assert not (tmp_path / "made" / REMOVED_HEADS).exists()
    inputs = {"input_ids": torch.from_numpy(pass_texts(original, TEXTS)[0].source.ids)[None]}
    elsewhere = AutoModel.from_pretrained(tmp_path / "made", dtype=torch.float64).eval()
    ours = opened(tmp_path / "made").model
    with torch.no_grad():
        plain, found = (model(**inputs)[0] for model in (elsewhere, ours))
    torch.testing.assert_close(found, plain, atol=1e-10, rtol=0)
    assert ((plain - original.model(**inputs)[0]).abs() > 0.01).any()


def test_other_weights_of_the_checkpoint_are_kept_as_they_are(folders, pruned):
    before, after = (load_file(folder / "model.safetensors") for folder in (folders("bert"), pruned))
    assert before.keys() == after.keys()
    same = {name for name in before if before[name].shape == after[name].shape}
    assert {name.split(".")[-3] for name in before.keys() - same} == {"self", "output"}
    assert all("attention" in name for name in before.keys() - same)
    assert all(torch.equal(before[name], after[name]) for name in same)
    assert (pruned / "tokenizer.json").read_bytes() == (folders("bert") / "tokenizer.json").read_bytes()


def test_a_head_for_a_task_that_the_program_does_not_use_is_kept(folders, tmp_path):
    from transformers import AutoModelForTokenClassification

    tagger = AutoModelForTokenClassification.from_pretrained(folders("bert"), num_labels=5)
    tagger.save_pretrained(tmp_path / "tagger")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(folders("bert") / name, tmp_path / "tagger" / name)
    remove(files_of(tmp_path / "tagger"), ((0, 1),), tmp_path / "made")
    before, after = (load_file(tmp_path / one / "model.safetensors") for one in ("tagger", "made"))
    assert torch.equal(before["classifier.weight"], after["classifier.weight"])


# What is loaded


def test_a_pruned_checkpoint_knows_its_removed_heads(pruned, folders):
    checkpoint = opened(pruned)
    assert checkpoint.attentions["self"].removed == empty_layer(3) == checkpoint.files.removed_of("self")
    assert (checkpoint.attentions["self"].n_layers, checkpoint.attentions["self"].n_heads) == (2, 3)
    assert not opened(folders("bert")).attentions["self"].removed


def test_the_fingerprint_depends_on_which_heads_were_removed(pruned, tmp_path):
    changed = described(pruned, tmp_path, format=1, removed={"self": [[0, 2], [1, 0], [1, 1], [1, 2]]})
    assert files_of(changed).fingerprint != files_of(pruned).fingerprint


def test_the_random_control_lacks_the_same_heads(pruned):
    control = load_checkpoint(randomly_initialised(files_of(pruned)), device="cpu")
    left = ~np.isnan(measures_of(control, pass_texts(control, TEXTS))).all((0, 1))
    assert left.tolist() == [[True, False, True], [False, False, False]]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([1], "holds no object"),
        ({"format": 2, "removed": {"self": [[0, 1]]}}, "has format 2, and format 1 is read"),
        ({"format": True, "removed": {"self": [[0, 1]]}}, "has format True"),
        ({"format": 1}, 'has no "removed"'),
        ({"format": 1, "removed": {"cross": [[0, 1]]}}, "names 'cross' attention"),
        ({"format": 1, "removed": {"self": []}}, "has no list of heads"),
        ({"format": 1, "removed": {"self": [[0, -1]]}}, "names .0, -1., which is no layer and head"),
        ({"format": 1, "removed": {"self": [[0, True]]}}, "which is no layer and head"),
        ({"format": 1, "removed": {"self": [[0, 1.0]]}}, "which is no layer and head"),
        ({"format": 1, "removed": {"self": [[0, 10**9]]}}, "which is no layer and head"),
        ({"format": 1, "removed": {"self": [[0, 1], [0, 1]]}}, "names L0 H1 twice"),
        ({"format": 1, "removed": {"self": [[0, 3]]}}, "names L0 H3, and the self attention has 2 layers x 3 heads"),
        ({"format": 1, "removed": {"self": [[0, 1]]}}, "may not be those that removed_heads.json describes"),
        ({"format": 1, "removed": {"self": [[i, j] for i in (0, 1) for j in (0, 1, 2)]}}, "leaves no head"),
        (b"{", "cannot be read"),
        (b" " * 2_000_001, "has 2,000,001 bytes"),
    ],
    ids=range(16),
)  # fmt: skip
def test_a_broken_list_of_removed_heads_is_refused_with_a_sentence(content, says, pruned, tmp_path):
    changed = tmp_path / "changed"
    shutil.copytree(pruned, changed)
    (changed / REMOVED_HEADS).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(CheckpointError, match=says):
        opened(changed)


def test_a_long_list_of_removed_heads_is_refused_before_the_model_is_built(folders, tmp_path):
    changed = described(folders("bert"), tmp_path, format=1, removed={"self": [[0, 1]] * 190_000})
    began = time.process_time()
    with pytest.raises(CheckpointError, match="names L0 H1 190,000 times"):
        files_of(changed)
    assert time.process_time() - began < 5


def test_a_list_beside_weights_of_all_heads_is_refused(folders, tmp_path):
    changed = described(folders("bert"), tmp_path, format=1, removed={"self": [[0, 1]]})
    with pytest.raises(CheckpointError, match=r"\(their shapes do not fit the model\)\. .* removed_heads\.json"):
        opened(changed)


# What is refused


@pytest.mark.parametrize(
    ("heads", "kind", "says"),
    [
        (((0, 3),), "self", "has no head L0 H3: it has 2 layers x 3 heads"),
        ((), "self", "No head is named"),
        (((0, 1),), "cross", "has no cross attention. Choose: self"),
        (tuple((i, j) for i in (0, 1) for j in (0, 1, 2)), "self", "would be left. Keep at least one"),
    ],
)
def test_heads_that_cannot_be_removed_are_refused(heads, kind, says, folders, tmp_path):
    with pytest.raises(AnalysisError, match=says):
        remove(files_of(folders("bert")), heads, tmp_path / "made", kind=kind)


@pytest.mark.parametrize("family", ["albert", "phi3", "deberta-v2"])
def test_another_layout_gets_a_sentence_that_names_the_gates(family, folders, tmp_path):
    with pytest.raises(AnalysisError, match=r"eads cannot be removed from .*Switch (heads|them) off instead"):
        remove(files_of(folders(family)), ((0, 1),), tmp_path / "made")


def test_a_family_that_needs_a_head_in_every_layer_says_so(tmp_path):
    original = save("opt", tmp_path / "opt")
    remove(files_of(original), ((0, 1), (1, 2)), tmp_path / "made")
    with pytest.raises(CheckpointError, match="Keep at least one head in every layer"):
        remove(files_of(original), empty_layer(3), tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


def test_a_folder_that_exists_is_not_written_over(folders, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "mine").touch()
    with pytest.raises(AnalysisError, match="already exists"):
        remove(files_of(folders("bert")), ((0, 1),), tmp_path / "made")


# The command


def test_the_command_removes_heads_that_share_keys_together_on_request(folders, tmp_path, capsys):
    """Heads 2 and 3 share keys. The second checkpoint lacks head 3 already."""
    whole, first, rest = (tmp_path / name for name in ("whole", "first", "rest"))
    command = ["remove", "--whole-groups", "--checkpoint"]
    assert main([*command, str(folders("llama")), "--heads", "0-3", "--output", str(whole)]) == 0
    assert find_checkpoint(str(whole)).removed == (("self", ((0, 2), (0, 3))),)
    assert main(["remove", "--checkpoint", str(folders("llama")), "--heads", "0-1,0-3", "--output", str(first)]) == 0
    assert main([*command, str(first), "--heads", "0-2", "--output", str(rest)]) == 0
    assert find_checkpoint(str(rest)).removed == (("self", ((0, 1), (0, 2), (0, 3))),)


def test_the_command_makes_a_checkpoint_that_other_commands_take(folders, tmp_path, capsys):
    made = tmp_path / "made"
    assert main(["remove", "--checkpoint", str(folders("bert")), "--heads", "0-1,1-2", "--output", str(made)]) == 0
    assert "2 of 6 heads are removed" in capsys.readouterr().out
    assert json.loads((made / REMOVED_HEADS).read_text()) == {"format": 1, "removed": {"self": [[0, 1], [1, 2]]}}
    assert main(["remove", "--checkpoint", str(made), "--heads", "0-1", "--output", str(tmp_path / "b")]) == 2
    assert "was removed from" in capsys.readouterr().err
