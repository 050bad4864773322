"""The analyses of surface statistics, and of gradients with respect to attention: where heads look, as two values."""

from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.answering import Analysis
from attention_sieve.core.passes.question import text_itself
from attention_sieve.core.surface.finding import (
    GradientFinding,
    GradientSettings,
    SurfaceFinding,
    SurfaceSettings,
)
from attention_sieve.core.surface.labels import OFFSETS, offset_shares
from attention_sieve.core.surface.question import gradient_question, surface_question
from attention_sieve.core.surface.reduction import SURFACE_REDUCTION
from attention_sieve.core.surface.statistics import HeadStatistics, LayerStatistics

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Final = {
    "statistic": "name of the statistic. Shares of attention and confidence are between 0 and 1, entropy is in nats, "
    "distance in tokens. `offset share` is how often the most attended key is at that offset. `positional` and `rare` "
    "are labels of heads",
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
"""What each column of the table of surface statistics holds."""
GRADIENT_COLUMNS: Final = {
    "kind": "kind of key",
    "layer": "index of the layer, from 0",
    "mean": "mean over texts of the absolute gradient with respect to one attention weight",
    "low": "lower end of the confidence interval over texts",
    "high": "upper end of this interval",
    "texts": "number of texts with such keys",
}
"""What each column of the table of gradients holds."""


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


def _statistic_rows(statistics: HeadStatistics | LayerStatistics) -> "list[pd.DataFrame]":
    statistic_values = zip(
        statistics.names, statistics.mean, statistics.low, statistics.high, statistics.n_texts.tolist(), strict=True
    )
    return [_rows(name, mean, n_texts, low=low, high=high) for name, mean, low, high, n_texts in statistic_values]


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


SURFACE_ANALYSIS: Final = Analysis(
    name="surface",
    settings=SurfaceSettings(),
    text_of=text_itself,
    question=lambda settings: surface_question(settings.rows),
    judge=SurfaceFinding,
    table=surface_table,
    columns=COLUMNS,
    facts=lambda finding, _: finding.facts,
    reduction=SURFACE_REDUCTION,
)
"""Surface statistics of each head's attention: shares by kind of key, entropy, confidence, distance.

Source: Clark et al. 2019, section 3; Voita et al. 2019, sections 4 and 5.
"""
GRADIENT_ANALYSIS: Final = Analysis(
    name="gradients",
    settings=GradientSettings(),
    text_of=text_itself,
    question=lambda settings: gradient_question(settings.punctuation),
    judge=GradientFinding,
    table=gradient_table,
    columns=GRADIENT_COLUMNS,
    facts=lambda _, settings: settings.facts,
)
"""How much the loss of a masked-language model depends on attention to each kind of key, by layer.

Source: Clark et al. 2019, section 3.2.
"""
