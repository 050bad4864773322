import numpy as np
import pytest
import transformers

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.passes.batches import attention_of_token, model_inputs
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

TEXT = Text(("the dog sat on the red mat.",))


@pytest.mark.parametrize("family", ["gpt2", "gemma3", "bert"])
def test_the_attention_of_one_token_is_its_row_of_the_eager_map(folders, family):
    checkpoint, settings = load_checkpoint(find_checkpoint(str(folders(family))), device="cpu"), PassSettings()
    text = prepare(checkpoint, TEXT, settings)
    model = transformers.AutoModel.from_pretrained(checkpoint.files.folder, attn_implementation="eager").eval()
    maps = model(**model_inputs(checkpoint, [text]), output_attentions=True).attentions
    for position in (0, 4, text.n_tokens - 1):
        expected = np.stack([of_layer[0, :, position].detach().numpy() for of_layer in maps])
        np.testing.assert_allclose(attention_of_token(checkpoint, text, settings, position), expected, atol=1e-5)


def test_it_is_of_the_pass_without_the_heads_that_are_off(folders):
    checkpoint = load_checkpoint(find_checkpoint(str(folders("gpt2"))), device="cpu")
    text = prepare(checkpoint, TEXT, PassSettings())
    on, off = (attention_of_token(checkpoint, text, PassSettings("self", heads), 5) for heads in ((), ((0, 1),)))
    np.testing.assert_allclose(on[0], off[0], rtol=1e-5, atol=1e-6)
    assert np.abs(on[1] - off[1]).max() > 1e-4
