"""Where a planted head is to look in a text, from the tokens alone, and how much of its attention is there."""

from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.planted.measured import attention
from benchmarks.planted.rotary import NEAR
from benchmarks.planted.truth import HeadTruth, Host, Task, Truth
from benchmarks.planted.vocabulary import AUXILIARIES, NAMES, SPECIAL, VERBS, token_id

Keys = Bool[Tensor, "text query key"]


def measured_attention(model: PreTrainedModel, truth: Truth) -> tuple[float | None, ...]:
    """Mean attention that queries give to the keys that each head is stated to look at.

    Args:
        model: With eager attention.
        truth: What is stated. A backup is to look where its main head looks, and is measured while that is off.

    Returns: For each head from 0 to 1, over the queries that have such keys. Of heads that spread their attention: the
        part that it shares with an even one. None for a head without a function, where no query has such keys, and for
        a head of a compiled program, whose selector is known to its compiler alone.
    """
    mains = {pair.backup: pair.main for pair in truth.backups}
    heads = {head.place: head for head in truth.heads}
    whole, off = attention(model, truth.task), attention(model, truth.task, off=list(mains.values()))
    return tuple(
        _share(heads[mains.get(place, place)], truth, (off if place in mains else whole)[place[0]][:, place[1]])
        for place in heads
    )


def _share(head: HeadTruth, truth: Truth, given: Float[Tensor, "text query key"]) -> float | None:
    """Of the attention that is given, the part that a head that looks like this one would give to its keys."""
    if head.looks_at not in KEYS or head.description:
        return None
    tokens = torch.tensor(truth.task.tokens)
    n_tokens = tokens.shape[1]
    visible = torch.ones(n_tokens, n_tokens, dtype=torch.bool)
    visible = visible if truth.host == "bert" else visible.tril()
    keys = KEYS[head.looks_at](head, truth.host, truth.task, tokens) & visible
    queries = keys.any(-1)
    if not queries.any():
        return None
    if head.looks_at in ("uniform", "own segment"):
        even = keys / keys.sum(-1, keepdim=True).clamp(min=1)
        return torch.minimum(given, even).sum(-1)[queries].mean().item()
    return (given * keys).sum(-1)[queries].mean().item()


def _at_distance(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    places = torch.arange(tokens.shape[1])
    return (places[:, None] - places == head.offset).expand(len(tokens), -1, -1)


def _copies(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    is_word = tokens >= len(SPECIAL[host])
    is_same = tokens[:, :, None] == tokens[:, None]
    return is_same & is_word[:, :, None] & ~torch.eye(tokens.shape[1], dtype=torch.bool)


def _duplicates(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    copies = _copies(head, host, task, tokens)
    return copies.tril(-NEAR) if host == "llama" else copies


def _followers(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    earlier = _copies(head, host, task, tokens).tril(-1)
    return torch.nn.functional.pad(earlier, (1, 0))[..., :-1]


def _first(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    return (torch.arange(tokens.shape[1]) == 0).expand(len(tokens), tokens.shape[1], -1)


def _all(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    return torch.ones(len(tokens), tokens.shape[1], tokens.shape[1], dtype=torch.bool)


def _segment(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    segments = torch.tensor(task.segments)
    return segments[:, :, None] == segments[:, None]


def _ids(host: Host, words: tuple[str, ...]) -> Tensor:
    return torch.tensor([token_id(host, word) for word in words])


def _stops(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    stops = _ids(host, (".", "[SEP]") if host == "bert" else (".",))
    return torch.isin(tokens, stops)[:, None].expand(-1, tokens.shape[1], -1)


def _verbs(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    """Of the class of the auxiliary that is the query, or, where a mask is, stands before it."""
    classes = torch.full((int(tokens.max()) + 1,), -1)
    verb_class, auxiliary_class = classes.clone(), classes.clone()
    for found, words in ((verb_class, VERBS), (auxiliary_class, AUXILIARIES)):
        for index, word in enumerate(words):
            if token_id(host, word) < len(found):
                found[token_id(host, word)] = index * len(AUXILIARIES) // len(words)
    asked = auxiliary_class[tokens]
    if host == "bert":
        asked = torch.where(tokens == token_id(host, "[MASK]"), asked.roll(1, 1), asked)
    return (asked[:, :, None] == verb_class[tokens][:, None]) & (asked >= 0)[:, :, None]


def _names(head: HeadTruth, host: Host, task: Task, tokens: Tensor) -> Keys:
    asks = tokens == token_id(host, "[MASK]" if host == "bert" else "?")
    if host == "bert":
        asks |= tokens == token_id(host, "?")
    return asks[:, :, None] & torch.isin(tokens, _ids(host, NAMES))[:, None]


KEYS: Final[dict[str, Callable[[HeadTruth, Host, Task, Tensor], Keys]]] = {
    "previous": _at_distance,
    "next": _at_distance,
    "ruler": _at_distance,
    "duplicate": _duplicates,
    "induction": _followers,
    "half induction": _followers,
    "sink": _first,
    "uniform": _all,
    "own segment": _segment,
    "delimiter": _stops,
    "syntactic": _verbs,
    "retrieval": _names,
}
