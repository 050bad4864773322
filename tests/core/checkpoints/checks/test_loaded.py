import math
import string

import pytest
import torch
from small_checkpoints import TOKENIZERS, byte_level, config, gpt2_tokenizer, wordpiece
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoModel, PreTrainedTokenizerFast

from attention_sieve.core.checkpoints.checks.loaded import (
    check_layers,
    check_vocabulary,
    check_weights,
    keep_names_as_text,
    own_memory,
    stated_length,
)
from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, tokenize


def model_of(family, n_words=None, **changed):
    torch.manual_seed(1)
    return AutoModel.from_config(config(family, n_words or len(TOKENIZERS[family]()), **changed)).eval()


# Weights


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_one_number_that_is_none_is_found_wherever_it_stands(value, dtype):
    model = model_of("bert").to(dtype)
    with torch.no_grad():
        model.encoder.layer[1].output.dense.weight[3, 5] = value
    sentence = r"^1 numbers in 1 weights of small are not finite, encoder\.layer\.1\.output\.dense\.weight first"
    with pytest.raises(CheckpointError, match=sentence):
        check_weights("small", model)


def test_broken_weights_are_counted_and_the_first_in_the_models_order_is_named():
    model = model_of("bert")
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias[:7] = math.inf
        model.encoder.layer[0].attention.self.query.weight[:2, 0] = math.nan
        model.embeddings.LayerNorm.weight[4] = -math.inf
    with pytest.raises(
        CheckpointError, match=r"^10 numbers in 3 weights .*, embeddings\.LayerNorm\.weight first\. Its"
    ):
        check_weights("small", model)


def test_weights_too_large_for_float16_are_told_from_broken_ones():
    model = model_of("bert")
    with torch.no_grad():
        model.pooler.dense.weight[0, 0] = 70_000.0
    check_weights("small", model)
    check_weights("small", model.to(torch.bfloat16))
    model = model.to(torch.float32)
    with torch.no_grad():
        model.pooler.dense.weight[0, 0] = 70_000.0
    with pytest.raises(CheckpointError, match=r"too large for float16\. Choose bfloat16 or float32\.$"):
        check_weights("small", model.to(torch.float16))
    with torch.no_grad():
        model.pooler.dense.weight[0, 1] = math.nan
    with pytest.raises(CheckpointError, match=r"^2 numbers .* save the checkpoint again from a working copy\.$"):
        check_weights("small", model)


# Memory


def test_what_is_kept_beside_the_weights_moves_too(tmp_path):
    from transformers import BartConfig, BartForConditionalGeneration

    sizes = {"d_model": 12, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 9}
    heads = {"encoder_attention_heads": 3, "decoder_attention_heads": 3, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    BartForConditionalGeneration(BartConfig(vocab_size=50, **sizes, **heads)).save_pretrained(tmp_path)
    model = BartForConditionalGeneration.from_pretrained(tmp_path)
    own_memory(model)
    file = tmp_path / "model.safetensors"
    with file.open("r+b") as opened:
        opened.seek(4_096)
        opened.write(b"\xff" * (file.stat().st_size - 4_096))
    assert "final_logits_bias" in dict(model.named_buffers())
    assert not any(values.isnan().any() for values in model.state_dict().values())


def test_weights_that_are_shared_stay_shared_in_own_memory():
    from transformers import AutoModelForMaskedLM

    model = AutoModelForMaskedLM.from_config(config("bert", 50))
    own_memory(model)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


# Layers


def unexpected_with(folder, family, **changed):
    """Names that transformers reports as unexpected when the configuration is changed, and the model."""
    from transformers import AutoConfig

    changed_config = AutoConfig.from_pretrained(folder)
    for name, value in changed.items():
        setattr(changed_config, name, value)
    model, report = AutoModel.from_pretrained(folder, config=changed_config, output_loading_info=True)
    return model, report["unexpected_keys"]


LAYER_NAMES = {
    "bert": ("num_hidden_layers", "encoder.layer.1."),
    "distilbert": ("n_layers", "transformer.layer.1."),
    "gpt2": ("n_layer", "h.1."),
    "llama": ("num_hidden_layers", "layers.1."),
}


@pytest.mark.parametrize("family", LAYER_NAMES)
def test_weights_of_a_layer_that_the_configuration_does_not_name_are_refused(family, folders):
    setting, layer = LAYER_NAMES[family]
    model, unexpected = unexpected_with(folders(family), family, **{setting: 1})
    assert len(unexpected) == sum(layer in name for name in unexpected) > 5
    sentence = (
        rf"^The files of small hold {len(unexpected)} weights of layers .* name, {layer}.* first\. Correct the number"
    )
    with pytest.raises(CheckpointError, match=sentence):
        check_layers("small", model, unexpected)


def test_a_head_is_no_layer_too_many(tmp_path):
    from transformers import BertForMaskedLM

    BertForMaskedLM(config("bert", 50)).save_pretrained(tmp_path)
    model, unexpected = unexpected_with(tmp_path, "bert")
    assert unexpected
    check_layers("small", model, unexpected)


def test_a_layer_too_many_is_found_below_the_name_of_the_whole_model(tmp_path):
    from transformers import BertForSequenceClassification

    BertForSequenceClassification(config("bert", 50)).save_pretrained(tmp_path)
    model, unexpected = unexpected_with(tmp_path, "bert", num_hidden_layers=1)
    with pytest.raises(CheckpointError, match=r"encoder\.layer\.1\."):
        check_layers("small", model, unexpected)


def test_the_first_layer_too_many_is_the_lowest_number(folders):
    unexpected = {f"encoder.layer.{number}.output.dense.bias" for number in (11, 9, 10)}
    with pytest.raises(CheckpointError, match=r"hold 3 weights .*encoder\.layer\.9\.output\.dense\.bias first"):
        check_layers("small", model_of("bert"), unexpected)


@pytest.mark.parametrize(
    "name",
    ["h.0.attn.masked_bias", "adapters.3.weight", "position_ids", "lm_head.weight", "transformer.h.0.attn.c_attn.bias"],
)
def test_other_extras_in_the_files_may_stay(name):
    check_layers("small", model_of("gpt2"), {name})


# Vocabulary


def test_a_model_that_reads_no_tokens_is_refused():
    from transformers import ViTConfig, ViTModel, Wav2Vec2Config, Wav2Vec2Model

    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 3, "intermediate_size": 16}
    pictures = ViTModel(ViTConfig(image_size=8, patch_size=4, **sizes))
    convolutions = {"conv_dim": (4,), "conv_stride": (2,), "conv_kernel": (2,), "num_conv_pos_embeddings": 4}
    groups = {"num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 1}
    sounds = Wav2Vec2Model(Wav2Vec2Config(**sizes, **convolutions, **groups))
    for model in (pictures, sounds):
        with pytest.raises(
            CheckpointError, match=rf"small \({type(model).__name__}\) has no token embeddings.*such as"
        ):
            check_vocabulary("small", model, wordpiece())


def test_more_embeddings_than_tokens_pass():
    n_words = len(wordpiece())
    assert check_vocabulary("small", model_of("bert", n_words=n_words + 30), wordpiece()) == n_words + 30


def test_a_tokenizer_with_one_word_too_many_is_refused_with_both_sizes():
    tokenizer = wordpiece()
    last = max(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    n_rows = len(tokenizer) - 1
    with pytest.raises(CheckpointError) as error:
        check_vocabulary("small", model_of("bert", n_words=n_rows), tokenizer)
    assert str(error.value) == (
        f"The tokenizer of small gives ids up to {n_rows} and its model has {n_rows} embeddings: 1 tokens, {last!r} "
        "first, lie outside. Save the tokenizer that belongs to the model beside it, or resize the model's embeddings."
    )


def test_the_embedding_is_judged_and_not_what_the_configuration_says():
    tokenizer = wordpiece()
    model = model_of("bert", n_words=len(tokenizer) - 4)
    model.config.vocab_size = len(tokenizer)
    with pytest.raises(CheckpointError, match=r"4 tokens"):
        check_vocabulary("small", model, tokenizer)
    model = model_of("bert")
    model.config.vocab_size = 3
    check_vocabulary("small", model, tokenizer)


def test_a_special_token_that_is_put_into_every_text_may_not_lie_outside():
    model, tokenizer = model_of("gpt2"), gpt2_tokenizer()
    tokenizer.add_special_tokens({"bos_token": "<|begin|>"})
    check_vocabulary("small", model, tokenizer)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A", special_tokens=[("<|begin|>", tokenizer.bos_token_id)]
    )
    with pytest.raises(CheckpointError, match=r"'<\|begin\|>' first"):
        check_vocabulary("small", model, tokenizer)


def test_a_special_token_for_what_is_unknown_may_not_lie_outside():
    tokenizer = wordpiece()
    tokenizer.add_special_tokens({"unk_token": "<unknown>"})
    with pytest.raises(CheckpointError, match=r"'<unknown>' first"):
        check_vocabulary("small", model_of("bert", n_words=len(tokenizer) - 1), tokenizer)


def test_the_smaller_embedding_of_an_encoder_decoder_counts():
    from transformers import T5Config, T5Model

    sizes = {"d_model": 12, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 3}
    model = T5Model(T5Config(vocab_size=400, decoder_start_token_id=0, **sizes))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level(), pad_token="<pad>", unk_token="<unk>")
    check_vocabulary("small", model, tokenizer)
    model.decoder.embed_tokens = torch.nn.Embedding(300, 12)
    with pytest.raises(CheckpointError, match=r"its model has 300 embeddings"):
        check_vocabulary("small", model, tokenizer)


# Names of special tokens


def cased_unigram(vocabulary=()):
    """As T5 and XLM-R have it: special tokens are pieces with the best of scores."""
    letters = string.ascii_letters + string.digits + string.punctuation
    specials = ("<pad>", "</s>", "<unk>", "<extra_id_0>")
    scored = [*((name, 0.0) for name in specials), ("▁", -3.0), *((c, -5.0) for c in letters), *vocabulary]
    made = Tokenizer(models.Unigram(scored, unk_id=2))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
        additional_special_tokens=["<extra_id_0>"],
    )  # fmt: skip


TYPED = Text(("a </s> <pad> <extra_id_0> b",))


def test_without_care_a_typed_name_would_be_the_token_itself():
    """What `keep_names_as_text` is for; should the library mend it, the function can go."""
    assert {0, 1, 3} <= set(tokenize(TYPED, cased_unigram(), 100).ids[:-1].tolist())


def test_a_typed_name_of_a_special_token_stays_text():
    tokenizer = cased_unigram()
    keep_names_as_text(tokenizer)
    text = tokenize(TYPED, tokenizer, 100)
    assert not {0, 1, 2, 3} & set(text.ids[:-1].tolist())
    assert "".join(text.tokens) == "▁a▁</s>▁<pad>▁<extra_id_0>▁b</s>"
    assert text.ids[-1] == 1
    assert text.segments.tolist()[-2:] == [0, SPECIAL]


def test_names_kept_as_text_keep_their_ids_roles_and_every_other_text():
    before, after = cased_unigram(), cased_unigram()
    keep_names_as_text(after)
    for name in ("</s>", "<pad>", "<unk>", "<extra_id_0>", "a"):
        assert after.convert_tokens_to_ids(name) == before.convert_tokens_to_ids(name)
        assert after.convert_ids_to_tokens(after.convert_tokens_to_ids(name)) == name
    assert after.all_special_ids == before.all_special_ids
    assert after.vocab_size == before.vocab_size == max(after.get_vocab().values()) + 1
    for segment in ("Don't feed a cat", "x 猫 y", "< / s >", "a"):
        assert after(segment)["input_ids"] == before(segment)["input_ids"]


def test_names_of_whole_words_are_kept_as_text_too():
    names = ("[PAD]", "[UNK]", "[CLS]", "a")
    made = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, **named)
    assert tokenize(Text(("a [CLS] a",)), tokenizer, 9).ids.tolist() == [3, 2, 3]
    keep_names_as_text(tokenizer)
    assert tokenize(Text(("a [CLS] [PAD] a",)), tokenizer, 9).ids.tolist() == [3, 1, 1, 3]


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "gpt2", "llama"])
def test_a_tokenizer_that_reads_no_name_is_left_as_it_is(family):
    tokenizer = TOKENIZERS[family]()
    before = tokenizer.backend_tokenizer.to_str()
    keep_names_as_text(tokenizer)
    assert tokenizer.backend_tokenizer.to_str() == before


# Length


@pytest.mark.parametrize(("stated", "most"), [(512, 512), (512.0, 512), (3, 3), (int(1e30), None), (math.inf, None)])
def test_the_length_that_a_tokenizer_states_is_read(stated, most):
    tokenizer = wordpiece()
    tokenizer.model_max_length = stated
    assert stated_length("small", tokenizer) == most


@pytest.mark.parametrize("stated", ["512", None, [512], math.nan, -math.inf, -5, 0, 2])
def test_a_length_that_leaves_no_place_for_a_text_is_refused(stated):
    tokenizer = wordpiece()
    tokenizer.model_max_length = stated
    with pytest.raises(
        CheckpointError, match=r"takes at most .*, which leaves no room .* besides 2 special tokens\. Corr"
    ):
        stated_length("small", tokenizer)
