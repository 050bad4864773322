"""What the pages do with what a reader chose, without a browser."""

import numpy as np
import pytest
from reading import arcs, numbers, said, sent, written
from streamlit.util import calc_hash

from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.roles.hypotheses import RESAMPLES
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard import controls, wording
from attention_sieve.dashboard.plain import WORD_JOINER, plain
from attention_sieve.dashboard.views.inspect import wording as inspect_wording
from attention_sieve.dashboard.views.word_links.choice import TABS

FILE = b"The patient nurse gently washed it.\nA stray dog chased them.\nMy cousin finally sold his van."


def uploaded(app, page="roles", **link):
    """A page, tested over an uploaded file: texts that do not grow while the reader looks."""
    at = app(page, corpus=controls.UPLOAD, **link)
    return at.file_uploader(key="upload").upload("texts.txt", FILE).run()


def test_moving_a_setting_of_the_tests_runs_no_model(app):
    at = uploaded(app)
    before, first = controls.inference().n_passed, sent(at, "Roles of the heads")
    at.slider(key="tau").set_value(2.0).run()
    moved = sent(at, "Roles of the heads")
    assert moved["tau"] == 2.0
    assert moved["states"] != first["states"]
    at.select_slider(key="alpha").set_value(0.1).run()
    at.selectbox(key="family").set_value("heads of all roles").run()
    of_all = sent(at, "Roles of the heads")["p"]
    assert of_all != moved["p"]
    at.selectbox(key="correction").set_value("none").run()
    assert sent(at, "Roles of the heads")["p"] != of_all
    at.selectbox(key="role rule").set_value("tau alone, as in the paper").run()
    at.selectbox(key="method").set_value("mean alone").run()
    at.toggle(key="entropy").set_value(False).run()
    assert not at.exception
    assert controls.inference().n_passed == before > 0


def test_counts_stand_beside_the_lengths_of_the_texts_and_texts_too_short_for_tau_are_named(app):
    at = uploaded(app)
    (counts,) = written(at, "heads** hold a role")
    assert "With so few texts (3), a map of roles is mostly noise" in counts
    assert written(at, "Tokens per text: median 9, 8 to 9.")
    assert written(at, "Too short") == [
        "Too short to reach a score of 3, wherever a head looks: 3 of 3 texts for local."
    ]
    at.slider(key="tau").set_value(1.5).run()
    assert written(at, "Too short") == []
    at = uploaded(app, "inspect")
    at.text_area(key="text").set_value("The cat sat on the mat.").run()
    (head,) = written(at, "**Head ")
    assert "This text is too short for local (no head can score more than 2.17)." in head
    assert "With so few texts (3), a map of roles is mostly noise" in head


def test_sensitivity_draws_counts_by_tau_and_asks_for_more_texts_where_there_are_few(app):
    at = uploaded(app, details="Sensitivity")
    assert written(at, "How much the counts above depend on the threshold")
    assert [info.value for info in at.info if "only for 6 texts or more" in info.value]
    assert not at.exception


def test_the_table_of_roles_shows_what_the_reader_picks_of_every_role_and_head(app):
    at = app("roles", details="Table")
    whole = at.dataframe[0].value
    assert len(whole) == len(ROLES) * 72
    at.multiselect(key="table roles").set_value(["local"]).run()
    at.multiselect(key="table layers").set_value(["1"]).run()
    at.toggle(key="table held").set_value(True).run()
    picked = whole[(whole["role"] == "local") & (whole["layer"] == 1) & whole["holds"]]
    assert at.dataframe[0].value["head"].tolist() == picked["head"].tolist()


def test_a_new_text_costs_one_pass_for_its_arcs_and_its_scores(app):
    at = app()
    before = controls.inference().n_passed
    at.text_area(key="text").set_value("A text that nobody has typed before.").run()
    assert controls.inference().n_passed == before + 1
    at.text_area(key="text").set_value("A text that nobody has typed before. ").run()
    assert controls.inference().n_passed == before + 1


def test_a_page_begins_with_its_own_head_until_one_is_chosen_by_an_answer_or_the_reader(app):
    def turn_to(at, page):
        at._page_hash = calc_hash(page)
        at.run()
        return sent(at, "Heads of" if page == "inspect" else "Roles of the heads")["chosen"]

    at = app("inspect")
    (first,) = sent(at, "Heads of")["chosen"]
    (own,) = sent(app("roles"), "Roles of the heads")["chosen"]
    assert first != own, "the two pages choose different heads here"
    assert turn_to(at, "roles") == [first], "the head of the finding"
    assert turn_to(at, "inspect") == [first]
    at.session_state["head"] = [(3, 7)]
    assert turn_to(at, "roles") == turn_to(at, "inspect") == [[3, 7]]


def test_what_is_wrong_with_a_checkpoint_is_said_on_the_page(app, monkeypatch):
    def broken(name):
        raise CheckpointError("There is no *folder* here -> :material/home:. Choose another.")

    at = app("roles")
    monkeypatch.setattr(controls, "find_checkpoint", broken)
    at.run()
    assert not at.exception
    assert said(at) == ["There is no *folder* here -> :material/home:. Choose another."]
    assert ":material/" not in at.error[0].value
    assert [each.label for each in at.main.expander][:3] == [wording.MORE_SETTINGS, wording.DEVICE, wording.HOW_TO_READ]


def test_a_bug_is_no_sentence_of_ours(app, monkeypatch):
    def broken(name):
        raise KeyError("a bug")

    at = app()
    monkeypatch.setattr(controls, "find_checkpoint", broken)
    with pytest.raises(AssertionError):
        at.run()
    assert at.exception
    assert not at.error


def test_a_link_with_nonsense_opens_with_what_the_page_offers(app):
    nonsense = {"tau": "abc", "head": "99-99,x,1-,²-1,-1-2", "corpus": "zzz", "number": "77", "alpha": "7"}
    at = app(**nonsense, sieve="y", by="z", details="none", method="guess", ddof="5", dtype="int4", finer="2")
    assert not at.exception
    assert not at.error
    assert at.slider(key="tau").value == 3.0
    assert at.select_slider(key="alpha").value == 0.05
    assert at.selectbox(key="corpus").value == "sample pairs and texts"


@pytest.mark.parametrize(("named", "shown"), [("2-3,2-3,0-1", "2-3,0-1"), ("none", "none")])
def test_heads_of_a_link_are_read_once_each(app, named, shown):
    at = app(head=named)
    assert not at.exception
    assert at.query_params["head"] == shown


def test_a_corpus_that_was_not_given_is_asked_for(app):
    at = app("roles", corpus=controls.UPLOAD)
    assert [each.value for each in at.info] == [wording.WAIT_UPLOAD]
    at = app("roles", corpus_text="")
    assert [each.value for each in at.info] == [wording.WAIT_TYPED]


def test_uploads_of_a_known_table_are_tested_and_of_an_unknown_one_ask_for_columns(app):
    at = app("roles", corpus=controls.UPLOAD)
    at.file_uploader(key="upload").upload(
        "known.csv", b"sentence1,sentence2\nOne cat.,Two cats.\nA dog.,A pup.\n"
    ).run()
    assert any("Over 2 texts" in each.value for each in at.markdown)
    at.file_uploader(key="upload").upload("unknown.csv", b"first,other\nOne cat.,Two cats.\n").run()
    assert "Pick the one or two columns" in said(at)[0]
    column = next(each for each in at.selectbox if each.label == wording.COLUMN_FIRST)
    column.set_value("other").run()
    assert not at.error
    assert any("Over 1 text " in each.value for each in at.markdown)
    at.file_uploader(key="upload").upload("single.csv", b"other\nOne cat.\n").run()
    assert "Pick it if it holds the texts." in said(at)[0]
    assert wording.COLUMN_SECOND not in [each.label for each in at.selectbox]
    next(each for each in at.selectbox if each.label == wording.COLUMN_FIRST).set_value("other").run()
    assert any("Over 1 text " in each.value for each in at.markdown)


def test_progress_names_count_estimate_and_the_requests_before():
    said = wording.scoring(1_024, 1_500, 12.4, 1)
    assert said.startswith("Scoring texts: 1,024 of 1,500, about 12 s left. 1 request of other users first.")
    assert "other users" not in wording.scoring(0, 2, None, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("www.x.org", "a@b.cc", "http://x", ":smile:", ":material/home:", "a -> b", "$x$ ~= <b>"),
        *("a --> b", "it is --x`<b> or --", "well--known", "--a=`b`"),
    ],
)
def test_signs_of_markdown_and_hyphens_that_begin_no_option_are_shown_as_they_are(text):
    kept = plain(text).replace("\\", "").replace(WORD_JOINER, "")
    assert kept == text
    assert plain(text) != text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Run it with --questions a,b.", "Run it with `--questions` a,b\\."),
        ("Leave out --no-ablation, or --agreement.", "Leave out `--no-ablation`, or `--agreement`\\."),
        ("--output", "`--output`"),
    ],
)
def test_an_option_of_a_command_can_be_copied(text, shown):
    assert plain(text) == shown


def test_what_is_below_the_first_screen_waits_until_the_browser_has_drawn_it_but_for_tests_that_fill_the_grid(app):
    at = app(**{TABS: inspect_wording.ROLES})
    assert at.dataframe
    at.session_state["first screen is drawn"] = False
    at.run()
    assert not at.exception
    assert sent(at, "Heads of")["p"] is None
    assert arcs(at)["label"].startswith("Attention of")
    assert not at.dataframe
    at.session_state["by"] = inspect_wording.BY_CORPUS
    at.run()
    assert sent(at, "Heads of")["p"] is not None


def test_how_often_labels_stay_is_shown_wherever_the_roles_of_the_corpus_are(app):
    at = uploaded(app, details="Table")
    (table,) = [frame.value for frame in at.dataframe if "stability" in frame.value]
    stays = numbers(sent(at, "Roles of")["stays"]) / RESAMPLES
    shown = table["stability"].to_numpy()
    np.testing.assert_allclose(stays, shown)
    assert 0 < shown.min() < 1
    at.slider(key="tau").set_value(4.9).run()
    (table,) = [frame.value for frame in at.dataframe if "stability" in frame.value]
    assert not np.array_equal(table["stability"], shown)
    assert sent(app(), "Heads of")["stays"] is None, "one text has no other corpus"
    assert sent(uploaded(app, "inspect", by=inspect_wording.BY_CORPUS), "Heads of")["stays"] is not None
    assert sent(app(by=inspect_wording.BY_CORPUS), "Heads of")["stays"] is None, "evidence is valid at any look"


def test_single_scores_are_drawn_on_demand_where_they_are_many(app, monkeypatch):
    scores = {"head": "2-5", TABS: "Scores"}
    assert "every score" not in [each.key for each in app(**scores).toggle]
    monkeypatch.setattr("attention_sieve.dashboard.views.inspect.head_card.MOST_MARKS", 10)
    at = app(**scores)
    assert at.get("plotly_chart") == [], "Plotly's code is fetched for nobody who did not ask"
    at.toggle(key="every score").set_value(True).run()
    assert not at.exception
    assert len(at.get("plotly_chart")) == 1
    (table,) = (each.value for each in at.dataframe if "text" in each.value)
    assert len(table) == 3
    n_scores = int(table.drop(columns="text").notna().to_numpy().sum())
    assert at.toggle(key="every score").label == inspect_wording.every_score(n_scores, "score")
