"""The popover of test settings, on the pages that test."""

from collections.abc import Callable
from typing import Final, TypeVar, get_args

import streamlit as st

from attention_sieve.core.checkpoints.checkpoint import DTYPES
from attention_sieve.core.checkpoints.find import DEVICES
from attention_sieve.core.roles.measures import USUAL_TAU, Scale, SyntacticDirection
from attention_sieve.core.roles.roles import FURTHER_ROLES
from attention_sieve.dashboard import state, wording
from attention_sieve.dashboard.figures.appearance import HIGHEST_TAU
from attention_sieve.dashboard.state import (
    AUTO,
    CORRECTIONS,
    FAMILIES,
    FURTHER,
    LAYERS_ACROSS,
    METHODS,
    RULES,
    SCALES,
    TAUS,
)

TAU_RANGES: Final[dict[Scale, tuple[float, float, float]]] = {
    "score": (1.0, HIGHEST_TAU["score"], 0.1),
    "share": (0.05, HIGHEST_TAU["share"], 0.05),
}
"""Minimum, maximum and step of tau."""
SETTINGS: Final = frozenset(
    {"scale", *TAUS.values(), "alpha", "correction", "role rule", "family", "method", "ddof", "direction", "entropy"}
    | {"device", "dtype", FURTHER, LAYERS_ACROSS}
)
"""Keys and query parameters of all settings; the address holds those that differ from the defaults."""
Option = TypeVar("Option")
ALPHAS: Final = (0.001, 0.01, 0.05, 0.1)


def test_settings(*of_page: Callable[[], None]) -> None:
    """Settings that decide which head has which role, and the device; `state.choice()` reads them.

    Args:
        of_page: draw those that one page has of its own, before the others.
    """
    with st.popover(wording.TEST_SETTINGS, icon=":material/tune:", key="test settings"):
        for draw in of_page:
            draw()
        _thresholds()
        with st.expander(wording.MORE_SETTINGS):
            _finer_settings()
        with st.expander(wording.DEVICE):
            _device()
        st.toggle(
            wording.LAYERS_ACROSS,
            key=LAYERS_ACROSS,
            help=wording.LAYERS_ACROSS_HELP,
            bind="query-params",
            persist_state="session",
        )


def device_settings() -> None:
    with st.popover(wording.DEVICE, icon=":material/memory:", key="device settings"):
        _device()


def _thresholds() -> None:
    usual = next(name for name, scale in SCALES.items() if scale == state.usual_scale())
    # No option of its own as the default: the usual one changes, and the address leaves out what is the default.
    st.selectbox(
        wording.SCALE,
        list(SCALES),
        index=None,
        placeholder=usual,
        key="scale",
        help=wording.SCALE_HELP,
        bind="query-params",
        persist_state="session",
    )
    scale = state.scale()
    low, high, step = TAU_RANGES[scale]
    st.slider(
        "tau",
        low,
        high,
        USUAL_TAU[scale],
        step,
        key=TAUS[scale],
        help=wording.TAU_HELP[scale],
        bind="query-params",
        persist_state="session",
    )
    st.select_slider(
        "alpha",
        ALPHAS,
        0.05,
        key="alpha",
        help=wording.ALPHA_HELP,
        bind="query-params",
        persist_state="session",
    )
    _one_of("Correction", tuple(CORRECTIONS), "correction", wording.CORRECTION_HELP)
    st.pills(
        wording.FURTHER,
        FURTHER_ROLES,
        selection_mode="multi",
        key=FURTHER,
        help=wording.FURTHER_HELP,
        bind="query-params",
        persist_state="session",
    )


def _finer_settings() -> None:
    _one_of(wording.RULE, tuple(RULES), "role rule", wording.RULE_HELP)
    _one_of(wording.FAMILY, tuple(FAMILIES), "family", wording.FAMILY_HELP)
    _one_of("Decide by", tuple(METHODS), "method", wording.METHOD_HELP)
    _one_of("Delta degrees of freedom (ddof)", (1, 0), "ddof", wording.DDOF_HELP)
    _one_of("Syntactic direction", get_args(SyntacticDirection), "direction", wording.DIRECTION_HELP)
    by_share = state.scale() == "share"
    st.toggle(
        "Weight block with entropy",
        True,
        key="entropy",
        help=wording.ENTROPY_HELP_SHARE if by_share else wording.ENTROPY_HELP,
        disabled=by_share,
        bind="query-params",
        persist_state="session",
    )


def _device() -> None:
    _one_of("Device", (AUTO, *DEVICES), "device", wording.DEVICE_HELP)
    _one_of("Number format", (AUTO, *DTYPES), "dtype", wording.DTYPE_HELP)


def _one_of(label: str, options: tuple[Option, ...], key: str, help: str) -> Option:
    return st.selectbox(label, options, key=key, help=help, bind="query-params", persist_state="session")
