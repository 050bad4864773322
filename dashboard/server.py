"""The dashboard's server, started by `streamlit run dashboard/server.py` or by `start.py`: Streamlit's own, with what
`dashboard/web` adds to it."""

import asyncio
import gc
import inspect
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
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

# `streamlit run` puts this file's folder on the path, not the project's.
if not __package__ and (root := str(Path(__file__).resolve().parents[1])) not in sys.path:
    sys.path.insert(0, root)

from attention_sieve.cache.serving.memory import few_arenas
from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard.configuration import check_configuration
from attention_sieve.dashboard.pages import offered_pages
from attention_sieve.dashboard.public import MAX_UPLOADS, MAX_VISITS, MAX_VISITS_OF_ADDRESS, is_public
from attention_sieve.dashboard.web.addresses import KnownAddresses
from attention_sieve.dashboard.web.departures import Departures
from attention_sieve.dashboard.web.few_uploads import FewUploads
from attention_sieve.dashboard.web.few_visits import FewVisits, bounds, log_exhaustion_rarely, raise_descriptor_limit
from attention_sieve.dashboard.web.first_page import first_page
from attention_sieve.dashboard.web.kept_downloads import keep_downloads
from attention_sieve.dashboard.web.messages import deliver_before_fragments
from attention_sieve.dashboard.web.options import read_options_without_lock
from attention_sieve.dashboard.web.own_site import OwnSiteOnly
from attention_sieve.dashboard.web.scripts import Scripts

_HERE: Final = Path(__file__).parent
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

    import_module("attention_sieve.dashboard.views.inspect.page")
    with suppress(AnalysisError):  # the page says what is wrong
        find_checkpoint(BUNDLED)  # reads all its files for their fingerprint
    inspect.stack()  # goes once through all modules; Streamlit calls it when it draws its first element


@asynccontextmanager
async def _with_its_settings(_: st.App) -> AsyncIterator[None]:
    try:
        check_configuration()
    except AnalysisError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)  # of whatever is raised here, the server would print the whole traceback
    log_exhaustion_rarely(asyncio.get_running_loop())
    yield


async def _send(request: Request) -> HTMLResponse:
    begin_to_warm_up()
    page = unfurl.with_tags(_PAGE, request) if is_public() else _PAGE
    return HTMLResponse(page, headers={"Cache-Control": "no-cache"})


async def _send_on(request: Request) -> RedirectResponse:
    query = request.url.query
    return RedirectResponse(f"./?{query}" if query else "./")


# While one thread computes or imports, another waits this long for its turn: 5 ms, Python's own choice, add up over the
# hundred small files that a first visit fetches.
sys.setswitchinterval(0.001)
# What Streamlit has imported stays until the end. A search for garbage in it would hold the first visit back for 50 ms.
gc.freeze()
# At Python's own of 700, a sixth of the time in which the first checkpoint is loaded goes by in such searches.
gc.set_threshold(10_000, *gc.get_threshold()[1:])
few_arenas()
keep_downloads()
deliver_before_fragments()
read_options_without_lock()
n_descriptors = raise_descriptor_limit()
first, *others = offered_pages()
routes = [Route(f"/{address}", _send) for address in ("", *(page.address for page in others))]
routes.append(Route(f"/{first.address}", _send_on))
names = {name: page.address for page in offered_pages() for name in (page.address, page.title)}
middleware = [
    Middleware(Departures),
    Middleware(OwnSiteOnly),
    Middleware(Scripts),
    Middleware(KnownAddresses, pages=names),
]
if is_public():
    from attention_sieve.dashboard.card import unfurl  # imports numpy, for which no other server waits

    routes.append(Route(f"/{unfurl.IMAGE}", unfurl.card_image))
    middleware.append(Middleware(FewVisits, most=bounds(MAX_VISITS, MAX_VISITS_OF_ADDRESS, n_descriptors)))
    middleware.append(Middleware(FewUploads, most=MAX_UPLOADS))
app = st.App(_HERE / "app.py", routes=routes, middleware=middleware, lifespan=_with_its_settings)
