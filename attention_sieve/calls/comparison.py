"""Two checkpoints on the same texts."""

from typing import Any

from attention_sieve.calls.analyses import settings_of_call
from attention_sieve.calls.finding import Finding
from attention_sieve.calls.given import (
    SHARED,
    all_opened,
    check_keywords,
    kinds_of,
    parsed,
    pass_settings_of,
    too_long_in,
    watched,
)
from attention_sieve.core.answering import on_common_inputs
from attention_sieve.core.commands import facts_of_texts, finding_facts, reading_of
from attention_sieve.core.comparison.finding import COMPARISON_COLUMNS, compare_in, facts_of_both
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.usage import ROLE_OPTIONS


def compare(
    model: Any,
    other: Any,
    texts: Any,
    *,
    tokenizer: Any = None,
    least_difference: float | None = None,
    **settings: Any,
) -> Finding:
    """Test how the roles and the scores of two models differ on the same texts; a row per role, layer and head.

    Args:
        model: the reference: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        other: the compared one, of the same shape; differences are its scores minus those of the reference.
        texts: as of `roles`; those that one of the two leaves out as too long are left out of both.
        tokenizer: of models in memory.
        least_difference: of two means that counts as large; None for a tenth, or .02 of shares.
        settings: those of `roles`, which decide for both; the same heads are off in both.

    Returns: the table; `result.sides` are the findings of `roles`.
    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> texts = ["The old dog chased a cat.", "She closed the shop because it was late."]
    >>> found = sieve.compare("bundled", "bundled", texts, tau=2)
    >>> float(found.table["difference"].abs().max())
    0.0
    """
    check_keywords("compare", settings, {*SHARED, *ROLE_OPTIONS, *kinds_of(ROLE_ANALYSIS.settings)})
    read, too_long = parsed(texts, settings), too_long_in(settings)
    with all_opened((model, other), tokenizer, settings) as checkpoints:
        role_settings = settings_of_call(ROLE_ANALYSIS, settings, checkpoints[0].files)
        readings = []
        for checkpoint in checkpoints:
            pass_settings = pass_settings_of(checkpoint, settings)
            ROLE_ANALYSIS.question(role_settings).check(pass_settings.kind)
            readings.append(reading_of(checkpoint, pass_settings, read, too_long))
        readings = on_common_inputs(readings)
        comparison = compare_in(readings, role_settings, watched, least_difference)
        a, b = (
            finding_facts(ROLE_ANALYSIS, reading, side, role_settings, facts_of_texts(read))
            for reading, side in zip(readings, comparison.sides, strict=True)
        )
    facts = facts_of_both(a, b) | comparison.facts
    return Finding(
        analysis="compare", table=comparison.table, columns=COMPARISON_COLUMNS, facts=facts, result=comparison
    )
