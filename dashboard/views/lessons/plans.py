"""The steps of the lessons in order: page, initial values, question and computation; their texts are in `texts`."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Final, Literal

import streamlit as st

from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.dashboard import state
from attention_sieve.dashboard.controls import TYPED, TYPED_TEXTS, checkpoint_names
from attention_sieve.dashboard.languages import ENGLISH, text_file
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.views.lessons import answers
from attention_sieve.dashboard.views.lessons.computation import Finds
from attention_sieve.dashboard.views.lessons.content import PAPER, WITHOUT, LessonTexts, read_words
from attention_sieve.dashboard.views.lessons.sentences import FAR, FIRST_EVIDENCE, NEAR

Asks = Literal["", "head", "word", "number"]
PagePart = Literal[
    "switches",
    "special tokens",
    "chance",
    "random grid",
    "summary",
    "grids",
    "training",
    "probes",
    "losses",
    "formation",
]
"""Parts of pages: buttons that switch heads off, the switches above the arcs, which Present hides, counts under
controls, the grid of random weights beside that of the checkpoint, the sentence on what changed between two
checkpoints, and their grids; of the laboratory, its form, the choice of probe texts, and the figure of saved steps: its
losses up to the one shown, or the losses and strongest heads of all, which would answer the lesson's questions."""
SWITCHES: Final[Set[PagePart]] = frozenset({"switches"})
FILES: Final = ("what-a-head-is", "next-door-and-rest", "parser", "chance", "switch-off", "fine-tuning", "birth")
FINE_TUNING, BIRTH = (FILES.index(name) + 1 for name in ("fine-tuning", "birth"))
"""Numbers of lessons that are not always offered."""
ALONE: Final[Mapping[str, object]] = MappingProxyType({"text": NEAR.sentence, "patterns": False, state.OFF: []})
"""The sentence alone, without patterns in the grid."""
WITH_PATTERNS: Final[Mapping[str, object]] = MappingProxyType({**ALONE, "patterns": True})


@dataclass(frozen=True, kw_only=True)
class Step:
    name: str
    """Name of its section in the file of the lesson."""
    page: str = "inspect"
    puts: Mapping[str, object] = field(default_factory=dict)
    """Values that it sets, by keys of the session; a function is called when the step is entered."""
    finds: Finds = answers.size
    names: Set[str] = frozenset()
    asks: Asks = ""
    """What the reader has to predict; empty for nothing."""
    shows: bool = False
    """Whether the heads of its result are shown."""
    reveals: bool = False
    """Whether it answers the question of the previous step."""
    may_lack: bool = False
    """Whether it has a second text, for a checkpoint without such a head."""
    takes_sentences: bool = False
    """Whether the reader may add sentences to the corpus."""
    speaks_of: Set[PagePart] = frozenset()
    """The parts of its page that it speaks of: the others stay away, so that a beginner meets no word unexplained."""
    sentence: str = ""
    """The sentence that it is about, if no other can be used."""


def _asking(
    name: str, asks: Asks, finds: Finds, puts: Mapping[str, object], *names: str, page: str = "inspect"
) -> Step:
    return Step(name=name, asks=asks, finds=finds, puts=puts, names=frozenset(names), page=page)


def second_checkpoint() -> list[str]:
    """The checkpoints that the reader compares with already, else the sample checkpoint if it exists."""
    names: list[str] = st.session_state.get(state.WITH) or []
    return names or [name for name in checkpoint_names() if name.rpartition("/")[2] == SAMPLE_FINE_TUNING][:1]


_OF_HEAD: Final = frozenset({"head", "share", "even"})
_TRAINED: Final[Mapping[str, object]] = MappingProxyType({state.TOY_STEP: None, state.TOY_OFF: []})
"""The last step of the laboratory's model, with all heads on."""
_ANSWER: Final = partial(Step, shows=True, reveals=True)
_ON_ROLES: Final = partial(Step, page="roles")
_ON_COMPARE: Final = partial(Step, page="compare", may_lack=True)
_IN_LABORATORY: Final = partial(Step, page="laboratory", may_lack=True)
LESSONS: Final[tuple[tuple[Step, ...], ...]] = (
    (
        Step(name="look", puts=ALONE, finds=answers.previous_word, names=_OF_HEAD, shows=True),
        Step(
            name="guess",
            asks="word",
            finds=answers.near_object,
            puts=ALONE,
            names=frozenset({"head", "word"}),
            shows=True,
            sentence=NEAR.sentence,
        ),
        _ANSWER(
            name="answer",
            finds=answers.near_object,
            names=frozenset({"head", "word", "most", "share"}),
            sentence=NEAR.sentence,
        ),
        Step(name="why", names=frozenset({"heads", "layers"})),
        Step(name="try"),
    ),
    (
        _asking("next door", "head", answers.previous_word, WITH_PATTERNS),
        _ANSWER(
            name="next door answer",
            finds=answers.previous_word,
            names=_OF_HEAD,
            may_lack=True,
        ),
        _asking("rest", "number", answers.resting, WITH_PATTERNS, "heads"),
        _ANSWER(
            name="rest answer",
            finds=answers.resting,
            names=_OF_HEAD | {"count", "heads"},
        ),
        Step(
            name="length",
            finds=answers.resting_by_length,
            puts=WITH_PATTERNS,
            names=frozenset({"count", "heads", "tokens", "short", "short_tokens", "long", "long_tokens"}),
        ),
        Step(name="why"),
        Step(name="try", speaks_of=frozenset({"special tokens"})),
    ),
    (
        Step(
            name="far",
            asks="word",
            finds=answers.far_word,
            puts={**ALONE, "text": FAR.sentence},
            names=frozenset({"head", "word"}),
            shows=True,
            sentence=FAR.sentence,
        ),
        _ANSWER(
            name="far answer",
            finds=answers.far_object,
            names=_OF_HEAD | {"word", "most"},
            may_lack=True,
            sentence=FAR.sentence,
        ),
        Step(name="own", finds=answers.own_object, names=_OF_HEAD | {"pairs"}, shows=True, may_lack=True),
        Step(name="why"),
        Step(name="try"),
    ),
    (
        _ON_ROLES(
            name="count",
            puts={"corpus": "sample pairs and texts", state.OFF: []},
            finds=answers.grammar_letters,
            names=frozenset({"count", "heads", "texts", "even", "least", "head", "score", "resting"})
            | {"pairs", "found", "fixed"},
            may_lack=True,
            shows=True,
        ),
        _asking("random", "number", answers.grammar_heads, {}, "count", "heads", "texts", page="roles"),
        _ON_ROLES(
            name="random answer",
            finds=answers.random_heads,
            names=frozenset({"count", "own", "heads", "texts", "models"}),
            reveals=True,
            speaks_of=frozenset({"random grid"}),
        ),
        _ON_ROLES(name="why", finds=answers.grammar_heads, speaks_of=frozenset({"chance"})),
        _ON_ROLES(
            name="try",
            puts={"corpus": TYPED, TYPED_TEXTS: "\n".join(FIRST_EVIDENCE)},
            finds=answers.typed_evidence,
            names=frozenset({"count", "heads", "texts", "head", "odds"}),
            may_lack=True,
            takes_sentences=True,
        ),
    ),
    (
        Step(
            name="off",
            asks="number",
            finds=answers.ranking_now,
            puts=WITH_PATTERNS,
            names=frozenset({"heads", "tried"}),
            speaks_of=SWITCHES,
        ),
        _ANSWER(
            name="off answer",
            finds=answers.few_heads,
            puts={state.OFF: []},
            names=frozenset({"count", "names", "before", "after", "degrees", "heads", "tried"}),
            may_lack=True,
        ),
        Step(
            name="why",
            finds=answers.one_head_off,
            names=frozenset({"head", "change", "middle", "heads"}),
        ),
        Step(name="try", finds=answers.ranking_now, speaks_of=SWITCHES),
    ),
    (
        _ON_COMPARE(
            name="two",
            puts={state.WITH: second_checkpoint, state.OFF: []},
            finds=answers.first_layer,  # the page's own head would give the answer of the next step away
            names=frozenset({"name"}),
            shows=True,
        ),
        _ON_COMPARE(
            name="layer",
            finds=answers.first_layer,
            names=frozenset({"last", "name", "head"}),
            asks="number",
            shows=True,
        ),
        _ON_COMPARE(
            name="layer answer",
            finds=answers.changed_layer,
            names=frozenset({"layer", "share", "first", "head", "of_head", "last", "name"}),
            shows=True,
            reveals=True,
        ),
        _ON_COMPARE(
            name="why",
            finds=answers.changed_layer,
            speaks_of=frozenset({"summary"}),
        ),
        _ON_COMPARE(
            name="try",
            finds=answers.changed_layer,
            names=frozenset({"head"}),
            speaks_of=frozenset({"grids"}),
        ),
    ),
    (
        Step(
            name="begin",
            page="laboratory",
            puts={**_TRAINED, state.TOY_STEP: "0", "patterns": True},
            finds=answers.size,
            names=frozenset({"heads", "layers"}),
            speaks_of=frozenset({"losses"}),
        ),
        _IN_LABORATORY(
            name="copies",
            puts={**_TRAINED, "patterns": True},
            finds=answers.copies,
            asks="head",
        ),
        _IN_LABORATORY(
            name="copies answer",
            puts=_TRAINED,
            finds=answers.copies,
            names=_OF_HEAD | {"count", "names", "heads"},
            shows=True,
            reveals=True,
        ),
        _IN_LABORATORY(
            name="without",
            puts={**_TRAINED, "patterns": False},
            finds=answers.copies_without,
            names=frozenset({"count", "one", "known"}),
            asks="number",
        ),
        _IN_LABORATORY(
            name="without answer",
            puts=_TRAINED,
            finds=answers.copies_without,
            names=frozenset({"count", "names", "one", "known", "previous", "back"})
            | {"without_one", "without_all", "without_previous"},
            shows=True,
            reveals=True,
            speaks_of=SWITCHES,
        ),
        _IN_LABORATORY(
            name="why",
            finds=answers.copies_without,
            names=frozenset({"one", "previous", "loss", "loss_one", "loss_all", "loss_previous"}),
            speaks_of=frozenset({"formation"}),
        ),
        _IN_LABORATORY(
            name="try",
            puts=_TRAINED,
            finds=answers.copies,
            speaks_of=frozenset({"training", "probes", "switches"}),
        ),
    ),
)
"""The steps of each lesson, without the question at its end."""


def offered() -> tuple[int, ...]:
    """Numbers of the lessons that are offered: that on fine-tuning where there are two checkpoints to compare, and that
    in the laboratory where a model can be trained or has been."""
    missing = {FINE_TUNING: not second_checkpoint(), BIRTH: is_public() and not laboratory_runs()}
    return tuple(lesson for lesson in range(1, len(LESSONS) + 1) if not missing.get(lesson))


def steps_of(lesson: int) -> tuple[Step, ...]:
    """Steps of a lesson, numbered from 1, including its question."""
    steps = LESSONS[lesson - 1]
    return (*steps, Step(name="check", page=steps[-1].page))


@cache
def words_of(lesson: int, language: str) -> LessonTexts:
    """The texts of a lesson in one of `content.languages()`.

    Raises: ValueError as `content.read_words` does.
    """
    expected: dict[str, Set[str]] = {}
    for step in LESSONS[lesson - 1]:
        expected[step.name] = step.names
        if step.may_lack:
            expected[step.name + WITHOUT] = step.names
        if step.asks:
            expected[step.name + PAPER] = step.names
    path = text_file(language, f"{lesson}-{FILES[lesson - 1]}.md")
    return read_words(path, expected, None if language == ENGLISH else words_of(lesson, ENGLISH).sections)


def is_translated(lesson: int, language: str) -> bool:
    return text_file(language, f"{lesson}-{FILES[lesson - 1]}.md").parent.name == language
