"""A server that is open to others, as a visitor finds it, also behind the proxy of dashboard/web/nginx.conf."""

import base64
import hashlib
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, closing
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from playwright.sync_api import expect
from steps import PATIENCE, arcs, grid_of, settle, type_texts, upload
from websockets.sync.client import connect

from attention_sieve.dashboard.public import MAX_UPLOADS
from benchmarks.shared.programs import NO_NGINX, nginx
from benchmarks.shared.server import free_port

EXAMPLE = Path(__file__).parents[3] / "dashboard" / "web" / "nginx.conf"
LOGIN = {"username": "class", "password": "sieve heads"}
AROUND = """
daemon off;
user root;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    access_log {folder}/access.log;
    include {folder}/heads.conf;
}}
"""


@pytest.fixture(scope="module")
def server(served, prepared, small_checkpoint, tmp_path_factory):
    """Address of a public server that offers the bundled checkpoint and a folder of others."""
    folder = tmp_path_factory.mktemp("public")
    store = shutil.copytree(prepared, folder / "store")
    shutil.copytree(small_checkpoint, folder / "models" / "small")
    offered = {"ATTENTION_SIEVE_PUBLIC": "1", "ATTENTION_SIEVE_CHECKPOINTS": f"bundled:{folder / 'models'}"}
    with served(store, **offered) as running:
        yield running.address


def test_a_visitor_types_a_text_and_chooses_an_offered_checkpoint(visit):
    page = visit("/?checkpoint=models/small&text=the+cat+sat")
    expect(page.get_by_role("grid", name="Heads of models/small:")).to_be_visible()
    type_texts(page, "a dog ran")
    expect(arcs(page).get_by_role("option", name="ran, ").first).to_be_visible()


def test_uploads_of_a_visitor_are_few_and_nothing_reaches_another(visit, server, browser):
    first = visit("/?checkpoint=bundled&text=one+rare+zucchini")
    with first.expect_request(lambda request: request.method == "PUT") as sent:
        upload(first, "only-mine.txt", "a quixotic narwhal sang")
    expect(grid_of(first)).to_be_visible()
    expect_a_few_uploads_at_once(first, sent.value)
    uploaded = sent.value.url
    session = urlsplit(uploaded).path.split("/")[-2]
    with closing(browser.new_context()) as elsewhere:
        second, received = elsewhere.new_page(), []
        second.on("websocket", lambda socket: socket.on("framereceived", lambda frame: received.append(frame)))
        second.goto(server)
        settle(second)
        second.goto(f"{server}/roles")
        expect(grid_of(second)).to_be_visible()
        settle(second)
        everything = b"".join(frame if isinstance(frame, bytes) else frame.encode() for frame in received)
        assert len(everything) > 10_000
        for word in ("zucchini", "narwhal", "only-mine", session):
            assert word.encode() not in everything
        assert b"narwhal" not in elsewhere.request.get(uploaded).body()  # also by one who knows the address
        assert elsewhere.request.delete(uploaded).status == 403
    first.reload()
    settle(first)
    expect(first.get_by_role("textbox", name="Your texts")).to_have_value("one rare zucchini")


def expect_a_few_uploads_at_once(page, sent):
    """After one that was sent."""
    address, token = sent.url.rpartition("/")[0], sent.headers["x-xsrftoken"]
    file = {"file": {"name": "more.txt", "mimeType": "text/plain", "buffer": b"x"}}
    answers = [
        page.request.put(f"{address}/more{number}", multipart=file, headers={"X-Xsrftoken": token})
        for number in range(MAX_UPLOADS)
    ]
    assert [answer.status for answer in answers] == [204] * (MAX_UPLOADS - 1) + [413]
    assert answers[-1].text() == f"This page holds {MAX_UPLOADS} uploads already. Remove one of them first.\n"


@pytest.mark.parametrize(
    "path",
    ["_stcore/metrics", "_stcore/script-health-check", "app/static/../server.log", "media/../../etc/passwd",
     "component/../../../../etc/passwd", "static/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "_stcore/upload_file/a/b"],
)  # fmt: skip
def test_no_address_gives_a_file_of_the_machine(server, path):
    with closing(HTTPConnection(urlsplit(server).netloc)) as connection:
        connection.request("GET", f"/{path}")  # as it is written: no client has made it harmless
        answer = connection.getresponse()
        content = answer.read().decode()
    assert answer.status in (200, 400, 403, 404, 405)
    assert "root:" not in content
    assert answer.status != 200 or "<title>" in content  # the page, as for any address that Streamlit does not know


# Behind the proxy


@pytest.fixture(scope="module")
def proxied(server, tmp_path_factory):
    """Addresses of the proxy, without and with TLS, and its folder."""
    program = nginx()
    assert program, NO_NGINX
    folder = tmp_path_factory.mktemp("proxy")
    plain, tls = free_port(), free_port()
    _write(folder, server, plain, tls)
    proxy = subprocess.Popen([program, "-p", folder, "-c", folder / "nginx.conf"])
    try:
        _wait_for(tls)
        yield f"http://localhost:{plain}", f"https://localhost:{tls}", folder
    finally:
        proxy.terminate()
        proxy.wait()


def _write(folder, behind, plain, tls):
    """The example with ports, a certificate and a login of this test, and nothing else changed."""
    certificate = trustme.CA().issue_cert("localhost")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    for part in certificate.cert_chain_pems:
        part.write_to_path(folder / "chain.pem", append=True)
    hashed = base64.b64encode(hashlib.sha1(LOGIN["password"].encode()).digest()).decode()
    (folder / "users").write_text(f"{LOGIN['username']}:{{SHA}}{hashed}\n")
    text = EXAMPLE.read_text()
    for named, here in {
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl;": f"listen 127.0.0.1:{tls} ssl;",
        "/etc/letsencrypt/live/heads.example.org/fullchain.pem": folder / "chain.pem",
        "/etc/letsencrypt/live/heads.example.org/privkey.pem": folder / "key.pem",
        "auth_basic_user_file /etc/nginx/heads.users": f"auth_basic_user_file {folder}/users",
        "http://127.0.0.1:8501": behind,
        "server_name heads.example.org": "server_name localhost",
        "https://heads.example.org$": "https://localhost$",
    }.items():
        assert named in text
        text = text.replace(named, str(here))
    (folder / "heads.conf").write_text(text)
    (folder / "nginx.conf").write_text(AROUND.format(folder=folder))


def _wait_for(port):
    until = time.monotonic() + PATIENCE / 1000
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < until, "nginx does not answer"
        time.sleep(0.05)


def _asked(address, path="/", method="GET", body=None, **headers):
    """Status and headers of an answer."""
    parts = urlsplit(address)
    if parts.scheme == "https":
        connection = HTTPSConnection(parts.netloc, context=ssl._create_unverified_context())
    else:
        connection = HTTPConnection(parts.netloc)
    with closing(connection):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers


def _login(password=LOGIN["password"]):
    return "Basic " + base64.b64encode(f"{LOGIN['username']}:{password}".encode()).decode()


@pytest.mark.parametrize("path", ["/", "/roles", "/_stcore/stream", "/_stcore/health", "/static/js/index.js"])
def test_nothing_is_answered_without_the_login(proxied, path):
    _, tls, _ = proxied
    assert _asked(tls, path)[0] == 401
    assert _asked(tls, path, Authorization=_login("guessed"))[0] == 401


def test_an_address_without_tls_leads_to_the_one_with(proxied):
    plain, _, _ = proxied
    status, headers = _asked(plain, "/roles?tau=3")
    assert (status, headers["Location"]) == (308, "https://localhost/roles?tau=3")


def test_an_address_without_tls_leads_to_no_other_server(proxied):
    plain, _, _ = proxied
    assert _asked(plain, Host="evil.example")[1]["Location"] == "https://localhost/"


def test_an_address_with_twenty_open_pages_gets_no_more(proxied):
    _, tls, _ = proxied
    with ExitStack() as opened:
        for _ in range(20):
            page = connect(
                f"{tls.replace('https', 'wss')}/_stcore/stream",
                ssl=ssl._create_unverified_context(),
                origin=tls,
                subprotocols=["streamlit"],
                additional_headers={"Authorization": _login()},
            )
            opened.enter_context(page)
        status, headers = _asked(tls, Authorization=_login())
        assert (status, headers["Content-Type"]) == (503, "text/plain")


def test_other_names_and_other_sites_are_refused_behind_the_proxy_too(proxied):
    _, tls, _ = proxied
    assert _asked(tls, Authorization=_login(), Host="evil.example")[0] == 403
    assert _asked(tls, Authorization=_login(), Origin="https://evil.example")[0] == 403
    assert _asked(tls, Authorization=_login(), Origin=tls)[0] == 200


def test_an_upload_beyond_the_bound_is_refused(proxied):
    _, tls, _ = proxied
    path = "/_stcore/upload_file/a/b"
    assert _asked(tls, path, "PUT", b"x" * 7_000_000, Authorization=_login())[0] == 413


def test_a_visitor_with_the_login_types_a_text_which_no_log_keeps(proxied, browser):
    _, tls, folder = proxied
    context = browser.new_context(ignore_https_errors=True, http_credentials=LOGIN)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"{tls}/?checkpoint=bundled&text=the+secret+cat")
    settle(page)
    expect(arcs(page).get_by_role("option", name="secret, ").first).to_be_visible()
    type_texts(page, "a dog ran")
    expect(arcs(page).get_by_role("option", name="ran, ").first).to_be_visible()
    context.close()
    for log in folder.glob("*.log"):
        assert "secret" not in log.read_text()
