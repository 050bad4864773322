import numpy as np
import pytest
import torch
from planted_concepts import stacked

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.observer import text_vectors
from attention_sieve.core.knowledge.vectors import POOLINGS, pair_features, usual_pooling
from attention_sieve.core.passes.texts import prepare, prepare_all
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("The black cat quickly chased the two birds on the mat.",)),
    Text(("She does not eat.",)),
    Text(("A dog ran.",)),
)
PROJECTIONS = {
    "bert": "attention.output.dense", "electra": "attention.output.dense", "gpt2": "attn.c_proj",
    "gpt_neox": "attention.dense", "opt": "self_attn.out_proj", "llama": "self_attn.o_proj", "t5": "SelfAttention.o",
}  # fmt: skip


def kind_of(checkpoint):
    return checkpoint.files.kinds[0]


def vectors_of(checkpoint, pooling, texts=TEXTS, **settings):
    """Vectors of all texts in their order, from one pass."""
    asked = PassSettings(kind_of(checkpoint), **settings)
    prepared, _ = prepare_all(checkpoint, texts, asked, "error")
    return stacked(text_vectors(checkpoint, list(prepared.values()), asked, pooling))


def hooked(checkpoint, folder, ids):
    """What an eager model gives into the output projections, and out of its blocks, by hooks; [layer token channel].

    transformers' own states say what the last block gives, where the model normalises it. Its softmax, in float32 for
    Llama, is taken in float64.
    """
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64).eval()
    if kind_of(checkpoint) == "encoder":
        model = model.get_encoder()
    ending, seen, hooks = PROJECTIONS[checkpoint.files.model_type], [], []
    for name, module in model.named_modules():
        if name.endswith(ending):
            hooks.append(module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0])))
    softmax = torch.nn.functional.softmax
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.functional, "softmax", lambda values, dim, dtype=None: softmax(values, dim))
        states = model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
    return torch.stack(seen)[:, 0], torch.stack(states[1:])[:, 0]


def read(values, pooling):
    """One text's vector from [layer token channel], without padding."""
    return {"cls": values[:, 0], "last": values[:, -1], "mean": values.mean(1)}[pooling].numpy()


@pytest.mark.parametrize("family", PROJECTIONS)
def test_vectors_are_those_that_hooks_see_on_eager_models(family, loaded, folders):
    checkpoint = loaded(family, "float64")
    poolings = [pooling for pooling in POOLINGS if pooling != "cls" or family in ("bert", "electra")]
    found = {pooling: vectors_of(checkpoint, pooling) for pooling in poolings}
    for row, text in enumerate(TEXTS):
        ids = prepare(checkpoint, text, PassSettings(kind_of(checkpoint))).queries.ids
        given, blocks = hooked(checkpoint, folders(family), torch.from_numpy(ids)[None])
        for pooling, vectors in found.items():
            wanted = read(given, pooling).reshape(vectors.heads[row].shape)
            np.testing.assert_allclose(vectors.heads[row], wanted, rtol=0, atol=1e-12)
            np.testing.assert_allclose(vectors.layers[row], read(blocks, pooling), rtol=0, atol=1e-12)


def test_a_head_that_is_switched_off_gives_zero(loaded):
    found = vectors_of(loaded("bert"), "cls", off=((1, 2),))
    assert not found.heads[:, 1, 2].any()
    assert found.heads[:, 1, :2].all()


def test_where_the_paper_reads_vectors(loaded):
    usual = {family: usual_pooling(loaded(family), kind_of(loaded(family))) for family in PROJECTIONS}
    assert usual == dict.fromkeys(("bert", "electra"), "cls") | {"t5": "mean"} | dict.fromkeys(
        ("gpt2", "gpt_neox", "opt", "llama"), "last"
    )


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_vectors_of_a_decoder_are_read_among_its_own_tokens(kind, loaded):
    checkpoint, asked = loaded("t5", "float64"), PassSettings(kind)
    texts = [Text(("The cat sat.", "A dog ran on the mat.")), Text(("A dog ran.", "She sat."))]
    prepared, _ = prepare_all(checkpoint, texts, asked, "error")
    found = stacked(text_vectors(checkpoint, list(prepared.values()), asked, "last"))
    attention = checkpoint.attentions[kind]
    assert found.shape == (attention.n_layers, attention.n_heads)
    assert found.layers.shape[1] == attention.n_layers
    alone = stacked(text_vectors(checkpoint, [prepared[1]], asked, "last"))
    np.testing.assert_allclose(found.heads[1], alone.heads[0], atol=1e-12)


def test_a_text_without_the_first_token_is_refused(loaded):
    with pytest.raises(AnalysisError, match=r"does not add \[CLS\] to a text.*last token, or the mean over tokens"):
        vectors_of(loaded("gpt2"), "cls")


def test_a_checkpoint_with_attention_of_its_own_is_refused(loaded):
    with pytest.raises(AnalysisError, match=r"has its own attention code.*another family"):
        vectors_of(loaded("mpnet"), "mean")


def test_a_removed_head_has_no_vector(loaded, tmp_path):
    from attention_sieve.core.importance.removal.remove import remove

    remove(loaded("bert").files, ((0, 1),), tmp_path / "without")
    found = vectors_of(load_checkpoint(find_checkpoint(str(tmp_path / "without")), device="cpu"), "cls")
    assert np.isnan(found.heads[:, 0, 1]).all()
    assert np.isfinite(found.heads[:, 0, [0, 2]]).all()


def test_features_of_a_pair_by_hand():
    first, second = np.array([[[1.0, -2.0]]]), np.array([[[3.0, 4.0]]])
    np.testing.assert_array_equal(pair_features(first, second), [[[2, 6, 3, -8]]])
