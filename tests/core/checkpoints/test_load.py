import json
import shutil
from contextlib import contextmanager

import pytest
import torch
from passing import of_source, whole_map
from small_checkpoints import FAMILIES, N_POSITIONS, byte_level, edit_json, save, wordpiece
from transformers import AttentionInterface, AttentionMaskInterface, AutoModel

from attention_sieve.core.attention.observed import ATTENTION_NAME, observed_attention
from attention_sieve.core.attention.observers import current_pass
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import tokenize


def load(folder, dtype="float32", device="cpu"):
    return load_checkpoint(find_checkpoint(str(folder)), device=device, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_a_checkpoint_has_the_number_format_that_was_asked_for_and_does_not_train(dtype, folders):
    checkpoint = load(folders("bert"), dtype)
    assert checkpoint.model.dtype == getattr(torch, dtype)
    assert checkpoint.statistics_dtype == (torch.float64 if dtype == "float64" else torch.float32)
    assert not checkpoint.model.training


@pytest.mark.parametrize("family", FAMILIES)
def test_the_most_tokens_are_the_positions_that_a_text_can_use(family, loaded):
    """RoBERTa starts to count after its padding entry, which is number 1."""
    assert loaded(family).max_tokens == (N_POSITIONS - 2 if family == "roberta" else N_POSITIONS)


def test_twenty_positions_of_a_roberta_hold_eighteen_tokens(tmp_path):
    checkpoint = load(save("roberta", tmp_path / "r", max_position_embeddings=20))
    assert checkpoint.max_tokens == 18
    text = tokenize(Text(("a dog " * 30,)), checkpoint.tokenizer, 18, truncate=True)
    assert whole_map(checkpoint, of_source(text)).shape == (2, 3, 18, 18)


def test_a_tokenizer_may_take_fewer_tokens_than_the_model_but_leaves_room_for_a_text(folder):
    edit_json(folder / "tokenizer_config.json", model_max_length=17)
    assert load(folder).max_tokens == 17
    for stated in ("512", float("nan"), 2):
        edit_json(folder / "tokenizer_config.json", model_max_length=stated)
        with pytest.raises(CheckpointError, match=r"leaves no room for a text.*Correct model_max_length"):
            load(folder)


@contextmanager
def registered(interface, changed):
    """Another function in place of the one that the project has registered with transformers."""
    own = interface()[ATTENTION_NAME]
    interface.register(ATTENTION_NAME, changed)
    try:
        yield
    finally:
        interface.register(ATTENTION_NAME, own)


def test_a_door_that_scales_wrongly_is_refused_with_numbers(folder):
    def scaled(module, query, *others, **named):
        return observed_attention(module, 1.5 * query, *others, **named)

    said = r"failed its self-check: .* output changes by \d\.\de-0\d .*allowed 1e-04"
    with registered(AttentionInterface, scaled), pytest.raises(CheckpointError, match=said):
        load(folder)


def test_a_door_that_loses_the_mask_is_refused_with_numbers(folder):
    said = r"rows differ from 1 by [1-9]\.\de-0\d \(allowed 1e-04\)"
    with registered(AttentionMaskInterface, lambda **_: None), pytest.raises(CheckpointError, match=said):
        load(folder)


def unobserved(*arguments, **named):
    """What the registered attention function computes outside a pass."""
    token = current_pass.set(None)
    try:
        return observed_attention(*arguments, **named)
    finally:
        current_pass.reset(token)


def test_a_door_whose_rows_do_not_sum_to_one_is_refused_though_the_output_is_right(folder):
    def unmasked_for_observers(module, query, key, value, attention_mask, **named):
        observed_attention(module, query, key, value, None, **named)
        return unobserved(module, query, key, value, attention_mask, **named)

    said = r"rows differ from 1 by [1-9]\.\de-0[12] .* changes by (0\.0e\+00|\d\.\de-(0[5-9]|1))"
    with registered(AttentionInterface, unmasked_for_observers), pytest.raises(CheckpointError, match=said):
        load(folder)


def test_a_model_whose_output_is_not_a_number_is_refused(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if name.endswith("word_embeddings.weight"))
    weights[name] = torch.full_like(weights[name], float("nan"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        CheckpointError, match=r"1,668 numbers in 1 weights .* not finite, embeddings\.word_embeddings\.weight first"
    ):
        load(folder)


def test_a_door_past_which_gates_are_lost_is_refused(folder):
    def ungated(*arguments, **named):
        observed_attention(*arguments, **named)
        return unobserved(*arguments, **named)

    said = "switching off all heads of its self attention changes nothing"
    with registered(AttentionInterface, ungated), pytest.raises(CheckpointError, match=said):
        load(folder)


def test_a_model_whose_heads_carry_the_first_token_alone_is_used(folders, tmp_path):
    folder = shutil.copytree(folders("llama"), tmp_path / "llama")
    model = AutoModel.from_pretrained(folder)
    with torch.no_grad():
        embeddings = model.get_input_embeddings().weight
        embeddings[:, 0] = 0
        embeddings[model.config.bos_token_id, 0] = 1
        for layer in model.layers:
            layer.self_attn.v_proj.weight[:, 1:] = 0
            layer.mlp.down_proj.weight.zero_()
            layer.self_attn.o_proj.weight[0] = 0
    model.save_pretrained(folder)
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    assert checkpoint.attentions["self"].n_heads == model.config.num_attention_heads


def test_layers_of_an_encoder_decoder_are_told_apart_by_their_calls(loaded):
    attentions = loaded("t5").attentions
    assert list(attentions) == ["encoder", "decoder", "cross"]
    assert [attentions[kind].calls for kind in attentions] == [(0, 1), (2, 4, 6), (3, 5, 7)]
    assert [attentions[kind].causal for kind in attentions] == [False, True, False]


@pytest.mark.parametrize(("family", "start_id"), [("t5", 0), ("bart", 2)])
def test_a_decoder_begins_with_the_token_that_its_configuration_names(family, start_id, loaded):
    assert loaded(family).start_id == start_id


def test_a_decoder_that_knows_no_token_to_begin_with_is_refused(folders, tmp_path):
    folder = shutil.copytree(folders("t5"), tmp_path / "t5")
    nothing = dict.fromkeys(("decoder_start_token_id", "bos_token_id", "pad_token_id"))
    edit_json(folder / "config.json", **nothing)
    with pytest.raises(CheckpointError, match=r"names no decoder_start_token_id, so its decoder cannot begin\. Add it"):
        load(folder)


@pytest.mark.parametrize("changed", [{"model_type": "no-such-model"}, {"model_type": None}])
def test_an_unknown_architecture_is_refused(folder, changed):
    edit_json(folder / "config.json", **changed)
    with pytest.raises(CheckpointError, match=r"does not know the architecture .* code from a checkpoint is never run"):
        load(folder)


def test_code_that_a_checkpoint_brings_is_never_run(folder, tmp_path):
    ran = tmp_path / "ran"
    (folder / "brought.py").write_text(
        f"open({str(ran)!r}, 'w').close()\n"
        "from transformers import BertConfig, BertModel, BertTokenizerFast\n"
        "class Config(BertConfig):\n    model_type = 'brought'\nModel, Tokens = BertModel, BertTokenizerFast\n"
    )
    brought = {"AutoConfig": "brought.Config", "AutoModel": "brought.Model"}
    edit_json(folder / "config.json", model_type="brought", auto_map=brought)
    edit_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "brought.Tokens"]})
    with pytest.raises(CheckpointError, match=r"never run|cannot be loaded"):
        load(folder)
    assert not ran.exists()


def test_code_beside_a_known_architecture_is_not_run_either(folder, tmp_path):
    ran = tmp_path / "ran"
    (folder / "brought.py").write_text(
        f"open({str(ran)!r}, 'w').close()\nfrom transformers import BertModel as Model\n"
    )
    edit_json(folder / "config.json", auto_map={"AutoModel": "brought.Model"})
    assert load(folder).attentions["self"].n_layers == 2
    assert not ran.exists()


def test_missing_layers_are_refused_by_name(folder):
    edit_json(folder / "config.json", num_hidden_layers=3)
    with pytest.raises(CheckpointError, match=r"16 weights of .* are missing .*encoder\.layer\.2\.attention.* first"):
        load(folder)


def test_weights_of_another_shape_are_refused(folder):
    edit_json(folder / "config.json", intermediate_size=17)
    with pytest.raises(CheckpointError, match="weights"):
        load(folder)


def test_weights_in_several_files_load_like_one_and_are_refused_without_one_of_them(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(folders("bert"), tmp_path / "sharded", ignore=shutil.ignore_patterns("*.safetensors"))
    weights, places = load_file(folders("bert") / "model.safetensors"), {}
    names = sorted(weights)
    for number, of_shard in enumerate((names[:10], names[10:]), start=1):
        file = f"model-{number:05d}-of-00002.safetensors"
        save_file({name: weights[name] for name in of_shard}, folder / file, metadata={"format": "pt"})
        places |= dict.fromkeys(of_shard, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    many, one = load(folder).model.state_dict(), load(folders("bert")).model.state_dict()
    assert all(torch.equal(many[name], one[name]) for name in one)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"The weights of .* cannot be loaded"):
        load(folder)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_saved_in_fewer_bits_say_so_and_are_computed_with_in_float32(dtype, tmp_path):
    folder = save("bert", tmp_path / dtype, dtype=dtype)
    checkpoint = load(folder)
    assert checkpoint.files.facts_of_weights == {"weights": f"saved in {dtype}"}
    assert {weights.dtype for weights in checkpoint.model.parameters()} == {torch.float32}
    half = load(folder, dtype).model.state_dict()
    assert all(torch.equal(half[name].float(), weights) for name, weights in checkpoint.model.state_dict().items())


def test_a_pooler_may_be_missing(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    without = {name: value for name, value in weights.items() if "pooler" not in name}
    assert len(without) < len(weights)
    save_file(without, folder / "model.safetensors", metadata={"format": "pt"})
    assert load(folder).attentions["self"].n_layers == 2


def test_a_tokenizer_that_cannot_be_read_is_refused(folder):
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"The tokenizer of .* cannot be loaded \(.+\)"):
        load(folder)


def test_a_tokenizer_of_another_model_is_refused_with_numbers(folder):
    from transformers import PreTrainedTokenizerFast

    PreTrainedTokenizerFast(tokenizer_object=byte_level(), pad_token="<pad>").save_pretrained(folder)
    with pytest.raises(CheckpointError, match=r"gives ids up to 300 and its model has 139 embeddings"):
        load(folder)


def test_a_slow_tokenizer_is_refused(folder):
    """Only a fast tokenizer tells which characters a token stands for; ProphetNet has no other than a slow one."""
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(wordpiece().get_vocab()))
    edit_json(folder / "tokenizer_config.json", tokenizer_class="ProphetNetTokenizer")
    with pytest.raises(CheckpointError, match=r"tokenizer of .* (does not report which characters|cannot be loaded)"):
        load(folder)


def test_a_model_that_cannot_read_a_plain_text_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"\(BertModel\) cannot read a text of 12 tokens .*\(.+\)\. Choose"):
        load(save("bert", tmp_path / "short", max_position_embeddings=9))


def test_an_unknown_number_format_is_refused(folder):
    with pytest.raises(CheckpointError, match=r"dtype 'int8' is not available on cpu\. Choose float32"):
        load(folder, dtype="int8")


def test_weights_are_read_by_one_thread_at_a_time(folders, monkeypatch):
    """transformers patches its own classes meanwhile; two at once can leave them patched."""
    import threading

    import transformers

    real, inside, most, both = transformers.AutoModel.from_pretrained, [], [], threading.Event()

    def noted(*arguments, **named):
        inside.append(1)
        most.append(len(inside))
        if len(inside) > 1:
            both.set()
        both.wait(0.5)  # long enough for the other thread to come in, if it may
        try:
            return real(*arguments, **named)
        finally:
            inside.pop()

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", noted)
    threads = [threading.Thread(target=load, args=(folders(family),)) for family in ("bert", "gpt2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1]
