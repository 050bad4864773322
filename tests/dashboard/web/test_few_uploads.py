"""A page of a public server holds a few uploads at once."""

import asyncio
from types import SimpleNamespace

import pytest
from starlette.responses import PlainTextResponse
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from attention_sieve.dashboard.web import few_uploads
from attention_sieve.dashboard.web.few_uploads import FewUploads

MOST = 3


@pytest.fixture
def held(monkeypatch):
    """Where Streamlit keeps uploads."""
    kept = MemoryUploadedFileManager("/_stcore/upload_file")
    monkeypatch.setattr(few_uploads, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=kept))
    return kept


@pytest.fixture
def send(held):
    """send(method, path, page): the status and the text of the answer, of a server that keeps what arrives."""

    async def server(scope, receive, send):
        *_, page, name = scope["path"].rstrip("/").split("/")
        await asyncio.sleep(0)  # others arrive meanwhile
        if scope["method"] == "PUT" and "upload_file" in scope["path"]:
            held.add_file(page, UploadedFileRec(name, name, "text/plain", b"x"))
        elif scope["method"] == "DELETE":
            held.remove_file(page, name)
        await PlainTextResponse("done")(scope, receive, send)

    bounded = FewUploads(server, MOST)

    async def sent(method, path):
        messages = []

        async def keep(message):
            messages.append(message)

        await bounded({"type": "http", "method": method, "path": path, "headers": []}, None, keep)
        return messages[0]["status"], b"".join(message.get("body", b"") for message in messages[1:]).decode()

    return sent


def test_each_page_holds_as_many_uploads_as_allowed_and_the_next_is_told_why_until_one_is_removed(held, send):
    async def one_after_the_other():
        answers = [await send("PUT", f"/_stcore/upload_file/page/{number}") for number in range(MOST + 1)]
        answers.append(await send("PUT", "/_stcore/upload_file/other/0"))
        answers.append(await send("DELETE", "/_stcore/upload_file/page/0"))
        return [*answers, await send("PUT", "/_stcore/upload_file/page/new")]

    done, refused = (200, "done"), (413, "This page holds 3 uploads already. Remove one of them first.\n")
    assert asyncio.run(one_after_the_other()) == [*[done] * MOST, refused, done, done, done]
    assert len(held.file_storage["page"]) == MOST


def test_uploads_that_arrive_together_are_counted_before_they_are_held(held, send):
    async def together():
        return await asyncio.gather(*(send("PUT", f"/_stcore/upload_file/page/{number}") for number in range(20)))

    statuses = [status for status, _ in asyncio.run(together())]
    assert sorted(statuses) == [200] * MOST + [413] * (20 - MOST)
    assert len(held.file_storage["page"]) == MOST


def test_other_requests_are_handed_on_and_ask_for_no_server(send, monkeypatch):
    monkeypatch.setattr(few_uploads, "get_instance", None)
    assert asyncio.run(send("GET", "/roles/x")) == (200, "done")
    assert asyncio.run(send("PUT", "/somewhere/else")) == (200, "done")
