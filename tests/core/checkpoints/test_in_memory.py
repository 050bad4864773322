"""A model in memory is observed where it is, and left as it was."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
import torch
import transformers
from small_checkpoints import TOKENIZERS, config

from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.in_memory import observed_in_place
from attention_sieve.core.errors import AnalysisError, CheckpointError
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS, IMPORTANCE_ANALYSIS
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.texts.text import read_typed

TEXTS = read_typed("The black cat quickly chased two birds on the mat.\nShe ran.\nA red dog sat on it.")
FAMILIES = {
    "bert": "AutoModelForMaskedLM",
    "gpt2": "AutoModelForCausalLM",
    "llama": "AutoModelForCausalLM",
    "t5": "AutoModelForSeq2SeqLM",
}


def made(family, **options):
    tokenizer = TOKENIZERS[family]()
    torch.manual_seed(4)
    auto_class = getattr(transformers, FAMILIES[family])
    return auto_class.from_config(config(family, len(tokenizer)), **options), tokenizer


def state_of(model):
    """Everything that a caller could notice: modes, implementations, caches, hooks, gradients, random numbers."""
    modules = dict(model.named_modules())
    configs = {name: module.config for name, module in modules.items() if hasattr(module, "config")}
    return {
        "training": {name: module.training for name, module in modules.items()},
        "attention": {name: each._attn_implementation for name, each in configs.items()},
        "configs": {name: each.to_dict() for name, each in configs.items()},
        "hooks": {
            name: (list(module._forward_hooks), list(module._forward_pre_hooks), list(module._backward_hooks))
            for name, module in modules.items()
        },
        "gradients": {
            name: (weights.requires_grad, weights.grad is None) for name, weights in model.named_parameters()
        },
        "attributes": {name: sorted(vars(module)) for name, module in modules.items()},
        "torch": torch.get_rng_state().tolist(),
        "python": random.getstate(),
        "numpy": str(np.random.get_state()),
    }


def output_of(model, tokenizer):
    inputs = tokenizer("the cat sat", return_tensors="pt", return_token_type_ids=False)
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = inputs["input_ids"]
    was_training = model.training
    with torch.no_grad():
        logits = model.eval()(**inputs).logits
    model.train(was_training)
    return logits


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_the_model_on_disk(family, tmp_path):
    model, tokenizer = made(family)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    on_disk = load_checkpoint(find_checkpoint(str(tmp_path)), device="cpu")
    expected = find(ROLE_ANALYSIS, on_disk, TEXTS).scored.scores
    with observed_in_place(model, tokenizer) as checkpoint:
        np.testing.assert_allclose(find(ROLE_ANALYSIS, checkpoint, TEXTS).scored.scores, expected, rtol=0, atol=1e-6)
        assert checkpoint.head == on_disk.head == on_disk.files.head
        described = ("model_type", "n_layers", "n_heads", "kinds", "decoder", "is_decoder", "head", "n_shared")
        assert [getattr(checkpoint.files, name) for name in described] == [
            getattr(on_disk.files, name) for name in described
        ]


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_everything_is_afterwards_as_it_was(family, implementation):
    """A model in training mode but for one module, with a hook, on which every kind of pass is run."""
    model, tokenizer = made(family, attn_implementation=implementation)
    model.train()
    next(model.children()).eval()
    model.register_forward_hook(lambda *_: None)
    before, output = state_of(model), output_of(model, tokenizer)
    next(model.children()).eval()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    with observed_in_place(model, tokenizer) as checkpoint:
        assert state_of(model) != before
        find(ROLE_ANALYSIS, checkpoint, TEXTS)
        if family == "bert":
            find(ABLATION_ANALYSIS, checkpoint, list(map(LabelledText, TEXTS)))
            find(IMPORTANCE_ANALYSIS, checkpoint, list(map(LabelledText, TEXTS)))
        torch.rand(1), random.random(), np.random.rand()
    assert state_of(model) == before
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    torch.testing.assert_close(output_of(model, tokenizer), output)
    if family == "llama":  # which keeps angles between its passes
        ids = tokenizer("the cat sat", return_tensors="pt")["input_ids"]
        model(input_ids=ids, labels=ids).loss.backward()
        assert all(weights.grad is not None for weights in model.parameters()), "it can still be trained"


def test_sparse_attention_stays_sparse():
    """BigBird changes its modules at the first text that is short."""
    tokenizer = TOKENIZERS["bert"]()
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    sparse = {"attention_type": "block_sparse", "block_size": 4, "num_random_blocks": 1}
    torch.manual_seed(4)
    model = transformers.BigBirdModel(
        transformers.BigBirdConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes, **sparse)
    ).eval()
    long = torch.randint(5, len(tokenizer), (1, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        output = model(long)[0]  # first, as it draws its random blocks with NumPy
    before, modules = state_of(model), dict(model.named_modules())
    with observed_in_place(model, tokenizer) as checkpoint:
        find(ROLE_ANALYSIS, checkpoint, TEXTS)
        assert model.attention_type == "original_full"
    assert state_of(model) == before
    assert dict(model.named_modules()) == modules
    with torch.no_grad():
        torch.testing.assert_close(model(long)[0], output)


def test_threads_that_share_a_model_take_turns():
    model, tokenizer = made("bert")
    before, together = state_of(model), Barrier(4)
    with observed_in_place(model, tokenizer) as checkpoint:
        expected = find(ROLE_ANALYSIS, checkpoint, TEXTS).scored.scores

    def scores(_):
        together.wait()
        with observed_in_place(model, tokenizer) as checkpoint:
            return find(ROLE_ANALYSIS, checkpoint, TEXTS).scored.scores

    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(scores, range(4)):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert state_of(model) == before


def test_another_thread_waits_until_a_model_is_left_as_it_was():
    model, tokenizer = made("bert")
    begun, has_come_in = Event(), Event()

    def come_in():
        begun.set()
        with observed_in_place(model, tokenizer):
            has_come_in.set()

    with ThreadPoolExecutor(1) as threads:
        with observed_in_place(model, tokenizer):
            waits = threads.submit(come_in)
            assert begun.wait(60)
            assert not has_come_in.wait(1), "it takes a fifth of a second where nobody holds it up"
        waits.result(60)
    assert has_come_in.is_set()


def test_a_model_is_compared_with_itself():
    model, tokenizer = made("bert")
    before = state_of(model)
    with observed_in_place(model, tokenizer) as a, observed_in_place(model, tokenizer) as b:
        assert a.files == b.files
    assert state_of(model) == before


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, AnalysisError, RuntimeError])
def test_everything_is_as_it_was_after_an_interruption_in_the_middle_of_a_pass(interruption):
    model, tokenizer = made("bert")
    model.train()

    def interrupt(*_):
        if model.config._attn_implementation == "attention_sieve" and len(seen) >= n_checked:
            raise interruption("stopped")
        seen.append(1)

    def find_often(model, tokenizer):
        with observed_in_place(model, tokenizer) as checkpoint:
            for _ in range(20):
                find(ROLE_ANALYSIS, checkpoint, TEXTS)

    seen, n_checked = [], 6  # the self-check takes fewer passes
    model.bert.encoder.layer[1].register_forward_pre_hook(interrupt)
    before = state_of(model)
    with pytest.raises(interruption, match="stopped"):
        find_often(model, tokenizer)
    assert len(seen) == n_checked
    assert state_of(model) == before


def test_the_tokenizer_is_not_changed():
    model, tokenizer = made("bert")
    before = tokenizer.backend_tokenizer.to_str()
    with observed_in_place(model, tokenizer) as checkpoint:
        find(ROLE_ANALYSIS, checkpoint, TEXTS)
        assert checkpoint.tokenizer is not tokenizer
    assert tokenizer.backend_tokenizer.to_str() == before


def test_a_hook_that_changes_the_model_by_hand_changes_what_is_observed():
    model, tokenizer = made("bert")
    with observed_in_place(model, tokenizer) as checkpoint:
        plain = find(ROLE_ANALYSIS, checkpoint, TEXTS).scored.scores
    hook = model.bert.encoder.layer[0].register_forward_hook(lambda _, __, output: output.flip(-1))
    with observed_in_place(model, tokenizer) as checkpoint:
        changed = find(ROLE_ANALYSIS, checkpoint, TEXTS).scored.scores
    hook.remove()
    np.testing.assert_allclose(changed[:, :, 0], plain[:, :, 0], rtol=1e-5, atol=1e-6)
    assert not np.allclose(changed[:, :, 1], plain[:, :, 1], equal_nan=True)


class Wrapped(torch.nn.Module):
    """As PEFT wraps a model."""

    def __init__(self, model, learns_prompts=False):
        super().__init__()
        self.base_model = model
        self.active_peft_config = type("Config", (), {"is_prompt_learning": learns_prompts})

    def get_base_model(self):
        return self.base_model


def test_a_wrapped_model_is_that_within_and_one_with_tokens_of_its_own_is_refused():
    model, tokenizer = made("bert")
    with observed_in_place(Wrapped(torch.nn.DataParallel(model)), tokenizer) as checkpoint:
        assert checkpoint.full_model is model
    with (
        pytest.raises(CheckpointError, match=r"puts tokens of its own before each text.*such as LoRA"),
        observed_in_place(Wrapped(model, learns_prompts=True), tokenizer),
    ):
        pass


@pytest.mark.parametrize(
    ("model", "tokenizer", "said"),
    [
        (torch.nn.Linear(2, 3), None, "The model is a Linear. Give a model of transformers"),
        ("bert", None, "The tokenizer of BertForMaskedLM in memory is missing. Give its fast tokenizer"),
        ("bert", 7, "The tokenizer of BertForMaskedLM in memory is a int"),
        ("meta", "bert", "BertForMaskedLM in memory has weights of float32 on meta. Move it to one of cuda"),
        ("nan", "bert", "in 1 weights of BertForMaskedLM in memory are not finite"),
        ("bert", "small", "tokens, .* first, lie outside"),
        ("no config", "bert", "The configuration of BertForMaskedLM in memory is None. Give the model with the one"),
        ("99 layers", "bert", "configuration of BertForMaskedLM in memory names 99 layers, and attention is in 2 of"),
        ("trains", "bert", r"BertModel is in training mode, .*: something in it calls train\(\)"),
    ],
)
def test_something_else_is_refused_with_what_to_give(model, tokenizer, said):
    kind, (made_model, made_tokenizer) = model, made("bert")
    if kind == "meta":
        made_model = made_model.to("meta")
    if kind == "no config":
        made_model.config = None
    if kind == "99 layers":
        made_model.config.num_hidden_layers = 99
    if kind == "trains":
        made_model.bert.register_forward_pre_hook(lambda model, _: model.train() and None)
    if kind == "nan":
        made_model.bert.pooler = None
        with torch.no_grad():
            next(made_model.parameters())[0, 0] = torch.nan
    if tokenizer == "small":
        made_model.resize_token_embeddings(20)
    given = made_tokenizer if isinstance(tokenizer, str) else tokenizer
    with (
        pytest.raises(AnalysisError, match=said),
        observed_in_place(kind if isinstance(kind, torch.nn.Module) else made_model, given),
    ):
        pass
