"""The words of the planted models' texts, their classes, and tokenizers as plain files."""

from typing import Final

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from benchmarks.planted.truth import Host

CLASSES: Final = 8
"""Classes of verbs; each has an auxiliary of its own."""
AGAIN, STOP, ASK = "again", ".", "?"
VERBS: Final = tuple(f"verb{number}{letter}" for number in range(CLASSES) for letter in "abcdefgh")
AUXILIARIES: Final = tuple(f"aux{number}" for number in range(CLASSES))
NAMES: Final = tuple(f"name{number}" for number in range(16))
NOUNS: Final = tuple(f"noun{number}" for number in range(37))
_SORTED: Final = (*VERBS, *AUXILIARIES, *NAMES, *NOUNS, AGAIN, STOP, ASK)
WORDS: Final = tuple(_SORTED[index] for index in np.random.default_rng(0).permutation(len(_SORTED)))
"""All words, mixed, since probe texts draw theirs from the middle of a vocabulary."""
SPECIAL: Final[dict[Host, tuple[str, ...]]] = {
    "gpt2": ("<s>",),
    "llama": ("<s>",),
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
}


def vocabulary(host: Host) -> tuple[str, ...]:
    """All tokens of a host, by id: its special ones, then the words."""
    return (*SPECIAL[host], *WORDS)


def token_id(host: Host, token: str) -> int:
    """The id of a token in the vocabulary of a host."""
    return vocabulary(host).index(token)


def first_token(host: Host) -> str:
    """The token that begins each text."""
    return "[CLS]" if host == "bert" else "<s>"


def tokenizer(host: Host) -> PreTrainedTokenizerFast:
    """A tokenizer that splits at spaces, and adds the special tokens of the host."""
    ids = {token: index for index, token in enumerate(vocabulary(host))}
    unknown = "[UNK]" if host == "bert" else "<s>"
    words = Tokenizer(models.WordLevel(ids, unk_token=unknown))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    if host != "bert":
        words.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", ids["<s>"])])
        return PreTrainedTokenizerFast(
            tokenizer_object=words, bos_token="<s>", unk_token="<s>", eos_token="<s>", model_max_length=128
        )
    words.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words, model_max_length=128, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip
