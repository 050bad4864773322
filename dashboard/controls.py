"""Widgets to settings and texts; no analysis."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from cache.inference import Engine, Inference
from cache.store import Store
from core.analysis import Progress
from core.checkpoints import BUNDLED, DEVICES, DTYPES, CheckpointFiles, choose_device, find_checkpoint, local_folder
from core.errors import AnalysisError, ColumnsNeeded, TextError
from core.measures import Direction
from core.texts import MAX_BYTES, Text, read_file, read_typed
from dashboard import wording
from dashboard.samples import read_sample
from dashboard.state import AUTO, CORRECTIONS, METHODS, Choice

SAMPLES: Final = {"sample pairs and texts": "both", "sample pairs": "pairs", "sample texts": "texts"}
UPLOAD: Final = "upload a file"
TYPED: Final = "type texts"
CORPORA: Final = (*SAMPLES, UPLOAD, TYPED)
SUGGESTED: Final = (
    BUNDLED,
    "google-bert/bert-base-uncased",
    "FacebookAI/roberta-base",
    "distilbert/distilbert-base-uncased",
)
ALPHAS: Final = (0.001, 0.01, 0.05, 0.1)
RENDERED: Final = re.compile(r":(?=\S)|www(?=\.)|@|[<>~-](?=[-=>])")
"""Where Streamlit puts icons, emoji, links and arrows into a text, also when its signs are escaped."""
WORD_JOINER: Final = "\u2060"
"""Takes no place and keeps two signs from being read as one."""

LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at a checkpoint that is being loaded."""

Answer = TypeVar("Answer")


@st.cache_resource(show_spinner=False)
def inference() -> Inference:
    """The one worker of this process, shared by all sessions."""
    return Inference(Store())


def sidebar() -> None:
    """What every page shares; read it with state.choice()."""
    with st.sidebar:
        st.selectbox(
            wording.CHECKPOINT,
            SUGGESTED,
            key="checkpoint",
            accept_new_options=True,
            help=wording.CHECKPOINT_HELP,
            bind="query-params",
        )
        with st.expander("Device and number format"):
            st.selectbox("Device", (AUTO, *DEVICES), key="device", help=wording.DEVICE_HELP, bind="query-params")
            st.selectbox("Number format", (AUTO, *DTYPES), key="dtype", help=wording.DTYPE_HELP, bind="query-params")
        st.selectbox(
            wording.CORPUS,
            CORPORA,
            key="corpus",
            help=wording.CORPUS_HELP,
            bind="query-params",
        )
        _corpus_inputs(st.session_state["corpus"])
        _test_settings()


def _corpus_inputs(corpus: str) -> None:
    if corpus == UPLOAD:
        st.file_uploader(
            wording.UPLOAD,
            type=["txt", "csv", "tsv", "json", "jsonl"],
            key="upload",
            max_upload_size=MAX_BYTES // 10**6,
        )
        _column_pickers()
        st.markdown(wording.UPLOAD_LIMITS)
    elif corpus == TYPED:
        st.text_area(wording.CORPUS_TYPED, key="corpus_text", height=160, help=wording.PAIRS_HOWTO, bind="query-params")


def _column_pickers() -> None:
    """Ask for the columns of an uploaded table whose header is not known."""
    uploaded = st.session_state.get("upload")
    if uploaded is None:
        return
    try:
        _read_upload(uploaded.file_id, uploaded.name, uploaded.getvalue, None)
    except ColumnsNeeded as needed:
        st.selectbox(wording.COLUMN_FIRST, needed.columns, index=None, key=f"first {uploaded.file_id}")
        st.selectbox(wording.COLUMN_SECOND, (wording.NO_SECOND, *needed.columns), key=f"second {uploaded.file_id}")
    except TextError:
        return  # The page says what is wrong.


def _test_settings() -> None:
    st.slider("tau", 1.0, 10.0, 3.0, 0.1, key="tau", help=wording.TAU_HELP, bind="query-params")
    st.select_slider("alpha", ALPHAS, 0.05, key="alpha", help=wording.ALPHA_HELP, bind="query-params")
    st.selectbox(
        "Correction",
        tuple(CORRECTIONS),
        key="correction",
        help=wording.CORRECTION_HELP,
        bind="query-params",
    )
    with st.expander("More settings"):
        st.selectbox(
            "Decide by",
            tuple(METHODS),
            key="method",
            help=wording.METHOD_HELP,
            bind="query-params",
        )
        st.selectbox(
            "Degrees of freedom taken off (ddof)", (1, 0), key="ddof", help=wording.DDOF_HELP, bind="query-params"
        )
        st.selectbox(
            "Syntactic direction",
            get_args(Direction),
            key="direction",
            help=wording.DIRECTION_HELP,
            bind="query-params",
        )
        st.toggle("Weight block with entropy", True, key="entropy", help=wording.ENTROPY_HELP, bind="query-params")


def engine(chosen: Choice) -> Engine:
    """The checkpoint that was chosen, found but not loaded.

    Raises: CheckpointError.
    """
    name = chosen.checkpoint.strip()
    st.session_state.pop("engine", None)
    with st.spinner(wording.finding(plain(name)), show_time=True):
        files = _from_hub(name) if local_folder(name) is None else find_checkpoint(name)
    found = st.session_state["engine"] = Engine(files, chosen.device, chosen.dtype)
    return found


@st.cache_resource(ttl=600, max_entries=64, show_spinner=False)
def _from_hub(name: str) -> CheckpointFiles:
    """Ask the hub only now and then, not on every click."""
    return find_checkpoint(name)


def load_behind() -> None:
    """Load the chosen checkpoint while the reader looks at what is drawn already, and say what it is.

    Where none was found, the page has said why.
    """
    chosen: Engine | None = st.session_state.get("engine")
    if chosen is None:
        return
    worker = inference()
    worker.load_behind(chosen)
    with st.sidebar:
        _about_checkpoint(worker, chosen)
        st.markdown(wording.kept(plain(_from_home(worker.store.folder)), *worker.store.size()))
        if worker.store.warning:
            st.warning(plain(worker.store.warning))


def _about_checkpoint(worker: Inference, chosen: Engine) -> None:
    """What the checkpoint is and where it runs; looks again by itself while it is being loaded."""
    files = chosen.files
    is_loading = worker.is_loading(chosen)

    @st.fragment(run_every=LOOK_AGAIN if is_loading else None)
    def about() -> None:
        where = wording.NOT_LOADED
        if worker.is_loading(chosen):
            where = wording.LOADING_BEHIND
        elif worker.is_loaded(chosen):
            where = wording.runs_on(choose_device(chosen.device), chosen.dtype)
        st.markdown(wording.about(plain(files.model_type), (files.n_layers, files.n_heads), where, files.fingerprint))
        if is_loading and not worker.is_loading(chosen):
            st.rerun()

    about()


def _from_home(folder: Path) -> str:
    """A path as its owner writes it."""
    home = Path.home()
    return str("~" / folder.relative_to(home)) if folder.is_relative_to(home) else str(folder)


def corpus_texts(chosen: Choice) -> tuple[Text, ...]:
    """The texts of the corpus; none while the reader has yet to give them.

    Raises: TextError.
    """
    if chosen.corpus in SAMPLES:
        return read_sample(SAMPLES[chosen.corpus])
    if chosen.corpus == TYPED:
        typed = st.session_state.get("corpus_text") or ""
        return read_typed(typed) if typed.strip() else ()
    uploaded = st.session_state.get("upload")
    return () if uploaded is None else _uploaded(uploaded.file_id, uploaded.name, uploaded.getvalue)


def _uploaded(file_id: str, name: str, content: Callable[[], bytes]) -> tuple[Text, ...]:
    """Texts of an upload, from the columns the reader picked where it had to be asked."""
    picked = [st.session_state.get(f"{which} {file_id}") for which in ("first", "second")]
    columns = tuple(str(name) for name in picked if name not in (None, wording.NO_SECOND))
    return _read_upload(file_id, name, content, columns if picked[0] is not None else None)


@st.cache_resource(max_entries=16, show_spinner=False)
def _read_upload(
    file_id: str, name: str, _content: Callable[[], bytes], columns: tuple[str, ...] | None
) -> tuple[Text, ...]:
    """Read once per upload and choice of columns."""
    return read_file(name, _content(), columns)


def show_error(error: AnalysisError) -> None:
    """The sentence, as text; messages may hold what people, files and tokenizers gave."""
    st.error(plain(str(error)), icon=":material/error:")


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    apart = RENDERED.sub(lambda found: found[0] + WORD_JOINER, text.replace("\n", " "))
    return "".join("\\" + sign if sign in r"\`*_{}[]()#+-.!|<>~$:&" else sign for sign in apart)


def with_progress(question: object, work: Callable[[Progress], Answer]) -> Answer | None:
    """Do long work under a progress bar, unless the reader has stopped it; what is finished is kept by the work itself.

    Streamlit ends a run when the reader does something, so the click on Stop arrives as the next run.

    Args:
        question: what the work is about; hashable. Stopping holds for this question only.
        work: takes the callback that reports progress.

    Returns: what the work gives; None when it is stopped.
    """
    place = st.empty()
    with place.container():
        if st.session_state.get("stopped") == hash(question):
            st.info(wording.STOPPED)
            st.button(wording.GO_ON, icon=":material/play_circle:", on_click=_remember_stopped, args=(None,))
            return None
        bar = st.progress(0.0, wording.BEGUN)
        st.button(wording.STOP, icon=":material/stop_circle:", on_click=_remember_stopped, args=(hash(question),))
    try:
        return work(_shown_on(bar))
    finally:
        place.empty()


def _remember_stopped(question: int | None) -> None:
    st.session_state["stopped"] = question


def _shown_on(bar: DeltaGenerator) -> Progress:
    """Progress as a bar with an estimate; the first report says what was there before the work began."""
    begun, kept = time.monotonic(), None

    def show(done: int, total: int) -> None:
        nonlocal kept
        kept = done if kept is None else kept
        left = (time.monotonic() - begun) / (done - kept) * (total - done) if done > kept else None
        bar.progress(done / max(total, 1), wording.scoring(done, total, left))

    return show
