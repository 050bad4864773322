"""Models that are partly recurrent: layers keep the model's own numbers, and those without attention are holes."""

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from passing import measures_of, pass_texts, whole_map
from small_checkpoints import TOKENIZERS

from attention_sieve.__main__ import main
from attention_sieve.core.analysis import results
from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.copying.analysis import COPY_ANALYSIS
from attention_sieve.core.copying.finding import CopySettings
from attention_sieve.core.copying.writes import WAYS
from attention_sieve.core.importance.measures import output_measures
from attention_sieve.core.importance.passes.head_outputs import output_projections
from attention_sieve.core.importance.question import HEAD_OUTPUTS, OUTPUT_WEIGHTS
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids
from attention_sieve.core.texts.tokens import SPECIAL

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
REPEATS = ((3, 40, 41, 42, 43, 9, 40, 41, 42, 43, 40, 41), (2, 50, 51, 52, 12, 13, 50, 51, 52))
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
            model = getattr(transformers, architecture)(config())
            for parameter, values in model.named_parameters():
                if parameter.endswith("norm.weight"):  # norms begin as 1, which would hide them
                    values.data += 0.3 * torch.randn(values.shape)
            model.save_pretrained(made[name])
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


def own_outputs(folder, texts):
    """Of each text, from the model's own eager code: maps, values and inputs of the output projections, by layer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", experts_implementation="eager", dtype=torch.float64
    )
    seen = []
    for layer in model.eval().requires_grad_(False).model.layers:
        if hasattr(layer, "self_attn"):
            attention = layer.self_attn
            attention.v_proj.register_forward_hook(lambda _, __, output: seen[-1]["values"].append(output[0]))
            attention.o_proj.register_forward_pre_hook(lambda _, given: seen[-1]["outputs"].append(given[0][0]))
    with torch.inference_mode():
        for text in texts:
            seen.append({"values": [], "outputs": []})
            attentions = model(torch.tensor([text.queries.ids.tolist()]), output_attentions=True).attentions
            seen[-1]["maps"] = [each[0] for each in attentions if each is not None]
    return model, seen


def test_flap_of_a_hybrid_without_attention_at_the_end_is_that_of_what_its_own_projections_are_given(saved):
    folder, layers = saved("no attention at the end")
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")
    outputs = results(checkpoint, HEAD_OUTPUTS, TEXTS)
    _, found = output_measures(outputs, *results(checkpoint, OUTPUT_WEIGHTS, TEXTS[:1]))
    assert found.name == "flap"
    values = found.values(len(TEXTS))
    model, seen = own_outputs(folder, pass_texts(checkpoint, TEXTS))
    for place, layer in enumerate(layers):
        given = torch.cat([of_text["outputs"][place] for of_text in seen])
        columns = given.var(0, unbiased=False) * model.model.layers[layer].self_attn.o_proj.weight.square().sum(0)
        expected = ((columns - columns.mean()) / columns.std(unbiased=False)).view(4, -1).mean(1)
        np.testing.assert_allclose(values[layer], expected.numpy(), atol=1e-6)
    assert np.isnan(values[[1, 3]]).all()


@pytest.mark.parametrize("way", WAYS)
def test_what_heads_of_such_a_hybrid_write_is_what_its_own_modules_raise(saved, way):
    folder, layers = saved("no attention at the end")
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype="float64")
    texts = [text_of_ids(GivenTokens(ids)) for ids in REPEATS]
    found = find(COPY_ANALYSIS, checkpoint, texts, CopySettings(way=way, role="induction"))
    prepared = [prepare(checkpoint, text, PassSettings()) for text in texts]
    model, seen = own_outputs(folder, prepared)
    norm, unembedding = model.model.final_layernorm.weight, model.lm_head.weight
    shares, n_tokens = [], []
    for text, of_text in zip(prepared, seen, strict=True):
        own = np.flatnonzero(text.queries.segments != SPECIAL)
        ids = text.queries.ids
        sample = list(dict.fromkeys(ids[own].tolist()))
        n_tokens.append(len(sample))
        for place, layer in enumerate(layers):
            projection = model.model.layers[layer].self_attn.o_proj.weight.split(6, dim=1)
            for head in range(4):
                to_logits = (unembedding[sample] * norm) @ projection[head]
                if way == "value":
                    keys = [ids.tolist().index(token) for token in sample]
                    given = of_text["values"][place].view(-1, 2, 6)[keys, head // 2]
                    at = range(len(sample))
                else:
                    hidden = torch.from_numpy(text.queries.segments == SPECIAL)
                    most = of_text["maps"][place][head].masked_fill(hidden, -1).argmax(-1)[own]
                    given = of_text["outputs"][place].view(-1, 4, 6)[own, head]
                    at = [sample.index(token) for token in ids[most.numpy()].tolist()]
                logits = given @ to_logits.T
                raised = (logits - logits.mean(-1, keepdim=True)).relu()
                shares.append(float(raised[torch.arange(len(at)), list(at)].sum() / raised.sum()))
    shares = np.reshape(shares, (len(texts), len(layers), 4))
    times = (shares * np.reshape(n_tokens, (-1, 1, 1))).mean(0)
    np.testing.assert_allclose(found.times[list(layers)], times, atol=1e-5)
    np.testing.assert_allclose(found.writes[list(layers)], (4 * shares / (1 + shares) - 1).mean(0), atol=1e-5)
    assert np.isnan(found.times[[1, 3]]).all()


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
