"""A public server forgets the texts of its visitors after the hours that the README names: memory and store."""

import gc
import json
import time
from pathlib import Path

import pytest
from traces import traces

from attention_sieve.cache.memory import Memory
from attention_sieve.dashboard import controls, public
from attention_sieve.dashboard.forgetting import EVERY, forget
from attention_sieve.dashboard.views.grammar.coreference import wording as coreference_wording
from attention_sieve.dashboard.views.importance import wording as importance_wording

WORDS = " ".join(("porcelain", "violin"))  # this file, which Python keeps too, does not hold them side by side
NURSES = ("old", "young", "tired", "kind")

CLASSIFIER = "bertSequenceClassification"
LETS_GO_WITHIN = 20
"""Seconds: a thread that has answered may hold what it was asked for a moment longer."""


def sentences():
    """Made anew, so that this module does not hold them."""
    return [f"The {who} nurse washed the {WORDS} and left it." for who in NURSES]


def uploaded(page):
    """A visit of a page that reads an uploaded corpus: for its scores, trees, or the words that heads look at."""

    def visit(app):
        at = app(page, corpus=controls.UPLOAD)
        return at.file_uploader(key="upload").upload("texts.txt", "\n".join(sentences()).encode()).run()

    return visit


def mentions(app):
    """Gold mentions, and the windows of a text longer than the checkpoint takes."""
    at = app("grammar", **{"grammar section": "Coreference"})
    at.segmented_control(key="mentions from").set_value(coreference_wording.UPLOAD).run()
    texts = ["".join(f"{sentence} She sat. " for sentence in sentences() * n) for n in (1, 60)]
    clusters = [[[text.index("The"), text.index(" washed")], [text.index("She"), text.index(" sat")]] for text in texts]
    content = "\n".join(json.dumps({"text": text, "clusters": [cluster]}) for text, cluster in zip(texts, clusters))
    return at.get("file_uploader")[0].upload("gold.jsonl", content.encode(), "application/json").run()


def labelled_table(app):
    """A table of labelled texts, and what its texts lose without each head."""
    at = app("importance", checkpoint=CLASSIFIER, metric=importance_wording.LABELS)
    rows = "".join(f"{text},LABEL_{number % 2}\n" for number, text in enumerate(sentences()))
    return at.file_uploader(key="labelled").upload("labelled.csv", f"text,label\n{rows}".encode()).run()


def typed_text(app):
    """A typed text, its attention, and its output with a head switched off."""
    return app("inspect", text=sentences()[0], off="0-1")


@pytest.fixture(scope="module")
def public_server(store, small):
    """Its inference; it offers the bundled checkpoint and a classifier."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(public.PUBLIC, "1")
        patch.setenv(
            public.CHECKPOINTS, f"bundled:{small('bert', 'SequenceClassification', max_position_embeddings=512)}"
        )
        controls.inference.clear()
        yield controls.inference()
        controls.inference.clear()


def show(app, visit):
    """Open a page, use it, and close it; only what the server keeps survives."""
    at = visit(app)
    assert not at.exception
    assert [error.value for error in at.error] == []


def test_no_text_of_a_visitor_is_left_after_the_hours(app, store, public_server):
    began = time.time()
    for visit in (*map(uploaded, ("roles", "grammar", "surface")), mentions, labelled_table, typed_text):
        show(app, visit)
    forget(public_server.store, began + 3600 * public.HOURS_KEPT - EVERY)
    assert traces(WORDS)
    forget(public_server.store, time.time() + 3600 * public.HOURS_KEPT - EVERY + 1)
    until = time.monotonic() + LETS_GO_WITHIN
    while (left := traces(WORDS)) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == []
    assert all(each.size == 0 for each in gc.get_objects() if type(each) is Memory)
    assert b"porcelain" not in b"".join(path.read_bytes() for path in store.glob("results.sqlite*"))


def test_the_readme_names_the_hours():
    readme = (Path(__file__).parents[2] / "dashboard" / "web" / "README.md").read_text("utf-8")
    assert f"the texts read from it, and what is made of them, for at most {public.HOURS_KEPT} hours" in readme
    assert f"such results go once nobody has asked for them for {public.HOURS_KEPT} hours" in readme
