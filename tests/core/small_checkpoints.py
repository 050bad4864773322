"""Small random checkpoints and the tokenizers they are saved with; everything is made here, nothing is fetched."""

import json
import string
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

N_LAYERS, N_HEADS, HIDDEN = 2, 3, 12
N_POSITIONS = 40
MOST_PARAMETERS = 30_000

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
ROBERTA_SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def wordpiece():
    from transformers import PreTrainedTokenizerFast

    characters = string.ascii_lowercase + string.digits
    entries = [*BERT_SPECIALS, *WORDS, *characters, *string.punctuation, *(f"##{c}" for c in characters)]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(entries))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.decoder = decoders.WordPiece()
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT_SPECIALS))
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


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


def roberta_tokenizer():
    from transformers import PreTrainedTokenizerFast

    made = byte_level()
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    cls, pad, sep, unk, mask = ROBERTA_SPECIALS
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=cls, eos_token=sep, cls_token=cls, sep_token=sep,
        pad_token=pad, unk_token=unk, mask_token=mask,
    )  # fmt: skip


def gpt2_tokenizer():
    from transformers import PreTrainedTokenizerFast

    end = "<|endoftext|>"
    made = byte_level((end,))
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token=end, eos_token=end, unk_token=end)


def llama_tokenizer():
    from transformers import PreTrainedTokenizerFast

    made = byte_level(("<s>", "</s>"))
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B:1", special_tokens=[("<s>", 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>")


def unigram():
    """SentencePiece as ALBERT has it: blanks are a character of their own."""
    from transformers import PreTrainedTokenizerFast

    characters = string.ascii_lowercase + string.digits + string.punctuation
    words = [word for word in WORDS if not word.startswith("##")]
    scored = [(name, 0.0) for name in BERT_SPECIALS]
    scored += [("▁", -3.0), *((f"▁{word}", -2.0) for word in words if len(word) > 1), *((c, -5.0) for c in characters)]
    made = Tokenizer(models.Unigram(scored, unk_id=1))
    made.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.decoder = decoders.Metaspace()
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT_SPECIALS))
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


TOKENIZERS = {
    "bert": wordpiece,
    "distilbert": wordpiece,
    "electra": wordpiece,
    "albert": unigram,
    "roberta": roberta_tokenizer,
    "gpt2": gpt2_tokenizer,
    "llama": llama_tokenizer,
}
ENCODERS = ("bert", "roberta", "distilbert", "electra", "albert")
CAUSAL = ("gpt2", "llama")
FAMILIES = (*ENCODERS, *CAUSAL)


def config(family, n_words, **changed):
    """Sharp enough that attention is far from uniform."""
    import transformers as t

    usual = {
        "vocab_size": n_words, "hidden_size": HIDDEN, "num_hidden_layers": N_LAYERS, "num_attention_heads": N_HEADS,
        "intermediate_size": 16, "max_position_embeddings": N_POSITIONS, "initializer_range": 0.4, "pad_token_id": 0,
    }  # fmt: skip
    if family == "bert":
        return t.BertConfig(**usual | changed)
    if family == "roberta":
        return t.RobertaConfig(**usual | {"pad_token_id": 1, "type_vocab_size": 1} | changed)
    if family == "electra":
        return t.ElectraConfig(**usual | {"embedding_size": 8} | changed)
    if family == "albert":
        return t.AlbertConfig(**usual | {"embedding_size": 8} | changed)
    if family == "distilbert":
        sizes = {"dim": HIDDEN, "n_layers": N_LAYERS, "n_heads": N_HEADS, "hidden_dim": 16}
        common = {"vocab_size": n_words, "max_position_embeddings": N_POSITIONS, "initializer_range": 0.4}
        return t.DistilBertConfig(**common | sizes | changed)
    if family == "gpt2":
        sizes = {"n_embd": HIDDEN, "n_layer": N_LAYERS, "n_head": N_HEADS, "n_positions": N_POSITIONS}
        return t.GPT2Config(
            vocab_size=n_words, initializer_range=0.4, bos_token_id=0, eos_token_id=0, **sizes | changed
        )
    grouped = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 16, "pad_token_id": None}
    return t.LlamaConfig(**usual | grouped | {"bos_token_id": 0, "eos_token_id": 1} | changed)


def save(family, folder: Path, *, dtype="float32", seed=1, **changed) -> Path:
    """A small random checkpoint, saved as safetensors with its tokenizer."""
    import torch
    from transformers import AutoModel

    tokenizer = TOKENIZERS[family]()
    torch.manual_seed(seed)
    model = AutoModel.from_config(config(family, len(tokenizer), **changed))
    assert model.num_parameters() < MOST_PARAMETERS
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def edit_json(path: Path, **changed) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
