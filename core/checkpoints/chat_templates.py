"""Chats as the template of a tokenizer writes them. A template is a program of whoever made the checkpoint, and may
have no end: it runs in a process of its own, with limited memory and time.

`python -m attention_sieve.core.checkpoints.chat_templates` is that process. It is started for the first chat, and again
after a template that took too much: starting takes a second, writing a chat milliseconds.

Source: transformers, `render_jinja_template`, of which `apply_chat_template` is made.
"""

import atexit
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, Final

from attention_sieve.core.checkpoints.limited import Failed, Limits, started, watch
from attention_sieve.core.errors import AnalysisError, CheckpointError, first_line

Turn = Mapping[str, str]
"""Of one chat: `role`, and `content`, as templates take them."""
STARTING: Final = Limits(n_bytes=600_000_000, processor_seconds=30, seconds=120)
WRITING: Final = Limits(n_bytes=600_000_000, processor_seconds=2, seconds=30)
"""For all that is written at once. The process itself takes .1 GB, and the templates of chat models milliseconds."""
MOST_CHARACTERS: Final = 10_000_000
"""In what a template writes."""
TRIED: Final = tuple(
    tuple({"role": role, "content": f"The black cat sat on mat {number}."} for number, role in enumerate(roles))
    for roles in (("user",), ("system", "user"), ("user", "assistant", "user"))
)
"""Chats on which a template is tried."""


class _Writer:
    """The process that writes chats, one after another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="chat template")
        self._process: subprocess.Popen | None = None

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What the process answers.

        Raises: Failed; the process is then ended.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = started(__name__, stdin=subprocess.PIPE)
                self._exchange(self._process, {"chats": []}, STARTING)
            return self._exchange(self._process, request, WRITING)

    def _exchange(self, process: subprocess.Popen, request: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
        answer: Future[bytes] = self._thread.submit(_answered, process, json.dumps(request).encode() + b"\n")
        try:
            watch(process, limits, answer.done)
            return dict(json.loads(answer.result()))
        except (OSError, ValueError):  # it answered nothing
            raise Failed("crashed its process") from None
        finally:
            if not answer.done() or answer.exception() or not answer.result():
                self.close()  # also after Ctrl+C: a late answer would be taken for the next one

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):  # closing writes what is left
                self._process.communicate()
            self._process = None


def _answered(process: subprocess.Popen, line: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("The process was started without pipes.")
    process.stdin.write(line)
    process.stdin.flush()
    return bytes(process.stdout.readline())


_writer: Final = _Writer()
atexit.register(_writer.close)


def written(name: str, tokenizer: Any, chats: Sequence[Sequence[Turn]]) -> list[str]:
    """Chats as the template of a tokenizer writes them: open at its end where the last turn is of the assistant, else
    with the beginning of one. All end alike.

    Args:
        name: of the checkpoint, for errors.
        tokenizer: has a template.

    Raises: AnalysisError for a template that fails; CheckpointError for one that takes too much.
    """
    goes_on = chats[0][-1]["role"] == "assistant"
    request = {
        "chats": [list(map(dict, chat)) for chat in chats],
        "template": tokenizer.get_chat_template(),
        "named": tokenizer.special_tokens_map,
        "goes_on": goes_on,
    }
    try:
        answer = _writer.ask(request)
    except Failed as failed:
        raise CheckpointError(
            f"The chat template of {name} {failed}, so it is not used. Save the tokenizer with another template, or "
            "choose another checkpoint."
        ) from None
    if error := answer["error"]:
        raise AnalysisError(
            f"The chat template of {name} fails on these turns ({error}). Type other turns, or switch the chat off."
        )
    return list(answer["written"])


def try_template(name: str, tokenizer: Any) -> None:
    """Raise if the template of a tokenizer, if it has one, takes too much for a few chats; it may refuse them.

    Raises: CheckpointError.
    """
    for chat in TRIED if tokenizer.chat_template else ():
        try:
            written(name, tokenizer, [chat])
        except CheckpointError:
            raise
        except AnalysisError:  # some take no system turn
            continue


def _answer(request: Mapping[str, Any]) -> dict[str, Any]:
    from transformers.utils.chat_template_utils import render_jinja_template

    if not request["chats"]:
        return {"written": [], "error": ""}
    try:
        rendered, _ = render_jinja_template(
            conversations=request["chats"],
            chat_template=request["template"],
            continue_final_message=request["goes_on"],
            add_generation_prompt=not request["goes_on"],
            **request["named"],
        )
    except Exception as error:  # what the code of a template raises is open-ended
        return {"written": [], "error": first_line(error)}
    n_characters = sum(map(len, rendered))
    if n_characters > MOST_CHARACTERS:
        return {
            "written": [],
            "error": f"it writes {n_characters:,} characters, and at most {MOST_CHARACTERS:,} are read",
        }
    return {"written": rendered, "error": ""}


def _main() -> None:
    """Answer a request a line, until there are no more."""
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(_answer(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
