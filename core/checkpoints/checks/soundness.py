"""Checks of a loaded model and tokenizer: finite weights, all layers, and an embedding for every token."""

import json
import re
from collections.abc import Collection, Iterator
from math import isfinite
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from attention_sieve.core.errors import CheckpointError

LAYER_NUMBER: Final = re.compile(r"(?<=\.)\d{1,9}(?=\.)")


def own_memory(model: PreTrainedModel) -> None:
    """Copy memory-mapped weights into memory, so that overwriting the file later does not change the model.

    Truncating a mapped file would even crash the process. Shared weights stay shared.
    """
    with torch.no_grad():
        for values in (*model.parameters(), *model.buffers()):
            if values.device.type == "cpu":
                values.data = values.data.clone()


def check_weights(name: str, model: PreTrainedModel) -> None:
    """Raise if any weight is not finite.

    Raises: CheckpointError with the first such weight and the number of affected values.
    """
    weights = {
        key: values
        for key, values in model.named_parameters()
        if values.is_floating_point() and values.numel() and not values.is_meta  # as where accelerate offloads them
    }
    # Minimum and maximum propagate NaN and infinity, without a mask as large as the weights.
    ends = [torch.stack(torch.aminmax(values.detach())) for values in weights.values()]
    # Moved, as a model may be spread over several devices.
    finite = torch.stack([torch.isfinite(pair).all().to(ends[0].device) for pair in ends]).tolist() if ends else []
    broken = [key for key, is_finite in zip(weights, finite) if not is_finite]
    if not broken:
        return
    n_broken = sum(int((~torch.isfinite(weights[key])).sum()) for key in broken)
    only_infinite = not any(bool(weights[key].isnan().any()) for key in broken)
    problem = f"{n_broken:,} numbers in {len(broken):,} weights of {name} are not finite, {broken[0]} first"
    if only_infinite and weights[broken[0]].dtype == torch.float16:
        raise CheckpointError(f"{problem}: they are too large for float16. Choose bfloat16 or float32.")
    raise CheckpointError(f"{problem}. Its attention would be NaN; save the checkpoint again from a working copy.")


def check_layers(name: str, model: PreTrainedModel, unexpected: Collection[str]) -> None:
    """Raise if the files contain layers that the configuration omits; unused heads and other extras are allowed.
    Unexpected are the weights in the files that the model does not use.

    Raises: CheckpointError with the first such weight.
    """
    own_names = set(model.state_dict())
    layerless = {_layerless(key) for key in own_names}
    prefix = f"{model.base_model_prefix}."
    beyond = [
        key
        for key in unexpected
        if _is_known(_layerless(key), layerless, prefix) and not _is_known(key, own_names, prefix)
    ]
    if beyond:
        first = min(beyond, key=lambda key: [int(number) for number in LAYER_NUMBER.findall(key)])
        raise CheckpointError(
            f"The files of {name} hold {len(beyond):,} weights of layers that its configuration does not name, "
            f"{first} first. Correct the number of layers in config.json, or save the checkpoint again."
        )


def check_vocabulary(name: str, model: PreTrainedModel, tokenizer: Any) -> int:
    """Raise if the tokenizer can produce ids for which the model has no embedding.

    Special tokens that never occur in a text, such as an added padding token, may be out of range: padding is masked,
    and names of special tokens in a text are read as plain text.

    Returns: number of embeddings of the model.
    Raises: CheckpointError with the first such token and both sizes, or for a model without token embeddings.
    """
    embeddings = list(_embeddings(model))
    if not all(isinstance(embedding, torch.nn.Embedding) for embedding in embeddings):
        raise CheckpointError(
            f"{name} ({type(model).__name__}) has no token embeddings, so it cannot read texts. Choose a checkpoint of "
            "a text model, such as BERT."
        )
    n_rows = min(embedding.num_embeddings for embedding in embeddings)
    encoding = tokenizer("a", "a", return_token_type_ids=True)
    _check_ids(name, "puts in the id", encoding["input_ids"], n_rows, "embeddings")
    if (n_types := getattr(model.config, "type_vocab_size", 0)) > 1:
        _check_ids(name, "marks a token as of type", encoding["token_type_ids"], n_types, "types of tokens")
    outside = {token: number for token, number in _producible(tokenizer).items() if number >= n_rows}
    if outside:
        first = min(outside, key=lambda token: outside[token])
        raise CheckpointError(
            f"The tokenizer of {name} gives ids up to {max(outside.values()):,} and its model has {n_rows:,} "
            f"embeddings: {len(outside):,} tokens, {first!r} first, lie outside. Save the tokenizer that belongs to "
            "the model beside it, or resize the model's embeddings."
        )
    return n_rows


def _check_ids(name: str, verb: str, ids: Collection[int], n_rows: int, noun: str) -> None:
    """Raise if the tokenizer's post-processor gives a number outside of a table, which would end the pass."""
    outside = [number for number in ids if not 0 <= number < n_rows]
    if outside:
        raise CheckpointError(
            f"The tokenizer of {name} {verb} {outside[0]:,}, and its model has {n_rows:,} {noun}. Save the tokenizer "
            "that belongs to the model beside it."
        )


def keep_names_as_text(tokenizer: Any) -> None:
    """Prevent the tokenizer from reading the name of a special token in a text as that token.

    SentencePiece itself never does, but after conversion to a Unigram model of the library tokenizers such names are
    ordinary pieces, so that "</s>" in a text would end it. They are renamed to strings that no text can contain; ids
    and `vocab_size` are unchanged, but `len(tokenizer)` counts old and new names.
    """
    names = {
        token for token in tokenizer.all_special_tokens if token != tokenizer.unk_token and _reads(tokenizer, token)
    }
    if names:
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        pieces = state["model"]["vocab"]
        state["model"]["vocab"] = (
            {_unreadable(token, names): number for token, number in pieces.items()}
            if isinstance(pieces, dict)
            else [(_unreadable(token, names), score) for token, score in pieces]
        )
        tokenizer.backend_tokenizer.model = Tokenizer.from_str(json.dumps(state)).model


def stated_length(name: str, tokenizer: Any) -> int | None:
    """Maximum length specified by a tokenizer, special tokens included; None if it specifies none.

    Raises: CheckpointError if the value is invalid, or leaves no room for a text.
    """
    stated = tokenizer.model_max_length
    if isinstance(stated, int | float) and stated > 1_000_000_000:
        return None  # transformers' value for "no limit".
    n_special = tokenizer.num_special_tokens_to_add(pair=False)
    if not isinstance(stated, int | float) or not isfinite(stated) or stated <= n_special:
        raise CheckpointError(
            f"The tokenizer of {name} takes at most {stated!r} tokens, which leaves no room for a text besides "
            f"{n_special} special tokens. Correct model_max_length in its tokenizer_config.json."
        )
    return int(stated)


def _reads(tokenizer: Any, name: str) -> bool:
    ids = tokenizer(name, split_special_tokens=True, add_special_tokens=False)["input_ids"]
    return tokenizer.convert_tokens_to_ids(name) in ids


def _unreadable(token: str, names: Collection[str]) -> str:
    return f"\0{token}" if token in names else token


def _embeddings(model: PreTrainedModel) -> Iterator[Any]:
    """Input embeddings; encoder-decoders may have separate ones for each stack."""
    try:
        yield model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        yield None  # Image and audio models have none.
    if getattr(model.config, "is_encoder_decoder", False):
        yield model.get_decoder().get_input_embeddings()


def _producible(tokenizer: Any) -> dict[str, int]:
    """Tokens that can occur in a tokenized text: vocabulary, added words, and automatically added special tokens."""
    added = set(tokenizer("", "")["input_ids"]) | {tokenizer.unk_token_id}
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    special |= set(tokenizer.all_special_ids)
    return {
        token: number for token, number in tokenizer.get_vocab().items() if number in added or number not in special
    }


def _is_known(key: str, known: Collection[str], prefix: str) -> bool:
    return key in known or key.removeprefix(prefix) in known or prefix + key in known


def _layerless(key: str) -> str:
    return LAYER_NUMBER.sub("*", key)
