"""Attention sinks as published: the share of heads that look at the first token; beside the role `sink`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.answering import Analysis, Question, text_alone, text_itself
from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.statistics.means import moments
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import A_DECODER, HEAD_COLUMNS, Example, Usage

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Final = {
    **HEAD_COLUMNS,
    "first_token": "attention to the first token, mean over the first tokens of each text, then over texts",
    "share_of_texts": "share of the texts in which this is above eps",
}


@dataclass(frozen=True, kw_only=True)
class SinkSettings:
    """When a head counts as a sink.

    Raises: AnalysisError for a number out of its range.
    Source: Gu et al. 2025, section 2, and their code: eps 0.3, 64 tokens.
    """

    eps: Annotated[float, "a head is a sink in a text if its mean attention to the first token is above this"] = 0.3
    tokens: Annotated[int, "number of tokens of each text that take part; shorter texts are left out"] = 64

    def __post_init__(self) -> None:
        if not 0 < self.eps < 1:
            raise AnalysisError(f"eps is {self.eps:g}. Choose a share between 0 and 1, such as 0.3.")
        if not 2 <= self.tokens <= 100_000:
            raise AnalysisError(f"tokens is {self.tokens:,}. Choose a whole number from 2 to 100,000.")


@dataclass(frozen=True, eq=False)
class SinkFinding:
    """Attention of every head to the first token, in texts that are long enough."""

    masses: Float[np.ndarray, "text layer head"]
    """Mean over the first tokens; NaN in a text that is too short, and for heads that are not there."""
    settings: SinkSettings

    @property
    def n_texts(self) -> int:
        """Number of texts that are long enough."""
        return int(np.isfinite(self.masses).any(axis=(1, 2)).sum())

    @property
    def share_of_texts(self) -> Float[np.ndarray, "layer head"]:
        """Share of the texts in which a head is a sink."""
        is_sink = np.where(np.isfinite(self.masses), self.masses > self.settings.eps, np.nan)
        return moments(is_sink)[1]

    @property
    def share(self) -> float:
        """The published figure: the share of heads that are sinks, mean over texts."""
        return float(np.nanmean(self.share_of_texts))


@cache
def _question(n_tokens: int) -> Question[Text, Float[np.ndarray, "layer head"]]:
    def compute(
        checkpoint: Checkpoint, _: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, Float[np.ndarray, "layer head"]]]]:
        from attention_sieve.core.passes.batches import collect
        from attention_sieve.core.roles.observer import FirstToken

        return collect(checkpoint, prepared, settings, partial(FirstToken, checkpoint, n_tokens=n_tokens))

    return Question(
        name=f"attention to the first token, {n_tokens} tokens",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=lambda result: {"masses": result.astype(np.float32)},
        unpack=lambda arrays: arrays["masses"],
        kinds=ONE_STACK,
        why_not="Attention sinks are a matter of models of one stack that write the next token. Choose such a decoder.",
        version=2,
    )


def _judged(masses: tuple[Float[np.ndarray, "layer head"], ...], settings: SinkSettings) -> SinkFinding:
    finding = SinkFinding(np.stack(masses).astype(float), settings)
    if not finding.n_texts:
        raise AnalysisError(
            f"No text has {settings.tokens:,} tokens, or the model also looks ahead. Choose longer texts and a model "
            "that writes the next token, or fewer tokens."
        )
    return finding


def sink_table(finding: SinkFinding) -> "pd.DataFrame":
    """A row per head, with COLUMNS."""
    import pandas as pd  # which the first page does without

    mean = moments(finding.masses)[1]
    layer, head = (axis.ravel() for axis in np.indices(mean.shape))
    shares = {"first_token": mean.ravel(), "share_of_texts": finding.share_of_texts.ravel()}
    return pd.DataFrame({"layer": layer, "head": head, **shares})


SINK_ANALYSIS: Final[Analysis[Text, Text, Float[np.ndarray, "layer head"], SinkSettings, SinkFinding]] = Analysis(
    name="sinks",
    sentence="Measure how much each head of a decoder looks at the first token of a text; a row per head.",
    settings=SinkSettings(),
    text_of=text_itself,
    question=lambda settings: _question(settings.tokens),
    judge=lambda _, masses, settings: _judged(masses, settings),
    table=sink_table,
    columns=COLUMNS,
    facts=lambda finding, settings: {
        "eps": f"{settings.eps:g}",
        "tokens": str(settings.tokens),
        "long texts": str(finding.n_texts),
        "sink share": f"{finding.share:.4f}",
    },
    usage=Usage(
        details="The share of heads that are attention sinks is printed: those whose attention to the first token, in "
        f"the mean over the first {SinkSettings.tokens} tokens, is above {SinkSettings.eps}; in each text, then the "
        "mean over texts.",
        summary=lambda finding: (f"Sink share: {finding.share:.1%} of heads, over {finding.n_texts:,} texts.",),
        example=Example(
            keywords='tokens=8, tokenizer=sieve.load("bundled").tokenizer', model="model", before=A_DECODER
        ),
    ),
)
"""The share of heads that are attention sinks.

Source: Gu et al. 2025, "When attention sink emerges in language models", section 2: Sink_k for the first token.
"""
