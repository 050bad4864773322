"""Roles that a reader writes on the page Roles: from the form, from a file, and from a link."""

import numpy as np
import pytest
from reading import scores_in, sent

from attention_sieve.core.roles.rules import PREFIX, read_role
from attention_sieve.dashboard import state
from attention_sieve.dashboard.views.roles import wording
from attention_sieve.dashboard.views.roles.written import TOML

TEXTS = "The dog saw the dog that the cat saw.\nA stray cat chased a stray dog.\nMy cousin sold my van to my friend."
GRID = "Roles of the heads"
ROLE = 'role = 1\nname = "look back"\nletter = "G"\ncolour = "#AA3377"\n[to]\noffset = -1'
IN_LINK = read_role(ROLE).id.removeprefix(PREFIX)


def test_a_role_in_the_link_stands_in_the_grid_with_its_look_and_scores_as_the_built_in_one(app):
    at = app("roles", corpus_text=TEXTS, role=IN_LINK)
    at.pills(key=state.FURTHER).set_value(["previous"]).run()
    grid = sent(at, GRID)
    assert grid["roles"][-1] == {"label": "look back", "letter": "G", "color": "#AA3377", "ink": "#FFFFFF"}
    np.testing.assert_allclose(scores_in(grid)[-1], scores_in(grid)[-2], rtol=1e-5, atol=1e-6)
    assert any(" look back" in each.value and PREFIX not in each.value for each in at.markdown)


@pytest.mark.parametrize("role", [IN_LINK[:-4], "x" * 5_000, f"{IN_LINK}.{IN_LINK[:-4]}"])
def test_a_link_with_half_a_role_is_answered_by_a_sentence_and_the_usual_roles(app, role):
    at = app("roles", corpus_text=TEXTS, role=role)
    assert len(at.warning) == 1
    assert "the link is cut" in at.warning[0].value or "A written role in the link is cut" in at.warning[0].value
    assert "role" not in at.query_params


def test_the_form_writes_a_role_that_is_scored_saved_in_the_link_and_removed(app):
    at = app("roles", corpus_text=TEXTS, details=wording.WRITTEN)
    assert at.session_state[TOML].endswith('letter = "G"\ncolour = "#AA3377"\n\n[to]\noffset = [-1, -1]\n')
    at.text_input(key="role name").set_value("look back").run()
    assert any("cases from" in each.value for each in at.markdown)
    at.button(key="score role").click().run()
    assert at.query_params["role"] in (IN_LINK, [IN_LINK]), "whether an offset was written as one number or as two"
    assert sent(at, GRID)["roles"][-1]["label"] == "look back"
    at.button(key="remove G").click().run()
    assert "role" not in at.query_params
    assert sent(at, GRID)["roles"][-1]["label"] != "look back"


def test_the_form_writes_patterns_of_trees_and_says_where_antecedents_come_from(app):
    at = app("roles", corpus_text=TEXTS, details=wording.WRITTEN)
    at.selectbox(key="role to").set_value("a word of a tree").run()
    assert not at.error
    rule = read_role(at.session_state[TOML]).rule
    assert (rule.in_trees, rule.offset, rule.relative) == (True, None, None)
    assert any("2 cases from 2 tokens" in each.value for each in at.markdown), "the baker and the customers"
    at.checkbox(key="role to tree looks").set_value(False).run()
    assert read_role(at.session_state[TOML]).rule.offset == (-1, -1)
    at.selectbox(key="role to").set_value("any").run()
    at.selectbox(key="role where False").set_value("antecedent").run()
    assert not at.error
    assert any("No text has a marked antecedent" in each.value for each in at.caption)


def test_an_uploaded_role_is_checked_as_if_it_were_typed(app):
    at = app("roles", corpus_text=TEXTS, details=wording.WRITTEN)
    at.file_uploader(key="role file").upload("mine.toml", ROLE.replace('"G"', '"L"').encode()).run()
    assert at.error[0].value.startswith("L is the letter of look back and of local")
    at.text_area(key=TOML).set_value(ROLE.replace("offset = -1", 'kinds = "verbs"')).run()
    assert at.error[0].value.replace("\\", "").startswith("to.kinds is 'verbs'. Choose one of: punctuation")
    at.text_area(key=TOML).set_value(ROLE).run()
    assert not at.error
    at.button(key="score role").click().run()
    assert sent(at, GRID)["roles"][-1]["letter"] == "G"
