"""Converts the attention of a text to and from named arrays, as stored."""

import json
from dataclasses import astuple
from typing import Final

import numpy as np

from core.attention.settings import Reach, Window
from core.passes.arrays import Arrays, array_to_text, text_to_array
from core.passes.texts import PassText, TextAttention
from core.texts.relations import TokenPair
from core.texts.tokens import TokenizedText

_TOKEN_ARRAYS: Final = ("ids", "type_ids", "spans", "segments", "words", "is_cls", "is_sep")


def packed_attention(looked: TextAttention) -> dict[str, np.ndarray]:
    """Pack attention as float16, which is precise enough for drawing; it is never summed."""
    text = looked.text
    pairs = [(pair.name, pair.dependent.tolist(), pair.head.tolist()) for pair in text.pairs]
    overview = {} if looked.overview is None else {"overview": looked.overview.astype(np.float16)}
    return {
        **_packed_tokens("source", text.source),
        **({} if text.target is None else _packed_tokens("target", text.target)),
        "kind": text_to_array(text.kind),
        "pairs": text_to_array(json.dumps(pairs)),
        "causal": np.array(looked.causal),
        "window": np.array(astuple(looked.window)),
        "block": np.array(looked.block),
        "reaches": text_to_array(json.dumps([astuple(reach) for reach in looked.reaches])),
        "attention": looked.attention.astype(np.float16),
        **overview,
    }


def unpacked_attention(kept: Arrays) -> TextAttention:
    """The inverse of packed_attention, but for the rounding of the attention."""
    pairs = json.loads(array_to_text(kept["pairs"]))
    queries, keys = kept["window"].tolist()
    return TextAttention(
        text=PassText(
            kind=array_to_text(kept["kind"]),  # type: ignore[arg-type]
            source=_unpacked_tokens("source", kept),
            target=_unpacked_tokens("target", kept) if "target ids" in kept else None,
            pairs=tuple(TokenPair(name, np.array(dependent), np.array(head)) for name, dependent, head in pairs),
        ),
        causal=bool(kept["causal"]),
        window=Window(tuple(queries), tuple(keys)),
        attention=kept["attention"].astype(np.float32),
        block=int(kept["block"]),
        overview=kept["overview"].astype(np.float32) if "overview" in kept else None,
        reaches=tuple(Reach(*reach) for reach in json.loads(array_to_text(kept["reaches"]))),
    )


def _packed_tokens(side: str, tokens: TokenizedText) -> dict[str, np.ndarray]:
    return {
        **{f"{side} {name}": getattr(tokens, name) for name in _TOKEN_ARRAYS},
        f"{side} tokens": text_to_array(json.dumps(tokens.tokens)),
        f"{side} n_cut": np.array(tokens.n_cut),
    }


def _unpacked_tokens(side: str, kept: Arrays) -> TokenizedText:
    arrays = {name: kept[f"{side} {name}"] for name in _TOKEN_ARRAYS}
    tokens = json.loads(array_to_text(kept[f"{side} tokens"]))
    return TokenizedText(**arrays, tokens=tuple(tokens), n_cut=int(kept[f"{side} n_cut"]))
