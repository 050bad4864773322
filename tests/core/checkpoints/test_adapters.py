"""Adapters of PEFT: a folder of one is a checkpoint, which computes what PEFT itself computes."""

import shutil
import time

import pytest
import torch
from peft import (
    AdaLoraConfig,
    DeloraConfig,
    HiraConfig,
    HRAConfig,
    IA3Config,
    LNTuningConfig,
    LoHaConfig,
    LoKrConfig,
    LoraConfig,
    PeftType,
)
from safetensors.torch import load_file, save_file
from small_adapters import LORA, output_of, save_adapter
from small_checkpoints import edit_json, save
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, BertForMaskedLM

from attention_sieve.core.checkpoints.checks.adapters import KINDS
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.importance.removal.remove import remove

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


SPECIAL_KINDS = {
    "dora": LoraConfig(**LORA, use_dora=True),
    "ia3": IA3Config(target_modules=["key", "dense"], feedforward_modules=["dense"]),
    "rank-stabilised": LoraConfig(**LORA, use_rslora=True, bias="all"),
    "adalora": AdaLoraConfig(init_r=2, target_r=1, tinit=1, tfinal=1, total_step=9, target_modules=["query"]),
    "loha": LoHaConfig(r=2, target_modules=["query"]),
    "lokr": LoKrConfig(r=2, target_modules=["query"]),
    "delora": DeloraConfig(r=2, target_modules=["query"]),
    "hira": HiraConfig(r=2, target_modules=["query"]),
    "hra": HRAConfig(r=2, target_modules=["query"]),
    "ln_tuning": LNTuningConfig(target_modules=["LayerNorm"]),
    "tokens": LoraConfig(**LORA, trainable_token_indices={"word_embeddings": [3, 9]}),
    "names that are expressions": LoraConfig(
        r=2,
        target_modules=r"encoder\.layer\.\d{1,2}\.attention\.self\.(query|value)",
        exclude_modules=r".*\.0\..*value",
        rank_pattern={r"layer\.1\..*": 3, "query": 1},
        alpha_pattern={"query": 5},
    ),
    "some layers": LoraConfig(**LORA, layers_to_transform=[1], layers_pattern="layer", modules_to_save=["LayerNorm"]),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save("bert", tmp_path_factory.mktemp("adapters") / "bert-small")


@pytest.fixture(scope="module")
def lora(base):
    """Its folder, named beside its base by a hub id, and PEFT's output."""
    folder = base.parent / "lora"
    return folder, save_adapter(AutoModel.from_pretrained(base), LoraConfig(**LORA), folder, "someone/bert-small")


def copied(folder, **changed):
    """A copy beside the base with another configuration."""
    copy = folder.with_name(f"copy {len(list(folder.parent.iterdir()))}")
    shutil.copytree(folder, copy)
    edit_json(copy / CONFIG, **changed)
    return copy


def refused(folder, said):
    with pytest.raises(CheckpointError, match=said):
        load_checkpoint(find_checkpoint(str(folder)), device="cpu")


def test_an_adapter_computes_what_peft_computes_and_names_its_base(base, lora):
    folder, expected = lora
    files = find_checkpoint(str(folder))
    adapted, plain = (load_checkpoint(each, device="cpu") for each in (files, files.base))
    assert torch.allclose(output_of(adapted.model), expected, atol=1e-6)
    assert not torch.allclose(output_of(plain.model), expected, atol=1e-2)
    assert files.facts_of_weights == {
        "adapter": "LORA", "base": str(base), "base fingerprint": find_checkpoint(str(base)).fingerprint,
    }  # fmt: skip
    assert (files.n_layers, files.n_heads, files.model_type) == (plain.files.n_layers, plain.files.n_heads, "bert")


@pytest.mark.parametrize("kind", SPECIAL_KINDS)
def test_other_kinds_of_adapters_that_change_weights_do_too(base, tmp_path, kind):
    expected = save_adapter(AutoModel.from_pretrained(base), SPECIAL_KINDS[kind], tmp_path / kind, str(base))
    adapted = load_checkpoint(find_checkpoint(str(tmp_path / kind)), device="cpu")
    assert torch.allclose(output_of(adapted.model), expected, atol=1e-6)


def test_scale_zero_is_the_base_and_the_fingerprint_covers_both(base, lora):
    off = find_checkpoint(str(copied(lora[0], lora_alpha=0)))
    plain, adapted = (load_checkpoint(files, device="cpu") for files in (off.base, off))
    assert torch.allclose(output_of(adapted.model), output_of(plain.model), atol=1e-6)
    other_base = shutil.copytree(base, base.with_name("bert-two"))
    edit_json(other_base / "config.json", layer_norm_eps=1e-6)
    on_other = find_checkpoint(str(copied(lora[0], base_model_name_or_path="bert-two")))
    prints = {files.fingerprint for files in (off, off.base, find_checkpoint(str(lora[0])), on_other, on_other.base)}
    assert len(prints) == 5


def test_a_pair_has_one_base_in_memory_and_leaves_it_as_it_was(lora):
    files = find_checkpoint(str(lora[0]))
    plain = load_checkpoint(files.base, device="cpu")
    before = output_of(plain.model)
    adapted = load_checkpoint(files, device="cpu", base=plain)
    changed = sum(size for place, size in adapted.sizes.items() if place not in plain.sizes)
    query_and_value = [
        weights for name, weights in plain.model.named_parameters() if ".query." in name or ".value." in name
    ]
    assert changed == sum(weights.numel() * weights.element_size() for weights in query_and_value)
    torch.testing.assert_close(output_of(plain.model), before)
    assert torch.allclose(output_of(adapted.model), lora[1], atol=1e-6)
    assert all(weights.requires_grad for weights in plain.model.parameters())


def test_an_adapter_may_bring_a_classification_head(base):
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    folder = base.parent / "classifier"
    expected = save_adapter(model, LoraConfig(**LORA, task_type="SEQ_CLS"), folder, "bert-small")
    plain = load_checkpoint(find_checkpoint(str(base)), device="cpu")
    adapted = load_checkpoint(find_checkpoint(str(folder)), device="cpu", base=plain)
    assert adapted.head == "classes"
    assert torch.allclose(output_of(adapted.full_model), expected, atol=1e-6)


def test_an_adapter_of_the_body_fits_a_base_with_a_head(tmp_path):
    folder = save("bert", tmp_path / "with a head")
    model = BertForMaskedLM.from_pretrained(folder)
    model.save_pretrained(folder)
    expected = save_adapter(
        AutoModel.from_pretrained(folder), LoraConfig(**LORA), tmp_path / "of the body", str(folder)
    )
    adapted = load_checkpoint(find_checkpoint(str(tmp_path / "of the body")), device="cpu")
    assert adapted.head == "masked token"
    assert torch.allclose(output_of(adapted.model), expected, atol=1e-6)


def test_a_tied_output_keeps_its_own_weights_where_only_one_is_changed(tmp_path):
    folder = save("llama", tmp_path / "tied", tie_word_embeddings=True)
    edit_json(folder / "config.json", architectures=["LlamaForCausalLM"])
    config = LoraConfig(r=2, lora_alpha=4, target_modules=["lm_head", "q_proj"], task_type="CAUSAL_LM")
    expected = save_adapter(AutoModelForCausalLM.from_pretrained(folder), config, tmp_path / "head", str(folder))
    adapted = load_checkpoint(find_checkpoint(str(tmp_path / "head")), device="cpu")
    assert torch.allclose(output_of(adapted.full_model), expected, atol=1e-5)


def test_what_cannot_be_loaded_says_why_and_what_to_do(base, lora):
    folder, _ = lora
    refused(copied(folder, base_model_name_or_path="/home/them/gone"), r"There is no folder /home/them/gone.*beside")
    refused(copied(folder, base_model_name_or_path=None), "does not name its base")
    refused(copied(folder, base_model_name_or_path="lora"), "is an adapter itself")
    of_itself = copied(folder)
    edit_json(of_itself / CONFIG, base_model_name_or_path=str(of_itself))
    refused(of_itself, "is an adapter itself")
    save("bert", base.parent / "wider", hidden_size=24)
    refused(copied(folder, base_model_name_or_path="wider"), "does not fit its base, a BertModel .*other shapes")
    save("gpt2", base.parent / "gpt2-small")
    refused(copied(folder, base_model_name_or_path="gpt2-small"), "does not fit its base, a GPT2Model")
    deep = copied(folder)
    weights = load_file(deep / WEIGHTS)
    save_file({name.replace("layer.0", "layer.9"): each for name, each in weights.items()}, deep / WEIGHTS)
    refused(deep, r"layer\.9\..* has no place in it")
    half = copied(folder)
    save_file(dict(list(weights.items())[1:]), half / WEIGHTS)
    refused(half, "does not fit its base.* is missing")
    pickled = copied(folder)
    (pickled / WEIGHTS).rename(pickled / "adapter_model.bin")
    refused(pickled, r"could run code when loaded \(adapter_model.bin\). Save it as safetensors")
    both = copied(folder)
    shutil.copyfile(base / "model.safetensors", both / "model.safetensors")
    refused(both, "holds a whole model and an adapter")


def test_heads_are_removed_from_the_merged_weights(lora, tmp_path):
    files = find_checkpoint(str(lora[0]))
    removal = remove(files, [(0, 1)], tmp_path / "removed")
    assert removal.difference < 1e-6
    whole, without = (
        load_checkpoint(files, device="cpu"),
        load_checkpoint(find_checkpoint(str(removal.folder)), device="cpu"),
    )
    merged, kept = whole.model.state_dict(), without.model.state_dict()
    assert torch.equal(
        kept["encoder.layer.1.attention.self.value.weight"], merged["encoder.layer.1.attention.self.value.weight"]
    )


@pytest.mark.parametrize("kind", sorted(set(PeftType) - set(KINDS)))
def test_kinds_that_are_more_than_changes_of_weights_are_refused_before_their_settings_are_followed(lora, kind):
    names = {"shadow_model": "evil/model", "adapters": {"a": "evil/lora"}, "tokenizer_name_or_path": "evil/tokenizer"}
    with pytest.raises(CheckpointError, match=f"is an adapter of the kind '{kind.value}', and those are read that"):
        find_checkpoint(str(copied(lora[0], peft_type=kind.value, **names)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        *(({"peft_type": kind}, "adapter of the kind .*, and those are read") for kind in (None, 7, ["LORA"], {})),
        ({"megatron_config": {"a": 1}}, "sets 'megatron_config', which is not read"),
        ({"arrow_config": {"task_adapter_names": ["evil/lora"]}}, "sets 'arrow_config', which is not read"),
        ({"layer_replication": [[0, 2]] * 9}, "sets 'layer_replication', which is not read"),
        ({"of a later version": "evil/model"}, "sets 'of a later version', which is not read"),
        ({"init_lora_weights": "pissa_niter_999999999"}, "init_lora_weights = 'pissa_niter_999999999', which changed"),
        ({"init_lora_weights": ["corda"]}, "which changed the weights of the base"),
        ({"modules_to_save": ["(a|a)*b"]}, r"modules_to_save holds '\(a\|a\)\*b', which is no name"),
        ({"modules_to_save": 7}, "modules_to_save is 7. Write a list of names"),
        ({"layers_pattern": "(a|a)*b"}, "layers_pattern holds .*, which is no name"),
    ],
)
def test_settings_that_are_not_known_to_be_harmless_are_refused_when_the_adapter_is_found(lora, changed, said):
    with pytest.raises(CheckpointError, match=said):
        find_checkpoint(str(copied(lora[0], **changed)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"target_modules": "(?:.|..)+(?<=x)"}, "takes more than 2 seconds to match"),
        ({"exclude_modules": "(?:.|..)+(?<=x)"}, "takes more than 2 seconds to match"),
        ({"rank_pattern": {"(?:.|..)+(?<=x)": 3}}, "takes more than 2 seconds to match"),
        ({"target_modules": "(?:a{3}){9999999}"}, "has 29,999,997 repeats|29,999,997 repeats, and at most"),
        ({"target_modules": "|".join(map(str, range(3_000)))}, "13,889 characters and 1 repeats, and at most 5,000"),
        ({"target_modules": "(?R)*"}, r"cannot be read \(unknown extension"),
        ({"target_modules": "*"}, "cannot be read .nothing to repeat"),
        ({"target_modules": ["query"] * 1_000}, "target_modules has 1,000 entries, and its base has 4. modules"),
        ({"rank_pattern": {str(number): 1 for number in range(999)}}, "rank_pattern has 999 entries"),
    ],
)
def test_expressions_that_take_long_are_refused_within_their_time(lora, changed, said):
    began = time.process_time()
    refused(copied(lora[0], **changed), said)
    assert time.process_time() - began < 8


def test_an_adapter_beside_a_whole_model_of_the_hub_is_left_alone(lora, base, tmp_path, monkeypatch):
    """transformers would follow it, and what it names."""
    cached = tmp_path / "hub" / "models--organisation--both"
    commit = "0123456789abcdef0123456789abcdef01234567"
    both = shutil.copytree(base, cached / "snapshots" / commit)
    for name in (CONFIG, WEIGHTS):
        shutil.copyfile(lora[0] / name, both / name)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    files = find_checkpoint("organisation/both")
    assert files.fingerprint == find_checkpoint(str(base)).fingerprint
    whole, plain = (load_checkpoint(each, device="cpu").model for each in (files, find_checkpoint(str(base))))
    assert torch.equal(output_of(whole), output_of(plain))
    assert [name for name, _ in whole.named_modules()] == [name for name, _ in plain.named_modules()]


def test_an_adapter_in_a_folder_of_its_bases_name_finds_the_base_elsewhere(lora, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    copy = shutil.copytree(lora[0], tmp_path / "all-MiniLM-L6-v2")
    edit_json(copy / CONFIG, base_model_name_or_path="sentence-transformers/all-MiniLM-L6-v2")
    assert find_checkpoint(str(copy)).base.name == "bundled"
