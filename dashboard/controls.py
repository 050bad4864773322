"""Widgets to settings and texts; no analysis."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Final, Literal

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from cache.engine import Engine
from cache.inference import Inference
from cache.serving.shares import Shares
from cache.store.store import Store
from core.attention.settings import ONE_STACK, head_name
from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.find import BUNDLED, choose_device, find_checkpoint, local_folder
from core.checkpoints.folders import made_checkpoints
from core.errors import CheckpointError, ColumnsNeeded, HubOutOfReach, TextError
from core.texts.text import Text, read_file, read_typed
from dashboard import link, public, state, wording
from dashboard.components.kept_text import fetch_text, keep_text, mark_of
from dashboard.offers import checkpoints, hub, results
from dashboard.plain import plain
from dashboard.progress import in_its_place, let_leave
from dashboard.samples import read_sample
from dashboard.state import KINDS, Choice

SAMPLES: Final = {"sample pairs and texts": "both", "sample pairs": "pairs", "sample texts": "texts"}
UPLOAD: Final = "upload a file"
TYPED: Final = "type texts"
TYPED_TEXTS: Final = "corpus_text"
"""Key of the text area of the sidebar in which texts are typed."""
RESULTS: Final = "a results folder"
CORPORA: Final = (*SAMPLES, UPLOAD, TYPED, RESULTS)
SUGGESTED: Final = (
    BUNDLED,
    "google-bert/bert-base-uncased",
    "FacebookAI/roberta-base",
    "distilbert/distilbert-base-uncased",
)
IN_TAB: Final = " in this tab"
"""Ends the query parameter that stands for a text which the reader's tab keeps."""


@st.cache_resource(show_spinner=False)
def inference() -> Inference:
    """Checkpoints and results of this process, shared by all sessions."""
    store = Store()
    if not public.is_public():
        return Inference(store)
    return Inference(store, most_at_once=public.MAX_TEXTS, shares=Shares(public.share(store.limit_bytes), _session))


def _session() -> str | None:
    """The open page whose script runs in this thread."""
    context = get_script_run_ctx()
    return None if context is None else context.session_id


def _mark_out_of_reach() -> None:
    if unreached := hub.out_of_reach([name for name in suggested() if name != BUNDLED]):
        why, names = unreached
        st.caption(f":material/cloud_off: {why}: {', '.join(map(plain, names))}.")


def sidebar() -> None:
    """What every page shares; read it with state.choice()."""
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


def corpora() -> tuple[str, ...]:
    """Corpora that the page offers; a public server has results folders where its owner named some."""
    return CORPORA if not public.is_public() or results.offered() else CORPORA[:-1]


def checkpoint_names() -> tuple[str, ...]:
    """Checkpoints that the page offers: all there are on a public server, else suggestions and those made here."""
    return checkpoints.names() if public.is_public() else tuple(dict.fromkeys((*suggested(), *made_checkpoints())))


def suggested() -> tuple[str, ...]:
    """Checkpoints of the hub, and the bundled one."""
    return () if public.is_public() else SUGGESTED


def _corpus_inputs(corpus: str) -> None:
    if corpus == UPLOAD:
        st.file_uploader(
            wording.UPLOAD,
            type=["txt", "csv", "tsv", "json", "jsonl", "conllu"],
            key="upload",
            max_upload_size=public.upload_megabytes(),
        )
        column_pickers("upload")
        st.markdown(wording.upload_limits(public.upload_megabytes(), public.most_texts()))
    elif corpus == TYPED:
        typed_texts(wording.CORPUS_TYPED, TYPED_TEXTS, height=160)
    elif corpus == RESULTS:
        st.selectbox(
            wording.RESULTS,
            list(results.offered()),
            key="results",
            accept_new_options=not public.is_public(),
            help=wording.RESULTS_HELP,
            placeholder=wording.RESULTS_NONE,
            bind="query-params",
            persist_state="session",
        )


def typed_texts(label: str, key: str, otherwise: str = "", *, height: int | Literal["content"]) -> str:
    """What a reader types, which the link holds unless it is too long for one; the reader's tab keeps it then.

    Args:
        label: of the text area.
        key: its key, and the name of the query parameter.
        otherwise: what stands there at first, and instead of what stood there at first on another page.
        height: in pixels, or as many lines as it holds.
    """
    state.follow(key, otherwise)
    with st.container():
        _fetch(key)
        so_far, left_out = st.session_state.get(key) or "", f"{key} is not in the link"
        fits = state.fits_link(so_far)
        if fits and st.session_state.pop(left_out, False):
            st.query_params[key] = so_far  # from here on the browser keeps it up to date
        typed = st.text_area(
            label,
            otherwise,
            key=key,
            height=height,
            help=wording.PAIRS_HOWTO,
            bind="query-params" if fits else None,
            persist_state="session",
        )
        st.session_state[left_out] = not fits
        _keep(key, typed)
    return typed


def _keep(key: str, typed: str) -> None:
    """Keep a text that is too long for the link in the reader's tab, and put what stands for it in the link."""
    if state.fits_link(typed):
        link.put([key + IN_TAB], {})
        return
    link.leave_out_text()
    link.put([key + IN_TAB], {key + IN_TAB: mark_of(typed)})
    place = st.empty()
    place.markdown(wording.NOT_IN_LINK if keep_text(key, typed) else wording.NOT_IN_LINK_NOR_TAB)


def _fetch(key: str) -> None:
    """Bring back the text that the link stands for; nothing else is drawn before the reader's tab has answered."""
    waiting = f"{key} to fetch"
    if (asked := link.take(key + IN_TAB)) is not None and mark_of(st.session_state.get(key) or "") != asked:
        st.session_state[waiting] = asked
    if waiting not in st.session_state:
        return

    def answer(text: str | None) -> None:
        del st.session_state[waiting]
        if text is None:
            link.say(wording.NOT_IN_THIS_TAB)
        else:
            st.session_state[key] = text

    st.markdown(wording.FETCHING)
    fetch_text(key, st.session_state[waiting], answer)
    st.stop()


def column_pickers(key: str) -> None:
    """Ask for the columns of an uploaded table whose header is not known; `key` as of its uploader."""
    uploaded = st.session_state.get(key)
    if uploaded is None:
        return
    try:
        _read_upload(uploaded.file_id, uploaded.name, uploaded.getvalue, None)
    except ColumnsNeeded as needed:
        st.selectbox(wording.COLUMN_FIRST, needed.columns, index=None, key=f"first {uploaded.file_id}")
        st.selectbox(wording.COLUMN_SECOND, (wording.NO_SECOND, *needed.columns), key=f"second {uploaded.file_id}")
    except TextError:
        return  # The page says what is wrong.


@in_its_place
def engine(chosen: Choice) -> Engine:
    """The checkpoint that was chosen, found but not loaded.

    Raises: CheckpointError.
    """
    name = chosen.checkpoint.strip()
    before = st.session_state.get("engine")
    is_known = before is not None and before.files.name == name
    try:
        # A spinner begins a thread, so it is not shown on every run.
        with nullcontext() if is_known else st.spinner(wording.finding(plain(name)), show_time=True):
            files = _files(name)
    except CheckpointError:
        st.session_state.pop("engine", None)
        raise
    if files.kinds != st.session_state.get("kinds", ONE_STACK):
        # The sidebar, drawn before the checkpoint was found, has to offer its attentions.
        st.session_state["kinds"] = files.kinds
        st.rerun()
    # Of several attentions, each may have another number of layers and heads.
    has_one_shape = len(files.kinds) == 1 and files.n_layers and files.n_heads
    if has_one_shape and chosen.off and state.keep_off(files.n_layers or 0, files.n_heads or 0):
        st.rerun()
    opened = st.session_state["engine"] = Engine(files, chosen.device, chosen.dtype)
    return opened


@in_its_place
def other_engine(chosen: Choice, name: str) -> Engine:
    """Another checkpoint, found but not loaded, to be computed like the chosen one.

    Raises: CheckpointError.
    """
    known: set[str] = st.session_state.setdefault("known checkpoints", set())
    with nullcontext() if name in known else st.spinner(wording.finding(plain(name)), show_time=True):
        files = _files(name)
    known.add(name)
    return Engine(files, chosen.device, chosen.dtype)


def _files(name: str) -> CheckpointFiles:
    """A checkpoint of this machine, looked at anew every time, or one of the hub."""
    if public.is_public():
        return checkpoints.find(name)
    if local_folder(name) is not None:
        return let_leave(lambda: find_checkpoint(name))  # which reads all of a folder that it has not met
    try:
        hub.check_confirmed(name)
        return _from_hub(name)
    except HubOutOfReach:
        hub.note_silence()
        raise


def heads_off(chosen: Choice) -> None:
    """Say which heads are switched off, if any, and offer to switch them on, and those that were off, off again."""
    state.put_off_in_link()
    if chosen.off:
        with st.container(horizontal=True, vertical_alignment="center", border=True, key="heads off"):
            st.markdown(wording.heads_off([head_name(*head) for head in chosen.off]), width="stretch")
            st.button(wording.ALL_ON, icon=":material/power_settings_new:", on_click=state.switch_off, args=((),))
    elif again := state.were_off(chosen):
        st.button(
            wording.off_again([head_name(*head) for head in again]),
            key="off again",
            icon=":material/undo:",
            type="tertiary",
            on_click=state.switch_off,
            args=(again,),
        )


@st.cache_resource(ttl=600, max_entries=64, show_spinner=False)
def _from_hub(name: str) -> CheckpointFiles:
    """Ask the hub only now and then, not on every click; what it has not sent before may take minutes."""
    return let_leave(lambda: find_checkpoint(name))


def load_behind() -> None:
    """Load the chosen checkpoint while the reader looks at what is drawn already, and say what it is.

    Where none was found, the page has said why.
    """
    chosen: Engine | None = st.session_state.get("engine")
    if chosen is None:
        return
    shared = inference()
    shared.load_behind(chosen)
    with st.sidebar:
        _about_checkpoint(shared, chosen)
        if not public.is_public():
            st.markdown(wording.kept(plain(from_home(shared.store.folder)), *shared.store.size()))
        for notice in (shared.store.warning, shared.notice(chosen)):
            if notice:
                st.warning(plain(notice))


def _about_checkpoint(shared: Inference, chosen: Engine) -> None:
    """What the checkpoint is, and where it runs once it has been loaded."""
    files = chosen.files
    device = choose_device(chosen.device) if shared.is_loaded(chosen) else None
    where = "" if device is None else wording.runs_on(device, chosen.dtype)
    shapes = {"": (files.n_layers, files.n_heads)}
    if len(files.kinds) > 1:
        shapes = {"encoder ": (files.n_layers, files.n_heads), "decoder ": files.decoder}
    st.markdown(wording.about(plain(files.model_type), shapes, where, files.fingerprint))


def from_home(folder: Path) -> str:
    """A path as its owner writes it."""
    home = Path.home()
    return str("~" / folder.relative_to(home)) if folder.is_relative_to(home) else str(folder)


def corpus_texts(chosen: Choice) -> tuple[Text, ...]:
    """The texts of the corpus; none while the reader has yet to give them.

    Raises: TextError.
    """
    if chosen.corpus == RESULTS:
        raise TextError(wording.NO_TEXTS_IN_RESULTS)
    if chosen.corpus in SAMPLES:
        return read_sample(SAMPLES[chosen.corpus])
    if chosen.corpus == TYPED:
        typed = st.session_state.get(TYPED_TEXTS) or ""
        return read_typed(typed) if typed.strip() else ()
    return uploaded_texts("upload")


def uploaded_texts(key: str) -> tuple[Text, ...]:
    """The texts of an uploaded file; none while the reader has yet to give it. `key` as of its uploader.

    Raises: TextError.
    """
    uploaded = st.session_state.get(key)
    return () if uploaded is None else _uploaded(uploaded.file_id, uploaded.name, uploaded.getvalue)


def _uploaded(file_id: str, name: str, content: Callable[[], bytes]) -> tuple[Text, ...]:
    """Texts of an upload, from the columns the reader picked where it had to be asked."""
    picked = [st.session_state.get(f"{which} {file_id}") for which in ("first", "second")]
    columns = tuple(str(name) for name in picked if name not in (None, wording.NO_SECOND))
    return _read_upload(file_id, name, content, columns if picked[0] is not None else None)


@st.cache_resource(max_entries=16, ttl=3600 * public.HOURS_KEPT, show_spinner=False)
def _read_upload(
    file_id: str, name: str, _content: Callable[[], bytes], columns: tuple[str, ...] | None
) -> tuple[Text, ...]:
    """Read once per upload and choice of columns."""
    return read_file(name, _content(), columns)
