"""Results of a text as named arrays, the form in which the store keeps them."""

import json
from typing import Final

import numpy as np

from cache.store import array_to_text, text_to_array
from core.analysis import MeasuredText, TextAttention
from core.parses import TokenPair
from core.tokens import TokenizedText

_TOKEN_ARRAYS: Final = ("ids", "type_ids", "spans", "segments", "words", "is_cls", "is_sep")


def packed_measures(text: MeasuredText) -> dict[str, np.ndarray]:
    """What a pass measured of a text; no measures for one that was left out as too long."""
    counts = {"n_tokens": np.array(text.n_tokens), "n_cut": np.array(text.n_cut)}
    return counts if text.measures is None else {**counts, "measures": text.measures}


def unpacked_measures(kept: dict[str, np.ndarray]) -> MeasuredText:
    """The inverse of packed_measures; its position is for the caller to say."""
    return MeasuredText(
        position=0, n_tokens=int(kept["n_tokens"]), n_cut=int(kept["n_cut"]), measures=kept.get("measures")
    )


def packed_attention(looked: TextAttention) -> dict[str, np.ndarray]:
    """Attention as float16: it is drawn, never summed up, and a quarter of a per mille is finer than any line."""
    tokenized = looked.tokenized
    pairs = [(pair.name, pair.dependent.tolist(), pair.head.tolist()) for pair in looked.pairs]
    return {
        **{name: getattr(tokenized, name) for name in _TOKEN_ARRAYS},
        "tokens": text_to_array(json.dumps(tokenized.tokens)),
        "n_cut": np.array(tokenized.n_cut),
        "pairs": text_to_array(json.dumps(pairs)),
        "causal": np.array(looked.causal),
        "attention": looked.attention.astype(np.float16),
    }


def unpacked_attention(kept: dict[str, np.ndarray]) -> TextAttention:
    """The inverse of packed_attention, but for the rounding of the attention."""
    pairs = json.loads(array_to_text(kept["pairs"]))
    return TextAttention(
        tokenized=TokenizedText(
            **{name: kept[name] for name in _TOKEN_ARRAYS},
            tokens=tuple(json.loads(array_to_text(kept["tokens"]))),
            n_cut=int(kept["n_cut"]),
        ),
        pairs=tuple(TokenPair(name, np.array(dependent), np.array(head)) for name, dependent, head in pairs),
        causal=bool(kept["causal"]),
        attention=kept["attention"].astype(np.float32),
    )
