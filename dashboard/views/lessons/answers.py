"""Answers to the questions of the lessons, computed from the current checkpoint and text.

No answer is fixed in advance: each is computed, and may be that this checkpoint has no such head.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from cache.engine import Engine
from core.attention.settings import Head, PassSettings, head_name, highest_head
from core.errors import AnalysisError
from core.importance.question import ablation_question
from core.passes.texts import TextAttention
from core.roles.controls import control_passes, counts_of
from core.roles.measures import DIRECTIONS, SYNTACTIC
from core.roles.sieves import sieve_cells
from core.texts.text import read_typed
from core.texts.tokens import SPECIAL, TokenizedText
from core.word_links.on_text import words_on
from dashboard.figures.roles.evidence import odds
from dashboard.views.corpus import Corpus, judged
from dashboard.views.frame import Visit
from dashboard.views.lessons.sentences import FAR, NEAR, VerbAndObject
from dashboard.views.text import stories, wording
from dashboard.views.text.stories import LEAST_SHARE

Guess = Head | int | None
"""A head, a token position or a number; None if the reader has not guessed."""
HALF: Final = 0.5
NO_BREAK: Final = "\u00a0"
"""Non-breaking space."""
CLOSE: Final = 0.1
"""Relative error up to which a guessed number counts as right; an error of 1 always does."""


@dataclass(frozen=True, eq=False, kw_only=True)
class StepInputs:
    """Inputs of the computation of a step."""

    visit: Visit
    looked: TextAttention | None = None
    """Attention of the text on screen, on pages with a text."""
    tested: Corpus | None = None
    """The corpus and its tests, on the page Roles."""
    others: tuple[Engine, ...] = ()
    """The checkpoints compared with that of the visit."""
    typed: str = ""
    """The text on screen."""

    @property
    def attention(self) -> TextAttention:
        """Attention of the text on screen."""
        assert self.looked is not None, "only steps on pages with a text ask for its attention"
        return self.looked


@dataclass(frozen=True)
class Phrase:
    """A phrase of the lessons' language, and its values."""

    name: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class StepResult:
    """Result of the computation of a step."""

    values: Mapping[str, str]
    """Values in the text of the step, formatted."""
    section: Literal["", "none"] = ""
    """`none` selects the text for a checkpoint without such a head."""
    heads: tuple[Head, ...] = ()
    """Heads to show in the grid and the arcs."""
    query: int | None = None
    """The token of which the step asks, or says, at which word the first of these heads looks most."""
    of_guess: Callable[[Guess], str] = str
    """Describes a guess: its name, and how close it is."""
    is_right: Callable[[Guess], bool] = lambda guess: False
    doing: Callable[[Guess], Phrase | None] = lambda guess: None
    """Says what a wrong guess does, or how it is wrong."""


Finds = Callable[[StepInputs], StepResult]


def percent(share: float) -> str:
    """A share as a percentage."""
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
    rows = links.any(axis=1)
    shares = (text_attention.attention[:, :, rows] * links[rows]).sum(axis=-1).mean(axis=-1)
    strongest_head = stories.strongest(text_attention.attention, links, text_attention.causal)
    return replace_values(
        _number(int((shares > HALF).sum()), shares.size),
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
    links = sieve_cells(
        "syntactic:dobj", text_attention.text, text_attention.causal, _forwards(text_attention), text_attention.window
    )
    if inputs.typed in (NEAR.sentence, FAR.sentence) or not links.any():
        return StepResult(values={"head": head_name(*head)}, section="none", heads=(head,))
    queries = np.flatnonzero(links.any(axis=1))
    share = float((text_attention.attention[*head][queries] * links[queries]).sum(axis=-1).mean())
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
        }
    )


def random_heads(inputs: StepInputs) -> StepResult:
    """Number of heads with that role in the same architecture with random weights, over the same texts."""
    assert inputs.tested is not None, "asked on the page of roles"
    visit, tested = inputs.visit, inputs.tested
    texts = tuple(visit.texts[position] for position in tested.positions)
    index = tested.tests.roles.index(SYNTACTIC[0])
    random_counts = []
    for control_pass in control_passes(visit.engine.files, texts):
        if control_pass.control == "random weights":
            engine = Engine(control_pass.files, visit.engine.device, visit.engine.dtype)
            answers = visit.inference.ask(
                engine, control_pass.question, control_pass.texts, visit.settings, too_long="truncate"
            )
            random_counts.append(int(counts_of(judged(answers, visit.chosen).tests, control_pass.control).heads[index]))
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


def switched_off(inputs: StepInputs) -> StepResult:
    """Change of the model's output on the text without each head, and the head with the largest change."""
    text = read_typed(inputs.typed)[0]
    settings = PassSettings(inputs.visit.settings.kind)
    answers = inputs.visit.inference.ask(
        inputs.visit.engine, ablation_question("output"), [text], settings, too_long="truncate"
    )
    change = answers.results[0].without[..., 0].astype(np.float64)
    n_heads, most = int(np.isfinite(change).sum()), highest_head(change)

    def of_guess(guess: Guess) -> str:
        if not isinstance(guess, tuple):
            return ""
        rank = 1 + int((change > change[guess]).sum())
        return f"{head_name(*guess)} ({rank} of {n_heads} from the top)"

    return StepResult(
        values={
            "head": head_name(*most),
            "change": f"{change[most]:.3f}",
            "middle": f"{float(np.nanmedian(change)):.3f}",
            "small": str(int((change < change[most] * CLOSE).sum())),
            "heads": str(n_heads),
        },
        heads=(most,),
        of_guess=of_guess,
        is_right=lambda guess: guess == most,
    )


def changed_layer(inputs: StepInputs) -> StepResult:
    """The layer in which attention on the text on screen differs most between two checkpoints."""
    if not inputs.others:
        return StepResult(values={}, section="none")
    text = read_typed(inputs.typed)[0]
    attention_a, attention_b = (
        inputs.visit.inference.look(engine, text, PassSettings(inputs.visit.settings.kind), too_long="truncate")[
            0
        ].attention
        for engine in (inputs.visit.engine, inputs.others[0])
    )
    if attention_a.shape != attention_b.shape:
        return StepResult(values={}, section="none")
    moved = (
        np.abs(attention_a - attention_b).sum(axis=-1).mean(axis=-1) / 2
    )  # for each head: the share of attention that moved
    by_layer = moved.mean(axis=1)
    layer = int(by_layer.argmax())
    head = int(moved[layer].argmax())
    # For a number of heads a close guess is right; for a layer only the exact one.
    result = replace(
        _number(layer, len(by_layer)),
        is_right=lambda guess: guess == layer,
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


def _moved(by_layer: Float[np.ndarray, " layer"], layer: int) -> Phrase | None:
    """How much of the attention moved in the guessed layer; None for a layer that there is not."""
    if layer >= len(by_layer):
        return None
    return Phrase("layer_moved", (("layer", str(layer)), ("share", percent(float(by_layer[layer])))))


def size(inputs: StepInputs) -> StepResult:
    """Numbers of heads and layers."""
    return StepResult(values=_size(inputs))


def replace_values(
    result: StepResult, values: Mapping[str, str], *, heads: tuple[Head, ...] | None = None
) -> StepResult:
    """The result with further values, and with other heads to show unless these are None."""
    return replace(result, values={**result.values, **values}, heads=result.heads if heads is None else heads)


def _best(text_attention: TextAttention, links: Bool[np.ndarray, "query key"]) -> StepResult:
    strongest_head = stories.strongest(text_attention.attention, links, text_attention.causal)
    rows = np.flatnonzero((np.tril(links) if text_attention.causal else links).any(axis=1))
    shares: Float[np.ndarray, "layer head"] = (
        (text_attention.attention[:, :, rows] * links[rows]).sum(axis=-1).mean(axis=-1)
    )
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
    text = text_attention.text.queries
    is_word = text.segments != SPECIAL
    ahead = stories.STORIES[wording.PREVIOUS_WORD].links_of(text).T
    same = np.eye(len(text.ids), dtype=bool) & is_word
    resting = stories.STORIES[wording.RESTING].links_of(text)
    attention = text_attention.attention[head]
    shares = {
        name: float((attention[links.any(axis=1)] * links[links.any(axis=1)]).sum(axis=-1).mean())
        for name, links in {"looks_ahead": ahead, "looks_at_itself": same, "rests": resting}.items()
        if links.any()
    }
    name = max(shares, key=lambda name: shares[name])
    if shares[name] >= LEAST_SHARE:
        return Phrase(name, (("head", head_name(*head)), ("share", percent(shares[name]))))
    query, key = np.unravel_index(np.where(is_word[:, None] & is_word, attention, 0).argmax(), attention.shape)
    words = word_names(text)
    link = (("word", words[query]), ("most", words[key]), ("share", percent(float(attention[query, key]))))
    return Phrase("looks_far", (("head", head_name(*head)), *link))


def _number(answer: int, most: int) -> StepResult:
    """Result for a question about a number up to `most`."""
    return StepResult(
        values={"count": str(answer), "heads": str(most)},
        of_guess=str,
        is_right=lambda guess: isinstance(guess, int) and abs(guess - answer) <= max(1, round(CLOSE * answer)),
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


def _forwards(text_attention: TextAttention) -> tuple[str, ...]:
    """Direction from a verb to its object, or in causal models back."""
    to_head, from_head = DIRECTIONS
    return (to_head if text_attention.causal else from_head,)


def _size(inputs: StepInputs) -> dict[str, str]:
    n_layers, n_heads = inputs.attention.attention.shape[:2]
    return {"layers": str(n_layers), "heads": str(n_layers * n_heads)}
