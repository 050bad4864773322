"""Which probes are trained, and how: the controls of the section Probes."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

import streamlit as st

from attention_sieve.core.command_lines import given_options
from attention_sieve.core.texts.text import SUFFIXES, Text, read_file
from attention_sieve.core.tree_probes.probe import ProbeKind, TreeProbeSettings
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.plain import errors_shown
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.tree_probes import wording
from attention_sieve.dashboard.views.pickers import numbers, one_of, toggle

NARROWEST: Final = 140
"""Minimum width of a setting, in pixels."""
DEFAULTS: Final = TreeProbeSettings()
USUAL_TEST_SHARE: Final = 0.25


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingPlan:
    kinds: tuple[ProbeKind, ...]
    settings: TreeProbeSettings
    vectors: Any
    """The uploaded file of word vectors; None for the checkpoint's own."""
    test_share: float
    """Share of the corpus to test on, if there are no test texts."""
    test_texts: tuple[Text, ...]
    """Texts of a separate file; empty if a share of the corpus is tested on."""

    @property
    def key(self) -> Hashable:
        """Equal for plans whose probes of one kind are equal."""
        file = None if self.vectors is None else sha256(self.vectors.getvalue()).hexdigest()
        return self.settings, file, self.test_share, self.test_texts

    @property
    def facts(self) -> dict[str, str]:
        numbers = {name.replace("_", " "): f"{getattr(self.settings, name):g}" for name in wording.NUMBER_INPUTS}
        return {
            **numbers,
            "bias": "yes" if self.settings.bias else "no",
            "words": self._words,
            "tested on": f"{len(self.test_texts)} texts of a file" if self.test_texts else f"share {self.test_share:g}",
        }

    @property
    def share_option(self) -> list[str]:
        return [f"--test-share={self.test_share}"] if self.test_share != USUAL_TEST_SHARE else []

    @property
    def options(self) -> dict[str, list[str]]:
        """The options of each command that trains them, by the name of its file: with and without words."""
        usual = given_options(replace(self.settings, bias=False), DEFAULTS)
        with_words = [*given_options(self.settings, DEFAULTS), f"--words={self._words}"]
        return {
            name: options
            for words, name, options in ((False, "tree-probes", usual), (True, "tree-probes-of-words", with_words))
            if any(kind.words == words for kind in self.kinds)
        }

    @property
    def _words(self) -> str:
        if not any(kind.words for kind in self.kinds):
            return "none"
        return "embeddings" if self.vectors is None else str(self.vectors.name)


def training_plan() -> TrainingPlan | None:
    """Let the reader choose what to train; None if they have to choose more first, which the page says."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = st.segmented_control(
            wording.WHAT,
            (wording.ALONE, wording.AND_WORDS),
            selection_mode="multi",
            default=(wording.ALONE, wording.AND_WORDS),
            key="probes",
            help=wording.WHAT_HELP,
            bind="query-params",
            persist_state="session",
        )
        control = toggle(
            shared_wording.RANDOM_WEIGHTS, key="probe control", start=True, help=wording.RANDOM_WEIGHTS_HELP
        )
    with_words = [words for name, words in ((wording.ALONE, False), (wording.AND_WORDS, True)) if name in names]
    with st.expander(wording.SETTINGS):
        settings, test_share = _numbers()
        vectors, needs_file = _vectors() if True in with_words else (None, False)
        test_texts = _test_texts()
    if not names or settings is None or (needs_file and vectors is None):
        st.info(wording.PICK_FILE if names and settings else wording.PICK)
        return None
    return TrainingPlan(
        kinds=tuple(
            ProbeKind(words, of_random)
            for of_random in ((False, True) if control else (False,))
            for words in with_words
        ),
        settings=settings,
        vectors=vectors,
        test_share=test_share,
        test_texts=test_texts,
    )


def _numbers() -> tuple[TreeProbeSettings | None, float]:
    """Settings of the training and the test share; None where a number is out of range, which the page says."""
    grid = st.grid(3, min_column_width=NARROWEST)
    values = numbers(grid, wording.NUMBER_INPUTS, DEFAULTS, prefix="probe ")
    test_share = grid.cell().number_input(
        wording.TEST_SHARE,
        min_value=0.05,
        max_value=0.95,
        value=USUAL_TEST_SHARE,
        step=0.05,
        key="probe test share",
        help=wording.TEST_SHARE_HELP,
        bind="query-params",
        persist_state="session",
    )
    bias = toggle(wording.BIAS, key="probe bias", help=wording.BIAS_HELP)
    with errors_shown():
        return TreeProbeSettings(bias=bias, **values), test_share
    return None, test_share


def _vectors() -> tuple[Any, bool]:
    """The uploaded file of word vectors, and whether one is needed."""
    needs_file = one_of(
        wording.VECTORS,
        {wording.OWN_VECTORS: False, wording.FILE_VECTORS: True},
        key="probe vectors",
        help=wording.VECTORS_HELP,
    )
    if not needs_file:
        return None, False
    uploaded = st.file_uploader(
        wording.VECTORS_FILE, type=["txt", "vec"], key="probe vectors file", help=wording.VECTORS_FILE_HELP
    )
    return uploaded, True


def _test_texts() -> tuple[Text, ...]:
    uploaded = st.file_uploader(
        wording.TEST_FILE,
        type=SUFFIXES,
        key="probe test file",
        help=wording.TEST_FILE_HELP,
    )
    if uploaded is None:
        return ()
    return memory().get_or_put("test texts", uploaded.file_id, lambda: read_file(uploaded.name, uploaded.getvalue()))
