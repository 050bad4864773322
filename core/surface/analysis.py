"""The analyses of surface statistics, and of gradients with respect to attention, as two values: their settings, where
heads look, and what is written of it."""

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core import answering
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.statistics.means import check_alpha
from attention_sieve.core.statistics.series import SCORE_BINS, Series, Values
from attention_sieve.core.surface.frequencies import (
    FREQUENCY_SUFFIXES,
    FrequencyList,
    english_frequencies,
    frequencies_of,
    read_frequencies,
)
from attention_sieve.core.surface.per_text import PUNCTUATION, SHARES, SPREAD, RowSettings, TextGradients, TextSurface
from attention_sieve.core.surface.statistics import (
    NEAR,
    OFFSETS,
    RARE,
    HeadLabels,
    HeadStatistics,
    RareShares,
    gradient_statistics,
    head_labels,
    head_statistics,
    layer_statistics,
    offset_counts,
    offset_shares,
    positional,
    rare_chance,
    rare_shares,
    rare_values,
    text_values,
    uniform_entropy,
)
from attention_sieve.core.texts.text import Text, read_bytes
from attention_sieve.core.usage import Example, Option, SecondTable, Usage

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class SurfaceSettings:
    """How statistics are computed.

    Raises: AnalysisError for an alpha that is not between 0 and 1.
    """

    punctuation: Annotated[tuple[str, ...], "characters that count as punctuation, written together"] = PUNCTUATION
    as_in_code: Annotated[
        bool, "compute shares and entropies as the code of Clark et al. does, which departs from their paper"
    ] = False
    """As in attention_sieve.core.surface.per_text.RowSettings."""
    alpha: Annotated[float, "confidence intervals cover 1 - alpha"] = 0.05
    frequencies: FrequencyList | None = None
    """Decides which words are rare; None for that of the texts that are read, or of English where these are few."""

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    @property
    def rows(self) -> RowSettings:
        """What the pass depends on."""
        return RowSettings(self.punctuation, self.as_in_code)


@dataclass(frozen=True, eq=False)
class SurfaceFinding:
    """Where every head looks over some texts; statistics are computed when they are first read."""

    read: tuple[Text, ...]
    """The texts."""
    texts: tuple[TextSurface, ...]
    """Statistics of each."""
    settings: SurfaceSettings

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return len(self.texts)

    @cached_property
    def frequencies(self) -> FrequencyList:
        """Decides which words are rare."""
        return self.settings.frequencies or frequencies_of(self.read)

    @cached_property
    def heads(self) -> HeadStatistics:
        """Means over the texts, with intervals."""
        return head_statistics(self.texts, self.settings.alpha, self._ranks)

    @cached_property
    def layers(self) -> HeadStatistics:
        """Agreement within layers."""
        return layer_statistics(self.texts, self.settings.alpha)

    @cached_property
    def uniform(self) -> dict[str, Float[np.ndarray, " layer"]]:
        """Entropy of uniform attention by the statistic that it is compared with, in nats."""
        return dict(zip(("entropy", "cls entropy"), uniform_entropy(self.texts), strict=True))

    @cached_property
    def rare(self) -> RareShares:
        """How often heads attend most to the rarest words."""
        return rare_shares(self.texts, self._ranks)

    @cached_property
    def labels(self) -> HeadLabels:
        """Positional heads, and heads that attend to rare words."""
        return head_labels(positional(self.texts), self.rare)

    @cached_property
    def _ranks(self) -> list[Int[np.ndarray, "_"]]:
        return [self.frequencies.ranks(text.key_words) for text in self.texts]

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {
            "word frequencies": self.frequencies.source,
            "punctuation": "".join(self.settings.punctuation),
            "as in code": "yes" if self.settings.as_in_code else "no",
            "alpha": str(self.settings.alpha),
        }


@dataclass(frozen=True, kw_only=True)
class GradientSettings:
    """How gradients are computed.

    Raises: AnalysisError for an alpha that is not between 0 and 1.
    """

    punctuation: Annotated[tuple[str, ...], "characters that count as punctuation, written together"] = PUNCTUATION
    alpha: Annotated[float, "confidence intervals cover 1 - alpha"] = 0.05

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {"punctuation": "".join(self.punctuation), "alpha": str(self.alpha)}


@dataclass(frozen=True, eq=False)
class GradientFinding:
    """How much the loss of a masked-language model depends on attention to each kind of key, by layer."""

    read: tuple[Text, ...]
    """The texts."""
    texts: tuple[TextGradients, ...]
    """Gradients of each."""
    settings: GradientSettings

    @cached_property
    def statistics(self) -> HeadStatistics:
        """Means over the texts, with intervals."""
        return gradient_statistics(self.texts, self.settings.alpha)


SURFACE: Final = "surface"
SURFACE_NAMES: Final = (*(share for share in SHARES if share != "first"), *SPREAD, *NEAR.values(), *RARE)
"""Without the share on the first token, which folders of corpora hold as the role `sink`."""
SURFACE_LAYERS: Final = "surface layers"
LAYER_NAMES: Final = ("agreement", "output agreement", "uniform entropy", "cls uniform entropy")
OFFSETS_AT: Final = "surface offsets"
OFFSETS_OF: Final = "surface offsets possible"
RARE_CHANCE: Final = "surface rare chance"
COLUMNS: Final = {
    "statistic": "name of the statistic. Shares of attention and confidence are between 0 and 1, entropy is in nats, "
    "distance in tokens. `offset share` is how often the most attended key is at that offset. `positional` and `rare` "
    "are labels of heads. In a model with attention sinks (GPT-OSS), which are no keys, each row is first divided by "
    "what its sink leaves",
    "layer": "index of the layer, from 0",
    "head": "index of the head, from 0; empty for statistics of a whole layer (agreement, output agreement, uniform "
    "entropy)",
    "mean": "mean over texts. For positional, the share of tokens whose most attended key is at the offset; for rare, "
    "the share on one of the two rarest words of the text",
    "low": "lower end of the confidence interval over texts",
    "high": "upper end of this interval",
    "texts": "number of texts for which the statistic is defined; a text without [CLS], [SEP] or punctuation counts as "
    "a share of 0 if another text has some",
    "offset": "key minus query, so -1 is the previous token; in rows of `offset share`, empty for all keys further "
    "away; in rows of `positional`, empty if no token counts",
    "holds": "whether the head has the label",
}
GRADIENT_COLUMNS: Final = {
    "kind": "kind of key",
    "layer": "index of the layer, from 0",
    "mean": "mean over texts of the absolute gradient with respect to one attention weight",
    "low": "lower end of the confidence interval over texts",
    "high": "upper end of this interval",
    "texts": "number of texts with such keys",
}


@cache
def surface_question(settings: RowSettings) -> answering.Question[Text, TextSurface]:
    """Surface statistics of the attention of each head on each text."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], pass_settings: PassSettings
    ) -> Iterator[list[tuple[int, TextSurface]]]:
        from attention_sieve.core.passes.batches import collect
        from attention_sieve.core.surface.observer import SurfaceObserver

        return collect(checkpoint, prepared, pass_settings, partial(SurfaceObserver, checkpoint, settings=settings))

    code = ", as in code" if settings.as_in_code else ""
    return answering.Question(
        name=f"surface{code}{_signs(settings.punctuation)}",
        text_of=answering.text_itself,
        depends_on=answering.text_alone,
        compute=compute,
        pack=_pack_surface,
        unpack=_unpack_surface,
        version=6,
    )


def _pack_surface(result: TextSurface) -> answering.Arrays:
    """In single precision: 40 kB for a text of 40 tokens and 144 heads."""
    return {**answering.in_single_precision(result), "key_words": answering.text_to_array(json.dumps(result.key_words))}


def _unpack_surface(arrays: answering.Arrays) -> TextSurface:
    words = tuple(json.loads(answering.array_to_text(arrays["key_words"])))
    return TextSurface(**answering.as_fields(arrays) | {"key_words": words})


@cache
def gradient_question(punctuation: tuple[str, ...]) -> answering.Question[Text, TextGradients]:
    """How much the loss of a masked-language model depends on attention in each text."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], pass_settings: PassSettings
    ) -> Iterator[list[tuple[int, TextGradients]]]:
        from attention_sieve.core.surface.gradients import attention_gradients

        return attention_gradients(checkpoint, prepared, pass_settings, punctuation=punctuation)

    return answering.Question(
        name=f"gradients of attention, masked keys as others{_signs(punctuation)}",
        text_of=answering.text_itself,
        depends_on=answering.text_alone,
        compute=compute,
        pack=answering.in_single_precision,
        unpack=lambda arrays: TextGradients(**answering.as_fields(arrays)),
    )


def _signs(punctuation: tuple[str, ...]) -> str:
    """What the name of a question says of the tokens that count as punctuation."""
    return "" if punctuation == PUNCTUATION else f", punctuation {json.dumps(punctuation)}"


def _values(_: Sequence[Text], texts: Sequence[TextSurface], settings: SurfaceSettings) -> Values:
    frequencies = settings.frequencies or english_frequencies()
    ranks = [frequencies.ranks(text.key_words) for text in texts]
    head_values = [
        text_values(text) | rare_values(text, text_ranks) for text, text_ranks in zip(texts, ranks, strict=True)
    ]
    offsets = [offset_counts(text) for text in texts]
    return {
        SURFACE: np.array([[values[name] for name in SURFACE_NAMES] for values in head_values], np.float32),
        SURFACE_LAYERS: np.stack(
            [[text.agreement, text.output_agreement, text.uniform_entropy, text.cls_uniform_entropy] for text in texts]
        ),
        OFFSETS_AT: np.stack([at for at, _ in offsets]).astype(float),
        OFFSETS_OF: np.stack([statistics for _, statistics in offsets]).astype(float),
        RARE_CHANCE: np.array([rare_chance(text_ranks) for text_ranks in ranks]),
    }


def _series(values: Values, _: Any) -> Mapping[str, Series]:
    return {name: Series(values=array, bins=SCORE_BINS if name == SURFACE else None) for name, array in values.items()}


def _cells(_: Any, n_layers: int, n_heads: int) -> dict[str, tuple[int, ...]]:
    n_near = len(OFFSETS) + 1
    return {
        SURFACE: (len(SURFACE_NAMES), n_layers, n_heads),
        SURFACE_LAYERS: (len(LAYER_NAMES), n_layers),
        OFFSETS_AT: (n_near, n_layers, n_heads),
        OFFSETS_OF: (n_near,),
        RARE_CHANCE: (),
    }


SURFACE_REDUCTION: Final = answering.Reduction(
    values=_values, series=_series, cells=_cells, columns=lambda _: {SURFACE: SURFACE_NAMES}
)
"""Statistics by head and by layer, and counts of the offsets of the most attended keys."""


def surface_table(finding: SurfaceFinding) -> "pd.DataFrame":
    """A row per statistic, layer and head, with COLUMNS."""
    import pandas as pd  # which the first page does without

    labels, n_texts = finding.labels, finding.n_texts
    at_offset, offsets = labels.positional, zip((*OFFSETS, None), offset_shares(finding.texts), strict=True)
    parts = [
        *_statistic_rows(finding.heads),
        *_statistic_rows(finding.layers),
        _rows("uniform entropy", finding.uniform["entropy"], n_texts),
        *(_rows("offset share", share, n_texts, offset=offset) for offset, share in offsets),
        _rows(
            "positional",
            at_offset.share,
            n_texts,
            offset=np.where(np.isnan(at_offset.share), np.nan, at_offset.offset),
            holds=at_offset.holds,
        ),
        _rows("rare", finding.rare.two_rarest, finding.rare.n_texts, holds=labels.rare),
    ]
    return pd.concat(parts, ignore_index=True)


def gradient_table(finding: GradientFinding) -> "pd.DataFrame":
    """A row per kind of key and layer, with GRADIENT_COLUMNS."""
    import pandas as pd

    table = pd.concat(_statistic_rows(finding.statistics), ignore_index=True)
    return table.rename(columns={"statistic": "kind"})[list(GRADIENT_COLUMNS)]


def _statistic_rows(statistics: HeadStatistics) -> "list[pd.DataFrame]":
    values = zip(statistics.names, statistics.mean, statistics.low, statistics.high, statistics.n_texts.tolist())
    return [_rows(name, mean, n_texts, low=low, high=high) for name, mean, low, high, n_texts in values]


def _rows(
    statistic: str, mean: Float[np.ndarray, "*head"], n_texts: int, **extra: np.ndarray | int | None
) -> "pd.DataFrame":
    """One row per head or layer; columns without a value are missing values."""
    import pandas as pd

    layer, *head = np.indices(mean.shape)
    columns = {"layer": layer, "head": head[0] if head else None, "mean": mean, "texts": n_texts, **extra}
    types = dict.fromkeys(("layer", "head", "texts", "offset"), "Int64") | dict.fromkeys(
        ("mean", "low", "high"), "float64"
    )
    flat = {name: values.ravel() if isinstance(values, np.ndarray) else values for name, values in columns.items()}
    table = pd.DataFrame({"statistic": statistic, **flat}, index=range(mean.size), columns=list(COLUMNS))
    return table.astype({**types, "holds": "boolean"})


def _usual(options: Namespace) -> SurfaceSettings:
    """The usual settings, with the frequencies of a file."""
    path: Path | None = options.frequencies
    return SurfaceSettings(frequencies=None if path is None else read_frequencies(path.name, read_bytes(path)))


def _check_gradients(checkpoint: Checkpoint) -> None:
    from attention_sieve.core.surface.gradients import check_gradients  # imports torch

    check_gradients(checkpoint)


GRADIENT_ANALYSIS: Final = answering.Analysis(
    name="gradients",
    sentence="Measure how much the loss of a masked language model depends on attention; a row per kind of key and "
    "layer.",
    settings=GradientSettings(),
    text_of=answering.text_itself,
    question=lambda settings: gradient_question(settings.punctuation),
    judge=GradientFinding,
    table=gradient_table,
    columns=GRADIENT_COLUMNS,
    facts=lambda _, settings: settings.facts,
    check=_check_gradients,
    usage=Usage(
        command=None,
        example=Example(
            model="model",
            keywords='tokenizer=sieve.load("bundled").tokenizer',
            before=(
                "from transformers import BertConfig, BertForMaskedLM",
                "model = BertForMaskedLM(BertConfig(num_hidden_layers=2))  # with random weights",
            ),
        ),
    ),
)
"""How much the loss of a masked-language model depends on attention to each kind of key, by layer.

Source: Clark et al. 2019, section 3.2.
"""
SURFACE_ANALYSIS: Final = answering.Analysis(
    name="surface",
    sentence="Measure where each head looks, without a syntactic analysis; a row per statistic, layer and head.",
    settings=SurfaceSettings(),
    text_of=answering.text_itself,
    question=lambda settings: surface_question(settings.rows),
    judge=SurfaceFinding,
    table=surface_table,
    columns=COLUMNS,
    facts=lambda finding, _: finding.facts,
    reduction=SURFACE_REDUCTION,
    usage=Usage(
        options={
            "frequencies": Option(
                sentence="file of words, the most frequent first, that decides which words are rare: "
                f"{', '.join(FREQUENCY_SUFFIXES)}; default: counted in the texts if there are enough, or else English",
                kind=Path,
            )
        },
        usual=_usual,
        second={
            "gradients": SecondTable(
                sentence="gradient of the loss with respect to the attention, of a masked language model",
                columns=GRADIENT_COLUMNS,
                analysis=GRADIENT_ANALYSIS,
                settings=lambda settings: GradientSettings(punctuation=settings.punctuation, alpha=settings.alpha),
            )
        },
        example=Example(keywords="alpha=0.1"),
    ),
)
"""Surface statistics of each head's attention: shares by kind of key, entropy, confidence, distance.

Source: Clark et al. 2019, section 3; Voita et al. 2019, sections 4 and 5.
"""
