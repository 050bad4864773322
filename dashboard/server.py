"""The dashboard's server: Streamlit's own, with everything that the first screen needs at the start of the page.

`streamlit run dashboard/server.py` starts it; `dashboard/app.py` is what it shows. To the head of Streamlit's page it
adds these things, which have to be there before anything is drawn:

- Style sheets that lay out the first screen and the panel of a lesson, and reserve space in them. Streamlit lets each
  widget grow once its code has arrived, which would move everything below it.
- The style sheet of Present, and a script that applies it as long as the address asks for it.
- The names of the scripts that the first grid waits for. Chromium would otherwise request them only after it has been
  told which widgets there are; this way it fetches them meanwhile.
- A script that keeps one entry per page in the browser's history. Streamlit makes a new one whenever the app writes a
  query parameter, so that Back would step through every click.
- A script that lets Enter apply a typed sentence.
- A script that closes the list of checkpoints to compare with after a choice.
- The address of the server, for which Streamlit would otherwise search below the address of the page.

`attention_sieve.dashboard.web.scripts` sends Streamlit's scripts with less work than Streamlit itself. The first page
has an address without a name; `/inspect` leads there too. `attention_sieve.dashboard.web.addresses` handles addresses
that no page has.
"""

import gc
import inspect
import re
import sys
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Final

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.routing import Route
from streamlit.file_util import get_static_dir

# `streamlit run` puts this file's folder on the path, not the project's.
if (root := str(Path(__file__).resolve().parents[1])) not in sys.path:
    sys.path.insert(0, root)

from attention_sieve.cache.serving.memory import few_arenas
from attention_sieve.dashboard.pages import offered_pages
from attention_sieve.dashboard.public import MAX_UPLOADS, is_public
from attention_sieve.dashboard.web.addresses import KnownAddresses
from attention_sieve.dashboard.web.few_uploads import FewUploads
from attention_sieve.dashboard.web.own_site import OwnSiteOnly
from attention_sieve.dashboard.web.scripts import Scripts

FIRST_WIDGETS: Final = ("BidiComponent", "ButtonGroup", "Checkbox", "Html", "Selectbox", "TextArea")
"""Widgets of the first page, by the names of their scripts in Streamlit."""
ROOM: Final = ("room.css", "phone.css", "lesson.css")
"""Style sheets that lay out the first screen and the panel of a lesson, in this order."""
SCRIPTS: Final = ("backend.js", "history.js", "enter.js", "choice.js", "present.js", "visited.js")
"""Scripts of the page around everything that Streamlit draws."""

_HERE: Final = Path(__file__).parent
_WEB: Final = _HERE / "web"
_STATIC: Final = Path(get_static_dir())
_IMPORT: Final = re.compile(r'"(?<=from"|port")\./([^"/]+\.js)"')
"""The name after `from` or `import` in a script; the quote stands first, for a search that is several times faster."""


def first_page() -> str:
    """Streamlit's page with what is needed first at the end of its head."""
    page = (_STATIC / "index.html").read_text("utf-8")
    room = "\n".join((_WEB / name).read_text("utf-8") for name in ROOM)
    links = [
        f'<link rel="modulepreload" crossorigin href="./static/js/{name}">'
        for name in scripts_of(FIRST_WIDGETS)
        if name not in page
    ]
    scripts = [f"<script>\n{(_WEB / name).read_text('utf-8')}</script>" for name in SCRIPTS]
    present = f'<style id="present" media="not all">\n{(_WEB / "present.css").read_text("utf-8")}</style>'
    added = (*links, f"<style>\n{room}</style>", present, *scripts, "</head>")
    return page.replace("</head>", "\n".join(added), 1)


def scripts_of(widgets: tuple[str, ...]) -> list[str]:
    """File names of the widgets' scripts and of all scripts that these import."""
    folder = _STATIC / "static" / "js"
    to_read = [path.name for widget in widgets for path in folder.glob(f"{widget}.*.js")]
    names: set[str] = set()
    while to_read:
        name = to_read.pop()
        if name not in names:
            names.add(name)
            to_read += _IMPORT.findall((folder / name).read_text("utf-8"))
    return sorted(names)


_PAGE: Final = first_page()


@lru_cache(maxsize=1)
def begin_to_warm_up() -> None:
    """Warm up once, in a thread beside the server's."""
    Thread(target=warm_up, name="warm up", daemon=True).start()


def warm_up() -> None:
    """Do what the first visit would otherwise wait for, while its browser is still fetching Streamlit's scripts.

    Done before that visit, it would delay the start of the server.
    """
    from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
    from attention_sieve.core.errors import AnalysisError

    import_module("attention_sieve.dashboard.views.inspect.page")
    with suppress(AnalysisError):  # the page says what is wrong
        find_checkpoint(BUNDLED)  # reads all its files for their fingerprint
    inspect.stack()  # goes once through all modules; Streamlit calls it when it draws its first element


async def _send(request: Request) -> HTMLResponse:
    begin_to_warm_up()
    return HTMLResponse(_PAGE, headers={"Cache-Control": "no-cache"})


async def _send_on(request: Request) -> RedirectResponse:
    query = request.url.query
    return RedirectResponse(f"./?{query}" if query else "./")


# While one thread computes or imports, another waits this long for its turn: 5 ms, Python's own choice, add up over the
# hundred small files that a first visit fetches.
sys.setswitchinterval(0.001)
# What Streamlit has imported stays until the end. A search for garbage in it would hold the first visit back for 50 ms.
gc.freeze()
few_arenas()
first, *others = offered_pages()
routes = [Route(f"/{address}", _send) for address in ("", *(page.address for page in others))]
routes.append(Route(f"/{first.address}", _send_on))
names = {name: page.address for page in offered_pages() for name in (page.address, page.title)}
middleware = [Middleware(OwnSiteOnly), Middleware(Scripts), Middleware(KnownAddresses, pages=names)]
if is_public():
    middleware.append(Middleware(FewUploads, most=MAX_UPLOADS))
app = st.App(_HERE / "app.py", routes=routes, middleware=middleware)
