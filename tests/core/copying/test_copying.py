"""Looks, writes, matters: each equals what is written out with each family's modules and formulas."""

import numpy as np
import pytest
import torch
import transformers
from small_checkpoints import TOKENIZERS, config

from attention_sieve.core.analysis import results
from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.copying.analysis import COPY_ANALYSIS
from attention_sieve.core.copying.finding import CopySettings
from attention_sieve.core.copying.published import DETECTORS, second_copies
from attention_sieve.core.copying.question import OV_SIGNS, SECOND_COPY, WRITES, looks_question
from attention_sieve.core.copying.writes import copying_score
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import text_of_ids
from attention_sieve.core.texts.tokens import SPECIAL

FAMILIES = ("gpt2", "llama", "qwen3", "gemma3", "gpt_oss")
IDS = ((3, 40, 41, 42, 43, 9, 40, 41, 42, 43, 40, 41), (2, 50, 51, 52, 12, 13, 50, 51, 52))
TEXTS = tuple(text_of_ids(GivenTokens(ids)) for ids in IDS)
SELF = PassSettings("self")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made(family, **changed) -> a small random causal language model; GPT-OSS has no float64."""
    checkpoints = {}

    def make(family, **changed):
        if (family, *changed) not in checkpoints:
            path, tokenizer = tmp_path_factory.mktemp(family), TOKENIZERS[family]()
            torch.manual_seed(3)
            model = transformers.AutoModelForCausalLM.from_config(config(family, len(tokenizer), **changed))
            for values in model.parameters():
                if values.ndim == 1:  # norms begin as 1 and 0, which would hide them
                    values.data += 0.3 * torch.randn(values.shape)
            model.save_pretrained(path)
            tokenizer.save_pretrained(path)
            dtype = "float32" if family == "gpt_oss" else "float64"
            checkpoints[family, *changed] = load_checkpoint(find_checkpoint(str(path)), device="cpu", dtype=dtype)
        return checkpoints[family, *changed]

    return make


def of_layers(family, model):
    """By layer: weights of values, of outputs, and of the norms before, after, and before the unembedding."""
    weights = {name: values.double() for name, values in model.state_dict().items()}
    for layer in range(model.config.num_hidden_layers):
        if family == "gpt2":
            before, name = f"transformer.h.{layer}.", "transformer.ln_f"
            value, output = weights[f"{before}attn.c_attn.weight"].T[-12:], weights[f"{before}attn.c_proj.weight"].T
            norms = weights[f"{before}ln_1.weight"], None, weights[f"{name}.weight"]
        else:
            before, one = f"model.layers.{layer}.", 1 if family == "gemma3" else 0
            value, output = (weights[f"{before}self_attn.{name}_proj.weight"] for name in "vo")
            after = one + weights[f"{before}post_attention_layernorm.weight"] if family == "gemma3" else None
            norms = one + weights[f"{before}input_layernorm.weight"], after, one + weights["model.norm.weight"]
        yield value, output, *norms


def centred(rows, family):
    return rows - rows.mean(-1, keepdim=True) if family == "gpt2" else rows


def eager(checkpoint, ids):
    """Attention maps, rows normalised, and the values of each head, by layer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        checkpoint.files.folder, attn_implementation="eager", dtype=getattr(torch, checkpoint.dtype)
    ).eval()
    values, n_heads = [], model.config.num_attention_heads
    for name, module in model.named_modules():
        if name.endswith("v_proj"):
            module.register_forward_hook(lambda _, __, output: values.append(output[0]))
        elif name.endswith("c_attn"):
            module.register_forward_hook(lambda _, __, output: values.append(output[0, :, -12:]))
    with torch.no_grad():
        maps = model(torch.tensor([ids]), output_attentions=True).attentions
    n_kv_heads = getattr(model.config, "num_key_value_heads", None) or n_heads
    by_head = [of.double().unflatten(1, (n_kv_heads, -1)) for of in values]
    by_head = [of.repeat_interleave(n_heads // n_kv_heads, 1) for of in by_head]
    return [(of[0] / of[0].sum(-1, keepdim=True)).double() for of in maps], by_head


def raised(by_channel, to_logits):
    logits = by_channel @ to_logits.T
    return (logits - logits.mean(-1, keepdim=True)).clamp(min=0)


def loss(model, ids, after):
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, after]
    return float(torch.nn.functional.cross_entropy(logits, torch.tensor(ids)[after + 1]))


def own_copy(checkpoint):
    return transformers.AutoModelForCausalLM.from_pretrained(checkpoint.files.folder, dtype=torch.float64).eval()


def is_special(checkpoint, ids):
    return prepare(checkpoint, text_of_ids(GivenTokens(ids)), SELF).queries.segments == SPECIAL


@pytest.mark.parametrize(("family", "role"), [*((family, "induction") for family in FAMILIES), ("llama", "previous")])
def test_published_scores_equal_a_loop_over_eager_maps(family, role, made):
    checkpoint = made(family)
    found = results(checkpoint, looks_question(role), TEXTS)
    for ids, scores in zip(IDS, found):
        special, n = is_special(checkpoint, ids), len(ids)
        pairs = [
            (i, j)
            for i in range(n)
            for j in range(1, i)
            if ids[j - 1] == ids[i] and not special[i] and not special[j] and not special[j - 1]
        ]
        if role == "previous":
            pairs = [(i, i - 1) for i in range(1, n)]
        queries, ones = sorted({i for i, _ in pairs}), np.zeros((n, n))
        ones[tuple(np.transpose(pairs))] = 1
        distances = [i - j for i, j in pairs]
        distance = max(sorted(set(distances)), key=distances.count)
        for layer, maps in enumerate(eager(checkpoint, ids)[0]):
            for head, of in enumerate(maps.numpy()):
                expected = {
                    "mass": np.mean([sum(of[i, j] for i, j in pairs if i == query) for query in queries]),
                    "entries": np.mean([of[pair] for pair in pairs]),
                    "mul": (ones * of).sum() / of.sum(),
                    "abs": 1 - n * np.abs(of - ones).mean(),
                    "stripe": np.diagonal(of, -distance).mean(),
                }
                np.testing.assert_allclose(scores[:, layer, head], [expected[name] for name in DETECTORS], atol=2e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_shares_of_what_is_raised_equal_a_loop_with_the_modules_of_the_family(family, made):
    checkpoint = made(family)
    unembedding = checkpoint.full_model.get_output_embeddings().weight.detach().double()
    for ids, found in zip(IDS, results(checkpoint, WRITES, TEXTS)):
        special, (maps, values) = is_special(checkpoint, ids), eager(checkpoint, ids)
        sample = list(dict.fromkeys(number for number, hidden in zip(ids, special) if not hidden))
        assert found.n_tokens == len(sample)
        for layer, (_, output, _, after, last) in enumerate(of_layers(family, checkpoint.full_model)):
            for head in range(maps[0].shape[0]):
                size = values[layer].shape[-1]
                write = output[:, head * size : (head + 1) * size]

                to_residual = write if after is None else after[:, None] * write
                to_logits = (unembedding[sample] * last) @ centred(to_residual.T, family).T
                alone = raised(values[layer][[ids.index(token) for token in sample], head], to_logits)
                own, total, hidden = 0.0, 0.0, torch.from_numpy(special)
                for query in np.flatnonzero(~special):
                    key = int(maps[layer][head, query].masked_fill(hidden, -1).argmax())
                    wrote = raised(maps[layer][head, query] @ values[layer][:, head], to_logits)
                    own, total = own + wrote[sample.index(ids[key])], total + wrote.sum()
                if family != "gpt_oss":  # whose rows sum to less than 1, which scales all of what a head writes
                    np.testing.assert_allclose(found.shares[1, layer, head], own / total, atol=1e-6)
                np.testing.assert_allclose(found.shares[0, layer, head], alone.trace() / alone.sum(), atol=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sign_of_the_ov_circuit_is_that_of_all_eigenvalues_of_the_product_over_the_vocabulary(family, made):
    checkpoint = made(family)
    (signs,) = results(checkpoint, OV_SIGNS, TEXTS[:1])
    model = checkpoint.full_model
    embedding, unembedding = (
        of.weight.detach().double() for of in (model.get_input_embeddings(), model.get_output_embeddings())
    )
    for layer, (value, output, before, after, last) in enumerate(of_layers(family, model)):
        size = output.shape[1] // signs.shape[1]
        n_shared = signs.shape[1] // (len(value) // size)
        for head in range(signs.shape[1]):
            kv = head // n_shared
            read = (centred(embedding, family) * before) @ value[kv * size : (kv + 1) * size].T
            written = read @ output[:, head * size : (head + 1) * size].T * (1 if after is None else after)
            eigenvalues = torch.linalg.eigvals((centred(written, family) * last) @ unembedding.T)
            expected = float(eigenvalues.real.sum() / eigenvalues.abs().sum())
            assert signs[layer, head] == pytest.approx(expected, abs=1e-4 if family == "gpt_oss" else 1e-6)


def test_a_hand_built_copying_head_scores_its_greatest_and_a_suppressing_one_its_least(made, tmp_path):
    """Each token of the text has a channel of its own; the first head passes channels on, the second turns them."""
    size, tokenizer = 8, TOKENIZERS["llama"]()
    heads = {"hidden_size": size, "head_dim": size, "num_attention_heads": 2, "num_key_value_heads": 2}
    model = transformers.LlamaForCausalLM(config("llama", len(tokenizer), **heads, num_hidden_layers=1))
    attention, embedded = model.model.layers[0].self_attn, list(dict.fromkeys(IDS[0]))
    with torch.no_grad():
        attention.v_proj.weight.copy_(torch.eye(size).repeat(2, 1))
        attention.o_proj.weight.copy_(torch.cat([torch.eye(size), -torch.eye(size)], 1))
        for weights in (model.model.embed_tokens.weight, model.lm_head.weight):
            weights.copy_(torch.eye(size)[torch.arange(len(weights)) % size])
            weights[embedded] = torch.eye(size)[: len(embedded)]
    model.save_pretrained(tmp_path / "built")
    tokenizer.save_pretrained(tmp_path / "built")
    checkpoint = load_checkpoint(find_checkpoint(str(tmp_path / "built")), device="cpu")
    (writes,) = results(checkpoint, WRITES, TEXTS[:1])
    assert copying_score(writes.shares[0, 0]).tolist() == pytest.approx([1, -1])
    (signs,) = results(checkpoint, OV_SIGNS, TEXTS[:1])
    assert signs[0].tolist() == pytest.approx([1, -1])


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma3"])
def test_a_head_matters_as_the_loss_on_second_copies_rises_without_its_output_weights(family, made):
    checkpoint = made(family)
    found = results(checkpoint, SECOND_COPY, TEXTS)
    name = "c_proj" if family == "gpt2" else "o_proj"
    for ids, outcomes in zip(IDS, found):
        after = second_copies(np.array(ids))
        assert outcomes.full[0] == pytest.approx(loss(own_copy(checkpoint), ids, after), abs=1e-5)
        n_heads = outcomes.without.shape[1]
        for layer, head in ((0, 0), (1, n_heads - 1)):
            without = own_copy(checkpoint)
            attention = [m for n, m in without.named_modules() if n.endswith(name) and "mlp" not in n][layer]
            weights = attention.weight.data if family != "gpt2" else attention.weight.data.T
            size = weights.shape[1] // n_heads
            weights[:, head * size : (head + 1) * size] = 0
            assert outcomes.without[layer, head, 0] == pytest.approx(loss(without, ids, after), abs=1e-5)


def test_second_copies_are_pairs_that_come_for_the_second_time():
    assert second_copies(np.array([9, 1, 2, 3, 1, 2, 3, 1, 2])).tolist() == [4, 5, 6]
    assert second_copies(np.array([1, 1, 1, 1])).tolist() == [1]
    assert second_copies(np.array([5])).tolist() == []


def test_olssons_score_runs_from_minus_one_to_one_and_a_third_of_what_is_raised_is_zero():
    assert copying_score(np.array([0, 1 / 3, 1])).tolist() == pytest.approx([-1, 0, 1])


def test_the_finding_counts_heads_by_the_three_tests_and_says_what_chance_gives(made):
    settings = CopySettings(tau=0.01, times=1.2, rise=1e-3, resamples=200)
    finding = find(COPY_ANALYSIS, made("llama"), TEXTS, settings)
    assert sum(finding.combinations.values()) == 8
    assert list(finding.columns) == ["looks", "writes", "matters"]
    shares = [holds.mean() for holds in finding.columns.values()]
    assert finding.expected_in_all == pytest.approx(8 * np.prod(shares))
    table = COPY_ANALYSIS.table(finding)
    assert list(table) == list(COPY_ANALYSIS.columns)
    assert (table["in_looks"] == (table["looks"] >= 0.01)).all()
    assert table["delta"].tolist() == pytest.approx((table["without"] - table["full"]).tolist())
    assert (table["in_matters"] == (table["delta"] >= 1e-3)).all(), "two texts are too few for a test"
    assert "There are 2 texts" in finding.without_verdict
    without = find(COPY_ANALYSIS, made("llama"), TEXTS, CopySettings(no_ablation=True))
    assert list(without.columns) == ["looks", "writes"]
    assert COPY_ANALYSIS.table(without)["delta"].isna().all()


def test_what_a_checkpoint_lacks_is_left_out_with_its_reason(folders):
    """Without a language-model head nothing is unembedded."""
    checkpoint = load_checkpoint(find_checkpoint(str(folders("llama"))), device="cpu")
    finding = find(COPY_ANALYSIS, checkpoint, TEXTS)
    assert list(finding.columns) == ["looks"]
    assert [name for name, _ in finding.answers.left_out] == ["writes", "matters"]
    assert "language-model head" in dict(finding.answers.left_out)["writes"]


def test_an_encoder_and_texts_without_repeats_get_their_sentence(folders, made):
    bert = load_checkpoint(find_checkpoint(str(folders("bert"))), device="cpu")
    with pytest.raises(AnalysisError, match="or the model also looks ahead"):
        find(COPY_ANALYSIS, bert, TEXTS)
    once = (text_of_ids(GivenTokens((3, 40, 41, 42))),)
    with pytest.raises(AnalysisError, match="No text has tokens that the role induction looks at"):
        find(COPY_ANALYSIS, made("llama"), once)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"tau": 2.0}, "tau is 2, and scores of looking are at most 1"),
        ({"times": 0.0}, "times is 0"),
        ({"rise": -1.0}, "rise is -1"),
    ],
)
def test_settings_out_of_range_get_their_sentence(changed, says):
    with pytest.raises(AnalysisError, match=says):
        CopySettings(**changed)
