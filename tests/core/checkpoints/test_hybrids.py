"""Models that are partly recurrent: layers keep the model's own numbers, and those without attention are holes."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from passing import measures_of, pass_texts, whole_map
from small_checkpoints import TOKENIZERS

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.passes.head_outputs import output_projections
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.texts.text import Text

TOKENIZER = TOKENIZERS["llama"]()
SIZES = {
    "vocab_size": len(TOKENIZER), "hidden_size": 24, "intermediate_size": 32, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "num_experts": 2, "num_experts_per_tok": 1,
}  # fmt: skip
JAMBA = SIZES | {"attn_layer_period": 2, "mamba_d_state": 4, "mamba_d_conv": 2, "mamba_dt_rank": 4}
CONFIGS = {
    "attention in the middle": (
        "JambaForCausalLM",
        lambda: transformers.JambaConfig(**JAMBA, attn_layer_offset=1, num_hidden_layers=4),
        (1, 3),
    ),
    "no attention at the end": (
        "JambaForCausalLM",
        lambda: transformers.JambaConfig(**JAMBA, attn_layer_offset=0, num_hidden_layers=4),
        (0, 2),
    ),
    "linear attention": (
        "Qwen3NextForCausalLM",
        lambda: transformers.Qwen3NextConfig(
            **SIZES, num_hidden_layers=4, head_dim=6, full_attention_interval=2, linear_num_key_heads=2,
            linear_num_value_heads=4, linear_key_head_dim=6, linear_value_head_dim=6, moe_intermediate_size=16,
            shared_expert_intermediate_size=16, linear_conv_kernel_dim=2,
            layer_types=["linear_attention", "full_attention"] * 2,
        ),
        (1, 3),
    ),
}  # fmt: skip
TEXTS = (Text(("the cat sat on the mat",)), Text(("a dog ran",)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """saved(name) -> folder of a hybrid, and its layers with attention."""
    made = {}

    def of(name):
        architecture, config, layers = CONFIGS[name]
        if name not in made:
            torch.manual_seed(0)
            made[name] = tmp_path_factory.mktemp("hybrid")
            getattr(transformers, architecture)(config()).save_pretrained(made[name])
            TOKENIZER.save_pretrained(made[name])
        return made[name], layers

    return of


@pytest.mark.parametrize("name", CONFIGS)
def test_layers_keep_the_numbers_of_the_model_and_those_without_attention_are_known_before_it_is_loaded(saved, name):
    folder, layers = saved(name)
    files = find_checkpoint(str(folder))
    attention = load_checkpoint(files, device="cpu").attentions["self"]
    assert [layer for layer, call in enumerate(attention.calls) if call is not None] == list(layers)
    assert (attention.n_layers, attention.n_heads) == (files.n_layers, files.n_heads) == (4, 4)
    missing = {(layer, head) for layer in set(range(4)) - set(layers) for head in range(4)}
    assert set(attention.removed) == set(files.removed_of("self")) == missing


@pytest.mark.parametrize("name", CONFIGS)
def test_scores_are_those_of_the_eager_attention_and_no_numbers_in_other_layers(saved, name):
    folder, layers = saved(name)
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    maps = whole_map(checkpoint, pass_texts(checkpoint, TEXTS[:1])[0])
    eager = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        inputs = model_inputs(checkpoint, pass_texts(checkpoint, TEXTS[:1]))
        expected = eager(**inputs, output_attentions=True).attentions
    expected = [each for each in expected if each is not None]
    assert len(expected) == len(layers)
    for layer, attention in zip(layers, expected, strict=True):
        np.testing.assert_allclose(maps[layer], attention[0].numpy(), atol=1e-5)
    others = sorted(set(range(4)) - set(layers))
    assert np.isnan(maps[others]).all()
    measures = measures_of(checkpoint, pass_texts(checkpoint, TEXTS))
    assert np.isnan(measures[..., others, :]).all()
    assert not np.isnan(measures[..., list(layers), :]).all()


COMMANDS = (
    ("score", "--output", "{folder}/out.parquet"),
    ("surface", "--output", "{folder}/out.csv"),
    ("ablate", "--metric", "lm", "--output", "{folder}/out.csv"),
    ("ablate", "--metric", "lm", "--replace", "mean", "--output", "{folder}/out.csv"),
    ("importance", "--metric", "lm", "--output", "{folder}/out.csv"),
    ("next-token", "--output", "{folder}/out.csv"),
)


@pytest.mark.parametrize("name", ["attention in the middle", "no attention at the end"])
def test_output_projections_are_found_in_layers_with_attention(saved, name):
    folder, layers = saved(name)
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    found = output_projections(checkpoint, pass_texts(checkpoint, TEXTS[:1])[0])
    for layer in range(4):
        if layer in layers:
            weights = checkpoint.model.layers[layer].self_attn.o_proj.weight.detach().numpy()
            np.testing.assert_allclose(found[layer].reshape(weights.shape), weights, rtol=1e-6)
        else:
            assert np.isnan(found[layer]).all()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *(("attention in the middle", each) for each in COMMANDS[:5]),
        *(("no attention at the end", each) for each in (COMMANDS[0], *COMMANDS[4:])),
    ],
)
def test_files_name_layers_as_the_model_does(saved, tmp_path, command, name):
    folder, layers = saved(name)
    (tmp_path / "texts.txt").write_text("\n".join(f"the {who} sat on the mat" for who in ("cat", "dog", "man", "boy")))
    options = [each.format(folder=tmp_path) for each in command]
    assert main([*options, "--checkpoint", str(folder), "--texts", str(tmp_path / "texts.txt")]) == 0
    path = next(tmp_path.glob("out.*"))
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, comment="#")
    value = next(column for column in ("score", "value", "delta", "mean", "adds") if column in table)
    assert set(table.dropna(subset=["head", value])["layer"]) == set(layers)
