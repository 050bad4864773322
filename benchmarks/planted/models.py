"""The planted models: which there are, and how each is made from its seed."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Final, get_args

import numpy as np
from transformers import PreTrainedModel

from benchmarks.planted import noise
from benchmarks.planted.circuits import Circuit, circuit, circuit_names
from benchmarks.planted.hosts import plain_model
from benchmarks.planted.looks import measured_attention
from benchmarks.planted.measured import effects
from benchmarks.planted.plans import ARRANGEMENTS, Plan, fits, plan
from benchmarks.planted.statements import EXACT, is_redundant, measured_harmful, measured_needed
from benchmarks.planted.stream import position_embedding, segment_embedding, token_embedding, unembedding
from benchmarks.planted.tasks import N_TEXTS, task
from benchmarks.planted.truth import Host, Task, Truth
from benchmarks.planted.vocabulary import tokenizer
from benchmarks.planted.weights import Layer, Weights, attentions

LOGIT: Final = 20.0
"""Logit of a word whose whole code a head has written."""
NOISES: Final = (
    "none", "trained", "gaussian 1", "none", "gaussian 2", "trained", "uniform", "none", "gaussian 3", "trained",
    "none", "gaussian 4", "trained", "none", "gaussian 5", "uniform",
)  # fmt: skip
"""What becomes of the weights of one model after another."""


@dataclass(frozen=True)
class Spec:
    """What decides a planted model."""

    host: Host
    circuit: str
    arrangement: str
    noise: str
    seed: int

    @property
    def family(self) -> str:
        """The circuit, and how its heads are arranged."""
        return self.circuit if self.arrangement == "single" else f"{self.circuit}, {self.arrangement}"

    @property
    def name(self) -> str:
        """Also the name of the folder."""
        return f"{self.host}-{self.family}-{self.noise}-{self.seed:03}".replace(", ", "-").replace(" ", "-")


@cache
def specs() -> tuple[Spec, ...]:
    """All planted models, in an order in which hosts, families and noise are mixed."""
    random = np.random.default_rng(60)
    found = []
    for host in get_args(Host):
        names = [
            (name, arrangement)
            for name, arrangement in product(circuit_names(host), ARRANGEMENTS)
            if fits(arrangement, circuit(name, host, np.random.default_rng(0)))
        ]
        order = random.permutation(len(names)).tolist()
        found += [(place / len(names), host, *names[index]) for place, index in enumerate(order)]
    seen = Counter[Host]()
    chosen = []
    for seed, (_, host, name, arrangement) in enumerate(sorted(found)):
        # Each host goes through all kinds of noise.
        chosen.append(Spec(host, name, arrangement, NOISES[seen[host] % len(NOISES)], seed))
        seen[host] += 1
    return tuple(chosen)


def spec_named(name: str) -> Spec:
    """The planted model of a name.

    Raises:
        ValueError: There is none.
    """
    for spec in specs():
        if spec.name == name:
            return spec
    raise ValueError(f"No planted model has the name {name!r}. `python -m benchmarks.planted.make --list` prints all.")


def made(spec: Spec) -> tuple[PreTrainedModel, Truth]:
    """A planted model in memory, and what is known about it.

    Args:
        spec: Decides it; the same for the same one, on one machine.
    """
    random = np.random.default_rng([spec.seed, 0])
    heads = circuit(spec.circuit, spec.host, random)
    planned = plan(ARRANGEMENTS[spec.arrangement](heads, random), spec.host, random)
    model = plain_model(spec.host, _weights(spec.host, planned, random))
    _disturb(model, spec, heads)
    return model, _truth(spec, planned, model, drawn_task(spec.host, heads, np.random.default_rng([spec.seed, 1])))


def save(model: PreTrainedModel, truth: Truth, folder: Path) -> None:
    """Writes a planted model, its tokenizer and its truth into a folder, the truth last."""
    model.save_pretrained(folder)
    tokenizer(truth.host).save_pretrained(folder)
    truth.write(folder)


def drawn_task(host: Host, heads: Circuit, random: np.random.Generator, n_texts: int = N_TEXTS) -> Task:
    """The task of a circuit, with texts drawn anew."""
    return task(host, [heads.text(random) for _ in range(n_texts)])


def _weights(host: Host, planned: Plan, random: np.random.Generator) -> Weights:
    n_heads = len(planned.grid[0])
    n_key_heads = n_heads // 2 if host == "llama" else n_heads
    return Weights(
        tokens=token_embedding(host),
        positions=None if host == "llama" else position_embedding(),
        segments=segment_embedding() if host == "bert" else None,
        layers=tuple(Layer(attention=heads) for heads in attentions(host, planned.grid, n_key_heads, random)),
        unembedding=unembedding(host, LOGIT),
    )


def _disturb(model: PreTrainedModel, spec: Spec, heads: Circuit) -> None:
    if spec.noise == "uniform":
        noise.blur(model)
    elif spec.noise == "trained":
        random = np.random.default_rng([spec.seed, 2])
        noise.add_noise(model, noise.BEFORE_TRAINING, spec.seed)
        noise.train(model, lambda: drawn_task(spec.host, heads, random, noise.TRAINING_TEXTS))
    elif spec.noise != "none":
        noise.add_noise(model, noise.LEVELS[int(spec.noise.removeprefix("gaussian ")) - 1], spec.seed)


def _truth(spec: Spec, planned: Plan, model: PreTrainedModel, texts: Task) -> Truth:
    """What is stated: of exact models what was designed, of others what was measured."""
    measured = effects(model, texts, planned.measured_sets)
    needed, harmful, redundant, backups = planned.needed, planned.harmful, planned.redundant_sets, planned.backups
    if spec.noise not in EXACT:
        needed, harmful = measured_needed(measured), measured_harmful(measured)
        redundant = tuple(heads for heads in redundant if is_redundant(heads, measured))
        backups = tuple(pair for pair in backups if is_redundant((pair.main, pair.backup), measured))
    heads = tuple(
        function.truth(layer, head, is_needed=(layer, head) in needed)
        for layer, functions in enumerate(planned.grid)
        for head, function in enumerate(functions)
    )
    truth = Truth(
        spec.name, spec.seed, spec.host, spec.family, spec.noise, heads, texts, needed, harmful, redundant, backups,
        measured,
    )  # fmt: skip
    looks = measured_attention(model, truth)
    return replace(truth, heads=tuple(replace(head, attention=share) for head, share in zip(heads, looks)))
