"""Answers to the questions of the lessons, all computed from the current checkpoint, which may have no such head."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.core.attention.settings import Head, PassSettings, head_name, head_names, highest_head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.laboratory.outcomes import CopyScore, copy_score
from attention_sieve.core.laboratory.question import COPIED_TOKENS
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import cases_of
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import control_passes, counts_of
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.measures import SYNTACTIC
from attention_sieve.core.roles.record import DIRECTIONS
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.sieves import sieve_cells
from attention_sieve.core.roles.uncertainty.anytime import odds
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText
from attention_sieve.core.word_links.on_text import words_on
from attention_sieve.dashboard.languages import language, say
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.views.corpus import judged
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.lessons.computation import Phrase, StepInputs, StepResult, replace_values
from attention_sieve.dashboard.views.lessons.outcomes import (
    MOST_OFF,
    LessonOutcome,
    change_of,
    outcome,
    shape_of,
    turns,
)
from attention_sieve.dashboard.views.lessons.sentences import FAR, LONG, NEAR, SHORT, VerbAndObject
from attention_sieve.dashboard.views.text import stories, wording
from attention_sieve.dashboard.views.text.simple_patterns import (
    LEAST_SHARE,
    MOSTLY,
    SimplePattern,
    share_on,
    simple_pattern,
)

DOES: Final[dict[SimplePattern, str]] = {
    "previous word": "looks_back",
    "next word": "looks_ahead",
    "same word": "looks_at_itself",
    "rests": "rests",
}
NO_BREAK: Final = "\u00a0"
CLOSE: Final = 0.1
"""Relative error up to which a guessed number counts as close; an error of 1 always does."""
CLOSE_PERCENT: Final = 10
"""Error up to which a guessed percentage counts as close."""
AS_GOOD: Final = 0.9
"""Part of the greatest share from which another head does what was asked for as well."""


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def previous_word(inputs: StepInputs) -> StepResult:
    """The head that attends most to the previous word."""
    return _best(inputs.attention, stories.STORIES[wording.PREVIOUS_WORD].links_of(inputs.attention.text.queries))


def near_object(inputs: StepInputs) -> StepResult:
    """Where the head that attends most from the verb of the lessons' sentence to its object attends from the verb."""
    return replace_values(_one_word(inputs.attention, NEAR, _object_head(inputs.attention)), _size(inputs))


def far_word(inputs: StepInputs) -> StepResult:
    """Where the same head attends from a verb that its object follows at a greater distance."""
    return _one_word(inputs.attention, FAR, _head_of_lesson_one(inputs)[0])


def far_object(inputs: StepInputs) -> StepResult:
    """The same as an answer: section "none" where another word than the object gets most."""
    result = far_word(inputs)
    return result if result.values["most"] == result.values["object"] else replace(result, section="none")


def _head_of_lesson_one(inputs: StepInputs) -> tuple[Head, bool]:
    """The head, and whether its model is causal."""
    (text,) = read_typed(NEAR.sentence)
    text_attention, _ = inputs.visit.inference.look(inputs.visit.engine, text, inputs.visit.settings)
    return _object_head(text_attention), text_attention.causal


def _object_head(text_attention: TextAttention) -> Head:
    """The head that attends most from the verb of the lessons' sentence to its object, or in causal models back."""
    links = _object_links(text_attention, NEAR)
    return stories.strongest(text_attention.attention, links, text_attention.causal).head


def _one_word(text_attention: TextAttention, sentence: VerbAndObject, head: Head) -> StepResult:
    """Where a head attends from the verb of a sentence, or in causal models from the object."""
    queries, keys = text_attention.text.queries, text_attention.text.keys
    links = _object_links(text_attention, sentence)
    query, true_key = map(int, np.argwhere(links)[0])
    row, word_of, names = text_attention.attention[*head, query], keys_by_word(keys), word_names(keys)
    shares = np.bincount(word_of, row)[word_of]
    most = int(shares.argmax())
    return StepResult(
        values={
            "head": head_name(*head),
            "word": word_names(queries)[query],
            "most": names[most],
            "object": names[true_key],
            "share": percent(float(shares[most])),
            "even": percent(1 / (query + 1 if text_attention.causal else len(row))),
        },
        heads=(head,),
        query=query,
        of_guess=lambda guess: f"{names[guess]} ({percent(float(shares[guess]))})" if isinstance(guess, int) else "",
        is_right=lambda guess: isinstance(guess, int) and bool(word_of[guess] == word_of[most]),
        is_close=lambda guess: isinstance(guess, int) and bool(shares[guess] >= LEAST_SHARE),
    )


def word_names(text: TokenizedText) -> tuple[str, ...]:
    """The whole word of each token; a special token is a word of its own."""
    names = {token: word.text for word in words_on(text, (0, len(text.ids))) for token in word.tokens}
    return tuple(names[token] for token in range(len(text.ids)))


def keys_by_word(text: TokenizedText) -> Int[np.ndarray, " token"]:
    """Number of the word of each token, special tokens counted as words."""
    numbers = np.zeros(len(text.ids), dtype=int)
    for number, word in enumerate(words_on(text, (0, len(text.ids)))):
        numbers[list(word.tokens)] = number
    return numbers


def resting(inputs: StepInputs) -> StepResult:
    """Number of heads that give more than half of their attention to special tokens, and the strongest of them."""
    text_attention = inputs.attention
    links = stories.STORIES[wording.RESTING].links_of(text_attention.text.queries)
    shares = share_on(text_attention.attention, links)
    strongest_head = stories.strongest(text_attention.attention, links, text_attention.causal)
    return replace_values(
        _number(int((shares > MOSTLY).sum()), shares.size),
        {
            "head": head_name(*strongest_head.head),
            "share": percent(strongest_head.share),
            "even": percent(strongest_head.even),
            **_size(inputs),
        },
        heads=(strongest_head.head,),
    )


def resting_by_length(inputs: StepInputs) -> StepResult:
    """The same number in the text on screen, in a short text and in a long one, with their numbers of tokens."""
    result = resting(inputs)
    values = {"count": result.values["count"], "heads": result.values["heads"], "tokens": _n_tokens(inputs.attention)}
    for name, sentence in (("short", SHORT), ("long", LONG)):
        text_attention, _ = inputs.visit.inference.look(
            inputs.visit.engine, Text((sentence,)), PassSettings(inputs.visit.settings.kind), too_long="truncate"
        )
        of_text = resting(replace(inputs, text_attention=text_attention))
        values |= {name: of_text.values["count"], f"{name}_tokens": _n_tokens(text_attention)}
    return StepResult(values=values, heads=result.heads)


def _n_tokens(text_attention: TextAttention) -> str:
    return str(len(text_attention.text.keys.ids))


def own_object(inputs: StepInputs) -> StepResult:
    """The same head on the reader's own sentence, from verbs to their objects according to the parser."""
    head, _ = _head_of_lesson_one(inputs)
    text_attention = inputs.attention
    to_head, from_head = DIRECTIONS  # in causal models from the object back to its verb
    forwards = (to_head if text_attention.causal else from_head,)
    links = sieve_cells("syntactic:dobj", text_attention.text, text_attention.causal, forwards, text_attention.window)
    if inputs.typed in (NEAR.sentence, FAR.sentence) or not links.any():
        return StepResult(values={"head": head_name(*head)}, section="none", heads=(head,))
    queries = np.flatnonzero(links.any(axis=1))
    share = float(share_on(text_attention.attention[*head], links))
    from_words, to_words = word_names(text_attention.text.queries), word_names(text_attention.text.keys)
    pairs = "; ".join(dict.fromkeys(f"{from_words[query]} → {to_words[key]}" for query, key in np.argwhere(links)))
    even = float(
        links[queries].sum() / (queries + 1 if text_attention.causal else np.full(len(queries), links.shape[1])).sum()
    )
    return StepResult(
        values={"head": head_name(*head), "share": percent(share), "even": percent(even), "pairs": pairs},
        heads=(head,),
    )


def grammar_heads(inputs: StepInputs) -> StepResult:
    """Number of heads with the syntactic role over the corpus."""
    assert inputs.tested is not None, "asked on the page of roles"
    tests = inputs.tested.tests
    counts = counts_of(tests, "none")
    index = tests.roles.index(SYNTACTIC[0])
    return StepResult(
        values={
            "count": str(counts.heads[index]),
            "heads": str(counts.n_heads),
            "texts": str(len(inputs.tested.scores)),
            "even": f"{float(np.nanmean(inputs.tested.scored.uniform[:, index])):.2f}",
            "least": f"{tests.settings.tau:g}",
        },
        most=counts.n_heads,
    )


def grammar_letters(inputs: StepInputs) -> StepResult:
    """The same, with the head of lesson 1; section "none" where it has no such role."""
    assert inputs.tested is not None, "asked on the page of roles"
    tests, (head, causal) = inputs.tested.tests, _head_of_lesson_one(inputs)
    place = (tests.roles.index(SYNTACTIC[0]), *head)
    resting = counts_of(tests, "none").heads[tests.roles.index("delimiter")]
    values = {"head": head_name(*head), "score": f"{tests.mean[place]:.2f}", "resting": str(resting)}
    result = replace_values(grammar_heads(inputs), values | _objects_found(inputs, head, causal), heads=(head,))
    return replace(result, section="" if tests.holds[place] else "none")


def _objects_found(inputs: StepInputs, head: Head, causal: bool) -> dict[str, str]:
    """In how many pairs of verb and object of the corpus a head looks most from the one at the other, and in how many
    pairs the object is as far from its verb as in most."""
    visit, tested = inputs.visit, inputs.tested
    assert tested is not None, "asked on the page of roles"
    texts = tuple(visit.texts[position] for position in tested.found.positions)
    settings = PassSettings(visit.settings.kind)
    request = FindingRequest(visit.engine, RELATION_ANALYSIS, texts, RELATION_ANALYSIS.settings, settings, "truncate")
    cases = cases_of(visit.inference.find(request).finding.predictions, reading="row")
    is_object = np.array([name == "dobj" for name in cases.names])[cases.codes] & cases.is_known
    right = cases.right[0 if causal else 1, *head, is_object]
    _, at_distance = np.unique(cases.distances[is_object], return_counts=True)
    return {
        "pairs": str(right.size),
        "found": str(int(right.sum())),
        "fixed": str(at_distance.max(initial=0)),
    }


def random_heads(inputs: StepInputs) -> StepResult:
    """Number of heads with that role in the same architecture with random weights, over the same texts."""
    assert inputs.tested is not None, "asked on the page of roles"
    visit, tested = inputs.visit, inputs.tested
    texts = tuple(visit.texts[position] for position in tested.found.positions)
    index = tested.tests.roles.index(SYNTACTIC[0])
    random_counts = []
    usual = RoleSettings(replace(visit.choice.score_settings, roles=ROLES))
    for control_pass in control_passes(visit.engine.files, texts, usual):
        if control_pass.control == "random weights":
            engine = Engine(control_pass.files, visit.engine.device, visit.engine.dtype)
            request = FindingRequest(
                engine, ROLE_ANALYSIS, control_pass.texts, control_pass.settings, visit.settings, "truncate"
            )
            tests = judged(visit.inference.find(request), visit.choice).tests
            random_counts.append(int(counts_of(tests, control_pass.control).heads[index]))
    own_counts = counts_of(tested.tests, "none")
    result = _number(round(float(np.mean(random_counts))), own_counts.n_heads)
    values = {
        "count": ", ".join(map(str, random_counts)),
        "models": str(len(random_counts)),
        "own": str(own_counts.heads[index]),
        "texts": str(len(texts)),
    }
    return replace_values(result, values)


def typed_evidence(inputs: StepInputs) -> StepResult:
    """Number of heads with the syntactic role over the texts so far, and the best odds, if evidence decides."""
    assert inputs.tested is not None, "asked on the page of roles"
    result, tests = grammar_heads(inputs), inputs.tested.tests
    if tests.evidence is None:
        return replace(result, section="none")
    evidence = tests.evidence[tests.roles.index(SYNTACTIC[0])]
    head = highest_head(evidence)
    best = {"head": head_name(*head), "odds": odds(float(evidence[head])).replace(" ", NO_BREAK)}
    return replace_values(result, best)


def ranking_now(inputs: StepInputs) -> StepResult:
    """What the checkpoint makes of the text without the heads that are off now."""
    n_heads = int(np.prod(shape_of(inputs)))
    result = StepResult(values={"heads": str(n_heads), "tried": str(MOST_OFF)}, most=min(n_heads, MOST_OFF))
    return _with_ranking(result, outcome(inputs, inputs.visit.settings.off))


def few_heads(inputs: StepInputs) -> StepResult:
    """How few heads have to be off for another outcome; section "none" if as many as are tried do not change it."""
    change = change_of(inputs)
    result = _with_ranking(_number(len(change.heads), MOST_OFF), change.after)
    if not change.heads:
        values = {"tried": str(MOST_OFF), "heads": str(int(np.prod(shape_of(inputs))))}
        result = replace(result, is_right=lambda guess: False, doing=lambda guess: None)
        return replace(replace_values(result, values), section="none")
    values = {
        "heads": str(int(np.prod(shape_of(inputs)))),
        "names": head_names(change.heads),
        "before": change.before.first.rstrip("."),
        "after": change.after.first.rstrip("."),
        "degrees": f"{turns(inputs, change.heads)[-1]:.0f}°",
    }
    return replace_values(result, values, heads=change.heads)


def one_head_off(inputs: StepInputs) -> StepResult:
    """By how much the vector of the text turns without each head alone."""
    text = read_typed(inputs.typed)[0]
    settings = PassSettings(inputs.visit.settings.kind)
    answers = inputs.visit.inference.ask(
        inputs.visit.engine, ablation_question("output"), [text], settings, too_long="truncate"
    )
    degrees = degrees_without(answers.results[0])
    most = highest_head(degrees)
    return StepResult(
        values={
            "head": head_name(*most),
            "change": f"{degrees[most]:.0f}°",
            "middle": f"{float(np.nanmedian(degrees)):.0f}°",
            "heads": str(int(np.isfinite(degrees).sum())),
        }
    )


def degrees_without(outcome: TextOutcomes) -> Float[np.ndarray, "layer head"]:
    """By how much the vector of a text turns without each head."""
    cosines = 1 - outcome.without[..., 0].astype(np.float64)
    return np.degrees(np.arccos(np.clip(cosines, -1, 1)))


def _with_ranking(result: StepResult, made: LessonOutcome) -> StepResult:
    ranking = tuple(zip(made.names, made.values.tolist()))
    return replace(result, ranking=ranking, is_prediction=made.is_prediction)


def changed_layer(inputs: StepInputs) -> StepResult:
    """The layer in which attention on the text on screen differs most between two checkpoints."""
    if not inputs.others:
        return StepResult(values={}, section="none")
    moved = attention_moved(inputs)
    if moved is None:
        return StepResult(values={}, section="none")
    by_layer = moved.mean(axis=1)
    layer = int(by_layer.argmax())
    head = int(moved[layer].argmax())
    result = replace(
        _number(layer, len(by_layer) - 1),
        is_close=lambda guess: False,  # the layer beside it is another layer
        doing=lambda guess: _moved(by_layer, guess) if isinstance(guess, int) else None,
    )
    return replace_values(
        result,
        {
            "layer": str(layer),
            "share": percent(float(by_layer[layer])),
            "first": percent(float(by_layer[0])),
            "last": str(len(by_layer) - 1),
            "head": head_name(layer, head),
            "of_head": percent(float(moved[layer, head])),
            "name": inputs.others[0].files.name,
        },
        heads=((layer, head),),
    )


def attention_moved(inputs: StepInputs) -> Float[np.ndarray, "layer head"] | None:
    """The share of each head's attention on the text on screen that goes elsewhere under the other checkpoint; None
    where that has other numbers of layers and heads."""
    text = read_typed(inputs.typed)[0]
    attention_a, attention_b = (
        inputs.visit.inference.look(engine, text, PassSettings(inputs.visit.settings.kind), too_long="truncate")[
            0
        ].attention
        for engine in (inputs.visit.engine, inputs.others[0])
    )
    if attention_a.shape != attention_b.shape:
        return None
    return np.abs(attention_a - attention_b).sum(axis=-1).mean(axis=-1) / 2


def first_layer(inputs: StepInputs) -> StepResult:
    """The question about that layer: without its answer, and with a head of the first layer to look at."""
    result = changed_layer(inputs)
    if result.section:
        return result
    head = (0, 0)
    values = {name: result.values[name] for name in ("last", "name")}
    return StepResult(values={**values, "head": head_name(*head)}, heads=(head,), most=result.most)


def _moved(by_layer: Float[np.ndarray, " layer"], layer: int) -> Phrase | None:
    """How much of the attention moved in the guessed layer; None for a layer that there is not."""
    if layer >= len(by_layer):
        return None
    return Phrase("layer_moved", (("layer", str(layer)), ("share", percent(float(by_layer[layer])))))


def is_trained(visit: Visit) -> bool:
    """Whether the laboratory's model of the page has been trained, to the end or until somebody stopped it."""
    name = visit.choice.checkpoint.rpartition("/")[0]
    return any(run.name == name and run.progress.state != "running" for run in laboratory_runs())


@dataclass(frozen=True, eq=False, kw_only=True)
class _Copying:
    """The heads of the laboratory's model that look at what came after earlier copies, and the one that looks back."""

    heads: tuple[Head, ...]
    """Those with the role, the one that attends most to its links on the text on screen first."""
    before: Head
    """In a lower layer, the head that attends most to the previous token."""


def _copying(inputs: StepInputs) -> _Copying | None:
    """None where no head has the role, or where all that have it are in the first layer."""
    visit, text_attention = inputs.visit, inputs.attention
    settings = RoleSettings(visit.choice.score_settings)
    request = FindingRequest(visit.engine, ROLE_ANALYSIS, visit.texts, settings, visit.settings, "truncate")
    tests = judged(visit.inference.find(request), visit.choice).tests
    shares = _shares(text_attention, "induction")
    holding = np.argwhere(tests.holds[tests.roles.index("induction")]).tolist()
    heads = sorted(((layer, head) for layer, head in holding), key=lambda head: -shares[head])
    if not heads or not heads[0][0]:
        return None
    back = _shares(text_attention, "previous")[: heads[0][0]]
    return _Copying(heads=tuple(heads), before=highest_head(back))


def _shares(text_attention: TextAttention, role: str) -> Float[np.ndarray, "layer head"]:
    links = sieve_cells(role, text_attention.text, text_attention.causal, window=text_attention.window)
    return share_on(text_attention.attention, np.tril(links))


def copies(inputs: StepInputs) -> StepResult:
    """The heads of the laboratory's model that look at the tokens after earlier copies of the one that looks."""
    if inputs.text_attention is None or (copying := _copying(inputs)) is None:
        return StepResult(values={}, section="none")
    links = sieve_cells("induction", inputs.attention.text, inputs.attention.causal, window=inputs.attention.window)
    result = _best(inputs.attention, links)
    return replace_values(
        replace(result, is_right=lambda guess: guess in copying.heads, section=""),
        {"count": str(len(copying.heads)), "names": head_names(sorted(copying.heads)), **_size(inputs)},
    )


def copies_without(inputs: StepInputs) -> StepResult:
    """What share of the copied tokens the model predicts with all heads on, without one of those that look at copies,
    without all of these, and without the head that looks at the previous token."""
    result = copies(inputs)
    if result.section or (copying := _copying(inputs)) is None:
        return result
    all_on = _copied(inputs, ())
    costs = {head: all_on.loss_without[head] for head in copying.heads}
    one = max(costs, key=lambda head: float(costs[head]))
    scores = [_copied(inputs, heads) for heads in ((one,), copying.heads, (copying.before,))]
    of_one, of_all, of_before = (round(100 * score.accuracy) for score in scores)
    values = {
        "one": head_name(*one),
        "previous": head_name(*copying.before),
        "back": percent(float(_shares(inputs.attention, "previous")[copying.before])),
        "known": percent(all_on.accuracy),
        "without_one": f"{of_one}%",
        "without_all": f"{of_all}%",
        "without_previous": f"{of_before}%",
        "loss": f"{all_on.loss:.2f}",
        **{f"loss_{name}": f"{score.loss:.2f}" for name, score in zip(("one", "all", "previous"), scores)},
    }
    return replace(
        _number(of_one, 100),
        values={**result.values, **values},
        heads=(copying.before, *copying.heads),
        of_guess=lambda guess: f"{guess}%",
        is_close=lambda guess: isinstance(guess, int) and abs(guess - of_one) <= CLOSE_PERCENT,
    )


def _copied(inputs: StepInputs, off: tuple[Head, ...]) -> CopyScore:
    """How well the model continues repetitions without some heads."""
    visit, settings = inputs.visit, PassSettings(inputs.visit.settings.kind, tuple(sorted(off)))
    return copy_score(
        visit.inference.ask(visit.engine, COPIED_TOKENS, visit.texts, settings, too_long="truncate").results
    )


def size(inputs: StepInputs) -> StepResult:
    return StepResult(values=_size(inputs))


def _best(text_attention: TextAttention, links: Bool[np.ndarray, "query key"]) -> StepResult:
    strongest_head = stories.strongest(text_attention.attention, links, text_attention.causal)
    shares = share_on(text_attention.attention, np.tril(links) if text_attention.causal else links)
    return StepResult(
        values={
            "head": head_name(*strongest_head.head),
            "share": percent(strongest_head.share),
            "even": percent(strongest_head.even),
        },
        section="" if strongest_head.share >= LEAST_SHARE else "none",
        heads=(strongest_head.head,),
        of_guess=lambda guess: f"{head_name(*guess)} ({percent(shares[guess])})" if isinstance(guess, tuple) else "",
        is_right=lambda guess: (
            isinstance(guess, tuple) and bool(shares[guess] >= max(LEAST_SHARE, AS_GOOD * strongest_head.share))
        ),
        is_close=lambda guess: isinstance(guess, tuple) and bool(shares[guess] >= LEAST_SHARE),
        doing=lambda guess: _doing(text_attention, guess) if isinstance(guess, tuple) else None,
    )


def _doing(text_attention: TextAttention, head: Head) -> Phrase:
    """What a head does on the text on screen: where most of its attention goes, or else its strongest link."""
    if (does := simple_pattern(text_attention, head)) is not None:
        pattern, share = does
        return Phrase(DOES[pattern], (("head", head_name(*head)), ("share", percent(share))))
    text, attention = text_attention.text.queries, text_attention.attention[head]
    is_word = text.segments != SPECIAL
    query, key = np.unravel_index(np.where(is_word[:, None] & is_word, attention, 0).argmax(), attention.shape)
    words = word_names(text)
    link = (("word", words[query]), ("most", words[key]), ("share", percent(float(attention[query, key]))))
    return Phrase("looks_far", (("head", head_name(*head)), *link))


def _number(answer: int, most: int) -> StepResult:
    """Result for a question about a number up to `most`."""
    return StepResult(
        values={"count": str(answer), "heads": str(most)},
        answer=answer,
        most=most,
        of_guess=str,
        is_right=lambda guess: guess == answer,
        is_close=lambda guess: isinstance(guess, int) and abs(guess - answer) <= max(1, round(CLOSE * answer)),
        doing=lambda guess: Phrase("too_low" if guess < answer else "too_high") if isinstance(guess, int) else None,
    )


def _object_links(text_attention: TextAttention, sentence: VerbAndObject) -> Bool[np.ndarray, "query key"]:
    """Links from the verb of a sentence to its object, or in causal models from whichever comes later.

    Raises: AnalysisError if the checkpoint reads only part of the sentence.
    """
    links = sentence.links(text_attention.text.queries, text_attention.causal)
    if not links.any():
        raise AnalysisError(say(language(), "only_beginning"))
    return links


def _size(inputs: StepInputs) -> dict[str, str]:
    n_layers, n_heads = inputs.attention.attention.shape[:2]
    return {"layers": str(n_layers), "heads": str(n_layers * n_heads)}
