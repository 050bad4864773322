"""What other tools say of planted models, as the workers of `benchmarks.planted.peers` have written it."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.planted.grades.records import ByHead


@dataclass(frozen=True)
class PeerScores:
    """Scores of all heads of one model by one tool."""

    model: str
    tool: str
    version: str
    says: str
    """*head type* or *importance*."""
    scores: dict[str, ByHead]
    """By what the tool calls them."""


@dataclass(frozen=True)
class NotRun:
    """A tool of which there are no numbers, or none of one model, and why."""

    tool: str
    model: str | None
    reason: str


def peer_scores(folder: Path) -> dict[str, dict[str, PeerScores]]:
    """Results by tool and model, of a folder with a folder for each tool; empty where there is none.

    Args:
        folder: Of the results.
    """
    adapter, found = TypeAdapter(PeerScores), dict[str, dict[str, PeerScores]]()
    for file in sorted(folder.glob("*/*.json")):
        scores = adapter.validate_json(file.read_text("utf-8"))
        found.setdefault(scores.tool, {})[scores.model] = scores
    return found


def not_run(folder: Path) -> tuple[NotRun, ...]:
    """What did not run; empty where nothing is written about that."""
    file = folder / "not_run.json"
    return TypeAdapter(tuple[NotRun, ...]).validate_json(file.read_text("utf-8")) if file.exists() else ()
