"""The sidebar: its widgets, and the checkpoint and texts that they select. No analysis."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.memory import Memory
from attention_sieve.cache.serving.shares import Quotas
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import ONE_STACK, head_name
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER, has_sample_decoder
from attention_sieve.core.checkpoints.find import (
    BUNDLED,
    asked_of_hub,
    base_on_hub,
    choose_device,
    find_checkpoint,
)
from attention_sieve.core.checkpoints.folders import made_checkpoints
from attention_sieve.core.checkpoints.gguf import SUFFIX as GGUF
from attention_sieve.core.checkpoints.hub import fetch
from attention_sieve.core.errors import AnalysisError, CheckpointError, ColumnsNeeded, HubOutOfReach, TextError
from attention_sieve.core.probe_texts.make import ProbeKind, ProbeTextSettings, fitting_block, probe_texts
from attention_sieve.core.texts.parsers import ENGLISH, parsed_by, parsers_by_language
from attention_sieve.core.texts.text import PAIR_MARK, SUFFIXES, Text, read_file, read_typed
from attention_sieve.dashboard import link, offers, public, state, wording
from attention_sieve.dashboard.components.kept_text import fetch_text, keep_text, mark_of
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.plain import for_visitors, plain
from attention_sieve.dashboard.progress import in_its_place, let_leave
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER
from attention_sieve.dashboard.samples import read_sample
from attention_sieve.dashboard.state import KINDS, Choice
from attention_sieve.dashboard.web.session import session_id, visitor

SAMPLES: Final = {
    "sample pairs and texts": "both",
    "sample pairs": "pairs",
    "sample texts": "texts",
    "varied sample texts": "varied",
}
SAMPLES_IN: Final = {"sample texts in French": "French"}
PROBES: Final[dict[str, ProbeKind]] = {
    "probe texts: repeats": "repeats",
    "probe texts: repeats, fixed period": "fixed-repeats",
    "probe texts: needles": "needles",
    "probe texts: names and ordinals": "names",
}
"""Texts that are made for the vocabulary of the checkpoint."""
N_PROBES: Final = 20
SHORT_BLOCK: Final = 8
"""Tokens of a block of repeats that is drawn."""
UPLOAD: Final = "upload a file"
TYPED: Final = "type texts"
TYPED_TEXTS: Final = "corpus_text"
"""Key of the text area in the sidebar."""
CORPORA: Final = (*SAMPLES, *PROBES, UPLOAD, TYPED, A_RESULTS_FOLDER)
SUGGESTED: Final = (
    BUNDLED,
    "google-bert/bert-base-uncased",
    "FacebookAI/roberta-base",
    "distilbert/distilbert-base-uncased",
)
DECODER_MADE: Final = "decoder made"
"""Key of whether the small decoder was just fetched, and is to be chosen."""
MOST_SHOWN: Final = 100
IN_TAB: Final = " in this tab"
"""Suffix of the query parameter that stands for a text stored in the reader's browser tab."""


@st.cache_resource(show_spinner=False)
def inference() -> Inference:
    """Checkpoints and results of this process, shared by all sessions."""
    store, kept = Store(), Memory(session=_reader)
    if not public.is_public():
        return Inference(store, session=visitor, memory=kept)
    from attention_sieve.dashboard.forgetting import forget_from_now_on  # a server of one's own forgets nothing

    forget_from_now_on(store)
    shares = Quotas(public.share(store.limit_bytes), visitor)
    return Inference(store, most_at_once=public.MAX_TEXTS, shares=shares, session=visitor, memory=kept)


def memory() -> Memory:
    """The memory of this process: what is computed from answers or read from uploads, shared by all sessions."""
    return inference().memory


def give_way() -> None:
    """End long work of a page at its next pause if the reader has left or does something else; let typed texts pass."""
    st.session_state.get("page")  # Streamlit ends a run only when it is called
    inference().give_way()


class _Reader:
    """The reader of a session, which is gone when the session is."""


def _reader() -> _Reader | None:
    """The reader of the Streamlit session whose script runs in this thread."""
    return None if session_id() is None else st.session_state.setdefault("reader", _Reader())


def _mark_out_of_reach() -> None:
    if unreached := offers.out_of_reach([name for name in suggested() if name != BUNDLED]):
        why, names = unreached
        st.caption(f":material/cloud_off: {why}: {', '.join(map(plain, names))}.")


def sidebar() -> None:
    """Draw the sidebar that every page shares; `state.choice()` reads its widgets."""
    if "corpus" not in st.session_state and not st.query_params and offers.results_on_command_line():
        # A first visit without a link shows what the server was started with.
        st.session_state["corpus"] = st.query_params["corpus"] = A_RESULTS_FOLDER
    if st.session_state.pop(DECODER_MADE, False):
        st.session_state["checkpoint"] = SAMPLE_DECODER
        state.switch_off(())
    with st.sidebar:
        st.selectbox(
            wording.CHECKPOINT,
            checkpoint_names(),
            key="checkpoint",
            accept_new_options=not public.is_public(),
            help=wording.CHECKPOINT_HELP,
            bind="query-params",
            on_change=state.switch_off,
            args=((),),
        )
        if len(parsers_by_language()) > 1:  # above what comes and goes
            st.selectbox(
                wording.TEXT_LANGUAGE,
                tuple(parsers_by_language()),
                key=state.TEXT_LANGUAGE,
                help=wording.TEXT_LANGUAGE_HELP,
                bind="query-params",
                persist_state="session",
            )
        _offer_decoder()
        _mark_out_of_reach()
        if len(st.session_state.get("kinds", ONE_STACK)) > 1:
            st.selectbox(
                wording.ATTENTION,
                tuple(KINDS),
                key="attention",
                help=wording.ATTENTION_HELP,
                bind="query-params",
                persist_state="session",
                on_change=state.switch_off,
                args=((),),
            )
        st.selectbox(
            wording.CORPUS,
            corpora(),
            key="corpus",
            help=wording.CORPUS_HELP,
            bind="query-params",
        )
        _corpus_inputs(st.session_state["corpus"])


def _offer_decoder() -> None:
    if public.is_public() or has_sample_decoder():
        return
    fetching = st.empty()
    is_wanted = fetching.button(
        wording.GET_DECODER,
        key="get decoder",
        icon=":material/download:",
        help=wording.GET_DECODER_HELP,
        type="tertiary",
    )
    if is_wanted:
        # imports what locks and unpacks files, for which the first grid does not wait
        from attention_sieve.core.checkpoints.sample_decoder import make_sample_decoder

        try:
            with fetching, st.spinner(wording.GETTING_DECODER, show_time=True):
                let_leave(make_sample_decoder)
        except AnalysisError as error:
            st.error(plain(str(error)))
            return
        st.session_state[DECODER_MADE] = True
        st.rerun()


def corpora() -> tuple[str, ...]:
    """Corpora to choose from, with samples in the language of the texts; a public server offers results folders only if
    its owner named some."""
    language = state.language()
    own = [name for name, sample in SAMPLES_IN.items() if sample == language]
    offered = CORPORA if language == ENGLISH else (*own, TYPED, UPLOAD, *PROBES, A_RESULTS_FOLDER)
    return offered if not public.is_public() or offers.offered_results() else offered[:-1]


def checkpoint_names() -> tuple[str, ...]:
    return (
        offers.checkpoint_names() if public.is_public() else tuple(dict.fromkeys((*suggested(), *made_checkpoints())))
    )


def is_pair_here() -> bool:
    """Whether there is a checkpoint to compare the bundled one with: made here, or offered by a public server."""
    others = {BUNDLED, SAMPLE_DECODER, *(name for run in offers.laboratory_runs() for name in run.checkpoints)}
    return not others.issuperset(offers.checkpoint_names() if public.is_public() else made_checkpoints())


def suggested() -> tuple[str, ...]:
    return () if public.is_public() else SUGGESTED


def _corpus_inputs(corpus: str) -> None:
    if corpus == UPLOAD:
        st.file_uploader(
            wording.UPLOAD,
            type=SUFFIXES,
            key="upload",
            max_upload_size=public.upload_megabytes(),
        )
        column_pickers("upload")
        _show_upload()
        st.markdown(wording.upload_limits(public.upload_megabytes(), public.most_texts()))
    elif corpus == TYPED:
        typed_texts(wording.CORPUS_TYPED, TYPED_TEXTS, height=160)
    elif corpus == A_RESULTS_FOLDER:
        names = list(offers.offered_results())
        # The first offer is another one elsewhere, or later, so it is no default: Streamlit leaves those out of the
        # link. A sidebar that is folded away does not write the link itself.
        if names and "results" not in st.session_state and "results" not in st.query_params:
            st.session_state["results"] = st.query_params["results"] = names[0]
        st.selectbox(
            wording.RESULTS,
            names,
            index=None,
            key="results",
            required=True,
            accept_new_options=not public.is_public(),
            help=wording.RESULTS_HELP,
            placeholder=wording.RESULTS_NONE,
            bind="query-params",
            persist_state="session",
        )


def _show_upload() -> None:
    """Say how many texts were read, and show the first of them when asked to; the page says what cannot be read."""
    try:
        texts = uploaded_texts("upload")
    except TextError:
        return
    if texts:
        with st.expander(f"{counted(len(texts), 'text')} read: show the corpus"):
            st.text("\n".join(PAIR_MARK.join(text.segments) for text in texts[:MOST_SHOWN]))
            if len(texts) > MOST_SHOWN:
                st.markdown(wording.more_texts(len(texts) - MOST_SHOWN))


def typed_texts(
    label: str,
    key: str,
    otherwise: str = "",
    *,
    height: int | Literal["content"],
    help: str | None = wording.PAIRS_HOWTO,
) -> str:
    """A text area. Its text is part of the link, or stored in the browser tab where it is too long for a link.

    Args:
        otherwise: initial text; also replaces the unchanged initial text of another page.
        height: in pixels, or that of its content.
    """
    state.follow(key, otherwise)
    with st.container():
        fetch_from_tab(key, wording.NOT_IN_THIS_TAB)
        current, left_out_key = st.session_state.get(key) or "", f"{key} is not in the link"
        fits = state.fits_link(current)
        if fits and st.session_state.pop(left_out_key, False):
            st.query_params[key] = current  # from here on the browser keeps it up to date
        typed = st.text_area(
            label,
            otherwise,
            key=key,
            height=height,
            help=help,
            bind="query-params" if fits else None,
            persist_state="session",
        )
        st.session_state[left_out_key] = not fits
        _keep(key, typed)
    return typed


def _keep(key: str, typed: str) -> None:
    """Store a text that is too long for the link in the browser tab, and put its mark in the link."""
    if state.fits_link(typed):
        link.put([key + IN_TAB], {})
        return
    link.leave_out_text()
    link.put([key + IN_TAB], {key + IN_TAB: mark_of(typed)})
    placeholder = st.empty()
    placeholder.markdown(wording.NOT_IN_LINK if keep_text(key, typed) else wording.NOT_IN_LINK_NOR_TAB)


def fetch_from_tab(key: str, missing: str) -> None:
    """Restore the text that the link refers to, or say that it is missing; until the tab answers, nothing is drawn."""
    pending_key = f"{key} to fetch"
    if (mark := link.take(key + IN_TAB)) is not None and mark_of(st.session_state.get(key) or "") != mark:
        st.session_state[pending_key] = mark
    if pending_key not in st.session_state:
        return

    def receive(text: str | None) -> None:
        if st.session_state.pop(pending_key, None) is None:
            return  # the page was drawn again meanwhile, so that the tab has answered twice
        if text is None:
            link.say(missing)
        else:
            st.session_state[key] = text

    st.markdown(wording.FETCHING)
    fetch_text(key, st.session_state[pending_key], receive)
    st.stop()


def column_pickers(key: str) -> None:
    """Ask for the columns of an uploaded table with an unknown header; `key` is the key of its uploader."""
    uploaded = st.session_state.get(key)
    if uploaded is None:
        return
    try:
        _read_upload(uploaded, None)
    except ColumnsNeeded as needed:
        st.selectbox(wording.COLUMN_FIRST, needed.columns, index=None, key=f"first {uploaded.file_id}")
        if len(needed.columns) > 1:
            st.selectbox(wording.COLUMN_SECOND, (wording.NO_SECOND, *needed.columns), key=f"second {uploaded.file_id}")
    except TextError:
        return  # The page says what is wrong.


@in_its_place
def engine(choice: Choice) -> Engine:
    """The chosen checkpoint, found but not loaded.

    Raises: CheckpointError.
    """
    name = choice.checkpoint.strip()
    previous = st.session_state.get("engine")
    is_known = previous is not None and previous.files.name == name
    try:
        # A spinner begins a thread, so it is not shown on every run.
        with nullcontext() if is_known else st.spinner(wording.finding(plain(name)), show_time=True):
            files = _files(name)
    except CheckpointError:
        st.session_state.pop("engine", None)
        raise
    found = {"kinds": files.kinds, state.WRITES: files.is_decoder, state.BASE: files.base and files.base.name}
    known = {"kinds": ONE_STACK, state.WRITES: False, state.BASE: None}
    if found != {name: st.session_state.get(name, usual) for name, usual in known.items()}:
        # What was drawn before the checkpoint was found has to offer its attentions, the settings of a decoder, and the
        # base of an adapter.
        st.session_state.update(found)
        st.rerun()
    # Of several attentions, each may have another number of layers and heads.
    has_one_shape = len(files.kinds) == 1 and files.n_layers and files.n_heads
    if has_one_shape and choice.off and state.keep_off(files.n_layers or 0, files.n_heads or 0):
        st.rerun()
    opened = st.session_state["engine"] = Engine(files, choice.device, choice.dtype)
    return opened


@in_its_place
def other_engine(choice: Choice, name: str) -> Engine:
    """Another checkpoint, found but not loaded, with the device and number format of the chosen one.

    Raises: CheckpointError.
    """
    known_names: set[str] = st.session_state.setdefault("known checkpoints", set())
    with nullcontext() if name in known_names else st.spinner(wording.finding(plain(name)), show_time=True):
        files = _files(name)
    known_names.add(name)
    return Engine(files, choice.device, choice.dtype)


def _files(name: str) -> CheckpointFiles:
    """A checkpoint on this machine, read again every time, or one that itself or whose base is of the hub."""
    if public.is_public():
        return offers.offered_checkpoint(name)
    if name.endswith(GGUF) or (hub_id := asked_of_hub(name)) is None:
        return let_leave(lambda: find_checkpoint(name))  # reads every file of a folder that it has not seen before
    try:
        offers.check_confirmed(hub_id)
        return _from_hub(name, hub_id)
    except HubOutOfReach:
        offers.note_silence()
        raise


def heads_off(choice: Choice) -> None:
    """Say which heads are switched off, with a button to switch them on, or one to switch the last ones off again."""
    state.put_off_in_link()
    state.put_written_in_link()
    # In a container that stays, since Streamlit draws a grid anew whose place on the page changes.
    with st.container():
        if choice.off:
            with st.container(horizontal=True, vertical_alignment="center", border=True, key="heads off"):
                st.markdown(wording.heads_off([head_name(*head) for head in choice.off]), width="stretch")
                st.button(wording.ALL_ON, icon=":material/power_settings_new:", on_click=state.switch_off, args=((),))
        elif heads := state.were_off(choice):
            st.button(
                f"Switch {wording.some_of([head_name(*head) for head in heads])} off again",
                key="off again",
                icon=":material/undo:",
                type="tertiary",
                on_click=state.switch_off,
                args=(heads,),
            )


@st.cache_resource(ttl=600, max_entries=64, show_spinner=False)
def _from_hub(name: str, hub_id: str) -> CheckpointFiles:
    """Ask the hub at most every ten minutes, not on every click; a first download may take minutes.

    The base of an adapter is known once this is fetched, and asked for on its own.
    """
    if hub_id == name:
        folder, _ = let_leave(lambda: fetch(name))
        if (base := base_on_hub(name, folder)) is not None:
            offers.check_confirmed(base)
    return let_leave(lambda: find_checkpoint(name))


def load_behind() -> None:
    """Load the chosen checkpoint in the background and describe it in the sidebar.

    If none was found, the page has said why.
    """
    current: Engine | None = st.session_state.get("engine")
    if current is None:
        return
    shared = inference()
    shared.load_behind(current)
    with st.sidebar:
        _about_checkpoint(shared, current)
        if not public.is_public():
            st.markdown(wording.kept(plain(from_home(shared.store.folder)), *shared.store.size()))
        for notice in (shared.store.warning, shared.notice(current)):
            if notice:
                st.warning(plain(for_visitors(notice)))


def _about_checkpoint(shared: Inference, engine: Engine) -> None:
    files = engine.files
    device = choose_device(engine.device) if shared.is_loaded(engine) else None
    runs_on = "" if device is None else f", on **{device}** in {engine.dtype}"
    shapes = {"": (files.n_layers, files.n_heads)}
    if len(files.kinds) > 1:
        shapes = {"encoder ": (files.n_layers, files.n_heads), "decoder ": files.decoder}
    stored = plain(files.quantised), files.saved_in
    st.markdown(wording.about(plain(files.model_type), shapes, runs_on, files.fingerprint, *stored))
    if files.base is not None:
        st.markdown(
            f"{plain(files.adapter)} adapter of **{plain(for_visitors(files.base.name))}**, merged into its weights. "
            "Compare the two on *Compare*."
        )


def from_home(folder: Path) -> str:
    home = Path.home()
    return str("~" / folder.relative_to(home)) if folder.is_relative_to(home) else str(folder)


def corpus_texts(choice: Choice) -> tuple[Text, ...]:
    """The texts of the corpus; none of a results folder, and none until the reader has typed or uploaded some.

    Raises: TextError.
    """
    if choice.corpus == A_RESULTS_FOLDER:
        return ()
    if sample := (SAMPLES | SAMPLES_IN).get(choice.corpus):
        return read_sample(sample)
    if choice.corpus in PROBES:
        return corpus_of_probes(engine(choice).files, PROBES[choice.corpus])
    if choice.corpus == TYPED:
        typed = st.session_state.get(TYPED_TEXTS) or ""
        return read_typed_texts(typed) if typed.strip() else ()
    return parsed_by(uploaded_texts("upload"), state.parser())


def read_typed_texts(typed: str) -> tuple[Text, ...]:
    return parsed_by(read_typed(typed), state.parser())


def probe_text(choice: Choice) -> Text:
    """A probe text to look at, of the kind of the corpus; repeats with fewer tokens than those of the corpus have."""
    settings = ProbeTextSettings(kind=PROBES[choice.corpus], number=2, block=SHORT_BLOCK)
    return _probe_texts(engine(choice).files, settings)[0]


def corpus_of_probes(files: CheckpointFiles, kind: ProbeKind) -> tuple[Text, ...]:
    return _probe_texts(files, ProbeTextSettings(kind=kind, number=N_PROBES))


def _probe_texts(files: CheckpointFiles, settings: ProbeTextSettings) -> tuple[Text, ...]:
    """Probe texts in the vocabulary of a checkpoint, with blocks that it has room for; kept, because reading a
    tokenizer takes a second."""

    def make() -> tuple[Text, ...]:
        from attention_sieve.core.checkpoints.load import load_tokenizer  # imports torch

        tokenizer = load_tokenizer(files)
        block = min(settings.block, fitting_block(tokenizer)) if "repeats" in settings.kind else settings.block
        return probe_texts(tokenizer, replace(settings, block=block))

    return memory().get_or_put("probe texts", (files.fingerprint, settings), lambda: let_leave(make))


def uploaded_texts(key: str) -> tuple[Text, ...]:
    """The texts of an uploaded file; none until there is one. `key` is the key of its uploader.

    Raises: TextError.
    """
    uploaded = st.session_state.get(key)
    if uploaded is None:
        return ()
    # The columns that the reader selected, if the header is unknown.
    selections = [st.session_state.get(f"{ordinal} {uploaded.file_id}") for ordinal in ("first", "second")]
    columns = tuple(str(name) for name in selections if name not in (None, wording.NO_SECOND))
    return _read_upload(uploaded, columns if selections[0] is not None else None)


def _read_upload(uploaded: UploadedFile, columns: tuple[str, ...] | None) -> tuple[Text, ...]:
    key = (uploaded.file_id, uploaded.name, columns)
    return memory().get_or_put("upload", key, lambda: read_file(uploaded.name, uploaded.getvalue(), columns))
