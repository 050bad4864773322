"""The analysis of copying: where heads look, what they write, and whether it matters, as one value."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from attention_sieve.core.answering import Analysis, Ask, Question, text_itself
from attention_sieve.core.copying.finding import CopyAnswers, CopyFinding, CopySettings
from attention_sieve.core.copying.published import DETECTORS, DIFFERENCES
from attention_sieve.core.copying.question import OV_SIGNS, SECOND_COPY, WRITES, looks_question
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import scores_question
from attention_sieve.core.roles.roles import DECODER_ROLES
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import A_DECODER, HEAD_COLUMNS, Example, Usage, column_list

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Final = {
    **HEAD_COLUMNS,
    "looks": "mean score of looking at the tokens of the role; of retrieval a share of attention, where Wu et al. "
    "count how often the token has most of it, which tells other heads",
    "writes": "mean copying score, from -1 (raises only other tokens) to 1 (raises only the token looked at); empty "
    "for a head that raises none but rounding. Weights of normalisations on the way count, which published direct-path "
    "scores of bare weights leave out: the two may differ in sign",
    "times": "how many times as much the head raises the token looked at as the mean token of the sample; 1 by chance",
    "ov_sign": "sum of the eigenvalues of the head's OV circuit over the sum of their moduli, from weights alone: 1 "
    "copies, -1 suppresses; empty where the circuit is nothing but rounding. Weights of normalisations count here, too",
    "full": "loss on second copies with all heads on, in nats a token",
    "without": "the same without this head",
    "delta": "without - full",
    "low": "lower end of the 95% confidence interval of delta",
    "high": "upper end of this interval",
    "p": 'two-sided p-value of "no change", as of the command ablate',
    "p_adjusted": "p after correction over all heads",
    "in_looks": "whether looks is at least tau",
    "in_writes": "whether times is at least that of the setting",
    "in_matters": "whether delta is at least the rise of the setting, and p_adjusted, if there is one, below alpha",
}
CHANGES: Final = ("without", "delta", "low", "high", "p", "p_adjusted")


def copy_table(finding: CopyFinding) -> "pd.DataFrame":
    """A row per head, with COLUMNS; columns that are left out are empty."""
    import pandas as pd  # which the first page does without

    layer, head = np.indices(finding.looks.shape)
    nothing = np.full(finding.looks.shape, np.nan)
    effects = finding.effects
    numbers = {
        "layer": layer,
        "head": head,
        "looks": finding.looks,
        "writes": finding.writes,
        "times": finding.times,
        "ov_sign": finding.answers.signs,
        "full": None if effects is None else np.full_like(nothing, effects.full),
        **{name: None if effects is None else getattr(effects, name) for name in CHANGES},
    }
    table = pd.DataFrame({name: (nothing if values is None else values).ravel() for name, values in numbers.items()})
    for name in ("looks", "writes", "matters"):
        holds = finding.columns[name].ravel() if name in finding.columns else [None] * len(table)
        table[f"in_{name}"] = pd.array(holds, "boolean")
    return table


def _question(settings: CopySettings) -> Question[Text, Any]:
    """Of several questions the one about looking; that of all roles of decoders is kept for other pages, too."""
    return scores_question(DECODER_ROLES) if settings.detector == "share" else looks_question(settings.role)


def _collected(ask: Ask, items: tuple[Text, ...], settings: CopySettings) -> tuple[CopyAnswers]:
    results = ask(_question(settings), items, "where heads look")
    if settings.detector == "share":
        scored = role_scores(results, ScoreSettings(roles=DECODER_ROLES, scale="share"))
        looks = scored.scores[:, DECODER_ROLES.index(settings.role)]
    else:
        looks = np.stack([detected[DETECTORS.index(settings.detector)] for detected in results])
    left_out, writes, signs, outcomes = [], None, None, None
    try:
        writes = ask(WRITES, items, "what heads write")
        shortest = min(items, key=lambda text: sum(map(len, text.segments)))  # any text would do
        (signs,) = ask(OV_SIGNS, [shortest], "signs of OV circuits")
    except AnalysisError as error:
        left_out.append(("writes" if writes is None else "ov_sign", str(error)))
    if not settings.no_ablation:
        try:
            outcomes = ask(SECOND_COPY, items, "switching heads off")
        except AnalysisError as error:
            left_out.append(("matters", str(error)))
    return (CopyAnswers(looks=looks, writes=writes, signs=signs, outcomes=outcomes, left_out=tuple(left_out)),)


def _notes(finding: CopyFinding) -> Iterator[str]:
    """Measures that are left out, and tests that are not possible."""
    yield from (f"Without {name}: {reason}" for name, reason in finding.answers.left_out)
    if finding.without_verdict:
        yield finding.without_verdict


def _summary(finding: CopyFinding) -> Iterator[str]:
    """How many heads are in each column."""
    n_heads = int(finding.present.sum())
    counts = ", ".join(f"{name} {int(holds.sum()):,}" for name, holds in finding.columns.items())
    n_all = finding.combinations.get(frozenset(finding.columns), 0)
    yield f"Of {n_heads:,} heads: {counts}; all of these {n_all:,} (by chance {finding.expected_in_all:.1f})."


DETAILS: Final = """\
The texts should have repeats, as those of `probe-texts` have. Tokens count for the loss that complete a pair of tokens
for the second time. How many heads are in all three columns is printed beside the number expected by chance."""
COPY_ANALYSIS: Final[Analysis[Text, Text, Any, CopySettings, CopyFinding]] = Analysis(
    name="copying",
    sentence="Test whether heads of a decoder look at what is to be copied, write it, and matter for the loss on "
    "second copies; a row per head.",
    settings=CopySettings(),
    text_of=text_itself,
    question=_question,
    collect=_collected,
    judge=lambda items, answers, settings: CopyFinding(items, answers[0], settings),
    table=copy_table,
    columns=COLUMNS,
    facts=lambda finding, _: finding.facts,
    usage=Usage(
        details=DETAILS,
        more=column_list("Detectors", {str(name): says for name, says in DIFFERENCES.items()}),
        notes=_notes,
        summary=_summary,
        example=Example(
            texts='["one red dog and one red cat and one red dog and one red cat"]',
            keywords='no_ablation=True, tokenizer=sieve.load("bundled").tokenizer',
            model="model",
            before=A_DECODER,
        ),
    ),
)
"""Which heads look at what is to be copied, write it, and are needed for it.

Source: Olsson et al. 2022, appendix (prefix matching and copying); Elhage et al. 2021 (OV circuits).
"""
