"""Converts the attention of a text to and from named arrays, as stored."""

import json
from dataclasses import astuple
from typing import Any, Final

import numpy as np

from attention_sieve.core.attention.settings import Reach, Window
from attention_sieve.core.passes.arrays import Arrays, array_to_text, text_to_array
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.texts.conllu import GivenTokens
from attention_sieve.core.texts.relations import TokenPair
from attention_sieve.core.texts.tokens import TokenizedText

_TOKEN_ARRAYS: Final = ("ids", "type_ids", "spans", "segments", "words", "is_cls", "is_sep")


def packed_attention(attention: TextAttention) -> dict[str, np.ndarray]:
    """Pack attention as float16, which is precise enough for drawing; it is never summed."""
    text = attention.text
    pairs = [(pair.name, pair.dependent.tolist(), pair.head.tolist()) for pair in text.pairs]
    overview = {} if attention.overview is None else {"overview": attention.overview.astype(np.float16)}
    return {
        **_packed_tokens("source", text.source),
        **({} if text.target is None else _packed_tokens("target", text.target)),
        "kind": text_to_array(text.kind),
        "pairs": text_to_array(json.dumps(pairs)),
        "causal": np.array(attention.causal),
        "window": np.array(astuple(attention.window)),
        "block": np.array(attention.block),
        "reaches": text_to_array(json.dumps([astuple(reach) for reach in attention.reaches])),
        "attention": attention.attention.astype(np.float16),
        **overview,
    }


def unpacked_attention(arrays: Arrays) -> TextAttention:
    """The inverse of packed_attention, but for the rounding of the attention."""
    pairs = json.loads(array_to_text(arrays["pairs"]))
    queries, keys = arrays["window"].tolist()
    return TextAttention(
        text=PassText(
            kind=array_to_text(arrays["kind"]),  # type: ignore[arg-type]
            source=_unpacked_tokens("source", arrays),
            target=_unpacked_tokens("target", arrays) if "target ids" in arrays else None,
            pairs=tuple(TokenPair(name, np.array(dependent), np.array(head)) for name, dependent, head in pairs),
        ),
        causal=bool(arrays["causal"]),
        window=Window(tuple(queries), tuple(keys)),
        attention=arrays["attention"].astype(np.float32),
        block=int(arrays["block"]),
        overview=arrays["overview"].astype(np.float32) if "overview" in arrays else None,
        reaches=tuple(Reach(*reach) for reach in json.loads(array_to_text(arrays["reaches"]))),
    )


def _packed_tokens(side: str, tokens: TokenizedText) -> dict[str, np.ndarray]:
    return {
        **{f"{side} {name}": getattr(tokens, name) for name in _TOKEN_ARRAYS},
        f"{side} tokens": text_to_array(json.dumps(tokens.tokens)),
        f"{side} n_cut": np.array(tokens.n_cut),
        **({} if tokens.given is None else {f"{side} given": text_to_array(json.dumps(astuple(tokens.given)))}),
    }


def _unpacked_tokens(side: str, stored: Arrays) -> TokenizedText:
    arrays = {name: stored[f"{side} {name}"] for name in _TOKEN_ARRAYS}
    tokens = json.loads(array_to_text(stored[f"{side} tokens"]))
    given = None
    if f"{side} given" in stored:
        given = _given(json.loads(array_to_text(stored[f"{side} given"])))
    return TokenizedText(given=given, tokens=tuple(tokens), n_cut=int(stored[f"{side} n_cut"]), **arrays)


def _given(fields: list[Any]) -> GivenTokens:
    """Given tokens from their fields in order; those stored before there were chats have no turns."""
    ids, needle, answer, *turns = fields
    spans = None if turns in ([], [None]) else tuple(map(tuple, turns[0]))
    return GivenTokens(tuple(ids), needle and tuple(needle), answer and tuple(answer), spans)
