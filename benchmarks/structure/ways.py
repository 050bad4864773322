"""Two ways through the program: a typed sentence to the grid on Inspect, and a CoNLL-U file to the table on Grammar.

Prints the files that take part, the types of ours that the value takes, and the modules that the page has loaded: when
it has drawn its first screen, and when it has drawn everything.
A file takes part if a function of it takes or returns what has come of the input: the input itself, or what a function
made that took such a thing (an object of a type of ours, an array, or a container of these). Found by a profile of
every call in every thread, and read backwards from the function that draws. The page was run on another text before, as
by a reader who types again.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from inspect import CO_VARARGS, CO_VARKEYWORDS
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = ("core", "cache", "dashboard")
MARK: Final = "zebra"
"""A word that stands in the input and nowhere else."""
CONLLU: Final = f"""\
1\t{MARK.capitalize()}s\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\teat\t_\t_\t_\t_\t0\troot\t_\t_
3\tred\t_\t_\t_\t_\t4\tamod\t_\t_
4\tapples\t_\t_\t_\t_\t2\tobj\t_\t_
"""
ENDS: Final = {"inspect": "grid_data", "grammar": "best_heads"}
"""The function that draws what the way leads to."""
DEPTH: Final = 4


def main() -> None:
    if len(sys.argv) > 1:
        walk(sys.argv[1])
        return
    for page in ENDS:
        done = subprocess.run([sys.executable, "-m", __spec__.name, page], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        way = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{page}: {len(way['files'])} files, {len(way['types'])} types; {len(way['first'])} modules at first, "
            f"{len(way['modules'])} in the end"
        )
        for name in ("files", "types", "modules"):
            print(f"  {name}: {', '.join(way[name])}")


def walk(page: str) -> None:
    """Print the way that leads to one page."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"ATTENTION_SIEVE_CACHE": folder, "ATTENTION_SIEVE_TRUSTED": os.sep, "HF_HUB_OFFLINE": "1"}
        from streamlit.testing.v1 import AppTest
        from streamlit.util import calc_hash

        from attention_sieve.dashboard import controls

        way = Way(ENDS[page])
        threading.setprofile(way.profile)
        at = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=300)
        at._page_hash = "" if page == "inspect" else calc_hash(page)
        upload = page == "grammar"
        link = (
            {"corpus": "upload a file", "least cases": "1"} if upload else {"text": "A cat.", "corpus": controls.TYPED}
        )
        for name, value in (link if upload else link | {"corpus_text": "A cat.\nA dog."}).items():
            at.query_params[name] = value
        at.run()
        if upload:
            at.file_uploader(key="upload").upload("first.conllu", CONLLU.replace(MARK.capitalize(), "Cat").encode())
            at.run()
        at_first = loaded()
        at.session_state["first screen is drawn"] = True  # said by a browser, which AppTest has not
        way.begin()
        if upload:
            at.file_uploader(key="upload").upload("second.conllu", (2 * f"{CONLLU}\n").encode())
        else:
            at.text_area(key="text").set_value(f"A {MARK} sleeps.")
        at.run()
        if at.exception or at.error or way.is_on:
            sys.exit(f"The page failed: {[each.value for each in (*at.exception, *at.error)]}")
        controls.inference().close()
        files, types = way.walked()
        print(json.dumps({"files": sorted(files), "types": sorted(types), "first": at_first, "modules": loaded()}))


def loaded() -> list[str]:
    """Modules that are loaded, without packages that hold nothing but their sentence."""
    of_us = {name: module for name, module in dict(sys.modules).items() if name.startswith("attention_sieve.")}
    return sorted(name for name, module in of_us.items() if len(Path(module.__file__).read_text().splitlines()) > 1)


class Way:
    """What a profile of all calls finds of a way."""

    def __init__(self, end: str) -> None:
        self.is_on, self._end = False, end
        self._before: dict[int, object] = {}
        """What was there when it began, such as settings and workers."""
        self._made: dict[int, object] = {}
        """What has come of the input, by id; held, so that no other object gets its id."""
        self._calls: list[tuple[str, list[object], list[object]]] = []
        """File of each call that took or gave such things, what it took, and what it gave."""

    def begin(self) -> None:
        """Begin to watch."""
        self._before = {id(each): each for each in gc.get_objects() if is_ours(each)}
        self.is_on = True

    def profile(self, frame: FrameType, event: str, result: Any) -> None:
        """Called at each call and return."""
        if not self.is_on or event not in ("call", "return"):
            return
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in (*ROOMS, "attention_sieve"):
            return
        arguments = list(arguments_of(frame))
        is_end = event == "call" and frame.f_code.co_name == self._end
        if event == "return" or is_end:
            taken = self._come_of_input(arguments)
            if frame.f_code.co_name == "__init__":
                result = arguments[0]
            if taken:
                made = [each for each in parts(result) if is_array(each) or is_ours(each)]
                self._made |= {id(each): each for each in made if id(each) not in self._before}
            if taken or self._come_of_input(result):
                given = taken if is_end else self._come_of_input(result)
                self._calls.append((str(path.resolve().relative_to(ROOT)), taken, given))
        self.is_on = not is_end

    def _come_of_input(self, value: object) -> list[object]:
        return [each for each in parts(value) if id(each) in self._made or is_marked(each)]

    def walked(self) -> tuple[set[str], set[str]]:
        """Files and types on the way, from its end back to the input."""
        end, *calls = reversed(self._calls)
        files, on_way = {end[0]}, {id(each): each for each in end[1]}
        for file, taken, given in calls:
            if any(id(each) in on_way for each in given):
                files.add(file)
                on_way |= {id(each): each for each in taken}
        return files, {type(each).__name__ for each in on_way.values() if is_ours(each) and holds_anything(each)}


def arguments_of(frame: FrameType) -> Iterator[object]:
    code = frame.f_code
    flags = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]
    return (frame.f_locals[name] for name in names if name in frame.f_locals)


def is_ours(value: object) -> bool:
    return str(type(value).__module__).startswith("attention_sieve.")


def is_array(value: object) -> bool:
    return type(value).__name__ in ("ndarray", "Tensor")


def holds_anything(value: object) -> bool:
    """Whether it holds an array or the input's word, unlike settings that are built on the way."""
    return not is_dataclass(value) or any(is_array(each) or is_marked(each) for each in parts(value))


def is_marked(value: object) -> bool:
    return isinstance(value, str | bytes) and MARK in str(value).lower()


def parts(value: object, depth: int = 0) -> Iterator[object]:
    """A value, and what it holds if it is a container or a dataclass of ours."""
    yield value
    held: Iterable[object] = ()
    if isinstance(value, list | tuple | set | frozenset):
        held = tuple(value)
    elif isinstance(value, dict):
        held = (*value.keys(), *value.values())
    elif is_ours(value) and is_dataclass(value):
        held = [getattr(value, each.name, None) for each in fields(value)]
    for each in held if depth < DEPTH else ():
        yield from parts(each, depth + 1)


if __name__ == "__main__":
    main()
