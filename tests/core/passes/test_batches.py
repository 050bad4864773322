import numpy as np
import pytest
from passing import SELF, pass_texts
from passing import look_at as looked

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.passes.batches import MapCollector, collect
from attention_sieve.core.texts.text import Text

TEXTS = [Text((" ".join(["the cat sat"] * n),)) for n in (3, 1, 4, 2)]


@pytest.mark.parametrize("family", ["bert", "gpt2", "deberta-v2"])
def test_each_text_gets_its_own_result_wherever_its_batch_stands(loaded, family):
    checkpoint = loaded(family)
    batches = list(collect(checkpoint, pass_texts(checkpoint, TEXTS), SELF, MapCollector, batch_tokens=20))
    assert len(batches) > 1
    found = {place: maps for batch in batches for place, maps in batch}
    assert sorted(found) == [0, 1, 2, 3]
    for place, text in enumerate(TEXTS):
        np.testing.assert_allclose(found[place], looked(checkpoint, text)[0].attention, atol=1e-3)


def test_random_weights_have_the_shape_and_nothing_else_of_the_checkpoint(folders):
    files = find_checkpoint(str(folders("bert")))
    control = randomly_initialised(files, seed=3)
    assert control.fingerprint != files.fingerprint
    assert control.fingerprint != randomly_initialised(files, seed=4).fingerprint
    assert "random weights, seed 3" in control.name
    own, first, again = (load_checkpoint(of, device="cpu") for of in (files, control, control))
    assert {name: weights.shape for name, weights in first.model.state_dict().items()} == {
        name: weights.shape for name, weights in own.model.state_dict().items()
    }
    maps = [looked(checkpoint, TEXTS[0])[0].attention for checkpoint in (own, first, again)]
    np.testing.assert_allclose(maps[1], maps[2], rtol=1e-5, atol=1e-6)
    assert np.abs(maps[1] - maps[0]).max() > 0.01


@pytest.mark.parametrize("family", ["gpt2", "t5", "deberta-v2"])
def test_other_families_have_a_control_too(folders, family):
    control = load_checkpoint(randomly_initialised(find_checkpoint(str(folders(family)))), device="cpu")
    assert control.files.seed == 0


def test_drawing_weights_leaves_the_random_numbers_of_others_alone(folders):
    import torch

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_checkpoint(randomly_initialised(find_checkpoint(str(folders("bert")))), device="cpu")
    assert torch.equal(torch.rand(3), expected)
