"""A model hub on this machine: the answers that huggingface_hub needs to list and fetch the files of checkpoints."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class LocalHub:
    """A running hub."""

    address: str
    name: str
    """The first checkpoint that it has."""
    asked: list[str] = field(default_factory=list)
    """Method and path of each request."""

    @property
    def fetched(self) -> list[str]:
        """Names of files whose content was sent."""
        return [line.rsplit("/", 1)[1] for line in self.asked if line.startswith("GET") and "/resolve/" in line]


@contextmanager
def local_hub(name: str, folder: Path, others: Mapping[str, Path] = MappingProxyType({})) -> Iterator[LocalHub]:
    """A hub that offers a folder's files under a name such as organisation/small, and those of other folders."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    hub = LocalHub(f"http://127.0.0.1:{server.server_port}", name)
    server.RequestHandlerClass = _answers(hub, {name: folder, **others})
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def _answers(hub: LocalHub, offered: Mapping[str, Path]) -> type[BaseHTTPRequestHandler]:
    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self._answer(with_content=False)

        def do_GET(self):
            self._answer(with_content=True)

        def log_message(self, *_):
            pass

        def _answer(self, with_content):
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            name = next((name for name in offered if f"/{name}/" in path), "")
            folder = offered.get(name, Path())
            if not name:
                self._missing()
            elif path == f"/api/models/{name}/revision/main":
                files = [{"rfilename": path.name} for path in folder.iterdir()]
                self._send(json.dumps({"id": name, "sha": COMMIT, "siblings": files}).encode())
            elif path == f"/api/models/{name}/tree/{COMMIT}":
                self._send(json.dumps([_listed(path) for path in folder.iterdir()]).encode())
            elif path.startswith(f"/{name}/resolve/{COMMIT}/"):
                content = (folder / path.rsplit("/", 1)[1]).read_bytes()
                self._send(content, {"ETag": f'"{_digest(content)}"'}, with_content)
            else:
                self._missing()

        def _missing(self):
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _send(self, content, headers=None, with_content=True):
            self.send_response(200)
            for key, value in {"X-Repo-Commit": COMMIT, "Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(key, value)
            self.end_headers()
            if with_content:
                self.wfile.write(content)

    return Answers


def _listed(path: Path) -> dict[str, object]:
    content = path.read_bytes()
    return {"type": "file", "path": path.name, "size": len(content), "oid": _digest(content)}


def _digest(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
