"""The analysis of coreference: how often each head attends most from a mention to an antecedent, as one value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Final, get_args

import numpy as np

from attention_sieve.core.answering import Analysis, Question, text_alone
from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.coreference.accuracy import (
    BASELINES,
    GROUPS,
    Candidates,
    CoreferenceScores,
    MentionChoices,
    coreference_scores,
)
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.coreference.usage import COREFERENCE_USAGE
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.statistics.means import check_alpha
from attention_sieve.core.texts.tokens import FromWord
from attention_sieve.core.usage import HEAD_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

STORED: Final = tuple(field.name for field in fields(MentionChoices))
"""Arrays of an answer, which are part of its key."""
NEAREST, SAME_HEAD = BASELINES
COLUMNS: Final = {
    "group": "type of mention: all, pronoun, proper or nominal",
    **HEAD_COLUMNS,
    "cases": "number of mentions that refer back to an earlier mention",
    "documents": "number of documents with cases; texts of the same name are one document",
    "accuracy": "share of the cases whose head word attends most to the head word of an antecedent",
    "low": "lower end of the confidence interval of the accuracy",
    "high": "upper end of this interval",
    "design_effect": "variance of the accuracy with documents as units, divided by that with independent cases",
    NEAREST: "accuracy of the baseline that chooses the nearest earlier mention",
    SAME_HEAD: "accuracy of the baseline that chooses the nearest earlier mention with the same head word, or else the "
    "nearest",
    "random mention": "accuracy of a random choice among the earlier mentions",
    "p_nearest": "one-sided p-value of the accuracy being above that of the nearest mention, multiplied by the number "
    "of heads",
    "p_same_head": "the same against the nearest mention with the same head word",
    "compared": "number of cases that can be compared with a control: the attention that the antecedents get from "
    "later words that do not mention the same entity",
    "attention_to_right": "mean attention from the mention to its antecedents",
    "attention_of_others": "mean attention to the same antecedents from those later words",
    "times_others": "how many times as much attention the antecedents get from the mention as from those words",
    "p_others": "one-sided p-value of attention_to_right being above attention_of_others, multiplied by the number of "
    "heads",
    "beats_others": f"whether p_others is significant, and times_others at least {LEAST_TIMES:g}",
    "from_everywhere": f"whether times_others is less than {LEAST_TIMES:g}: the head attends to these words from "
    "everywhere",
}
"""What each column of the table holds."""


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings:
    """How choices are read and evaluated.

    Raises: AnalysisError for an alpha that is not between 0 and 1.
    """

    candidates: Annotated[
        Candidates, "words among which an antecedent is chosen: the head words of earlier mentions, or all words"
    ] = "mentions"
    from_word: Annotated[
        FromWord, "attention from a word of several tokens: mean over its tokens, or that of the first"
    ] = "mean"
    alpha: Annotated[float, "significance level of the control; confidence intervals cover 1 - alpha"] = 0.05

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {"candidates": self.candidates, "from word": self.from_word, "alpha": str(self.alpha)}


@dataclass(frozen=True, eq=False)
class CoreferenceFinding:
    """What every head chooses in each text, and how often that is right, computed when it is first read."""

    texts: tuple[MentionText, ...]
    choices: tuple[MentionChoices, ...]
    settings: CoreferenceSettings

    @cached_property
    def scores(self) -> CoreferenceScores:
        """Among the candidates of the settings.

        Raises: AnalysisError where no mention with an antecedent was read.
        """
        return self._among(self.settings.candidates)

    @cached_property
    def among_others(self) -> CoreferenceScores:
        """Among the other candidates. Raises as `scores`."""
        return self._among(next(one for one in get_args(Candidates) if one != self.settings.candidates))

    def _among(self, candidates: Candidates) -> CoreferenceScores:
        return coreference_scores(self.texts, self.choices, candidates, self.settings.alpha)

    @property
    def n_documents(self) -> int:
        """Documents with cases."""
        return int(self.scores.n_documents[0])


@cache
def choice_question(from_word: FromWord) -> Question[MentionText, MentionChoices]:
    """The choices of every head for the mentions of each text; `from_word` says which pieces of a word attend."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[MentionText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, MentionChoices]]]:
        from attention_sieve.core.coreference.observer import mention_choices

        return mention_choices(checkpoint, texts, prepared, settings, from_word)

    def depends_on(text: MentionText) -> Mapping[str, object]:
        """Types of mentions and names of entities are not included. The mean over pieces adds no entry; the stored
        arrays are named because older entries had fewer."""
        entities = {
            name: number for number, name in enumerate(dict.fromkeys(mention.entity for mention in text.mentions))
        }
        mentions = {
            "spans": text.spans,
            "mentions": [
                (mention.start, mention.end, mention.head, entities[mention.entity]) for mention in text.mentions
            ],
            "kept": STORED,
        }
        pieces = {} if from_word == "mean" else {"from word": from_word}
        return {**text_alone(text.text), **mentions, **pieces}

    return Question(
        name="coreference",
        text_of=lambda text: text.text,
        depends_on=depends_on,
        compute=compute,
        pack=lambda result: {name: getattr(result, name) for name in STORED},
        unpack=lambda arrays: MentionChoices(**{name: arrays[name] for name in STORED}),
        kinds=(*ONE_STACK, "encoder"),
        why_not="Mentions are in one text, but decoder and cross-attention need two. Choose encoder attention.",
    )


def coreference_table(finding: CoreferenceFinding) -> "pd.DataFrame":
    """A row per group of mentions, layer and head, with COLUMNS.

    Raises: AnalysisError where no mention with an antecedent was read.
    """
    import pandas as pd  # which the first page does without

    scores, judged = finding.scores, finding.scores.judgement
    group, layer, head = (axis.ravel() for axis in np.indices(judged.accuracy.shape))
    controls = [control.columns() for control in judged.key_matched]
    return pd.DataFrame(
        {
            "group": np.array(GROUPS)[group],
            "layer": layer,
            "head": head,
            "cases": judged.n_cases[group],
            "documents": scores.n_documents[group],
            "accuracy": judged.accuracy.ravel(),
            "low": judged.low.ravel(),
            "high": judged.high.ravel(),
            "design_effect": judged.design_effect.ravel(),
            NEAREST: judged.baselines[0][group],
            SAME_HEAD: judged.baselines[1][group],
            "random mention": scores.chance[group],
            "p_nearest": judged.p_values[0].ravel(),
            "p_same_head": judged.p_values[1].ravel(),
            **{name: np.concatenate([columns[name] for columns in controls]) for name in controls[0]},
        }
    )


COREFERENCE_ANALYSIS: Final[
    Analysis[MentionText, MentionText, MentionChoices, CoreferenceSettings, CoreferenceFinding]
] = Analysis(
    name="coreference",
    sentence="Measure how well each head finds the antecedents of mentions; a row per group of mentions, layer and "
    "head.",
    settings=CoreferenceSettings(),
    text_of=lambda text: text.text,
    question=lambda settings: choice_question(settings.from_word),
    judge=CoreferenceFinding,
    table=coreference_table,
    columns=COLUMNS,
    facts=lambda finding, settings: {"all documents": str(finding.n_documents), **settings.facts},
    too_long="truncate",
    usage=COREFERENCE_USAGE,
)
"""The words that the mentions of each text attend to most; `attention_sieve.core.coreference.mentions.windows` cuts
texts that are longer than a checkpoint reads.

Source: Clark et al. 2019, section 4.3.
"""
