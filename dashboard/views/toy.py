"""A saved step of a model of the laboratory, for its page and its lesson."""

from dataclasses import replace
from typing import Final

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.probe_texts.make import ProbeKind
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import USUAL_TAU, ScoreSettings
from attention_sieve.core.roles.roles import known_roles
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard.views.frame import Visit

ROLES: Final = known_roles(("previous", "induction", "duplicate"))
SCORES: Final = ScoreSettings(roles=ROLES, scale="share")
CRITERION: Final = Criterion(tau=USUAL_TAU["share"])


def name_at(run: SavedRun, step: int) -> str:
    return f"{run.name}/checkpoint-{step}"


def visit_at(run: SavedRun, step: int, probes: ProbeKind, off: tuple[Head, ...] = ()) -> Visit:
    corpus = next(name for name, kind in controls.PROBES.items() if kind == probes)
    choice = replace(
        state.choice(),
        checkpoint=name_at(run, step),
        corpus=corpus,
        off=off,
        criterion=CRITERION,
        score_settings=SCORES,
    )
    # All steps of a run have one tokenizer, so the texts of the first one do for all.
    texts = controls.corpus_of_probes(controls.other_engine(choice, name_at(run, run.progress.saved[0])).files, probes)
    engine = controls.other_engine(choice, choice.checkpoint)
    return Visit(choice=choice, engine=engine, inference=controls.inference(), texts=texts)


def patterns_at(visit: Visit) -> TextAttention:
    """Where the heads look in the first text."""
    text_attention, _ = visit.inference.look(visit.engine, visit.texts[0], visit.settings, too_long="truncate")
    return text_attention
