"""A page of an analysis from its value: one that no page has, added to a copy of the table of pages."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reading import command_of, said, sent, told
from streamlit.testing.v1 import AppTest

from attention_sieve.__main__ import main
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.attention.settings import head_name, highest_head
from attention_sieve.core.importance.settings import AblationSettings, MetricSettings
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.roles.sinks import SINK_ANALYSIS
from attention_sieve.core.surface.analysis import SurfaceSettings
from attention_sieve.core.texts.text import read_file
from attention_sieve.dashboard import pages, views, wording
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.pages import Page

TEXTS = "\n".join(["mat" + 80 * " dog", "sat" + 80 * " the"])
RECIPE = Path(__file__).parents[3] / "dashboard" / "README.md"
COPYING = """
from attention_sieve.core.copying.analysis import COPY_ANALYSIS
from attention_sieve.dashboard.views.analysis import analysis_page
from attention_sieve.dashboard.views.frame import Notes


def show():
    notes = Notes(method="Three tests.")
    analysis_page("Copying", "Heads.", COPY_ANALYSIS, lambda _: ("Copies.", ""), lambda _: None, notes)
"""


@pytest.fixture
def opened(app, small, tmp_path, monkeypatch):
    """opened(analysis, **link) -> the page that is added for it, of a small decoder."""
    (recipe,) = re.findall(r"## Add a page\n[^#]*?```python\n(.*?)```", RECIPE.read_text("utf-8"), re.DOTALL)
    for name, code in {"sinks": recipe, "copying": COPYING}.items():
        folder = tmp_path / "added" / name
        folder.mkdir(parents=True)
        for file, content in {"__init__.py": "", "method.md": "As in the paper.", "page.py": code}.items():
            (folder / file).write_text(content, "utf-8")
        monkeypatch.setattr(pages, "PAGES", (*pages.PAGES, Page("Test", name, name.title(), ":material/grain:", name)))
    monkeypatch.setattr(views, "__path__", [*views.__path__, str(tmp_path / "added")])
    decoder = small("llama", "CausalLM", max_position_embeddings=400, initializer_range=1.0)
    yield lambda name, **link: app(name, **{"checkpoint": decoder, "corpus_text": TEXTS} | link)
    for module in [name for name in sys.modules if re.match(rf"{views.__name__}\.(sinks|copying)\b", name)]:
        del sys.modules[module]


def test_a_page_is_made_of_an_analysis_with_its_headline_its_picture_and_its_table(opened):
    at = opened("sinks")
    assert not at.error
    assert "of heads are attention sinks. :small[:gray[Mean over 2 texts.]]" in told(at)
    shown = at.dataframe[0].value
    assert list(shown) == list(SINK_ANALYSIS.columns)
    drawn = np.array(sent(at, "Sinks of the heads")["texts"], float).ravel()
    np.testing.assert_allclose(drawn, shown["share_of_texts"], atol=1e-3)
    first = head_name(*highest_head(drawn.reshape(-1, 4)))
    assert f"Inspect {first}" in [link.proto.label for link in at.get("page_link")]


OF_SINKS = {"sinks eps": "0.2", "sinks tokens": "20", "off": "0-1"}
OF_COPYING = {"copying role": "duplicate", "copying no_ablation": "true", "copying tau": "0.2", "alpha": "0.1"}


@pytest.mark.parametrize(
    ("name", "link", "options"),
    [
        ("sinks", OF_SINKS, ["--eps=0.2", "--tokens=20", "--off=0-1"]),
        ("copying", OF_COPYING, ["--role=duplicate", "--no-ablation", "--tau=0.2", "--alpha=0.1"]),
    ],
)
def test_the_command_in_its_facts_gives_the_same_table_with_the_settings_of_the_link(
    opened, name, link, options, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    at = opened(name, **link)
    assert not at.error
    shown = at.dataframe[0].value
    (words,) = command_of(at, f"table of {name}")
    assert set(options) <= set(words)
    (tmp_path / "texts.jsonl").write_bytes(provenance.lines_of(read_file("a.txt", TEXTS.encode())))
    assert main(words) == 0
    written = pd.read_parquet(f"{name}.parquet")
    pd.testing.assert_frame_equal(shown, written[list(shown)], check_dtype=False, rtol=1e-5)


def all_controls(at_first):
    """A page of nothing but the controls of some settings."""
    import streamlit as st

    from attention_sieve.dashboard.views.analysis import chosen_settings

    st.session_state["chosen"] = chosen_settings(at_first, "x", st.container())


def no_controls():
    """A page of settings that the reader chooses for all pages."""
    from attention_sieve.core.word_links.analysis import WORD_LINK_ANALYSIS
    from attention_sieve.dashboard.views.analysis import chosen_settings

    assert chosen_settings(WORD_LINK_ANALYSIS.settings, "x") == WORD_LINK_ANALYSIS.settings


@pytest.mark.parametrize("analysis", ANALYSES, ids=lambda analysis: analysis.name)
def test_controls_of_all_fields_begin_with_the_usual_settings(analysis):
    at = AppTest.from_function(all_controls, args=(analysis.settings,)).run()
    assert at.session_state["chosen"] == analysis.settings


def test_settings_without_a_field_have_no_controls():
    at = AppTest.from_function(no_controls).run()
    assert not at.exception
    assert not at.expander


def test_a_number_a_switch_a_list_characters_a_range_and_settings_within_are_taken_from_their_controls():
    at = AppTest.from_function(all_controls, args=(RelationSettings(),)).run()
    at.number_input(key="x least_cases").set_value(7)
    at.toggle(key="x at_clitic").set_value(True)
    at.segmented_control(key="x margin").set_value("relative")
    at.number_input(key="x offsets from").set_value(-2)
    asked = RelationSettings(least_cases=7, at_clitic=True, margin="relative", offsets=(-2, 5))
    assert at.run().session_state["chosen"] == asked
    at = AppTest.from_function(all_controls, args=(SurfaceSettings(),)).run()
    assert at.text_input(key="x punctuation").set_value(".,").run().session_state["chosen"].punctuation == (".", ",")
    at = AppTest.from_function(all_controls, args=(AblationSettings(),)).run()
    at.selectbox(key="x score").set_value("f1")
    at.segmented_control(key="x metric").set_value("lm")
    asked = AblationSettings(metric_settings=MetricSettings(metric="lm", score="f1"))
    assert at.run().session_state["chosen"] == asked


def test_a_value_out_of_range_is_said_and_leaves_everything_as_it_was(opened):
    at = opened("sinks", **{"sinks tokens": "20"})
    before = at.dataframe[0].value
    at.number_input(key="sinks eps").set_value(7.0).run()
    assert said(at) == ["eps is 7. Choose a share between 0 and 1, such as 0.3."]
    assert wording.EARLIER_SETTINGS in [each.value for each in at.caption]
    pd.testing.assert_frame_equal(at.dataframe[0].value, before)
    at.number_input(key="sinks eps").set_value(0.9).run()
    assert not at.error
    assert at.number_input(key="sinks tokens").value == 20
    assert (at.dataframe[0].value["share_of_texts"] <= before["share_of_texts"]).all()


def test_settings_without_a_finding_say_why_and_stay_to_be_changed(opened):
    at = opened("sinks", **{"sinks tokens": "500"})
    (sentence,) = said(at)
    assert sentence.startswith("No text has 500 tokens")
    assert not at.dataframe
    at.number_input(key="sinks tokens").set_value(20).run()
    assert not at.error
    assert len(at.dataframe) == 1


def test_a_link_with_a_value_out_of_range_shows_the_usual_finding_and_says_so(opened):
    at = opened("sinks", **{"sinks eps": "7"})
    assert said(at) == ["eps is 7. Choose a share between 0 and 1, such as 0.3."]
    assert len(at.dataframe) == 1
