"""The analysis of a claim: whether the heads that it names have its role, as one value."""

from typing import Any, Final

from attention_sieve.core.answering import Analysis
from attention_sieve.core.claims.judge import ClaimFinding, judge
from attention_sieve.core.claims.probe import ClaimSettings, ClaimText, collected, probed, question
from attention_sieve.core.claims.tables import COLUMNS, claim_facts, claim_table

CLAIM_ANALYSIS: Final[Analysis[ClaimText, ClaimText, Any, ClaimSettings, ClaimFinding]] = Analysis(
    name="claim",
    sentence="Test a claim about heads; a row per head that it names.",
    settings=ClaimSettings(),
    text_of=lambda claim_text: claim_text.text,
    question=question,
    collect=collected,
    judge=lambda texts, answers, settings: judge(settings.claim, probed(texts, answers[0], settings)),
    table=claim_table,
    columns=COLUMNS,
    facts=lambda finding, _: claim_facts(finding),
)
"""Whether heads have a role that somebody says they have. Its texts are those of `probe.claim_texts`."""
