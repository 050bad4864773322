"""What the statistics of single texts say of the heads, and what gradients say of the layers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.statistics.means import check_alpha
from attention_sieve.core.surface.frequencies import FrequencyList, frequencies_of
from attention_sieve.core.surface.per_text import PUNCTUATION, RowSettings, TextGradients, TextSurface
from attention_sieve.core.surface.statistics import (
    HeadLabels,
    HeadStatistics,
    RareShares,
    gradient_statistics,
    head_labels,
    head_statistics,
    layer_statistics,
    positional,
    rare_shares,
    uniform_entropy,
)
from attention_sieve.core.texts.text import Text


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
