"""Small random checkpoints and the tokenizers they are saved with; everything is made here, nothing is fetched."""

import json
import string
from functools import partial
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

N_LAYERS, N_HEADS, HIDDEN = 2, 3, 12
N_DECODER_LAYERS, N_DECODER_HEADS = 3, 4
"""Other numbers than the encoder's, so that one stack cannot pass for the other."""
N_POSITIONS = 40
WINDOW = 6
"""Of sliding attention: less than the tests' texts are long, more than the padding of the self-check."""
MOST_PARAMETERS = 60_000

WORDS = """
    the cat sat on mat a dog chased two black birds quickly who ran where do not she does eat red apples it is
    coffee house un ##believ ##able ##s ##ly ##ed
""".split()  # noqa: SIM905
CORPUS = (
    "The black cat quickly chased the two birds on the mat.",
    "She doesn't eat red apples; a dog ran where it sat.",
    "Unbelievable coffee houses: who sat on the red mat?",
)
BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
BERT_NAMES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT_SPECIALS))
BERT_MARKS = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
ROBERTA_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
ROBERTA_NAMES = {
    "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>",
    "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>",
}  # fmt: skip
ROBERTA_MARKS = ("<s> $A </s>", "<s> $A </s> </s> $B </s>")
END_MARKS = ("$A </s>", "$A </s> $B </s>")


def fast(made, marks, **named):
    """A tokenizer around `made`: the marks set around one text and around two, and its special tokens by role."""
    from transformers import PreTrainedTokenizerFast

    single, pair = marks
    tokens = {piece.split(":")[0] for piece in pair.split()} - {"$A", "$B"}
    made.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(token, made.token_to_id(token)) for token in sorted(tokens)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, **named)


def wordpiece(specials=BERT_SPECIALS, marks=BERT_MARKS, named=BERT_NAMES):
    characters = string.ascii_lowercase + string.digits
    entries = [*specials, *WORDS, *characters, *string.punctuation, *(f"##{c}" for c in characters)]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(entries))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token=named["unk_token"]))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    return fast(made, marks, **named)


def byte_level(specials=ROBERTA_SPECIALS):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + len(specials) + 40,
        special_tokens=list(specials),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    made.train_from_iterator(CORPUS * 3, trainer)
    return made


def byte_level_with(specials, marks, named):
    return fast(byte_level(specials), marks, **named)


def roberta_tokenizer():
    from transformers import PreTrainedTokenizerFast

    made = byte_level()
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, **ROBERTA_NAMES)


def gpt2_tokenizer():
    from transformers import PreTrainedTokenizerFast

    end = "<|endoftext|>"
    made = byte_level((end,))
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=end, eos_token=end, unk_token=end)


def llama_tokenizer():
    return byte_level_with(("<s>", "</s>"), ("<s> $A", "<s> $A $B:1"), {"bos_token": "<s>", "eos_token": "</s>"})


def unigram(specials=BERT_SPECIALS, marks=BERT_MARKS, named=BERT_NAMES):
    """SentencePiece as ALBERT has it: blanks are a character of their own."""
    characters = string.ascii_lowercase + string.digits + string.punctuation
    words = [word for word in WORDS if not word.startswith("##")]
    scored = [(name, 0.0) for name in specials]
    scored += [("▁", -3.0), *((f"▁{word}", -2.0) for word in words if len(word) > 1), *((c, -5.0) for c in characters)]
    made = Tokenizer(models.Unigram(scored, unk_id=specials.index(named["unk_token"])))
    made.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return fast(made, marks, **named)


def xlnet_tokenizer():
    """Marks at the end, padding at the beginning."""
    names = {
        "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<cls>", "sep_token": "<sep>",
        "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>", "padding_side": "left",
    }  # fmt: skip
    specials = ("<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>")
    return unigram(specials, ("$A <sep> <cls>:2", "$A <sep> $B:1 <sep>:1 <cls>:2"), names)


xlm_roberta_tokenizer = partial(unigram, ROBERTA_SPECIALS, ROBERTA_MARKS, ROBERTA_NAMES)
NO_MARKS = ("$A", "$A $B:1")
TOKENIZERS = {
    "bert": wordpiece,
    "distilbert": wordpiece,
    "electra": wordpiece,
    "albert": unigram,
    "roberta": roberta_tokenizer,
    "gpt2": gpt2_tokenizer,
    "llama": llama_tokenizer,
    "modernbert": partial(byte_level_with, BERT_SPECIALS, BERT_MARKS, BERT_NAMES),
    "xlm-roberta": xlm_roberta_tokenizer,
    "camembert": xlm_roberta_tokenizer,
    "gemma2": partial(
        byte_level_with,
        ("<pad>", "<eos>", "<bos>"),
        ("<bos> $A", "<bos> $A $B:1"),
        {"pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>", "padding_side": "left"},
    ),
    "opt": partial(byte_level_with, ROBERTA_SPECIALS, ("</s> $A", "</s> $A $B"), ROBERTA_NAMES | {"bos_token": "</s>"}),
    "t5": partial(
        unigram, ("<pad>", "</s>", "<unk>"), END_MARKS,
        {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
    ),
    "bart": roberta_tokenizer,
    "marian": partial(
        unigram, ("</s>", "<unk>", "<pad>"), END_MARKS,
        {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
    ),
    "mbart": partial(
        unigram, (*ROBERTA_SPECIALS, "en_XX"), ("$A </s> en_XX", "$A $B </s> en_XX"),
        ROBERTA_NAMES | {"additional_special_tokens": ["en_XX"]},
    ),
    "deberta-v2": unigram,
    "xlnet": xlnet_tokenizer,
    "mpnet": partial(
        wordpiece, ("<s>", "<pad>", "</s>", "[UNK]", "<mask>"), ROBERTA_MARKS, ROBERTA_NAMES | {"unk_token": "[UNK]"}
    ),
    "xlm": partial(unigram, ROBERTA_SPECIALS, ("</s> $A </s>", "</s> $A </s> $B </s>"), ROBERTA_NAMES),
    "bloom": partial(
        byte_level_with, ROBERTA_SPECIALS, NO_MARKS, ROBERTA_NAMES | {"padding_side": "left"}
    ),
    "longformer": roberta_tokenizer,
    "reformer": llama_tokenizer,
    "fnet": unigram,
}  # fmt: skip
TOKENIZERS["gemma3"], TOKENIZERS["t5-gated"] = TOKENIZERS["gemma2"], TOKENIZERS["t5"]
TOKENIZERS |= dict.fromkeys(("mistral", "phi3"), llama_tokenizer)
TOKENIZERS |= dict.fromkeys(("qwen3", "gpt_oss", "mixtral", "gpt_neox", "falcon", "mpt", "gptj"), gpt2_tokenizer)

ENCODERS = ("bert", "roberta", "distilbert", "electra", "albert")
CAUSAL = ("gpt2", "llama")
FAMILIES = (*ENCODERS, *CAUSAL)
"""Those whose scores are compared entry by entry in all of core's tests."""
ALL_ENCODERS = (*ENCODERS, "modernbert", "xlm-roberta", "camembert")
ALL_CAUSAL = (
    *CAUSAL, "qwen3", "mistral", "gemma2", "gemma3", "gpt_oss", "phi3", "opt", "gpt_neox",
)  # fmt: skip
ENCODER_DECODERS = ("t5", "t5-gated", "bart", "marian", "mbart")
FALLBACK = ("deberta-v2", "xlnet", "mpnet", "xlm", "bloom", "falcon", "mpt", "gptj")
"""They compute attention in their own way; their softmax is looked at instead."""
CAUSAL_FALLBACK = ("bloom", "falcon", "mpt", "gptj")
REFUSED = ("longformer", "reformer", "fnet")
"""No attention of every token to every other that could be looked at."""

USUAL = {
    "hidden_size": HIDDEN, "num_hidden_layers": N_LAYERS, "num_attention_heads": N_HEADS, "intermediate_size": 16,
    "max_position_embeddings": N_POSITIONS, "initializer_range": 0.4, "pad_token_id": 0,
}  # fmt: skip
GROUPED = USUAL | {
    "hidden_size": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6,
    "pad_token_id": None, "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
GEMMA = GROUPED | {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 2, "sliding_window": WINDOW}
AFTER_PADDING = USUAL | {"pad_token_id": 1, "type_vocab_size": 1}
OF_GPT2 = {"n_embd": HIDDEN, "n_layer": N_LAYERS, "n_head": N_HEADS, "n_positions": N_POSITIONS}
OF_T5 = {
    "d_model": HIDDEN, "d_kv": 6, "d_ff": 16, "num_layers": N_LAYERS, "num_decoder_layers": N_DECODER_LAYERS,
    "num_heads": N_HEADS, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
    "initializer_factor": 1.0, "decoder_start_token_id": 0,
}  # fmt: skip
OF_BART = {
    "d_model": HIDDEN, "encoder_layers": N_LAYERS, "decoder_layers": N_DECODER_LAYERS,
    "encoder_attention_heads": N_HEADS, "decoder_attention_heads": N_DECODER_HEADS,
    "encoder_ffn_dim": 16, "decoder_ffn_dim": 20, "max_position_embeddings": N_POSITIONS, "init_std": 0.15,
    "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
RELATIVE = {
    "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8, "share_att_key": True,
    "norm_rel_ebd": "layer_norm", "position_biased_input": False, "type_vocab_size": 0,
}  # fmt: skip
ONE_MARK = {"initializer_range": 0.4, "bos_token_id": 0, "eos_token_id": 0}
CONFIGS = {
    "bert": ("BertConfig", USUAL),
    "roberta": ("RobertaConfig", AFTER_PADDING),
    "distilbert": (
        "DistilBertConfig",
        {
            "dim": HIDDEN, "n_layers": N_LAYERS, "n_heads": N_HEADS, "hidden_dim": 16,
            "max_position_embeddings": N_POSITIONS, "initializer_range": 0.4,
        },
    ),
    "electra": ("ElectraConfig", USUAL | {"embedding_size": 8}),
    "albert": ("AlbertConfig", USUAL | {"embedding_size": 8}),
    "modernbert": (
        "ModernBertConfig",
        USUAL
        | {"local_attention": WINDOW, "global_attn_every_n_layers": 2, "cls_token_id": 2, "sep_token_id": 3}
        | {"bos_token_id": 2, "eos_token_id": 3},
    ),
    "xlm-roberta": ("XLMRobertaConfig", AFTER_PADDING),
    "camembert": ("CamembertConfig", AFTER_PADDING),
    "gpt2": ("GPT2Config", OF_GPT2 | ONE_MARK),
    "llama": ("LlamaConfig", GROUPED),
    "qwen3": ("Qwen3Config", GROUPED | {"bos_token_id": None, "eos_token_id": 0}),
    "mistral": ("MistralConfig", GROUPED | {"sliding_window": WINDOW}),
    "gemma2": ("Gemma2Config", GEMMA | {"attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 6}),
    "gemma3": (
        "Gemma3TextConfig",
        GEMMA | {"layer_types": ["sliding_attention", "full_attention"], "query_pre_attn_scalar": 6},
    ),
    "gpt_oss": (
        "GptOssConfig", GROUPED | {"sliding_window": WINDOW, "num_local_experts": 2, "num_experts_per_tok": 2},
    ),
    "mixtral": ("MixtralConfig", GROUPED | {"num_local_experts": 2, "num_experts_per_tok": 1}),
    "phi3": ("Phi3Config", GROUPED | {"sliding_window": WINDOW}),
    "opt": (
        "OPTConfig", USUAL | {"ffn_dim": 16, "word_embed_proj_dim": HIDDEN, "init_std": 0.4, "pad_token_id": 1},
    ),
    "gpt_neox": ("GPTNeoXConfig", USUAL),
    "t5": ("T5Config", OF_T5),
    "t5-gated": ("T5Config", OF_T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "bart": ("BartConfig", OF_BART | {"forced_eos_token_id": 2}),
    "marian": (
        "MarianConfig",
        OF_BART | {"bos_token_id": None, "pad_token_id": 2, "eos_token_id": 0}
        | {"forced_eos_token_id": 0},
    ),
    "mbart": ("MBartConfig", OF_BART),
    "deberta-v2": ("DebertaV2Config", USUAL | RELATIVE),
    "xlnet": (
        "XLNetConfig",
        {
            "d_model": HIDDEN, "n_layer": N_LAYERS, "n_head": N_HEADS, "d_inner": 16, "initializer_range": 0.7,
            "pad_token_id": 5, "bos_token_id": 1, "eos_token_id": 2,
        },
    ),
    "mpnet": ("MPNetConfig", USUAL | {"pad_token_id": 1}),
    "xlm": (
        "XLMConfig",
        {
            "emb_dim": HIDDEN, "n_layers": N_LAYERS, "n_heads": N_HEADS, "max_position_embeddings": N_POSITIONS,
            "embed_init_std": 0.4, "initializer_range": 0.4, "use_lang_emb": False, "n_langs": 1, "pad_index": 1,
            "unk_index": 3, "mask_index": 4,
        },
    ),
    "bloom": (
        "BloomConfig",
        {"hidden_size": HIDDEN, "n_layer": N_LAYERS, "n_head": N_HEADS, "initializer_range": 0.4, "pad_token_id": 1},
    ),
    "falcon": (
        "FalconConfig",
        {"hidden_size": HIDDEN, "num_hidden_layers": N_LAYERS, "num_attention_heads": N_HEADS} | ONE_MARK,
    ),
    "mpt": (
        "MptConfig",
        {
            "d_model": HIDDEN, "n_layers": N_LAYERS, "n_heads": N_HEADS, "expansion_ratio": 2,
            "max_seq_len": N_POSITIONS, "initializer_range": 0.4,
        },
    ),
    "gptj": ("GPTJConfig", OF_GPT2 | ONE_MARK | {"rotary_dim": 2}),
    "longformer": ("LongformerConfig", USUAL | {"pad_token_id": 1, "attention_window": [WINDOW, WINDOW]}),
    "reformer": (
        "ReformerConfig",
        {
            "hidden_size": HIDDEN, "num_attention_heads": N_HEADS, "attention_head_size": 4, "feed_forward_size": 16,
            "attn_layers": ["local", "lsh"], "axial_pos_embds": False, "max_position_embeddings": N_POSITIONS,
            "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8, "num_hashes": 1, "num_buckets": 2,
            "is_decoder": False, "pad_token_id": 0, "eos_token_id": 1,
        },
    ),
    "fnet": (
        "FNetConfig",
        {"hidden_size": HIDDEN, "num_hidden_layers": N_LAYERS, "intermediate_size": 16, "pad_token_id": 0}
        | {"max_position_embeddings": N_POSITIONS, "initializer_range": 0.4},
    ),
}  # fmt: skip
SHARPENED = {"bart": 2.5, "mbart": 2.5, "marian": 4.0}
"""Factor on the weights of queries and keys where larger weights everywhere would make all tokens alike."""


def config(family, n_words, **changed):
    """Sharp enough that attention is far from uniform."""
    import transformers

    name, sizes = CONFIGS[family]
    return getattr(transformers, name)(**{"vocab_size": n_words} | sizes | changed)


def save(family, folder: Path, *, dtype="float32", seed=1, **changed) -> Path:
    """A small random checkpoint, saved as safetensors with its tokenizer."""
    import torch
    from transformers import AutoModel

    tokenizer = TOKENIZERS[family]()
    torch.manual_seed(seed)
    model = AutoModel.from_config(config(family, len(tokenizer), **changed))
    assert model.num_parameters() < MOST_PARAMETERS
    for name, weights in model.named_parameters():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            weights.data *= SHARPENED.get(family, 1.0)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_with_head(family, folder, head="", *, seed=3, dtype="float32", **changed):
    """A small random checkpoint with a head, as in AutoModelFor..., or with none, and its tokenizer."""
    import torch
    import transformers

    tokenizer = TOKENIZERS[family]()
    torch.manual_seed(seed)
    kind = getattr(transformers, f"AutoModelFor{head}" if head else "AutoModel")
    model = kind.from_config(config(family, len(tokenizer), **changed))
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def edit_json(path: Path, **changed) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
