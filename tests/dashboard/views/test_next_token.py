"""The next token on Inspect: always there for a causal language model, with what heads that are off change in it."""

import numpy as np
import pandas as pd
import pytest
from reading import command_of

from attention_sieve.__main__ import main
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.passes.outputs import next_tokens
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.files.provenance import lines_of
from attention_sieve.dashboard.views.inspect import wording

TEXT = "the dog sat on the red mat."


@pytest.fixture
def gpt2(app, small):
    def opened(**link):
        return app(checkpoint=small("gpt2", "CausalLM"), text=TEXT, **link)

    return opened


def table(at):
    return next(each.value for each in at.dataframe if "token" in each.value)


def test_the_next_token_stands_on_the_page_before_anything_is_switched_off(gpt2, small):
    at = gpt2()
    assert wording.NEXT_TOKEN in [each.value for each in at.subheader]
    checkpoint = load_checkpoint(find_checkpoint(small("gpt2", "CausalLM")))
    settings = PassSettings("self")
    expected = next_tokens(checkpoint, prepare(checkpoint, Text((TEXT,)), settings), settings)
    np.testing.assert_allclose(table(at)["probability"], np.exp(expected.log_probabilities[0]), rtol=1e-5, atol=1e-6)
    assert at.selectbox(key="guess").value == expected.position
    assert any(each.value.endswith(wording.ADDED_NOTE) for each in at.caption)


def test_with_heads_off_both_stand_side_by_side_with_the_change_of_any_token(gpt2, tmp_path, monkeypatch):
    at = gpt2(off="0-1")
    assert list(table(at)) == ["token", "all heads on", "without", "change"]
    at.text_input(key="asked token").set_value("z").run()
    rows = table(at)
    assert rows["token"].iloc[0] == "z"
    np.testing.assert_allclose(rows["change"], np.log(rows["without"] / rows["all heads on"]), atol=1e-5)
    assert (rows["change"] != 0).all()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.jsonl").write_bytes(lines_of([Text((TEXT,))]))
    for download in ("table of next token", "table of heads of the next token"):
        (words,) = command_of(at, download)
        assert main(words) == 0
    written, heads = pd.read_parquet("tokens.parquet"), pd.read_parquet("next-token.parquet")
    np.testing.assert_allclose(
        rows[["all heads on", "without"]], written[["all on", "probability"]], rtol=1e-4, atol=1e-6
    )
    ranking = next(each.value for each in at.dataframe if "looks at" in each.value)
    heads = heads[heads["head"].notna()]
    for column in ("adds", "from copies", "share", "on copies"):
        np.testing.assert_allclose(ranking[column], heads[column].astype(float), rtol=1e-3, atol=1e-6)


def test_more_than_one_token_is_named_and_the_rest_of_the_page_stays_and_follows_the_position(gpt2):
    at = gpt2()
    at.text_input(key="asked token").set_value("zz zz").run()
    assert "“zz zz” is 5 tokens of this model" in at.error[0].value
    before = table(at)
    assert len(before) >= 5
    at.selectbox(key="guess").set_value(1).run()
    assert not table(at).equals(before)
    at.text_area(key="text").set_value("a").run()


@pytest.mark.parametrize(("family", "head"), [("bert", "MaskedLM"), ("gpt2", "")])
def test_a_checkpoint_that_predicts_no_next_token_has_no_such_section_and_does_not_write(app, small, family, head):
    at = app(checkpoint=small(family, head), text=TEXT)
    assert wording.NEXT_TOKEN not in [each.value for each in at.subheader]
    assert "write on" not in [each.key for each in at.button]
