"""Dependency trees of texts, from memory, the store, or the parser; no checkpoint is needed."""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from attention_sieve.cache.memory import Memory
from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.cache.store.store import Store, tree_key
from attention_sieve.core.answering import Arrays, array_to_text, text_to_array
from attention_sieve.core.texts.parsing import keep_parses_in
from attention_sieve.core.texts.relations import Dependencies, dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import Words

TREES_BYTES: Final = 64 * 2**20
"""Limit of the trees in memory, which clicks read again, and of parses, which changed roles read. They have a memory of
their own: the thousands of one corpus would push out every finding."""
PARSED_PER_REPORT: Final = 20


class NotKept(Exception):
    """A text has to be parsed or passed."""


class Trees:
    """Trees of texts; thread-safe. Texts that bring their trees are never stored."""

    def __init__(self, store: Store) -> None:
        """Keep them in a store."""
        self._store = store
        self._memory = Memory(TREES_BYTES)
        keep_parses_in(self._memory)

    def kept(self, texts: Sequence[Text]) -> Iterator[Dependencies]:
        """The tree of each text, without the parser, looked up as the first one is read.

        Raises: NotKept; AnalysisError if no parser is installed, whose name is part of the key.
        """
        trees = self._known(texts)
        for text in texts:
            if text not in trees:
                raise NotKept
            yield trees[text]

    def of(self, texts: Sequence[Text], report: Report | None = None) -> Iterator[Dependencies]:
        """The tree of each text; missing ones are parsed in this thread, as the first one is read. If `report` raises,
        the parsing ends, and finished trees are stored.

        Raises: AnalysisError if no parser is installed; whatever `report` raises.
        """
        trees = self._known(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in trees]
        parsed, n_total = zip(missing, dependencies(missing), strict=True), len(trees) + len(missing)
        while batch := dict(islice(parsed, PARSED_PER_REPORT)):
            self._store.put_many({tree_key(text): _packed(tree) for text, tree in batch.items()})
            self._remember(batch)
            trees |= batch
            if report is not None:
                report(Status(len(trees), n_total, seconds_left=None, n_waiting_before=0, is_parsing=True))
        yield from (trees[text] for text in texts)

    def _known(self, texts: Sequence[Text]) -> dict[Text, Dependencies]:
        """The trees that are in memory, in the store, or in the texts' files."""
        trees = {text: tree for text in texts if (tree := self._memory.get("tree", text)) is not None}
        gold = [text for text in dict.fromkeys(texts) if text.heads is not None and text not in trees]
        keys = {text: tree_key(text) for text in texts if text.heads is None and text not in trees}
        stored = self._store.get_many(list(dict.fromkeys(keys.values())))  # texts of two documents may share a key
        kept = {text: _unpacked(stored[key]) for text, key in keys.items() if key in stored}
        kept |= zip(gold, dependencies(gold), strict=True)
        self._remember(kept)
        return trees | kept

    def _remember(self, trees: dict[Text, Dependencies]) -> None:
        for text, tree in trees.items():
            self._memory.put("tree", text, tree)


def _packed(tree: Dependencies) -> Arrays:
    return {
        "segments": tree.words.segments.astype(np.int8),
        "spans": tree.words.spans.astype(np.int32),
        "heads": tree.heads.astype(np.int32),
        "relations": text_to_array(json.dumps(tree.relations)),
    }


def _unpacked(arrays: Arrays) -> Dependencies:
    return Dependencies(
        words=Words(segments=arrays["segments"], spans=arrays["spans"]),
        heads=arrays["heads"],
        relations=tuple(json.loads(array_to_text(arrays["relations"]))),
    )
