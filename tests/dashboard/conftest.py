"""The app on a store of its own, and small checkpoints with the heads that make an output."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import requests  # noqa: F401  silences a warning of its own as it is imported; in a thread, a test's end would undo that
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.util import calc_hash

from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.state import Choice

HERE = Path(__file__).parent
sys.path.append(str(HERE))

APP = str(HERE.parents[1] / "dashboard" / "app.py")
# Every AppTest reads what each installed package says of itself, a third of the time of the pages; once is enough.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)
look_each_millisecond = local_script_runner.require_widgets_deltas


def look_once_it_has_ended(runner, timeout):
    """AppTest looks each millisecond whether its script has ended, which takes a tenth of the processor."""
    runner._script_thread.join(timeout)
    look_each_millisecond(runner, 1)


local_script_runner.require_widgets_deltas = look_once_it_has_ended
run = AppTest._run


def run_without_an_exception(at, *how, **more):
    """A page that raises fails its test, whatever else the test looks at."""
    run(at, *how, **more)
    assert not at.exception, [each.message for each in at.exception]
    return at


AppTest._run = run_without_an_exception
TEXTS = "The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."


@pytest.fixture(autouse=True)
def same_main(monkeypatch):
    """AppTest leaves its script as `__main__`, which each process that a later test starts would run again."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of its own, and the one inference of the process, which the pages share."""
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_SIEVE_CACHE", str(folder))
        controls.inference.clear()
        yield folder
        controls.inference().store.close()
        controls.inference.clear()


@pytest.fixture(scope="session")
def usual_choice():
    """The settings of a page that shows the bundled checkpoint, without a page."""
    return Choice(
        checkpoint="bundled",
        device="cpu",
        dtype="float32",
        kind="encoder",
        off=(),
        corpus=controls.TYPED,
        criterion=Criterion(),
        score_settings=ScoreSettings(),
    )


@pytest.fixture
def app(store, monkeypatch):
    """app(page, **link) -> the app after its first run on that page, tested over three typed texts.

    What is None is left out of the link.
    """

    def opened(page="inspect", **link):
        if "checkpoint" in link:
            # AppTest knows no options that a reader types.
            monkeypatch.setattr(controls, "SUGGESTED", (*controls.SUGGESTED, link["checkpoint"]))
        at = AppTest.from_file(APP, default_timeout=120)
        # AppTest switches only to pages that are files; ours are functions, known by their address.
        at._page_hash = "" if page == "inspect" else calc_hash(page)
        at.session_state["first screen is drawn"] = True  # said by a browser, which AppTest has not
        for name, value in ({"corpus": controls.TYPED, "corpus_text": TEXTS} | link).items():
            if value is not None:
                at.query_params[name] = value
        return at.run()

    return opened


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """small(family, head, **changed) -> folder of a small random checkpoint, made once; `head` as in AutoModelFor..."""
    from small_checkpoints import save_with_head

    made = {}

    def of(family, head="", **changed):
        key = (family, head, repr(changed))
        if key not in made:
            folder = tmp_path_factory.mktemp("checkpoint") / f"{family}{head}"
            made[key] = str(save_with_head(family, folder, head, seed=0, **changed))
        return made[key]

    return of


@pytest.fixture(scope="session")
def bundled_alone():
    """The bundled checkpoint and its tokenizer, by transformers alone."""
    from transformers import AutoModel, AutoTokenizer

    folder = find_checkpoint(BUNDLED).folder
    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval(), AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="session")
def eager(bundled_alone):
    """eager(text, model) -> its tokens, and attention [layer head query key] of the bundled checkpoint or another."""
    own, tokenizer = bundled_alone

    def attention_of(text, model=own):
        from torch import no_grad

        encoded = tokenizer(text, return_tensors="pt")
        with no_grad():
            layers = model(**encoded, output_attentions=True).attentions
        return tokenizer.convert_ids_to_tokens(encoded["input_ids"][0]), np.stack(
            [layer[0].numpy() for layer in layers]
        )

    return attention_of
