"""Heads in a cell of a notebook: the Python half. tests/browser/across/test_notebook.py looks at it in Chromium."""

import base64
import gc
import json
import re
import sys
import weakref
from dataclasses import replace
from html import escape
from xml.etree import ElementTree as ET

import naive
import numpy as np
import pytest
import transformers
from comm import get_comm_manager
from reading import numbers

import attention_sieve as sieve
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.errors import AnalysisError, CheckpointError, TextError
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.roles.question import pass_text
from attention_sieve.core.texts.text import text_of
from attention_sieve.dashboard.standalone.linked_text import text_data
from attention_sieve.dashboard.standalone.notebook import MOST_WEIGHTS, HeadsWidget

HOSTILE = "The dog <img src=x onerror=alert(1)> sat."
SVG = "{http://www.w3.org/2000/svg}"
PAIR = ("The black cat quickly chased two birds.", "She ran.")


def passed_texts(folder, texts):
    checkpoint, settings = sieve.load(folder, device="cpu"), PassSettings()
    read = [text_of(each, "a text") for each in texts]
    return [
        pass_text(checkpoint, text, prepare(checkpoint, text, settings), settings, ScoreSettings()) for text in read
    ]


def texts_of(widget):
    return json.loads(widget._data)


def test_a_model_in_memory_is_shown_as_its_folder_and_left_as_it_was(guessing, in_memory):
    model, tokenizer = in_memory
    model.train()
    in_place = sieve.show(model, [PAIR, "She ran."], tokenizer=tokenizer, tau=2)
    of_folder = sieve.show(guessing, [PAIR, "She ran."], tau=2)
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    for mine, theirs in zip(texts_of(in_place), texts_of(of_folder), strict=True):
        assert mine["name"] == theirs["name"]
        for array in ("scores", "uniform", "greatest"):
            given = [numbers(each["grid"][array], "<f4") for each in (mine, theirs)]
            np.testing.assert_allclose(*given, rtol=1e-5, atol=1e-6)
    scores = sieve.scores(model, [PAIR], tokenizer=tokenizer).table
    np.testing.assert_allclose(
        numbers(texts_of(in_place)[0]["grid"]["scores"], "<f4"), scores["score"].to_numpy(), rtol=1e-5, atol=1e-6
    )
    assert texts_of(in_place)[0]["name"] == " ||| ".join(PAIR)
    assert repr(in_place).startswith("Heads of BertForMaskedLM in memory in 2 texts; chosen: L")


def test_every_weight_is_that_of_the_eager_path(guessing, in_memory):
    ids = in_memory[1](PAIR[0])["input_ids"]
    eager = naive.eager_attention(transformers.AutoModelForMaskedLM, guessing, ids)
    (shown,) = texts_of(sieve.show(guessing, PAIR[0]))
    weights = (numbers(shown["data"]["patterns"]["cells"], "u1") / 255) ** 2
    np.testing.assert_allclose(weights, np.asarray(eager).ravel(), atol=0.005)
    assert shown["data"]["inside"] is None


def test_of_a_window_each_head_says_what_leaves_it(guessing):
    (shown,) = passed_texts(guessing, [PAIR])
    looked = shown.text_attention
    part = looked.attention[:, :, 2:6, 1:4]
    window = replace(looked, window=Window((2, 6), (1, 4)), attention=part, block=1, overview=looked.attention)
    inside = numbers(text_data(window, shown.text, {}, "a model")["inside"], "<u2") / 65535
    np.testing.assert_allclose(inside, part.sum(axis=-1).ravel(), atol=1e-4)


def test_chosen_heads_can_be_set_and_observed_and_those_that_are_not_there_get_a_sentence(guessing):
    shown, seen = sieve.show(guessing, [PAIR, "She ran."]), []
    shown.observe(lambda change: seen.append(change["new"]), "heads")
    shown.heads = [(1, 2), (0, 1)]
    shown.set_state({"heads": [[0, 2]]})  # as the browser sends them
    assert seen == [[(1, 2), (0, 1)], [(0, 2)]]
    with pytest.raises(
        AnalysisError, match=r"There is no L7 H0 in .*\. Choose among 2 layers of 3 heads, counted from 0"
    ):
        shown.heads = [(0, 1), (7, 0)]
    with pytest.raises(AnalysisError, match=r"There is no text 2\. Choose one from 0 to 1"):
        shown.text = 2
    assert (shown.heads, shown.text) == ([(0, 2)], 0)


def test_outside_of_a_notebook_and_once_closed_it_says_how_to_see_the_heads_and_leaves_nothing(guessing):
    shown = sieve.show(guessing, "She ran.")
    in_place_of_it = shown._repr_mimebundle_()[0]["text/plain"]
    assert in_place_of_it == f"{shown!r}"
    assert in_place_of_it.endswith(". Run this cell in a notebook to see them.")
    comm, gone = shown.comm.comm_id, weakref.ref(shown)
    shown.close()
    shown.heads = [(0, 1)]
    assert repr(shown).endswith(" in 1 text; chosen: L0 H1. Closed: call show again to see them.")
    assert shown._repr_mimebundle_ is None, "no view of a model that is gone"
    assert comm not in get_comm_manager().comms
    del shown
    gc.collect()
    assert gone() is None


def test_a_still_of_the_chosen_heads_stands_beside_the_widget_for_whoever_has_none(guessing, monkeypatch):
    said = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: said.append(data))
    shown = sieve.show(guessing, [PAIR[0], HOSTILE], tau=1.5)
    shown.heads, shown.text = [(1, 2), (0, 0)], 1
    shown._ipython_display_()
    widget, still = said
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == shown.model_id
    assert f'data-still="{shown._still}"' in still.data
    assert HOSTILE not in still.data
    assert f'alt="Where L1 H2, L0 H0 look in: {escape(HOSTILE)}"' in still.data
    svgs = (base64.b64decode(svg).decode() for svg in re.findall('base64,([^"]+)', still.data))
    of_grid, of_arcs = ({text.text for text in ET.fromstring(svg).iter(f"{SVG}text")} for svg in svgs)
    assert {"0", "1", "2"} < of_grid
    assert {"L1 H2", "L0 H0", "dog", "[SEP]"} < of_arcs
    held = np.argwhere(numbers(texts_of(shown)[1]["grid"]["states"], "u1").reshape(-1, 2, 3).any(axis=0))
    assert re.findall(r"<td>(L\d+ H\d+)</td>", still.data) == [f"L{layer} H{head}" for layer, head in held]
    shown.heads = []
    assert shown.still().count("<img") == 1
    shown.close()
    shown._ipython_display_()
    assert said[2:] == [{"text/plain": repr(shown)}]


def test_bad_input_gets_a_sentence(guessing, in_memory, monkeypatch):
    with pytest.raises(TextError, match=r"Text 1 is 7\. Give a string"):
        sieve.show(guessing, 7)
    config = transformers.BertConfig(num_hidden_layers=1, hidden_size=8, num_attention_heads=2, vocab_size=6)
    with pytest.raises(CheckpointError, match=r"tokenizer of BertModel in memory .* its model has 6 embeddings"):
        sieve.show(transformers.BertModel(config), "She ran.", tokenizer=in_memory[1])
    with pytest.raises(TypeError, match=r"show\(\) got an unexpected keyword argument 'alpha'"):
        sieve.show(guessing, "She ran.", alpha=0.1)
    shown = passed_texts(guessing, [PAIR])
    n_times = 1 + MOST_WEIGHTS // shown[0].text_attention.attention.size
    with pytest.raises(AnalysisError, match=r"and a cell shows at most 50,000,000\. Show fewer or shorter texts"):
        HeadsWidget(sieve.load(guessing).files, RoleSettings(), (), shown * n_times)
    monkeypatch.delitem(sys.modules, HeadsWidget.__module__)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(AnalysisError, match=r"anywidget, which is not installed\. Install it with: pip install"):
        sieve.show(guessing, "She ran.")
