"""The scores of roles as an analysis of their own: what is asked is that of roles, and the table another."""

from dataclasses import replace
from typing import Any, Final

from attention_sieve.core.answering import Analysis, Reading
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleFinding, RoleSettings
from attention_sieve.core.roles.tables import SCORE_COLUMNS, score_table
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import Example


def scores_of(reading: Reading[Text]) -> Analysis[Text, Text, Any, RoleSettings, RoleFinding]:
    """The analysis of the scores of texts as they were read."""
    return replace(SCORE_ANALYSIS, table=lambda finding: score_table(finding, reading.prepared))


SCORE_ANALYSIS: Final = replace(
    ROLE_ANALYSIS,
    name="scores",
    sentence="Compute the sieve bias score of every head for every role; a row per text, role, layer and head.",
    columns=SCORE_COLUMNS,
    facts=lambda _, settings: settings.scores.facts,
    usage=replace(
        ROLE_ANALYSIS.usage,
        asks="scores",
        reading_analysis=scores_of,
        example=Example(keywords='roles=("local", "delimiter")'),
    ),
)
"""The analysis of roles whose table is the scores; `scores_of` has that table."""
