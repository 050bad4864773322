"""What a result depends on, and the key it is kept under.

A key holds the text as the reader gave it, not its token ids. The checkpoint's fingerprint already covers the
tokenizer, so the two say the same, and a stored result is found without loading a tokenizer or importing torch.
"""

import hashlib
import json
from typing import Final

from core.passes import PassSettings
from core.texts import Text

FORMAT: Final = 2
"""Raise it when the same question gets another answer: a mended sieve, a new role, another layout of the arrays."""


def scores_key(checkpoint: str, dtype: str, settings: PassSettings, text: Text, parser: str) -> str:
    """Key of one text's measures.

    Args:
        checkpoint: fingerprint of weights, configuration and tokenizer, in hex.
        dtype: number format of the pass, such as "float32".
        settings: which attention is looked at, and which heads are off, in any order.
        text: the text; every field of it counts.
        parser: where its relations come from, with the version.
    Returns: 64 hex digits.
    """
    return _key("measures", **_ingredients(checkpoint, dtype, settings, text, parser))


def attention_key(
    checkpoint: str, dtype: str, settings: PassSettings, text: Text, parser: str, start: tuple[int, int] = (0, 0)
) -> str:
    """Key of one text's attention, tokens and relations; as in `scores_key`, and where the window begins."""
    return _key("attention", **_ingredients(checkpoint, dtype, settings, text, parser), start=start)


def divergence_key(
    checkpoints: tuple[str, str], dtype: str, settings: tuple[PassSettings, PassSettings], text: Text
) -> str:
    """Key of how far apart two checkpoints' attention is on one text, whichever of them is named first."""
    sides = sorted([checkpoint, asked.kind, sorted(set(asked.off))] for checkpoint, asked in zip(checkpoints, settings))
    return _key("divergence", sides=sides, dtype=dtype, text=text_ingredients(text))


def answer_key(kind: str, checkpoint: str, dtype: str, settings: PassSettings, **ingredients: object) -> str:
    """Key of what a pass found of one item.

    Args:
        kind: what is asked, such as "surface".
        checkpoint, dtype, settings: as in `scores_key`.
        ingredients: all else that the answer depends on, as JSON can write it.
    """
    off = sorted(set(settings.off))
    return _key(kind, checkpoint=checkpoint, dtype=dtype, attention=settings.kind, off=off, **ingredients)


def text_ingredients(text: Text) -> dict[str, object]:
    """A text as an ingredient of a key; by hand, as dataclasses.asdict took a third of the time of a look-up."""
    ingredients: dict[str, object] = {"segments": text.segments, "words": text.words}
    if text.heads is not None:  # most texts bring none, and their keys stay as they were
        ingredients |= {"heads": text.heads, "relations": text.relations}
    return ingredients


def _ingredients(checkpoint: str, dtype: str, settings: PassSettings, text: Text, parser: str) -> dict[str, object]:
    off = sorted(set(settings.off))
    return {
        "checkpoint": checkpoint,
        "dtype": dtype,
        "attention": settings.kind,
        "off": off,
        "text": text_ingredients(text),
        "parser": parser,
    }


def _key(kind: str, **ingredients: object) -> str:
    """Digest of canonical JSON: sorted names, no blanks, tuples as lists."""
    question = {"format": FORMAT, "kind": kind, **ingredients}
    canonical = json.dumps(question, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Escaping to ASCII would write an emoji and its two lone surrogates alike; surrogatepass keeps them apart.
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
