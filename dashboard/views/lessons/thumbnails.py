"""The figure of each lesson, small, from what the chosen checkpoint really does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import control_passes
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.measures import SYNTACTIC
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.figures.miniatures import bars, cells, curve, fan
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.samples import EXAMPLE, read_sample
from attention_sieve.dashboard.views.corpus import judged
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons import answers
from attention_sieve.dashboard.views.lessons.computation import StepInputs
from attention_sieve.dashboard.views.lessons.plans import second_checkpoint
from attention_sieve.dashboard.views.lessons.sentences import FAR, NEAR


def _inputs(visit: Visit, sentence: str = NEAR.sentence, *others: Engine) -> StepInputs:
    settings = PassSettings(visit.settings.kind)
    text_attention, _ = visit.inference.look(visit.engine, read_typed(sentence)[0], settings)
    return StepInputs(visit=visit, text_attention=text_attention, typed=sentence, others=others)


def _what_a_head_is(visit: Visit) -> str:
    """Where one head looks from every word."""
    inputs = _inputs(visit)
    return fan(inputs.attention.attention[answers.previous_word(inputs).heads[0]])


def _next_door_and_rest(visit: Visit) -> str:
    """The squares of a head that looks at the word before, and of one that rests."""
    inputs = _inputs(visit)
    heads = (find(inputs).heads[0] for find in (answers.previous_word, answers.resting))
    return cells(*(inputs.attention.attention[head] for head in heads))


def _parser(visit: Visit) -> str:
    """Where the same head looks from a verb whose object is far away."""
    inputs = _inputs(visit, FAR.sentence)
    result = answers.far_word(inputs)
    return fan(inputs.attention.attention[result.heads[0]], result.query)


def _chance(visit: Visit) -> str:
    """The heads with the role of grammar, and those in random weights."""
    texts = read_sample("both")
    settings = RoleSettings(replace(visit.choice.score_settings, roles=ROLES))
    passes = control_passes(visit.engine.files, texts, settings)
    random = next(one for one in passes if one.control == "random weights")
    own = _heads_of_grammar(visit, visit.engine, texts, settings)
    by_chance = _heads_of_grammar(visit, replace(visit.engine, files=random.files), texts, random.settings)
    return "" if own is None or by_chance is None else cells(own, by_chance)


def _heads_of_grammar(
    visit: Visit, engine: Engine, texts: tuple[Text, ...], settings: RoleSettings
) -> Float[np.ndarray, "layer head"] | None:
    """1 for each head that has the role; None where that takes a pass."""
    request = FindingRequest(engine, ROLE_ANALYSIS, texts, settings, PassSettings(visit.settings.kind), "truncate")
    found = visit.inference.kept_finding(request)
    if found is None:
        return None
    tests = judged(found, visit.choice).tests
    return tests.holds[tests.roles.index(SYNTACTIC[0])].astype(float)


def _switched_off(visit: Visit) -> str:
    """How far the vector of the sentence turns without each head."""
    question, settings = ablation_question("output"), PassSettings(visit.settings.kind)
    kept = visit.inference.kept(visit.engine, question, [EXAMPLE], settings, too_long="truncate")
    if kept is None:
        return ""
    degrees = answers.degrees_without(kept.results[0])
    return cells(degrees / np.nanmax(degrees))


def _fine_tuned(visit: Visit) -> str:
    """How much attention training moved in each layer."""
    name = next(iter(second_checkpoint()), None)
    if name is None:
        return ""
    moved = answers.attention_moved(_inputs(visit, NEAR.sentence, controls.other_engine(visit.choice, name)))
    return "" if moved is None else bars(moved.mean(axis=1))


def _born(visit: Visit) -> str:
    """The loss of a model of the laboratory over its steps."""
    for run in laboratory_runs():
        if len(results := run.progress.held_out) > 1:
            return curve(np.array([result.step for result in results]), np.array([result.loss for result in results]))
    return ""


DRAWN: Final[tuple[Callable[[Visit], str], ...]] = (
    _what_a_head_is,
    _next_door_and_rest,
    _parser,
    _chance,
    _switched_off,
    _fine_tuned,
    _born,
)
"""The thumbnail of each lesson in their order: an SVG, empty where it would take more than a pass of a sentence. Raises
AnalysisError where the checkpoint cannot be loaded, or cannot read the sentence."""
