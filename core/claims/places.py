"""The same claim in several places: whether heads have a role on other texts, and in other checkpoints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from attention_sieve.core.answering import Reading, Watch, find_in
from attention_sieve.core.attention.settings import Head, head_names
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.claims.analysis import CLAIM_ANALYSIS
from attention_sieve.core.claims.judge import HOLDING, ClaimFinding
from attention_sieve.core.claims.probe import ClaimSettings, claim_texts
from attention_sieve.core.claims.tables import COLUMNS, claim_summary, claim_table
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text

if TYPE_CHECKING:
    import pandas as pd

PLACE_COLUMNS: Final = {
    "tested_in": "name of the checkpoint",
    "tested_on": "name of the texts",
    **COLUMNS,
}
PROBE_TEXTS: Final = "probe texts"
"""Name of the texts that are made for a role."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Place:
    """What became of a claim on some texts in some checkpoint."""

    checkpoint: str
    texts: str
    finding: ClaimFinding | None
    """None where the claim cannot be tested."""
    why_not: str = ""
    """Then: why not, as a sentence."""

    @property
    def held(self) -> tuple[Head, ...]:
        """The heads of the claim that hold its role here, tested against a ruler or not."""
        if self.finding is None:
            return ()
        by_head = zip(self.finding.claim.heads, self.finding.verdicts, strict=True)
        return tuple(head for head, verdict in by_head if verdict in HOLDING)


@dataclass(frozen=True, eq=False, kw_only=True)
class TestedClaim:
    """What became of a claim: where it was made, and in other places."""

    first: ClaimFinding
    places: tuple[Place, ...]
    """That of `first` is the first."""

    @property
    def table(self) -> "pd.DataFrame":
        """A row per place and head of the claim, with PLACE_COLUMNS; none of a place where it cannot be tested."""
        return places_table(self.places)

    @property
    def summary(self) -> str:
        """In sentences: of each head, of all together, then of the other places."""
        return "\n".join((claim_summary(self.first), *map(_place_sentence, self.places[1:])))


def places_table(places: Sequence[Place]) -> "pd.DataFrame":
    """A row per place and head of the claim, with PLACE_COLUMNS; none of a place where it cannot be tested."""
    import pandas as pd  # the first page does without

    tables = [
        claim_table(place.finding).assign(tested_in=place.checkpoint, tested_on=place.texts)
        for place in places
        if place.finding is not None
    ]
    return pd.concat(tables, ignore_index=True)[list(PLACE_COLUMNS)]


def _place_sentence(place: Place) -> str:
    where = f"{place.checkpoint}, {place.texts}"
    if place.finding is None:
        return f"{where}: {place.why_not}"
    n = len(place.finding.claim.heads)
    return f"{where}: holds for {len(place.held):,} of {n:,}{f' ({head_names(place.held)})' if place.held else ''}."


def tested(
    settings: ClaimSettings,
    given: Sequence[Text] | None,
    checkpoint: Checkpoint,
    read: Callable[[Sequence[Text]], Reading[Text]],
    watch: Watch,
) -> ClaimFinding:
    """What becomes of a claim in one place.

    Raises: AnalysisError for heads that are not there, and of any stage.
    """
    texts = claim_texts(settings, given, checkpoint.tokenizer, checkpoint.max_tokens)
    reading: Reading[Any] = read([text.text for text in texts])
    return find_in(CLAIM_ANALYSIS, replace(reading, inputs=texts), settings, watch)


def place_of(checkpoint: str, texts: str, test: Callable[[], ClaimFinding]) -> Place:
    """Another place: where the claim cannot be tested there, the sentence that says why."""
    try:
        return Place(checkpoint=checkpoint, texts=texts, finding=test())
    except AnalysisError as error:
        return Place(checkpoint=checkpoint, texts=texts, finding=None, why_not=str(error))
