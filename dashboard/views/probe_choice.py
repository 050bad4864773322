"""Which probes are trained, and how: the controls of the section Probes."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from cache.probing import ProbeKind
from core.errors import AnalysisError
from core.probing import ProbeSettings
from core.texts import SUFFIXES, Text, read_file
from dashboard import probing_wording as wording
from dashboard.plain import show_error

NARROWEST: Final = 140
"""Pixels of a setting."""
DEFAULTS: Final = ProbeSettings()
USUAL_TEST_SHARE: Final = 0.25
DOES: Final = {True: "yes", False: "no"}


@dataclass(frozen=True, eq=False, kw_only=True)
class Asked:
    """What the reader asks besides the sidebar's choices."""

    kinds: tuple[ProbeKind, ...]
    how: ProbeSettings
    vectors: Any
    """The uploaded file of word vectors; None for the checkpoint's own."""
    test_share: float
    test_texts: tuple[Text, ...]
    """Of a file of their own; none where a share of the corpus is tested on."""

    @property
    def ingredients(self) -> Hashable:
        """What a result depends on of all this."""
        file = None if self.vectors is None else self.vectors.file_id
        return self.kinds, self.how, file, self.test_share, self.test_texts


def facts_of(asked: Asked) -> dict[str, str]:
    """What a file says about how its probes were trained."""
    numbers = {name: f"{getattr(asked.how, name):g}" for name in wording.NUMBERS}
    return {
        **{name.replace("_", " "): number for name, number in numbers.items()},
        "bias": DOES[asked.how.bias],
        "word vectors": "the checkpoint's own" if asked.vectors is None else asked.vectors.name,
        "tested on": f"{len(asked.test_texts)} texts of a file" if asked.test_texts else f"share {asked.test_share:g}",
    }


def choose() -> Asked | None:
    """What to train and how; None where the reader has to choose first, which is said."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = st.segmented_control(
            wording.WHAT,
            (wording.ALONE, wording.AND_WORDS),
            selection_mode="multi",
            default=(wording.ALONE, wording.AND_WORDS),
            key="probes",
            help=wording.WHAT_HELP,
            bind="query-params",
            persist_state="session",
        )
        control = _toggle(wording.CONTROL, "probe control", wording.CONTROL_HELP, value=True)
    words = wording.AND_WORDS in picked
    with st.expander(wording.SETTINGS):
        how, test_share = _numbers()
        vectors, is_file = _vectors() if words else (None, False)
        test_texts = _test_texts()
    if not picked or how is None or (is_file and vectors is None):
        st.info(wording.PICK_FILE if picked and how else wording.PICK)
        return None
    names = [name for name in (wording.ALONE, wording.AND_WORDS) if name in picked]
    return Asked(
        kinds=tuple(
            ProbeKind(name == wording.AND_WORDS, of_random)
            for of_random in ((False, True) if control else (False,))
            for name in names
        ),
        how=how,
        vectors=vectors,
        test_share=test_share,
        test_texts=test_texts,
    )


def _numbers() -> tuple[ProbeSettings | None, float]:
    """Settings of the training and the share tested on; None where a number is out of range, which is said."""
    grid = st.grid(3, min_column_width=NARROWEST)
    numbers = {
        name: grid.cell().number_input(
            label,
            value=getattr(DEFAULTS, name),
            step=step,
            format="%d" if isinstance(step, int) else "%g",
            key=f"probe {name}",
            help=about,
            bind="query-params",
            persist_state="session",
        )
        for name, (label, about, step) in wording.NUMBERS.items()
    }
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
    bias = _toggle(wording.BIAS, "probe bias", wording.BIAS_HELP, value=False)
    try:
        return ProbeSettings(bias=bias, **numbers), test_share
    except AnalysisError as error:
        show_error(error)
        return None, test_share


def _vectors() -> tuple[Any, bool]:
    """The uploaded file of word vectors, and whether there has to be one."""
    where = st.segmented_control(
        wording.VECTORS,
        (wording.OWN_VECTORS, wording.FILE_VECTORS),
        default=wording.OWN_VECTORS,
        key="probe vectors",
        help=wording.VECTORS_HELP,
        required=True,
        bind="query-params",
        persist_state="session",
    )
    if where != wording.FILE_VECTORS:
        return None, False
    uploaded = st.file_uploader(
        wording.VECTORS_FILE, type=["txt", "vec"], key="probe vectors file", help=wording.VECTORS_FILE_HELP
    )
    return uploaded, True


def _test_texts() -> tuple[Text, ...]:
    """Texts of a file to test on; none where a share of the corpus is."""
    uploaded = st.file_uploader(
        wording.TEST_FILE,
        type=[suffix.removeprefix(".") for suffix in SUFFIXES],
        key="probe test file",
        help=wording.TEST_FILE_HELP,
    )
    return () if uploaded is None else _read(uploaded.file_id, uploaded.name, uploaded.getvalue)


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(file_id: str, name: str, _content: Callable[[], bytes]) -> tuple[Text, ...]:
    """Read once per upload."""
    return read_file(name, _content())


def _toggle(label: str, key: str, about: str, *, value: bool) -> bool:
    return st.toggle(label, value, key=key, help=about, bind="query-params", persist_state="session")
