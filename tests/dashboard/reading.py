"""What a page without a browser shows, and what runs behind it."""

import base64
import json
import shlex
from threading import Event

import numpy as np
import pyarrow as pa
import pytest

from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.running import read_progress
from attention_sieve.dashboard.plain import WORD_JOINER

POLLS, POLL_SECONDS = 1_200, 0.05


def until(happened):
    """Wait until a function of no arguments says yes."""
    for _ in range(POLLS):
        if happened():
            return
        Event().wait(POLL_SECONDS)
    pytest.fail("waited in vain")


def runs_here():
    """Progress of the runs of this program by their folder, without looking at them as a page does."""
    return {folder: read_progress(folder) for folder in (program_folder() / "runs").glob("*")}


def once_ended(at):
    """The page once no run of this program is on."""
    until(lambda: all(progress.state != "running" for progress in runs_here().values()))
    return at.run()


def sent(at, label):
    """What a hand-made view was sent; its label begins so."""
    return next(view for view in _views(at) if view.get("label", "").startswith(label))


def scores_in(grid):
    """Scores by role and head that a grid was sent."""
    return numbers(grid["scores"], "<f4").reshape(len(grid["roles"]), -1)


def numbers(text, kind="u1"):
    """An array that was sent as one text."""
    return np.frombuffer(base64.b64decode(text), kind)


def arcs(at):
    return next(view for view in _views(at) if "queries" in view)


def charts(at):
    found = at.get("vega_lite_chart")
    return [pa.ipc.open_stream(each.proto.data.data).read_pandas() for each in found]


def overview(at):
    """What the overview of a long text was sent; None where there is none."""
    return next((view for view in _views(at) if "ratios" in view), None)


def _views(at):
    return [data_of(view.proto.json) for view in at.get("bidi_component") if view.proto.json]


def data_of(sent):
    """What a view was given: some of it travels as one text."""
    data = json.loads(sent)
    return json.loads(data["text"]) if data.keys() == {"text"} else data


def said(at):
    """Error sentences without the signs that keep Markdown from reading them."""
    return [_plain(error.value) for error in at.error]


def sentences(at):
    """All that a page says, errors among it, likewise."""
    parts = (at.title, at.markdown, at.caption, at.info, at.success, at.warning, at.error)
    return [_plain(each.value) for part in parts for each in part]


def told(at):
    """The same as one text."""
    return "\n".join(sentences(at))


def _plain(text):
    return text.replace("\\", "").replace(WORD_JOINER, "")


def written(at, words):
    return [each.value for each in at.markdown if words in each.value]


def button(at, label):
    """The button whose label begins so."""
    return next(each for each in at.button if each.label.startswith(label))


def command_of(at, download):
    """The command that the download of a figure or table shows, once it is opened; as words, without the program's."""
    at.session_state[f"download {download}"] = True
    at.run()
    assert not at.exception
    (line,) = (each.value for each in at.code if each.value.startswith("attention-sieve "))
    at.session_state[f"download {download}"] = False
    return [shlex.split(part)[1:] for part in line.split(" && ")]


def choose_heads(at, *heads):
    """Choose heads in the grid of the page Inspect, as a browser would."""
    at.session_state["inspect grid"] = {"chosen": [list(head) for head in heads]}
    at.run()
