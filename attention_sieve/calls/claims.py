"""A claim about heads, tested."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attention_sieve.calls.finding import Finding
from attention_sieve.calls.given import (
    SHARED,
    check_keywords,
    checked,
    kinds_of,
    opened,
    parsed,
    pass_settings_of,
    too_long_in,
    watched,
)
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.claims.command import claim_settings, facts_of_claim, read_claim
from attention_sieve.core.claims.judge import ClaimFinding
from attention_sieve.core.claims.places import PLACE_COLUMNS, PROBE_TEXTS, Place, TestedClaim, place_of, tested
from attention_sieve.core.claims.probe import ClaimSettings
from attention_sieve.core.commands import checkpoint_facts, reading_of
from attention_sieve.core.texts.text import Text


def claim(model: Any, claimed: str | Mapping[str, Any], texts: Any = None, **given: Any) -> Finding:
    """Test a claim about heads: does each that it names have the role? A row per head of the claim.

    Args:
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        claimed: a sentence, such as "L16 H19, L11 H15 are retrieval heads"; scores by head, such as {"16-19": 0.8}; or
            the name of a .json file of them.
        texts: to test the claim on, as of `roles`; none for the role's probe texts.
        given: keywords as the options of the command `claim`: number, seed, scale, tau, alpha and others; and
            role: name of the role, or a file of TOML with one of your own; none where the sentence names it;
            also: other places in which to test the same claim, by a name of yours: a list is of texts, anything else a
            checkpoint, such as {"in French": ["Elle a ferme la porte."], "the base": "bundled"};
            tokenizer: of a model in memory.

    Returns: the table; `result.summary` says it in sentences.
    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> found = sieve.claim("bundled", "L3 H7 and L2 H5 are duplicate-token heads", number=4)
    >>> found.table["verdict"].tolist()
    ['does not hold', 'does not hold']
    """
    kinds = kinds_of(ClaimSettings())
    check_keywords("claim", given, {*SHARED, *kinds, "role", "also", "tokenizer"})
    options = Namespace(**{name: checked(name, given[name], kinds[name]) if name in given else None for name in kinds})
    role = given.get("role")
    settings = claim_settings(options, read_claim(claimed, role if role is None else str(role)))
    own, also = None if texts is None else parsed(texts, given), dict(given.get("also") or {})
    with opened(model, given.get("tokenizer"), given) as checkpoint:
        finding = _tested(checkpoint, own, settings, given)
        facts = checkpoint_facts(checkpoint, pass_settings_of(checkpoint, given)) | facts_of_claim(finding, own)
        name, texts_name = checkpoint.files.name, PROBE_TEXTS if own is None else "texts"
        places = [Place(checkpoint=name, texts=texts_name, finding=finding)]
        for place, other in also.items():
            if isinstance(other, list):
                those = parsed(other, given)
                places.append(place_of(name, place, partial(_tested, checkpoint, those, settings, given)))
            else:
                with opened(other, None, given) as on:
                    places.append(place_of(place, texts_name, partial(_tested, on, own, settings, given)))
    outcome = TestedClaim(first=finding, places=tuple(places))
    return Finding(analysis="claim", table=outcome.table, columns=PLACE_COLUMNS, facts=facts, result=outcome)


def _tested(
    checkpoint: Checkpoint, texts: Sequence[Text] | None, settings: ClaimSettings, given: Mapping[str, Any]
) -> ClaimFinding:
    pass_settings, too_long = pass_settings_of(checkpoint, given), too_long_in(given)
    checkpoint.files.check_heads(pass_settings.kind, settings.claim.heads)
    read = partial(reading_of, checkpoint, pass_settings, too_long=too_long)
    return tested(settings, texts, checkpoint, read, watched)
