"""Texts in the words of the planted models, for the program and for plain transformers alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.planted import tasks
from benchmarks.planted.circuits import PERIOD
from benchmarks.planted.measured import without
from benchmarks.planted.tasks import N_WORDS, ORDINARY, Words
from benchmarks.planted.truth import Head, Task
from benchmarks.planted.vocabulary import ASK, AUXILIARIES, NAMES

N_TEXTS: Final = 12
"""Of each kind; with fewer than 10, the program does not decide where a score is constant."""
TASK: Final = "the task's texts"
RELATION: Final = "nsubj"
"""What the relation of an auxiliary and its verb is called in texts with trees."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Texts of one length, of words that are a token each."""

    name: str
    texts: tuple[Words, ...]
    given: tuple[Any, ...]
    """The same as the program takes them."""
    inputs: dict[str, Tensor]
    """The same as plain transformers takes them."""


def different(random: np.random.Generator) -> Words:
    """Words that all differ."""
    return Words(tuple(random.permutation(ORDINARY)[:N_WORDS].tolist()), ())


def needle(random: np.random.Generator) -> Words:
    """Words that all differ, a name among them, and near the end a question mark and the name again."""
    words = random.permutation(ORDINARY)[:N_WORDS].tolist()
    name, first = str(random.choice(NAMES)), int(random.integers(4, 30))
    asked = int(random.integers(45, N_WORDS - 2))
    words[first], words[asked], words[asked + 1] = name, ASK, name
    return Words(tuple(words), (asked + 1,))


def in_two_segments(random: np.random.Generator) -> Words:
    """Words that all differ, in two segments of the same length."""
    words = different(random)
    return Words(words.words, (), N_WORDS // 2)


MAKERS: Final[dict[str, Callable[[np.random.Generator], Words]]] = {
    "different words": different,
    "repeats": tasks.repeated,
    "a fixed period": partial(tasks.repeated_at, period=PERIOD),
    "sentences": tasks.sentences,
    "needles": needle,
    "stops": partial(tasks.after_stops, host="gpt2"),
    "segments": in_two_segments,
}


def sample(name: str, tokenizer: PreTrainedTokenizerBase, seed: int) -> Sample:
    """Texts of a kind.

    Args:
        name: One of MAKERS.
        tokenizer: Of the model that reads them.
        seed: Decides them.
    """
    random = np.random.default_rng([seed, list(MAKERS).index(name)])
    texts = tuple(MAKERS[name](random) for _ in range(N_TEXTS))
    given = tuple(_given(name, text, tokenizer) for text in texts)
    return Sample(name, texts, given, plain_inputs(tokenizer, texts))


def task_sample(task: Task, tokenizer: PreTrainedTokenizerBase) -> Sample:
    """The texts of a task, in whatever words."""
    texts = tuple(Words(tuple(tokenizer.convert_ids_to_tokens(list(ids))), ()) for ids in task.tokens)
    given = tuple({"ids": list(ids)} for ids in task.tokens)
    return Sample(TASK, texts, given, {"input_ids": torch.tensor(task.tokens)})


def has_planted_words(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a model reads the words that these texts are of; compiled programs do not."""
    return NAMES[0] in tokenizer.get_vocab()


def _given(name: str, text: Words, tokenizer: PreTrainedTokenizerBase) -> Any:
    """A text as a string or a pair, as words with a tree, or as ids with a needle."""
    segments = segments_of(text)
    if name == "sentences":
        heads, relations = zip(*tree(text.words))
        return {"words": list(text.words), "heads": list(heads), "relns": list(relations)}
    if name == "needles":
        first, second = np.flatnonzero(np.isin(text.words, NAMES)).tolist()
        ids = tokenizer(" ".join(text.words))["input_ids"]
        before = ids.index(tokenizer.convert_tokens_to_ids(text.words[0]))
        spans = {name: [place + before, place + before + 1] for name, place in (("needle", first), ("answer", second))}
        return {"ids": ids, **spans}
    return segments[0] if len(segments) == 1 else segments


def segments_of(text: Words) -> tuple[str, ...]:
    """One segment of a text, or two."""
    if text.second is None:
        return (" ".join(text.words),)
    return " ".join(text.words[: text.second]), " ".join(text.words[text.second :])


def tree(words: Sequence[str]) -> list[tuple[int, str]]:
    """Head, from 1, and relation of each word: of an auxiliary the verb of its class before it, of others the first."""
    verbs = dict[str, int]()
    heads = []
    for place, word in enumerate(words):
        verb = verbs.get(word.removeprefix("aux")) if word in AUXILIARIES else None
        heads.append((0, "root") if not place else (1, "dep") if verb is None else (verb + 1, RELATION))
        if word.startswith("verb"):
            verbs[word.removeprefix("verb")[:-1]] = place
    return heads


def plain_inputs(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Words]) -> dict[str, Tensor]:
    """Texts of one length as plain transformers takes them."""
    parts = [segments_of(text) for text in texts]
    encoded = tokenizer([part[0] for part in parts], [part[1] for part in parts] if len(parts[0]) > 1 else None)
    return {name: torch.tensor(encoded[name]) for name in ("input_ids", "token_type_ids") if name in encoded}


@torch.no_grad()
def plain_attention(
    model: PreTrainedModel, given: dict[str, Tensor], off: Sequence[Head] = ()
) -> Float[np.ndarray, "layer text head query key"]:
    """Attention of all heads by plain transformers.

    Args:
        model: With eager attention.
        given: Texts of one length.
        off: Heads whose outputs are set to zero meanwhile.
    """
    with without(model, off):
        return torch.stack(model(**given, output_attentions=True).attentions).numpy()
