"""Keys of stored results, computed from everything that a result depends on.

A key covers the original text, not its token ids. The fingerprint of the checkpoint includes the tokenizer, so the two
are equivalent, and stored results are found without loading a tokenizer or importing torch.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Final

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.text import Text, text_fields

ATTENTION_VERSION: Final = 4
"""Version of stored attention; increase it when its values or their layout change."""
TREES_VERSION: Final = 1
"""The same of stored trees."""
DIVERGENCE_VERSION: Final = 4
"""The same of stored divergences. Answers to questions have the versions of
`attention_sieve.core.answering.Question`."""


def answer_key(
    question: tuple[str, int], checkpoint: str, dtype: str, settings: PassSettings, **depends_on: object
) -> str:
    """Key of the answer to a question for one item.

    Args:
        question: its name and its version.
        checkpoint: fingerprint of weights, configuration and tokenizer, in hex.
        settings: the kind of attention and the heads that are off, in any order.
        depends_on: everything in the item that the answer depends on, as JSON values.
    Returns: 64 hex digits.
    """
    off = sorted(set(settings.off))
    return _key(question, checkpoint=checkpoint, dtype=dtype, attention=settings.kind, off=off, **depends_on)


def attention_key(
    checkpoint: str, dtype: str, settings: PassSettings, start: tuple[int, int], **depends_on: object
) -> str:
    """Key of one text's attention, tokens and relations: as `answer_key`, plus the start of the window."""
    return answer_key(("attention", ATTENTION_VERSION), checkpoint, dtype, settings, start=start, **depends_on)


def tree_key(text: Text) -> str:
    """Key of the dependency tree of a text whose file does not bring it.

    Raises: AnalysisError if no parser is installed.
    """
    return _key(("trees", TREES_VERSION), text=text_fields(text), parser=parser_name(text.parser))


def divergence_key(checkpoints: Sequence[str], dtype: str, settings: Sequence[PassSettings], text: Text) -> str:
    """Key of the divergence between two checkpoints' attention on one text, independent of their order."""
    sides = sorted(
        [checkpoint, pass_settings.kind, sorted(set(pass_settings.off))]
        for checkpoint, pass_settings in zip(checkpoints, settings)
    )
    return _key(("divergence", DIVERGENCE_VERSION), sides=sides, dtype=dtype, text=text_fields(text))


def _key(question: tuple[str, int], **ingredients: object) -> str:
    """Digest of canonical JSON: sorted names, no spaces, tuples as lists."""
    name, version = question
    canonical = json.dumps(
        {"format": version, "kind": name, **ingredients},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    # Escaping to ASCII would encode an emoji and its two lone surrogates identically; surrogatepass distinguishes them.
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
