"""Dependency trees of texts: those that are missing are parsed under a progress bar."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.cache.store.recent import Recent
from attention_sieve.core.texts.relations import Dependencies, dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.progress import in_its_place, with_progress

TREES: Final = 20_000
"""Number of texts whose trees are cached in memory: parsing is the slowest step that clicks repeat."""
PARSED_PER_REPORT: Final = 20
_trees: Final[Recent[Text, Dependencies]] = Recent(TREES)
"""The trees of the latest texts, shared by all sessions."""


@in_its_place
def trees_of(texts: tuple[Text, ...]) -> list[Dependencies] | None:
    """The tree of each text, parsed if it is not cached; None if the reader stops the parsing."""
    trees = {text: tree for text in texts if (tree := _trees.get(text)) is not None}
    missing = [text for text in dict.fromkeys(texts) if text not in trees]
    if missing:
        parsed = with_progress(
            ("trees", tuple(missing)), lambda report: _parse(missing, len(trees), report), shared_wording.PARSING
        )
        if parsed is None:
            return None
        trees |= parsed
    return [trees[text] for text in texts]


def _parse(texts: Sequence[Text], n_known: int, report: Report) -> dict[Text, Dependencies]:
    """Parse texts; each tree is cached as soon as it is parsed."""
    trees = dict[Text, Dependencies]()
    for text, tree in zip(texts, dependencies(texts), strict=True):
        trees[text] = tree
        _trees.put(text, tree)
        if len(trees) % PARSED_PER_REPORT == 0:
            n_done, n_total = n_known + len(trees), n_known + len(texts)
            report(Status(done=n_done, total=n_total, seconds_left=None, n_waiting_before=0))
    return trees
