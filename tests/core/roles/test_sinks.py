"""Attention sinks as published: equal to a loop over eager maps, and short texts take no part."""

import numpy as np
import pytest
import torch
import transformers

from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.sinks import SINK_ANALYSIS, SinkSettings
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import text_of_ids

IDS = ((3, 40, 41, 42, 43, 9, 40, 41, 42, 43), (2, 50, 51, 52, 12, 13, 50), (4, 5, 6))
TEXTS = tuple(text_of_ids(GivenTokens(ids)) for ids in IDS)
SIX = SinkSettings(eps=0.35, tokens=6)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma3", "gpt_oss"])
def test_the_share_equals_a_loop_over_the_first_tokens_of_eager_maps(family, folders):
    checkpoint = load_checkpoint(find_checkpoint(str(folders(family))), device="cpu")
    model = transformers.AutoModel.from_pretrained(checkpoint.files.folder, attn_implementation="eager").eval()
    finding = find(SINK_ANALYSIS, checkpoint, TEXTS, SIX)
    expected = []
    for ids in IDS[:2]:
        with torch.no_grad():
            maps = model(torch.tensor([ids]), output_attentions=True).attentions
        expected.append(np.stack([of[0, :, :6, 0].mean(-1).numpy() for of in maps]))
    np.testing.assert_allclose(finding.masses[:2], expected, atol=1e-6)
    assert np.isnan(finding.masses[2]).all()
    assert finding.n_texts == 2
    assert finding.share == pytest.approx(np.mean([(of > 0.35).mean() for of in expected]))
    assert SINK_ANALYSIS.facts(finding, SIX)["sink share"] == f"{finding.share:.4f}"


def test_an_encoder_and_short_texts_get_their_sentence(folders):
    for family in ("bert", "llama"):
        checkpoint = load_checkpoint(find_checkpoint(str(folders(family))), device="cpu")
        texts = TEXTS if family == "bert" else TEXTS[2:]
        with pytest.raises(AnalysisError, match="No text has 6 tokens, or the model also looks ahead"):
            find(SINK_ANALYSIS, checkpoint, texts, SIX)


@pytest.mark.parametrize(("changed", "says"), [({"eps": 1.0}, "eps is 1"), ({"tokens": 1}, "tokens is 1")])
def test_settings_out_of_range_get_their_sentence(changed, says):
    with pytest.raises(AnalysisError, match=says):
        SinkSettings(**changed)
