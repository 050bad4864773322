"""Simulated readers of the dashboard without a browser: they speak Streamlit's own protocol to a server.

A visitor does what Streamlit's page in a browser does as far as the server can tell: it sends the state of its widgets
and the address, remembers large messages, and is sent only a reference to those it has. It sends the widgets that it
touched, not all of them, and leaves out the runs that a page asks for by itself while a checkpoint is being loaded.
"""

import asyncio
import base64
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import numpy as np
import requests
from jaxtyping import Bool, Float
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.util import calc_hash
from websockets.asyncio.client import ClientConnection, connect

from attention_sieve.dashboard.views.text.stories import VISITED
from benchmarks.shared.server import ANSWERS_WITHIN

GRIDS: Final = ("inspect grid", "roles grid")
FIRST_SCREEN: Final = "first screen"
URLS: Final = "file_urls_response"
"""The message that says where to send files."""
RUNS_REMEMBERED: Final = 2
"""How many runs a large message stays with a browser without being used (Streamlit's global.maxCachedMessageAge)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Grid:
    """What a reader sees in the grid of roles."""

    scores: Float[np.ndarray, "role layer head"]
    holds: Bool[np.ndarray, "role layer head"]
    tau: float


@dataclass(kw_only=True)
class Answer:
    """The server's response to one action."""

    grid: Grid | None = None
    to_grid: float = float("nan")
    """Seconds from the action to the grid."""
    to_end: float = float("nan")
    """Seconds from the action to the end of the script."""
    n_bytes: int = 0
    complaints: list[str] = field(default_factory=list)
    """Errors and exceptions that the page shows."""
    pictures: list[str] = field(default_factory=list)
    """Alternative texts of its pictures."""


Stop = Callable[[Element], bool]


class Visitor:
    """One open page.

    Attributes:
        elements: the latest element of each widget and component, by its key in the script.
    """

    def __init__(self, connection: ClientConnection, address: str) -> None:
        self.elements: dict[str, Element] = {}
        self._connection = connection
        self._address = address
        self._states: dict[str, WidgetState] = {}
        self._link: dict[str, str] = {}
        self._remembered: dict[str, tuple[ForwardMsg, int]] = {}
        self._n_runs = 0
        self._page = ""

    @property
    def link(self) -> str:
        """Query of the current address."""
        return urlencode(self._link)

    async def open(self, page: str = "", **link: str) -> Answer:
        """The first run of a page: its address, and the query of its link."""
        self._page, self._link = page, dict(link)
        return await self._run()

    async def type(self, text: str, box: str = "text", until: Stop | None = None) -> Answer:
        """Put a text into a text area; `text` is the one of the page Inspect, `corpus_text` the one for a corpus."""
        return await self._set(box, string_value=text, until=until)

    async def choose(self, box: str, option: str) -> Answer:
        """Pick an option of a selectbox."""
        return await self._set(box, string_value=option)

    def fill(self, box: str, value: int) -> None:
        """Write a number into a form, which is sent with the form's button."""
        self._state(box).double_value = value

    async def click(self, button: str) -> Answer:
        """Click a button."""
        self._state(button).trigger_value = True
        try:
            return await self._touch(button, "")
        finally:
            del self._states[button]

    async def move(self, slider: str, value: float) -> Answer:
        """Move a slider."""
        state = self._state(slider)
        state.double_array_value.data[:] = [value]
        return await self._touch(slider, f"{value:g}")

    async def upload(self, box: str, name: str, content: bytes) -> Answer:
        """Send a file by HTTP, as a browser does, and put it into an uploader."""
        wanted = BackMsg()
        wanted.file_urls_request.file_names.append(name)
        await self._connection.send(wanted.SerializeToString())
        while (told := ForwardMsg.FromString(await self._connection.recv(decode=False))).WhichOneof("type") != URLS:
            pass
        (urls,) = told.file_urls_response.file_urls
        await asyncio.to_thread(_send_file, self._address, urls.upload_url, name, content)
        files = self._state(box).file_uploader_state_value.uploaded_file_info
        del files[:]
        files.add(file_id=urls.file_id, name=name, size=len(content), file_urls=urls)
        return await self._touch(box, "")

    async def rest(self) -> Answer:
        """Read the rest of a run that was not read to its end."""
        return await self._read(time.perf_counter(), None)

    async def _set(self, key: str, *, string_value: str, until: Stop | None = None) -> Answer:
        self._state(key).string_value = string_value
        return await self._touch(key, string_value, until)

    def _state(self, key: str) -> WidgetState:
        return self._states.setdefault(key, WidgetState(id=_widget(self.elements[key]).id))

    async def _touch(self, key: str, in_link: str, until: Stop | None = None) -> Answer:
        """Send a changed widget; the browser writes it to the address where it is bound to it."""
        if name := getattr(_widget(self.elements[key]), "query_param_key", ""):
            self._link[name] = in_link
        return await self._run(until)

    async def _run(self, until: Stop | None = None) -> Answer:
        sent = time.perf_counter()
        await self._send()
        return await self._read(sent, until)

    async def _send(self) -> None:
        message = BackMsg()
        wanted = message.rerun_script
        wanted.query_string = urlencode(self._link)
        wanted.page_script_hash = calc_hash(self._page) if self._page else ""
        wanted.widget_states.widgets.extend(self._states.values())
        wanted.cached_message_hashes.extend(self._remembered)
        await self._connection.send(message.SerializeToString())

    async def _draw_the_rest(self) -> None:
        """Say, as a browser does, that the first screen is drawn, which begins the run that draws everything."""
        self._state(FIRST_SCREEN).json_value = json.dumps({"drawn": True})
        await self._send()
        del self._states[FIRST_SCREEN], self.elements[FIRST_SCREEN]

    async def _read(self, sent: float, until: Stop | None) -> Answer:
        """Read to the end of the script, including runs that the page starts by itself, or to the requested element."""
        answer = Answer()
        while True:
            content = await self._connection.recv(decode=False)
            answer.n_bytes += len(content)
            message = self._whole(ForwardMsg.FromString(content))
            kind = message.WhichOneof("type")
            if kind == "page_info_changed":
                self._link = dict(parse_qsl(message.page_info_changed.query_string))
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                self._take(message.delta.new_element, answer, sent)
                if until is not None and until(message.delta.new_element):
                    return answer
            elif kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                self._forget()
                if FIRST_SCREEN in self.elements:
                    await self._draw_the_rest()
                    continue
                answer.to_end = time.perf_counter() - sent
                return answer

    def _whole(self, message: ForwardMsg) -> ForwardMsg:
        """The message itself, if the server sent only a reference to a remembered one."""
        if message.WhichOneof("type") == "ref_hash":
            message = self._remembered[message.ref_hash][0]
        elif not message.metadata.cacheable:
            return message
        self._remembered[message.hash] = (message, self._n_runs)
        return message

    def _forget(self) -> None:
        self._n_runs += 1
        self._remembered = {
            name: (message, used)
            for name, (message, used) in self._remembered.items()
            if self._n_runs - used <= RUNS_REMEMBERED
        }

    def _take(self, element: Element, answer: Answer, sent: float) -> None:
        if complaint := complaint_of(element):
            answer.complaints.append(complaint)
        if element.WhichOneof("type") == "html":
            answer.pictures += re.findall('<img alt="([^"]*)"', element.html.body)
        if key := _key(element):
            self.elements[key] = element
        if key in GRIDS and answer.grid is None:
            answer.to_grid = time.perf_counter() - sent
            answer.grid = _grid(json.loads(json.loads(element.bidi_component.json)["text"]))


def complaint_of(element: Element) -> str:
    """Text of an error or an exception on the page; empty for anything else."""
    kind = element.WhichOneof("type")
    if kind == "exception":
        return f"{element.exception.type}: {element.exception.message}"
    return element.alert.body if kind == "alert" and element.alert.format == Alert.ERROR else ""


def is_progress(element: Element) -> bool:
    """Whether an element is a progress bar that reports finished texts."""
    return element.WhichOneof("type") == "progress" and element.progress.value > 0


def _send_file(address: str, path: str, name: str, content: bytes) -> None:
    with requests.Session() as browser:
        browser.get(f"{address}/_stcore/health").raise_for_status()  # gives the cookie that the header repeats
        token = {"X-Xsrftoken": browser.cookies["_streamlit_xsrf"]}
        browser.put(f"{address}{path}", files={"file": (name, content)}, headers=token).raise_for_status()


def _widget(element: Element) -> Any:
    """One of Streamlit's many kinds of message."""
    return getattr(element, element.WhichOneof("type"))


def _key(element: Element) -> str:
    """The key that the script gave a widget: its id is `$$ID-<digest>-<key>`."""
    _, _, rest = getattr(_widget(element), "id", "").partition("$$ID-")
    return rest.partition("-")[2]


def _grid(data: dict[str, Any]) -> Grid:
    shape = len(data["roles"]), data["layers"], data["heads"]
    return Grid(
        scores=np.frombuffer(base64.b64decode(data["scores"]), "<f4").reshape(shape),
        holds=np.frombuffer(base64.b64decode(data["states"]), np.uint8).reshape(shape) == 1,
        tau=data["tau"],
    )


@asynccontextmanager
async def visitor(address: str) -> AsyncIterator[Visitor]:
    """Someone at a dashboard who has been there before, and so meets no riddle; leaving the context closes the page."""
    stream = f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    async with connect(
        stream,
        subprotocols=["streamlit"],
        additional_headers={"Cookie": f"{VISITED}=1"},
        max_size=None,
        open_timeout=ANSWERS_WITHIN,
    ) as connection:
        yield Visitor(connection, address)
