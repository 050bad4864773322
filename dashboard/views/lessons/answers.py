"""Answers to the questions of the lessons, all computed from the current checkpoint, which may have no such head."""

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.core.attention.settings import Head, PassSettings, head_name, head_names, highest_head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.laboratory.outcomes import copy_score
from attention_sieve.core.laboratory.question import COPIED_TOKENS
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import control_passes, counts_of
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.measures import SYNTACTIC
from attention_sieve.core.roles.record import DIRECTIONS
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.sieves import sieve_cells
from attention_sieve.core.roles.uncertainty.anytime import odds
from attention_sieve.core.texts.text import read_typed
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText
from attention_sieve.core.word_links.on_text import words_on
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.views.corpus import judged
from attention_sieve.dashboard.views.lessons.computation import Phrase, StepInputs, StepResult, replace_values
from attention_sieve.dashboard.views.lessons.outcomes import (
    MOST_OFF,
    LessonOutcome,
    change_of,
    outcome,
    shape_of,
    turns,
)
from attention_sieve.dashboard.views.lessons.sentences import FAR, NEAR, VerbAndObject
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
    return _one_word(inputs.attention, FAR, _head_of_lesson_one(inputs))


def far_object(inputs: StepInputs) -> StepResult:
    """The same as an answer: section "none" where another word than the object gets most."""
    result = far_word(inputs)
    return result if result.values["most"] == result.values["object"] else replace(result, section="none")


def _head_of_lesson_one(inputs: StepInputs) -> Head:
    (text,) = read_typed(NEAR.sentence)
    text_attention, _ = inputs.visit.inference.look(inputs.visit.engine, text, inputs.visit.settings)
    return _object_head(text_attention)


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


def own_object(inputs: StepInputs) -> StepResult:
    """The same head on the reader's own sentence, from verbs to their objects according to the parser."""
    head = _head_of_lesson_one(inputs)
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
    tests, head = inputs.tested.tests, _head_of_lesson_one(inputs)
    place = (tests.roles.index(SYNTACTIC[0]), *head)
    values = {"head": head_name(*head), "score": f"{tests.mean[place]:.2f}"}
    return replace(replace_values(grammar_heads(inputs), values), section="" if tests.holds[place] else "none")


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
    result = StepResult(values={"heads": str(n_heads)}, most=n_heads)
    return _with_ranking(result, outcome(inputs, inputs.visit.settings.off))


def few_heads(inputs: StepInputs) -> StepResult:
    """How few heads have to be off for another outcome; section "none" if as many as are tried do not change it."""
    change = change_of(inputs)
    result = _with_ranking(_number(len(change.heads), int(np.prod(shape_of(inputs)))), change.after)
    if not change.heads:
        return replace(replace_values(result, {"tried": str(MOST_OFF)}), section="none")
    values = {
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


def untrained(inputs: StepInputs) -> StepResult:
    """Numbers of heads and layers of the laboratory's model; section "none" where none has been trained to the end."""
    name = inputs.visit.choice.checkpoint.rpartition("/")[0]
    is_trained = any(run.name == name and run.progress.state != "running" for run in laboratory_runs())
    return size(inputs) if is_trained and inputs.text_attention is not None else StepResult(values={}, section="none")


def copies(inputs: StepInputs) -> StepResult:
    """The head of the laboratory's model that attends most to the tokens after earlier copies of the one that looks."""
    if inputs.text_attention is None:
        return StepResult(values={}, section="none")
    return _best(inputs.text_attention, _cells("induction", inputs.text_attention))


def copies_without(inputs: StepInputs) -> StepResult:
    """How much of its attention that head keeps there without the head that attends most to the previous token."""
    result = copies(inputs)
    if inputs.text_attention is None or result.section:
        return result
    back = stories.strongest(inputs.text_attention.attention, _cells("previous", inputs.text_attention), causal=True)
    without = PassSettings(inputs.visit.settings.kind, (back.head,))
    text_attention, _ = inputs.visit.inference.look(
        inputs.visit.engine, inputs.visit.texts[0], without, too_long="truncate"
    )
    links, (head,) = _cells("induction", text_attention), result.heads
    kept = round(100 * float(share_on(text_attention.attention[*head], links)))
    values = {**result.values, "previous": head_name(*back.head), "back": percent(back.share), "kept": f"{kept}%"}
    return replace(
        _number(kept, 100),
        values=values,
        section="none" if back.share < LEAST_SHARE or back.head[0] >= head[0] else "",
        heads=(back.head, head),
        of_guess=lambda guess: f"{guess}%",
        is_close=lambda guess: isinstance(guess, int) and abs(guess - kept) <= CLOSE_PERCENT,
    )


def copies_together(inputs: StepInputs) -> StepResult:
    """The loss of copied tokens with all heads on, and without each of these two heads."""
    result = copies_without(inputs)
    if result.section:
        return result
    visit = inputs.visit
    outcomes = visit.inference.ask(visit.engine, COPIED_TOKENS, visit.texts, visit.settings, too_long="truncate")
    score = copy_score(outcomes.results)
    lower, upper = (f"{score.loss_without[head]:.2f}" for head in result.heads)
    return replace_values(result, {"loss": f"{score.loss:.2f}", "without_lower": lower, "without_upper": upper})


def _cells(role: str, text_attention: TextAttention) -> Bool[np.ndarray, "query key"]:
    return sieve_cells(role, text_attention.text, text_attention.causal, window=text_attention.window)


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
        is_right=lambda guess: isinstance(guess, tuple) and bool(shares[guess] >= LEAST_SHARE),
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
        raise AnalysisError("This checkpoint takes only the beginning of the sentence. Choose another for this lesson.")
    return links


def _size(inputs: StepInputs) -> dict[str, str]:
    n_layers, n_heads = inputs.attention.attention.shape[:2]
    return {"layers": str(n_layers), "heads": str(n_layers * n_heads)}
