"""Controls for roles: how many heads hold each role with random weights, permuted keys, or shuffled words.

Random weights of the same shape have learned nothing; permuted keys keep how sharply a head attends, but not where;
shuffled words keep the words of a text, but not their order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

import numpy as np
from jaxtyping import Int

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids

Control = Literal["none", "random weights", "permuted keys", "shuffled words"]
SEEDS: Final = (0, 1, 2)
N_CONTROLS: Final = 2 + len(SEEDS)
"""Passes of each text: with permuted keys, with shuffled words, and with random weights."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ControlPass:
    """Of which checkpoint and texts the analysis of roles finds what a control gives, and with which settings."""

    control: Control
    seed: int
    files: CheckpointFiles
    texts: tuple[Text, ...]
    settings: RoleSettings

    @property
    def name(self) -> str:
        """The control, with its seed if it has several."""
        return f"{self.control}, seed {self.seed}" if self.control == "random weights" else self.control


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleCounts:
    """Number of heads that hold each role."""

    control: Control
    seed: int
    roles: tuple[str, ...]
    heads: Int[np.ndarray, " role"]
    n_heads: int
    """Number of heads that could hold it."""


def control_passes(
    files: CheckpointFiles, texts: Sequence[Text], settings: RoleSettings | None = None
) -> Iterator[ControlPass]:
    """The passes of every control of a checkpoint on some texts, each made when it is asked for; None for the usual
    settings."""
    settings, same = settings or RoleSettings(), tuple(texts)
    of = partial(ControlPass, seed=0, files=files, texts=same, settings=settings)
    yield of(control="permuted keys", settings=replace(settings, scores=replace(settings.scores, permuted=0)))
    yield of(control="shuffled words", texts=tuple(shuffled_words(text, 0) for text in same))
    for seed in SEEDS:
        yield of(control="random weights", files=randomly_initialised(files, seed), seed=seed)


def counts_of(tests: HeadTests, control: Control, seed: int = 0) -> RoleCounts:
    """Count the heads that hold each role, from their tests."""
    heads = tests.holds.sum(axis=(1, 2))
    return RoleCounts(control=control, seed=seed, roles=tests.roles, heads=heads, n_heads=tests.holds[0].size)


def shuffled_words(text: Text, seed: int) -> Text:
    """The same text with the words of each segment in random order, without its trees.

    Words are split at spaces, so that punctuation moves with the word that it is attached to. Of ids, all but the first
    are shuffled, which may begin the text.
    """
    random = np.random.default_rng([seed, len(text.segments[0])])
    if text.given is not None:
        first, *rest = text.given.ids
        return text_of_ids(GivenTokens((first, *random.permutation(rest).astype(int).tolist())))
    return Text(
        tuple(" ".join(random.permutation(segment.split()).tolist()) for segment in text.segments), parser=text.parser
    )
