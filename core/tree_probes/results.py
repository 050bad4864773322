"""What a run of probes finds, probe by probe."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from attention_sieve.core.tree_probes.probe import AttachmentScore, ProbeTraining


@dataclass(frozen=True)
class ProbeKind:
    """A kind of probe."""

    words: bool
    """Whether weights depend on the words."""
    control: bool
    """Whether the checkpoint has random weights; word vectors are still those of the real checkpoint."""

    @property
    def name(self) -> str:
        """Its name in reports and on pages."""
        return f"attention {'and words' if self.words else 'alone'}{', random weights' * self.control}"


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedProbe:
    """A trained probe and its score on the test texts."""

    training: ProbeTraining
    """Unfinished if it was stopped."""
    score: AttachmentScore


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeResults:
    """Results so far."""

    offsets: Mapping[int, AttachmentScore]
    """Scores of right-branching and of the best fixed offset."""
    probes: Mapping[ProbeKind, TrainedProbe]
    too_long: tuple[tuple[int, int], ...]
    """Index and number of tokens of each text that was left out."""
    n_left_out: int
    """Words of the other texts used for neither training nor testing, as they or their heads have no tokens."""

    def has(self, kinds: Iterable[ProbeKind]) -> bool:
        """Whether the probes of these kinds are finished."""
        return all(kind in self.probes and self.probes[kind].training.is_finished for kind in kinds)
