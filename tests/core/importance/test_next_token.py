"""The command `next-token`: the tables of several texts, for which token heads speak, and what is no answer."""

import numpy as np
import pandas as pd
import pytest
import torch

from attention_sieve.__main__ import main
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.passes.direct_path import logit_attribution
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

TEXTS = ["the dog sat on the mat", "a cat ran"]


@pytest.fixture
def command(writing, tmp_path, monkeypatch):
    """command(*options) -> exit status over TEXTS; the checkpoint is a decoder if no other one is named."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), "utf-8")

    def run(*options):
        files = ["--texts=texts.txt", "--output=heads.csv", "--tokens=tokens.parquet", "--device=cpu"]
        return main(["next-token", f"--checkpoint={writing}", *files, *options])

    return run


def test_heads_speak_for_the_token_that_follows_or_at_the_end_for_the_likeliest(command, writing):
    checkpoint, settings = load_checkpoint(find_checkpoint(str(writing)), device="cpu"), PassSettings("self")
    for options in (["--after=1"], [], ["--token-id=7"]):
        assert command(*options) == 0
        heads, tokens = pd.read_csv("heads.csv"), pd.read_parquet("tokens.parquet")
        np.testing.assert_allclose(tokens["all on"], tokens["probability"], rtol=1e-5, atol=1e-6)
        for index, written in enumerate(TEXTS):
            text = prepare(checkpoint, Text((written,)), settings)
            of_text, rows = tokens[tokens["text"] == index], heads[heads["text"] == index]
            position = int(of_text["after"].iloc[0])
            best = of_text.loc[of_text["probability"].idxmax(), "id"]
            token = {"--after=1": text.queries.ids[2], "--token-id=7": 7}.get("".join(options), best)
            assert of_text["follows"].sum() == (options == ["--after=1"])
            expected = logit_attribution(checkpoint, text, settings, position, int(token))
            heads_alone = rows[rows["head"].notna()].sort_values(["layer", "head"])
            np.testing.assert_allclose(heads_alone["adds"], expected.adds.heads.ravel(), rtol=1e-4, atol=1e-6)
            assert "embedding" in set(rows["name"])
            logits = checkpoint.full_model(torch.tensor(text.queries.ids)[None]).logits[0, position].detach()
            assert rows["adds"].sum() == pytest.approx(float(logits[int(token)] - logits.mean()), abs=1e-4)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--after=99", "There is no token 99 in a text of "),
        ("--token=dogs and cats", "“dogs and cats” is "),
        ("--token-id=1000000", "There is no token with the id 1000000."),
        ("--checkpoint=bundled", "predicts no next token. Choose a causal language model."),
    ],
)
def test_what_has_no_answer_gets_a_sentence(command, capsys, option, said):
    assert command(option) == 2
    assert said in capsys.readouterr().err
