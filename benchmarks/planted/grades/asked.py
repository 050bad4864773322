"""Which statements about heads are asked of the program, and when each is true.

A head has a role if it was designed to look at what the role says. That a head rests on the first token where it finds
nothing makes it no sink by design, and yet it is one in a text in which it finds nothing. So the attention by plain
transformers on the same kind of texts has to agree with the design, or the statement is not graded. Where copies stand
at a fixed period the design alone decides: a ruler of that period looks as an induction head does, and is none.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from transformers import PreTrainedTokenizerBase

from attention_sieve.core.roles.rules import read_role
from benchmarks.planted.grades.texts import RELATION, TASK, Sample, tree
from benchmarks.planted.truth import Head, HeadTruth, Truth
from benchmarks.planted.vocabulary import STOP

PROBE_TEXTS: Final = "probe texts"
LEAST_SHARE: Final = 0.5
"""Attention above chance from which a head does what a claim says."""
LEAST_TIMES: Final = 3.0
"""Times chance from which a head has a role by its score."""
LOCAL: Final = 2
"""Tokens on each side that are near."""
WRITTEN: Final = 'role = 1\nname = "{}"\nletter = "W"\ncolour = "#336699"\n[from]\n[to]\n{}\n'
Keys = Bool[np.ndarray, "text query key"]


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of texts of one length."""

    ids: Int[np.ndarray, "text token"]
    is_special: Bool[np.ndarray, "text token"]
    words: tuple[tuple[str, ...], ...]
    """Each token as the vocabulary has it."""
    segments: Int[np.ndarray, "text token"]
    is_causal: bool


@dataclass(frozen=True)
class Asked:
    """A statement that is asked about every head of a model."""

    states: str
    role: str
    """As the program names it."""
    sample: str
    """Kind of texts; PROBE_TEXTS for those that the program makes."""
    is_designed: Callable[[HeadTruth], bool]
    keys: Callable[[Tokens], Keys]
    """Where a head that has the role looks."""
    is_of_all_queries: bool = False
    """Whether queries count that have no such key."""
    decides_alone: bool = False
    """Whether the design alone decides."""


@dataclass(frozen=True, eq=False)
class Measured:
    """Attention of all heads to where a role looks, by plain transformers."""

    share: Float[np.ndarray, "layer head"]
    """Above chance; 1 is all."""
    times: Float[np.ndarray, "layer head"]
    """Times chance."""


def tokens_of(sample: Sample, tokenizer: PreTrainedTokenizerBase, is_causal: bool) -> Tokens:
    """The tokens of texts."""
    ids = sample.inputs["input_ids"].numpy()
    segments = sample.inputs["token_type_ids"].numpy() if "token_type_ids" in sample.inputs else np.zeros_like(ids)
    words = tuple(tuple(tokenizer.convert_ids_to_tokens(row)) for row in ids.tolist())
    return Tokens(ids, np.isin(ids, tokenizer.all_special_ids), words, segments, is_causal)


def measured(attention: Float[np.ndarray, "layer text head query key"], tokens: Tokens, asked: Asked) -> Measured:
    """How much of the attention of each head is where a role looks."""
    visible = np.ones((tokens.ids.shape[1],) * 2, bool)
    visible = np.tril(visible) if tokens.is_causal else visible
    keys = asked.keys(tokens) & visible
    chance = keys.sum(-1) / visible.sum(-1)
    counts = chance < 1 if asked.is_of_all_queries else (chance < 1) & (chance > 0)
    found = (attention * keys[None, :, None]).sum(-1)
    above = (found - chance[None, :, None]) / np.where(counts, 1 - chance, 1)[None, :, None]
    weights = counts / max(1, counts.sum())
    share, mean, by_chance = (
        np.einsum("ltoq,tq->lo", values, weights)
        for values in (above, found, np.broadcast_to(chance[None, :, None], found.shape))
    )
    return Measured(share, mean / np.maximum(by_chance, 1e-9))


def truth_of(asked: Asked, head: HeadTruth, truth: Truth, share: bool, off: tuple[Head, ...] = ()) -> bool | None:
    """Whether a statement about a head is true; None where design and attention do not agree.

    Args:
        asked: The statement.
        head: The head.
        truth: Of its model; a backup does what its main head does, and only where that one is off.
        share: Whether its attention is there, by plain transformers.
        off: Heads that are off.
    """
    mains = {pair.backup: pair.main for pair in truth.backups}
    acts_as = main_of(head, truth) if mains.get(head.place) in off else head
    designed = asked.is_designed(acts_as) and not waits(acts_as, truth)
    if asked.decides_alone:
        return designed
    return designed if designed == share else None


def waits(head: HeadTruth, truth: Truth) -> bool:
    """Whether a head does nothing but rest until its main head is off."""
    return head.looks_at in ("backup", "backup induction") or head.place in {pair.backup for pair in truth.backups}


def main_of(backup: HeadTruth, truth: Truth) -> HeadTruth:
    """The head whose work a backup does where that one is off."""
    main = next(pair.main for pair in truth.backups if pair.backup == backup.place)
    return next(head for head in truth.heads if head.place == main)


def asked_of(truth: Truth, has_words: bool) -> tuple[Asked, ...]:
    """The statements that are asked about the heads of a model: of its host's roles, and of its heads' distances.

    Args:
        truth: Of the model.
        has_words: Whether it reads the words of the texts that are made; of others the texts of the task are taken.
    """
    rulers = {head.offset for head in truth.heads if head.looks_at == "ruler"}
    distances = (_distance(offset) for offset in sorted(rulers | ({-1} if truth.host == "bert" else set())))
    if not has_words:
        return tuple(replace(asked, sample=TASK) for asked in (*EVERYWHERE, *distances))
    return (*EVERYWHERE, *(ENCODER if truth.host == "bert" else DECODER), *distances)


def _distance(offset: int) -> Asked:
    name = f"{abs(offset)} {'back' if offset > 0 else 'ahead'}"
    role = read_role(WRITTEN.format(name, f"offset = {-offset}")).id
    return Asked(
        name,
        role,
        "different words",
        lambda head: head.offset == offset and head.looks_at in ("ruler", "previous", "next"),
        lambda tokens: band(tokens, offset, offset),
    )


def band(tokens: Tokens, first: int, last: int) -> Keys:
    """Keys that stand so many tokens back."""
    places = np.arange(tokens.ids.shape[1])
    back = places[:, None] - places
    return np.broadcast_to((first <= back) & (back <= last), (len(tokens.ids), *back.shape))


def earlier_copies(tokens: Tokens) -> Keys:
    """Equal tokens before the query, special ones left out."""
    same = (tokens.ids[:, :, None] == tokens.ids[:, None]) & ~tokens.is_special[:, :, None]
    return np.tril(same, -1)


def after_copies(tokens: Tokens) -> Keys:
    """Tokens after earlier copies of the query, itself left out."""
    after = np.zeros_like(same := earlier_copies(tokens))
    after[..., 1:] = same[..., :-1]
    return np.tril(after, -1) & ~tokens.is_special[:, None]


def _columns(is_key: Bool[np.ndarray, "text key"]) -> Keys:
    return np.broadcast_to(is_key[:, None], (*is_key.shape, is_key.shape[1]))


def first(tokens: Tokens) -> Keys:
    """The first token."""
    return _columns(np.broadcast_to(np.arange(tokens.ids.shape[1]) == 0, tokens.ids.shape))


def among(tokens: Tokens, *words: str) -> Keys:
    """Tokens that are one of some words."""
    return _columns(np.isin(tokens.words, words))


def _own_segment(tokens: Tokens) -> Keys:
    """The words of the query's segment; special tokens are in none."""
    same = tokens.segments[:, :, None] == tokens.segments[:, None]
    return same & ~tokens.is_special[:, None] & ~tokens.is_special[:, :, None]


def related(tokens: Tokens) -> Keys:
    """The verb of each auxiliary, after the token that begins a text."""
    keys = np.zeros((*tokens.ids.shape, tokens.ids.shape[1]), bool)
    for row, words in enumerate(tokens.words):
        for place, (head, relation) in enumerate(tree(words[1:])):
            keys[row, place + 1, head] = relation == RELATION
    return keys


def _needle(tokens: Tokens) -> Keys:
    """From the token before the last name, the name before."""
    is_name = np.char.startswith(np.array(tokens.words), "name")
    keys = np.zeros((*tokens.ids.shape, tokens.ids.shape[1]), bool)
    for row, names in enumerate(is_name):
        first, second = np.flatnonzero(names).tolist()
        keys[row, second - 1, first] = True
    return keys


def is_any_of(*names: str) -> Callable[[HeadTruth], bool]:
    """Whether a head is designed to look at one of these."""
    return lambda head: head.looks_at in names


def _is_near(head: HeadTruth) -> bool:
    return head.looks_at in ("previous", "next", "ruler") and abs(head.offset) <= LOCAL


INDUCTION: Final = is_any_of("induction", "half induction")
EVERYWHERE: Final = (
    Asked("previous", "previous", PROBE_TEXTS, is_any_of("previous"), lambda tokens: band(tokens, 1, 1)),
    Asked("duplicate", "duplicate", PROBE_TEXTS, is_any_of("duplicate"), earlier_copies),
    Asked("local", "local", "different words", _is_near, lambda tokens: band(tokens, -LOCAL, LOCAL)),
)
DECODER: Final = (
    Asked("induction", "induction", PROBE_TEXTS, INDUCTION, after_copies),
    Asked("induction", "induction", "a fixed period", INDUCTION, after_copies, decides_alone=True),
    Asked("duplicate", "duplicate", "a fixed period", is_any_of("duplicate"), earlier_copies, decides_alone=True),
    Asked("sink", "sink", "different words", is_any_of("sink"), first, is_of_all_queries=True),
    Asked("syntactic", f"syntactic:{RELATION}", "sentences", is_any_of("syntactic"), related),
    Asked("retrieval", "retrieval", "needles", is_any_of("retrieval"), _needle),
    Asked(
        "looks at stops", read_role(WRITTEN.format("looks at stops", f'words = ["{STOP}"]')).id, "stops",
        is_any_of("delimiter"), lambda tokens: among(tokens, STOP), is_of_all_queries=True,
    ),
)  # fmt: skip
ENCODER: Final = (
    Asked(
        "delimiter", "delimiter", "different words", is_any_of("delimiter", "sink"),
        lambda tokens: among(tokens, "[CLS]", "[SEP]"), is_of_all_queries=True,
    ),
    Asked(
        "delimiter:cls", "delimiter:cls", "different words", is_any_of("sink"),
        lambda tokens: among(tokens, "[CLS]"), is_of_all_queries=True,
    ),
    Asked(
        "delimiter:sep", "delimiter:sep", "different words", is_any_of("delimiter"),
        lambda tokens: among(tokens, "[SEP]"), is_of_all_queries=True,
    ),
    Asked("block", "block", "segments", is_any_of("own segment"), _own_segment),
)  # fmt: skip
