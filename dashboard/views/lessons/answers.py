"""What lessons compute: the answers to their questions, of the checkpoint and the text at hand.

Nothing here knows what the right answer is: each is found anew, and may be that this checkpoint has no such head.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float

from cache.engine import Engine
from core.attention.settings import Head, PassSettings, head_name
from core.errors import AnalysisError
from core.importance.question import ablation_question
from core.passes.texts import TextAttention
from core.roles.controls import control_passes, counts_of
from core.roles.measures import DIRECTIONS, SYNTACTIC
from core.roles.sieves import sieve_cells
from core.texts.text import read_typed
from core.texts.tokens import SPECIAL
from dashboard.figures.roles.evidence import odds
from dashboard.views.corpus import Corpus, judged
from dashboard.views.frame import Visit
from dashboard.views.text import stories, wording
from dashboard.views.text.stories import LEAST_SHARE, SENTENCE

Guess = Head | int | None
"""A head; a token's position, or a number; None where the reader has not guessed."""
HALF: Final = 0.5
NO_BREAK: Final = "\u00a0"
"""A space at which no line ends."""
CLOSE: Final = 0.1
"""Share of a number by which a guess may miss it and still be right; 1 in any case."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """What a step is computed from."""

    visit: Visit
    looked: TextAttention | None = None
    """The attention of the text on screen, on the pages that have one."""
    tested: Corpus | None = None
    """The corpus and its tests, on the page of roles."""
    others: tuple[Engine, ...] = ()
    """The checkpoints that are compared with the visit's."""
    typed: str = ""
    """The text on screen."""

    @property
    def attention(self) -> TextAttention:
        """Of the text on screen."""
        assert self.looked is not None, "only steps on pages with a text ask for its attention"
        return self.looked


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """What a step has computed."""

    values: Mapping[str, str]
    """What the step's text names, written out."""
    section: Literal["", "none"] = ""
    """Whether the text for a checkpoint without such a head takes the place of the usual one."""
    heads: tuple[Head, ...] = ()
    """To show in the grid and in the arcs."""
    of_guess: Callable[[Guess], str] = str
    """What is said of a guess: its name, and how near it comes."""
    is_right: Callable[[Guess], bool] = lambda guess: False


Finds = Callable[[Seen], Found]


def percent(share: float) -> str:
    """A share, as pages write it."""
    return f"{100 * share:.0f}%"


def previous_word(seen: Seen) -> Found:
    """The head that looks at the previous word most."""
    return _best(seen.attention, stories.STORIES[wording.PREVIOUS_WORD].links_of(seen.attention.text.queries))


def verb_and_object(seen: Seen) -> Found:
    """The head that links the verb of the lessons' sentence with its object most."""
    return _best(seen.attention, _object_links(seen.attention))


def one_word(seen: Seen) -> Found:
    """Where that head looks from the verb, or back from the object where tokens cannot attend to later ones."""
    looked = seen.attention
    links = _object_links(looked)
    head = stories.strongest(looked.attention, links, looked.causal).head
    query = int(np.flatnonzero((np.tril(links) if looked.causal else links).any(axis=1))[0])
    row, words = looked.attention[*head, query], looked.text.keys.words
    most = int(row.argmax())

    def to_word(token: int) -> float:
        is_of_word = words == words[token] if words[token] != SPECIAL else np.arange(len(row)) == token
        return float(row[is_of_word].sum())

    def is_same_word(guess: Guess) -> bool:
        return isinstance(guess, int) and to_word(guess) == to_word(most)

    tokens = looked.text.keys.tokens
    return Found(
        values={
            "head": head_name(*head),
            "word": looked.text.queries.tokens[query],
            "most": tokens[most],
            "share": percent(to_word(most)),
            **_size(seen),
        },
        heads=(head,),
        of_guess=lambda guess: f"{tokens[guess]} ({percent(to_word(guess))})" if isinstance(guess, int) else "",
        is_right=is_same_word,
    )


def riddle(seen: Seen) -> Found:
    """The same before it is answered: another head is shown, so that its lines do not give it away."""
    found = one_word(seen)
    others = (*previous_word(seen).heads, (0, 0), (0, 1))
    return replace(found, heads=(next(head for head in others if head not in found.heads),))


def resting(seen: Seen) -> Found:
    """How many heads give special tokens more than half of their attention, and the one that does so most."""
    looked = seen.attention
    links = stories.STORIES[wording.RESTING].links_of(looked.text.queries)
    rows = links.any(axis=1)
    shares = (looked.attention[:, :, rows] * links[rows]).sum(axis=-1).mean(axis=-1)
    found = stories.strongest(looked.attention, links, looked.causal)
    return replace_values(
        _number(int((shares > HALF).sum()), shares.size),
        {"head": head_name(*found.head), "share": percent(found.share), "even": percent(found.even), **_size(seen)},
        heads=(found.head,),
    )


def own_object(seen: Seen) -> Found:
    """The same head on the reader's own sentence, from verbs to their objects as the parser finds them."""
    (known_text,) = read_typed(SENTENCE)
    known, _ = seen.visit.inference.look(seen.visit.engine, known_text, seen.visit.settings)
    head = stories.strongest(known.attention, _object_links(known), known.causal).head
    looked = seen.attention
    links = sieve_cells("syntactic:dobj", looked.text, looked.causal, _forwards(looked), looked.window)
    if seen.typed == SENTENCE or not links.any():
        return Found(values={"head": head_name(*head)}, section="none", heads=(head,))
    queries = np.flatnonzero(links.any(axis=1))
    share = float((looked.attention[*head][queries] * links[queries]).sum(axis=-1).mean())
    pairs = "; ".join(
        f"{looked.text.queries.tokens[query]} → {looked.text.keys.tokens[key]}" for query, key in np.argwhere(links)
    )
    even = float(links[queries].sum() / (queries + 1 if looked.causal else np.full(len(queries), links.shape[1])).sum())
    return Found(
        values={"head": head_name(*head), "share": percent(share), "even": percent(even), "pairs": pairs},
        heads=(head,),
    )


def grammar_heads(seen: Seen) -> Found:
    """How many heads hold the syntactic role over the corpus."""
    assert seen.tested is not None, "asked on the page of roles"
    tests = seen.tested.tests
    own = counts_of(tests, "none")
    place = tests.roles.index(SYNTACTIC[0])
    return Found(
        values={
            "count": str(own.heads[place]),
            "heads": str(own.n_heads),
            "texts": str(len(seen.tested.scores)),
            "even": f"{float(np.nanmean(seen.tested.scored.uniform[:, place])):.2f}",
            "least": f"{tests.settings.tau:g}",
        }
    )


def random_heads(seen: Seen) -> Found:
    """How many heads of the same architecture with random weights hold it, over the same texts."""
    assert seen.tested is not None, "asked on the page of roles"
    visit, tested = seen.visit, seen.tested
    texts = tuple(visit.texts[position] for position in tested.positions)
    place = tested.tests.roles.index(SYNTACTIC[0])
    counted = []
    for asked in control_passes(visit.engine.files, texts):
        if asked.control == "random weights":
            engine = Engine(asked.files, visit.engine.device, visit.engine.dtype)
            answers = visit.inference.ask(engine, asked.question, asked.texts, visit.settings, too_long="truncate")
            counted.append(int(counts_of(judged(answers, visit.chosen).tests, asked.control).heads[place]))
    own = counts_of(tested.tests, "none")
    found = _number(round(float(np.mean(counted))), own.n_heads)
    values = {
        "count": ", ".join(map(str, counted)),
        "models": str(len(counted)),
        "own": str(own.heads[place]),
        "texts": str(len(texts)),
    }
    return replace_values(found, values)


def typed_evidence(seen: Seen) -> Found:
    """How many heads hold the syntactic role over the texts so far, and the best odds, if one may look again."""
    assert seen.tested is not None, "asked on the page of roles"
    found, tests = grammar_heads(seen), seen.tested.tests
    if tests.evidence is None:
        return replace(found, section="none")
    evidence = tests.evidence[tests.roles.index(SYNTACTIC[0])]
    layer, head = np.unravel_index(int(np.nan_to_num(evidence, nan=-np.inf).argmax()), evidence.shape)
    best = {"head": head_name(int(layer), int(head)), "odds": odds(float(evidence[layer, head])).replace(" ", NO_BREAK)}
    return replace_values(found, best)


def switched_off(seen: Seen) -> Found:
    """How much each head changes what the model makes of the text, and which changes it most."""
    text = read_typed(seen.typed)[0]
    settings = PassSettings(seen.visit.settings.kind)
    answers = seen.visit.inference.ask(
        seen.visit.engine, ablation_question("output"), [text], settings, too_long="truncate"
    )
    change = answers.results[0].without[..., 0].astype(np.float64)
    layer, head = np.unravel_index(int(np.nanargmax(change)), change.shape)
    n_heads, most = int(np.isfinite(change).sum()), (int(layer), int(head))

    def of_guess(guess: Guess) -> str:
        if not isinstance(guess, tuple):
            return ""
        rank = 1 + int((change > change[guess]).sum())
        return f"{head_name(*guess)} ({rank} of {n_heads} from the top)"

    return Found(
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


def changed_layer(seen: Seen) -> Found:
    """In which layer attention on the text on screen differs most between two checkpoints."""
    if not seen.others:
        return Found(values={}, section="none")
    text = read_typed(seen.typed)[0]
    one, other = (
        seen.visit.inference.look(engine, text, PassSettings(seen.visit.settings.kind), too_long="truncate")[
            0
        ].attention
        for engine in (seen.visit.engine, seen.others[0])
    )
    if one.shape != other.shape:
        return Found(values={}, section="none")
    moved = np.abs(one - other).sum(axis=-1).mean(axis=-1) / 2  # of each head: the share of attention that moved
    by_layer = moved.mean(axis=1)
    layer = int(by_layer.argmax())
    head = int(moved[layer].argmax())
    # Of a number of heads a near guess is right; the next layer is another layer.
    found = replace(_number(layer, len(by_layer)), is_right=lambda guess: guess == layer)
    return replace_values(
        found,
        {
            "layer": str(layer),
            "share": percent(float(by_layer[layer])),
            "first": percent(float(by_layer[0])),
            "last": str(len(by_layer) - 1),
            "head": head_name(layer, head),
            "of_head": percent(float(moved[layer, head])),
            "name": seen.others[0].files.name,
        },
        heads=((layer, head),),
    )


def size(seen: Seen) -> Found:
    """How many heads and layers there are."""
    return Found(values=_size(seen))


def replace_values(found: Found, values: Mapping[str, str], *, heads: tuple[Head, ...] = ()) -> Found:
    """The same with more values, and the heads to show."""
    return replace(found, values={**found.values, **values}, heads=heads)


def _best(looked: TextAttention, links: Bool[np.ndarray, "query key"]) -> Found:
    found = stories.strongest(looked.attention, links, looked.causal)
    rows = np.flatnonzero((np.tril(links) if looked.causal else links).any(axis=1))
    shares: Float[np.ndarray, "layer head"] = (looked.attention[:, :, rows] * links[rows]).sum(axis=-1).mean(axis=-1)
    return Found(
        values={"head": head_name(*found.head), "share": percent(found.share), "even": percent(found.even)},
        section="" if found.share >= LEAST_SHARE else "none",
        heads=(found.head,),
        of_guess=lambda guess: f"{head_name(*guess)} ({percent(shares[guess])})" if isinstance(guess, tuple) else "",
        is_right=lambda guess: isinstance(guess, tuple) and bool(shares[guess] >= LEAST_SHARE),
    )


def _number(answer: int, most: int) -> Found:
    """A number of at most `most` that is guessed, and what counts as right."""
    return Found(
        values={"count": str(answer), "heads": str(most)},
        of_guess=str,
        is_right=lambda guess: isinstance(guess, int) and abs(guess - answer) <= max(1, round(CLOSE * answer)),
    )


def _object_links(looked: TextAttention) -> Bool[np.ndarray, "query key"]:
    """From the verb of the lessons' sentence to its object, or back where tokens cannot attend to later ones.

    Raises: AnalysisError where the checkpoint takes less of the sentence.
    """
    links = stories.STORIES[wording.OBJECT].links_of(looked.text.queries)
    if not links.any():
        raise AnalysisError("This checkpoint takes only the beginning of the sentence. Choose another for this lesson.")
    return links.T if looked.causal else links


def _forwards(looked: TextAttention) -> tuple[str, ...]:
    """From a verb to its object, or back from the object where tokens cannot attend to later ones."""
    to_head, from_head = DIRECTIONS
    return (to_head if looked.causal else from_head,)


def _size(seen: Seen) -> dict[str, str]:
    n_layers, n_heads = seen.attention.attention.shape[:2]
    return {"layers": str(n_layers), "heads": str(n_layers * n_heads)}
