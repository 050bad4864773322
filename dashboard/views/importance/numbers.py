"""What the views of the page Importance share: the effect of switching off each head."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.importance.finding import AblationFinding, metric_facts
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.views.importance.material import Material


@dataclass(frozen=True, eq=False, kw_only=True)
class Importance:
    """What the views of the page share."""

    material: Material
    found: CorpusFinding[AblationFinding]
    """The effect of switching off each head."""
    heads: list[Head]
    """The chosen heads."""
    facts: dict[str, str]
    """Provenance of files, without a command: each view has its own, or none."""

    def computed_by(self, name: str, *options: str) -> dict[str, str]:
        """Provenance of numbers that a command computes."""
        return self.facts | {"command": self.material.line(name, *options)}

    @property
    def ablation(self) -> AblationFinding:
        """The effect of switching off each head."""
        return self.found.finding

    @property
    def read(self) -> Sequence[LabelledText]:
        """The texts that were read."""
        return self.material.at(self.found.positions)

    @property
    def differs(self) -> Bool[np.ndarray, "layer head"]:
        """Heads without which the score differs significantly, at the reader's level and with their correction."""
        return self.ablation.effects.p_adjusted < self.material.visit.choice.criterion.alpha


def facts_of(material: Material, n_texts: int) -> dict[str, str]:
    """Provenance that is written into downloaded files."""
    choice, engine = material.visit.choice, material.visit.engine
    texts = {"corpus": material.labels_name or choice.corpus, "corpus texts": str(n_texts)}
    return {
        **provenance.engine_facts(choice, engine),
        **texts,
        **metric_facts(material.settings),
        "alpha": f"{choice.criterion.alpha:g}",
        "correction": choice.criterion.correction,
    }
