"""What heads of SmolLM2-135M-Instruct do on probe texts, beside a script that shares no code with the roles.

The share of attention is that on all tokens after earlier copies (induction), on earlier copies (duplicate), or on the
token before, mean over the tokens that have any: from the pass of this program, and by a loop in float64 over the maps
of transformers' own eager path. Then the loss on each copy without heads, from this program's gates and from hooks that
zero what a head gives to its output projection; and how many heads hold each role, with random weights beside it.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
import torch
import transformers
from jaxtyping import Float

from attention_sieve.core.analysis import results
from attention_sieve.core.attention.observed import Pass, observe
from attention_sieve.core.attention.settings import Head, PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER, has_sample_decoder
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.checkpoints.sample_decoder import make_sample_decoder
from attention_sieve.core.passes.batches import gates, model_inputs
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.probe_texts.make import COPIES, ProbeTextSettings, probe_texts
from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.measures import USUAL_TAU, ScoreSettings, role_scores
from attention_sieve.core.roles.question import scores_question
from attention_sieve.core.roles.roles import DECODER_ROLES
from attention_sieve.core.texts.text import Text
from benchmarks.shared.markdown import header, row

ROLES: Final = ("induction", "duplicate", "previous")
STRONGEST: Final = 5
BLOCK: Final = 25
HIGH: Final = 0.4
SHARES: Final = ScoreSettings(scale="share")


def main() -> None:
    if not has_sample_decoder():
        make_sample_decoder()
    checkpoint = load_checkpoint(find_checkpoint(SAMPLE_DECODER), device="cpu")
    eager = transformers.AutoModelForCausalLM.from_pretrained(
        checkpoint.files.folder, attn_implementation="eager"
    ).eval()
    texts = {
        kind: probe_texts(checkpoint.tokenizer, ProbeTextSettings(kind=kind, block=BLOCK))
        for kind in ("fixed-repeats", "repeats")
    }
    induction = {kind: _shares(checkpoint, eager, kind, of_kind) for kind, of_kind in texts.items()}
    _losses(checkpoint, eager, texts["fixed-repeats"], induction["fixed-repeats"])
    _held(checkpoint, texts["repeats"])
    _seconds(checkpoint, texts["fixed-repeats"])


def _shares(checkpoint: Checkpoint, eager: Any, kind: str, texts: Sequence[Text]) -> Float[np.ndarray, "layer head"]:
    """Print the strongest heads of each role by both ways; returns the shares of induction by the loop."""
    measured = results(checkpoint, scores_question(DECODER_ROLES), texts)
    scored = role_scores(measured, SHARES)
    ids = [text.given.ids for text in texts if text.given]
    by_loop = {
        role: np.mean(list(of_role), axis=0) for role, of_role in zip(ROLES, zip(*map(partial(_loop, eager), ids)))
    }
    print(f"\nShare of attention on {len(texts)} texts of {kind}, by the loop, and above chance by both:")
    header("role", "strongest heads", f"heads with {HIGH:g} or more", "largest difference of any head")
    for role in ROLES:
        mass, above = by_loop[role][0], by_loop[role][1]
        ours = scored.scores.mean(axis=0)[scored.roles.index(role)]
        heads = [np.unravel_index(flat, mass.shape) for flat in np.argsort(-mass, axis=None)[:STRONGEST]]
        named = (
            f"{head_name(*map(int, head))} {mass[head]:.2f} ({above[head]:.2f}, {ours[head]:.2f})" for head in heads
        )
        row(role, ", ".join(named), int((mass >= HIGH).sum()), f"{np.abs(above - ours).max():.1e}")
    return by_loop["induction"][0]


def _loop(eager: Any, ids: Sequence[int]) -> list[Float[np.ndarray, "kind layer head"]]:
    """Of each role: attention on its keys, and its share above chance, [kind layer head], by a loop over tokens."""
    with torch.no_grad():
        maps = torch.cat(eager(torch.tensor([ids]), output_attentions=True).attentions).double().numpy()
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {role: [] for role in ROLES}
    for query in range(1, len(ids)):
        copies = [key for key in range(1, query) if ids[key] == ids[query]]
        keys_of = {"induction": [key + 1 for key in copies], "duplicate": copies, "previous": [query - 1]}
        for role, keys in keys_of.items():
            chance = len(keys) / (query + 1)
            if keys:
                inside = maps[:, :, query, keys].sum(-1)
                found[role].append((inside, (inside - chance) / (1 - chance)))
    return [np.mean(found[role], axis=0) for role in ROLES]


def _losses(
    checkpoint: Checkpoint, eager: Any, texts: Sequence[Text], induction: Float[np.ndarray, "layer head"]
) -> None:
    """Print the loss on each copy of the block, in nats, with all heads on and without some."""
    order = [
        (int(layer), int(head))
        for layer, head in zip(*np.unravel_index(np.argsort(-induction, axis=None), induction.shape))
    ]
    drawn = np.random.default_rng(0).permutation(len(order) - 12)[:10] + 12
    print("\nLoss on each copy, in nats, by this program's gates (by hooks on the eager path):")
    header("heads switched off", *(f"copy {copy + 1}" for copy in range(COPIES)))
    sets = {"none": [], "5 strongest in induction": order[:5], "10 strongest": order[:10]}
    for name, heads in (sets | {"10 random others": [order[place] for place in drawn]}).items():
        ours = np.mean([_loss(partial(_gated, checkpoint, heads), text) for text in texts], axis=0)
        with _zeroed(eager, heads):
            theirs = np.mean([_loss(lambda ids: eager(ids).logits[0], text) for text in texts], axis=0)
        row(name, *(f"{a:.2f} ({b:.2f})" for a, b in zip(ours, theirs)))


def _loss(logits_of: Callable[[torch.Tensor], torch.Tensor], text: Text) -> Float[np.ndarray, " copy"]:
    ids = torch.tensor([text.given.ids if text.given else ()])
    with torch.no_grad():
        logits = logits_of(ids).double()
    losses = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:], reduction="none")
    return losses.reshape(COPIES, BLOCK).mean(dim=1).numpy()


def _gated(checkpoint: Checkpoint, heads: Sequence[Head], ids: torch.Tensor) -> torch.Tensor:
    settings, calls = PassSettings("self", tuple(heads)), checkpoint.attentions["self"].calls
    inputs = {"input_ids": ids}
    return observe(checkpoint.full_model, inputs, Pass(calls=calls, gates=gates(checkpoint, settings))).logits[0]


@contextmanager
def _zeroed(model: Any, heads: Sequence[Head]) -> Iterator[None]:
    """Zero what some heads give to the output projections of their layers."""
    size = model.config.head_dim

    def hook(of_layer: list[int], _: Any, given: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        (outputs,) = given
        outputs = outputs.clone()
        for head in of_layer:
            outputs[..., head * size : (head + 1) * size] = 0
        return (outputs,)

    by_layer = {layer: [head for at, head in heads if at == layer] for layer, _ in heads}
    hooks = [
        model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(partial(hook, of_layer))
        for layer, of_layer in by_layer.items()
    ]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()


def _held(checkpoint: Checkpoint, texts: Sequence[Text]) -> None:
    """Print how many heads hold each role, of the checkpoint and of random weights."""
    criterion = Criterion(tau=USUAL_TAU["share"])
    print(f"\nHeads that hold each role on {len(texts)} texts of repeats, at a share of {criterion.tau:g}:")
    header("", *ROLES)
    random = load_checkpoint(randomly_initialised(checkpoint.files, 0), device="cpu")
    for name, each in (("the checkpoint", checkpoint), ("random weights", random)):
        scored = role_scores(results(each, scores_question(DECODER_ROLES), texts), SHARES)
        tests = role_tests(scored.scores, scored.roles, criterion, scored.uniform)
        row(name, *(int(tests.holds[scored.roles.index(role)].sum()) for role in ROLES))


def _seconds(checkpoint: Checkpoint, texts: Sequence[Text]) -> None:
    """Print the time of the pass that scores all roles of decoders, relative to the bare forward pass."""
    prepared = [prepare(checkpoint, text, PassSettings()) for text in texts]
    inputs = model_inputs(checkpoint, prepared)

    def bare() -> None:
        with torch.inference_mode():
            checkpoint.model(**inputs)

    def scored() -> None:
        results(checkpoint, scores_question(DECODER_ROLES), texts)

    times = {}
    for work in (bare, scored, bare, scored, bare, scored):
        started = time.perf_counter()
        work()
        times.setdefault(work.__name__, []).append(time.perf_counter() - started)
    ratio = min(times["scored"]) / min(times["bare"])
    print(f"\nAll roles of decoders over {len(texts)} texts of 101 tokens: {ratio:.2f} times the bare forward pass.")


if __name__ == "__main__":
    main()
