"""What the views of the page Importance share: the effect of switching off each head."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS
from attention_sieve.core.importance.effects import Effects
from attention_sieve.core.importance.finding import AblationFinding, metric_facts
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.views.asking import kept_finding, policy
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance.material import Material, of_texts


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


def kept_effects(visit: Visit) -> Effects | None:
    """Effects on the text vector for the card of a head, if they need no pass; None otherwise."""
    settings = AblationSettings(correction=visit.choice.criterion.correction)
    found = kept_finding(visit, ABLATION_ANALYSIS, settings, of_texts(visit.texts), policy()) if visit.texts else None
    return None if found is None else found.finding.effects


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
