"""Does the laboratory's model learn to continue repetitions, and with which heads? Seeds, and the control.

Trains the model from several seeds on sequences whose period is drawn, and the control, whose period is fixed. The
share of attention on the tokens after earlier copies (induction), or on the token before, is a mean over the tokens
that have any, by a loop in float64 over the maps of transformers' own eager path; heads hold the role induction by the
test of this program.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Bool, Float
from transformers import LlamaForCausalLM

from attention_sieve.core.answering import answer, find
from attention_sieve.core.attention.settings import Head, PassSettings, head_name, highest_head
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.finetuning.journal import open_run
from attention_sieve.core.laboratory.outcomes import copy_score
from attention_sieve.core.laboratory.question import COPIED_TOKENS
from attention_sieve.core.laboratory.settings import LaboratoryPlan, LaboratorySettings
from attention_sieve.core.laboratory.training import train
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.probe_texts.make import ProbeKind, ProbeTextSettings, fitting_block, probe_texts
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import USUAL_TAU, ScoreSettings
from attention_sieve.core.texts.text import Text
from benchmarks.shared.markdown import header, row

RUNS: Final = (*(LaboratorySettings(seed=seed) for seed in range(5)), LaboratorySettings(periods="fixed"))
KINDS: Final[tuple[ProbeKind, ...]] = ("repeats", "fixed-repeats")
LEARNT: Final = 0.95
ROLES: Final = RoleSettings(
    ScoreSettings(roles=("previous", "induction"), scale="share"), Criterion(tau=USUAL_TAU["share"])
)
Shares = Float[np.ndarray, "layer head"]


def main() -> None:
    print(f"Training, of {RUNS[0].steps} steps; copied tokens are those of other sequences of the same kind:")
    header(
        "periods, seed", "s", "s of a core", f"step of {LEARNT}", f"s of a core to {LEARNT}", "accuracy", "loss (nats)"
    )
    with TemporaryDirectory() as temporary:
        folders = [Path(temporary) / str(number) for number in range(len(RUNS))]
        for settings, folder in zip(RUNS, folders):
            _train(settings, folder)
        print("\nThe strongest heads after training, and what the loss of copied tokens is without them:")
        header(
            "periods, seed", "previous", "share", "induction, gaps drawn", "share", "induction, fixed period", "share",
            "hold it, drawn", "hold it, fixed", "loss", "without previous", "without the strongest induction head",
        )  # fmt: skip
        for settings, folder in zip(RUNS, folders):
            _heads(settings, folder)


def _train(settings: LaboratorySettings, folder: Path) -> None:
    """Train, and print how long it took: by the clock, which depends on what else runs, and of one processor core."""
    began, begun = time.monotonic(), time.process_time()
    at_step = {0: 0.0}

    def note(step: int, _: int) -> None:
        at_step[step] = time.process_time() - begun

    with open_run(folder, LaboratoryPlan(settings), resume=False) as journal:
        progress = train(settings, journal, note)
    learnt = next((at.step for at in progress.held_out if (at.accuracy or 0) >= LEARNT), None)
    last = progress.held_out[-1]
    seconds = time.monotonic() - began, time.process_time() - begun, np.nan if learnt is None else at_step[learnt]
    by_clock, of_core, to_learn = (f"{each:.0f}" for each in seconds)
    row(_name(settings), by_clock, of_core, learnt, to_learn, f"{last.accuracy:.3f}", f"{last.loss:.2f}")


def _heads(settings: LaboratorySettings, folder: Path) -> None:
    checkpoint = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    eager = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64).eval()
    texts = {
        kind: probe_texts(checkpoint.tokenizer, ProbeTextSettings(kind=kind, block=fitting_block(checkpoint.tokenizer)))
        for kind in KINDS
    }
    held = {kind: _n_holding(checkpoint, of_kind) for kind, of_kind in texts.items()}
    previous = _shares(eager, texts["repeats"], lambda ids: np.eye(len(ids), k=-1, dtype=bool))
    drawn, fixed = (_shares(eager, texts[kind], _after_copies) for kind in KINDS)
    score = copy_score(_outcomes(checkpoint, texts["repeats"]))
    without = [f"{score.loss_without[highest_head(shares)]:.2f}" for shares in (previous, drawn)]
    strongest = [cell for shares in (previous, drawn, fixed) for cell in _strongest(shares)]
    row(_name(settings), *strongest, held["repeats"], held["fixed-repeats"], f"{score.loss:.2f}", *without)


def _name(settings: LaboratorySettings) -> str:
    return f"{settings.periods}, {settings.seed}"


def _strongest(shares: Shares) -> tuple[str, str]:
    head: Head = highest_head(shares)
    return head_name(*head), f"{shares[head]:.2f}"


def _n_holding(checkpoint: Checkpoint, texts: Sequence[Text]) -> int:
    tests = find(ROLE_ANALYSIS, checkpoint, texts, ROLES).tests
    return int(tests.holds[tests.roles.index("induction")].sum())


def _outcomes(checkpoint: Checkpoint, texts: Sequence[Text]) -> list[Any]:
    settings = PassSettings(checkpoint.files.kinds[0])
    prepared, _ = prepare_all(checkpoint, texts, settings, "error")
    work = answer(checkpoint, COPIED_TOKENS, texts, prepared, settings)
    return [outcomes for batch in work for _, outcomes in batch]


def _shares(eager: LlamaForCausalLM, texts: Sequence[Text], links_of: Any) -> Shares:
    """Mean over the tokens that have links of the attention on them, and over the texts."""
    means = []
    for text in texts:
        assert text.given is not None, "a probe text has ids"
        ids = text.given.ids
        links: Bool[np.ndarray, "query key"] = links_of(ids)
        with torch.no_grad():
            maps = eager(torch.tensor([ids]), output_attentions=True).attentions
        attention = np.concatenate([of_layer.numpy() for of_layer in maps])  # layer, head, query, key
        rows = links.any(axis=1)
        means.append((attention * links).sum(-1)[:, :, rows].mean(-1))
    return np.mean(means, axis=0)


def _after_copies(ids: Sequence[int]) -> Bool[np.ndarray, "query key"]:
    """Links from each token to those after its earlier copies."""
    links = np.zeros((len(ids), len(ids)), dtype=bool)
    for query in range(len(ids)):
        for key in range(1, query):
            links[query, key] = ids[key - 1] == ids[query]
    return links


if __name__ == "__main__":
    main()
