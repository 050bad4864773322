"""A public server keeps room for new visitors, and a fault of its connections does not fill the log."""

import asyncio
import errno
import logging
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from attention_sieve.dashboard.web import few_visits
from attention_sieve.dashboard.web.few_visits import Bounds, FewVisits, bounds, log_exhaustion_rarely

MOST = Bounds(in_all=5, of_address=3)
HTML = [(b"accept", b"text/html,*/*;q=0.8")]


@pytest.fixture
def server():
    """server(kind, address, headers): status and text of an answer, or the WebSocket's task and what it was told."""

    async def app(scope, receive, send):
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
            await receive()
        else:
            await PlainTextResponse("done")(scope, receive, send)

    bounded = FewVisits(app, MOST)

    async def ask(address, headers=()):
        told = []

        async def tell(message):
            told.append(message)

        scope = {"type": "http", "method": "GET", "path": "/", "client": (address, 1), "headers": list(headers)}
        await bounded(scope, None, tell)
        return told[0]["status"], told[1]["body"].decode()

    @asynccontextmanager
    async def visit(address):
        """An open page; what its browser was told."""
        leaves, told = asyncio.Event(), []

        async def tell(message):
            told.append(message["type"])

        page = asyncio.create_task(
            bounded({"type": "websocket", "path": "/_stcore/stream", "client": (address, 1)}, leaves.wait, tell)
        )
        await asyncio.sleep(0)
        try:
            yield told
        finally:
            leaves.set()
            await page

    return ask, visit


def test_an_address_with_as_many_pages_as_allowed_is_told_so_until_one_is_closed(server):
    ask, visit = server

    async def visits():
        async with visit("9.9.9.9"), visit("9.9.9.9"):
            async with visit("9.9.9.9") as third, visit("9.9.9.9") as fourth, visit("8.8.8.8") as other:
                refused = await ask("9.9.9.9", HTML)
                file = await ask("9.9.9.9")
            return third, fourth, other, refused, file, await ask("9.9.9.9", HTML)

    third, fourth, other, (status, text), file, after = asyncio.run(visits())
    assert third == other == ["websocket.accept"]
    assert fourth == ["websocket.close"]
    assert status == 503
    assert "<p>This server has 3 open pages from your address, as many as it takes from one. Close one of them" in text
    assert file == after == (200, "done")


def test_a_full_server_says_so_and_takes_visitors_again_when_others_leave(server):
    ask, visit = server

    async def visits():
        async with visit("1.1.1.1"), visit("2.2.2.2"), visit("3.3.3.3"), visit("4.4.4.4"):
            async with visit("5.5.5.5"), visit("6.6.6.6") as late:
                full = await ask("7.7.7.7", HTML)
            return late, full, await ask("7.7.7.7", HTML)

    late, (status, text), after = asyncio.run(visits())
    assert late == ["websocket.close"]
    assert status == 503
    assert "<p>This server has 5 open pages, as many as it can serve at once. Try again in a few minutes" in text
    assert after == (200, "done")


def test_pages_that_come_through_a_proxy_of_this_machine_are_counted_in_all_alone(server):
    _, visit = server

    async def visits():
        here = "127.0.0.1"
        async with visit(here), visit(here), visit("::1"), visit(here) as fourth, visit(here), visit(here) as sixth:
            return fourth, sixth

    assert asyncio.run(visits()) == (["websocket.accept"], ["websocket.close"])


@pytest.mark.parametrize(
    ("n_descriptors", "most"),
    [(8192, Bounds(200, 40)), (1024, Bounds(82, 40)), (256, Bounds(5, 5)), (64, Bounds(1, 1))],
)
def test_where_there_are_few_descriptors_fewer_pages_are_open(n_descriptors, most):
    assert bounds(200, 40, n_descriptors) == most
    if n_descriptors >= 256:
        assert most.in_all * few_visits.DESCRIPTORS + few_visits.OTHERS <= n_descriptors


def test_this_process_may_have_as_many_descriptors_as_are_needed_for_all_visits():
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(few_visits.ENOUGH, limits[1])
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        assert few_visits.raise_descriptor_limit() == most
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, limits[1])
        assert few_visits.raise_descriptor_limit() == most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def _n_open(address, n_connections):
    """How many of some idle connections of an address uvicorn, started as Streamlit does, leaves open."""

    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    config = uvicorn.Config(FewVisits(app, MOST), port=0, host="127.0.0.1", log_level="error", lifespan="on")
    running = uvicorn.Server(config)
    config.load()
    running.lifespan = config.lifespan_class(config)
    await running.startup()
    try:
        port = running.servers[0].sockets[0].getsockname()[1]
        opened = [
            await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)) for _ in range(n_connections)
        ]
        last = await asyncio.wait_for(opened[-1][0].read(), 60)  # the end of one that is closed
        n_open = len(running.server_state.connections)
        for _, writer in opened:
            writer.close()
        assert last == b""
        return n_open, config.limit_concurrency
    finally:
        running.should_exit = True
        await running.shutdown()


@pytest.mark.parametrize(
    ("address", "proxies", "n_open"),
    [("127.0.0.2", "127.0.0.1", 21), ("127.0.0.1", "127.0.0.1", 135), ("127.0.0.2", "*", 135)],
)
def test_idle_connections_are_closed_beyond_the_share_of_an_address_or_of_all_that_come_by_a_proxy(
    address, proxies, n_open, monkeypatch
):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", proxies)
    assert asyncio.run(_n_open(address, 150)) == (n_open, 35)


def test_another_server_than_uvicorn_starts_without_these_bounds_and_says_so(caplog):
    async def app(scope, receive, send):
        assert await receive() == "begin"

    async def receive():
        return "begin"

    asyncio.run(FewVisits(app, MOST)({"type": "lifespan"}, receive, None))
    assert "The number of connections is not limited" in caplog.text


def test_a_lack_of_descriptors_is_logged_once_a_minute_and_other_faults_each_time(caplog):
    class Minutes(asyncio.SelectorEventLoop):
        now = 0.0

        def time(self):
            return self.now

    loop = Minutes()
    try:
        log_exhaustion_rarely(loop)
        lack = {
            "message": "socket.accept() out of system resource",
            "exception": OSError(errno.EMFILE, "Too many open files"),
        }
        for Minutes.now in (0.0, 1.0, 59.0, 61.0, 62.0):
            loop.call_exception_handler(lack)
            loop.call_exception_handler({"message": "another", "exception": OSError(errno.EPERM, "no")})
    finally:
        loop.close()
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert sum(each.startswith("No connection can be taken: Too many open files.") for each in said) == 2
    assert sum(each.startswith("another") for each in said) == 5
