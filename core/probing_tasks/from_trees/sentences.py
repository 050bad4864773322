"""Sentences with parts of speech and a dependency tree, from CoNLL-U files or from spaCy's parse of any texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Final

from core.errors import TextError
from core.texts.conllu import WrittenText, read_conllu
from core.texts.relations import ROOT, ROOT_RELATION, Dependencies, tagged_dependencies
from core.texts.text import Text, decoded, text_of

MAX_SENTENCES: Final = 100_000
LENGTHS: Final = range(5, 29)
"""Words and punctuation marks of a sentence that tasks are made from, as the authors'."""
LEAST_DOCUMENTS: Final = 30
"""With fewer, single sentences are split into parts, as whole documents would fill them unevenly."""
OF_STANFORD: Final = {"obj": "dobj", "nsubj:pass": "nsubjpass", "csubj:pass": "csubjpass", "aux:pass": "auxpass"}
"""Universal Dependencies name -> spaCy's (Stanford's) name, for relations that both know; other subtypes of Universal
Dependencies, such as obl:tmod, count as their main relation."""


@dataclass(frozen=True)
class Sentence:
    """One sentence with its tree."""

    words: tuple[str, ...]
    """Words and punctuation marks."""
    tags: tuple[str, ...]
    """Part of speech of each word, as a tag of the Penn Treebank."""
    heads: tuple[int, ...]
    """Index of each word's head; ROOT for one word, the root."""
    relations: tuple[str, ...]
    """Relation of each word to its head, by spaCy's name."""
    document: str
    """The document, or the text of several sentences, that it is from."""

    @cached_property
    def root(self) -> int:
        """Index of the root."""
        return self.heads.index(ROOT)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the words whose head a word is, for each word."""
        below: list[list[int]] = [[] for _ in self.words]
        for place, head in enumerate(self.heads):
            if head != ROOT:
                below[head].append(place)
        return tuple(map(tuple, below))

    def children_by(self, place: int, *relations: str) -> tuple[int, ...]:
        """Indices of a word's children with one of these relations."""
        return tuple(child for child in self.children[place] if self.relations[child] in relations)

    def subtree(self, place: int) -> frozenset[int]:
        """Indices of a word and of all words below it."""
        found, waiting = {place}, [place]
        while waiting:
            waiting += (children := self.children[waiting.pop()])
            found.update(children)
        return frozenset(found)


def is_punctuation(word: str) -> bool:
    """Whether no character of a word is a letter or a digit, which holds for quotation marks and symbols, too."""
    return not any(map(str.isalnum, word))


def conllu_sentences(name: str, content: bytes) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file that have exactly one root.

    Args:
        name: of the file; distinguishes documents of several files that have the same name.
        content: UTF-8, at most 20 MB.

    Raises: TextError, with the line.
    """
    n_written = 0
    for n_written, written in enumerate(read_conllu(decoded(content)), start=1):
        if n_written > MAX_SENTENCES:
            raise TextError(f"{name} has more than {MAX_SENTENCES:,} sentences. Split it, and give fewer.")
        sentence = _of_file(written, f"{name}: {written.document or written.where}")
        if sentence is not None:
            yield sentence
    if not n_written:
        raise TextError(f"{name} holds no sentence.")


def parsed_sentences(texts: Sequence[Text]) -> Iterator[Sentence]:
    """The sentences of texts, as spaCy finds and parses them.

    A sentence that spaCy's tree leaves with several roots, or whose words another one interrupts, is left out.

    Raises: AnalysisError if no pipeline is installed.
    """
    for number, (text, found) in enumerate(zip(texts, tagged_dependencies(texts), strict=True), start=1):
        yield from _of_tree(found, text, text.document or f"text {number}")


def usable(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """The sentences that tasks are made from: of 5 to 28 words and punctuation marks, of equal ones the first.

    With fewer than LEAST_DOCUMENTS documents each sentence becomes a document of its own.

    Raises: TextError for more than MAX_SENTENCES.
    """
    kept: dict[tuple[str, ...], Sentence] = {}
    for sentence in sentences:
        if len(sentence.words) in LENGTHS:
            kept.setdefault(sentence.words, sentence)
        if len(kept) > MAX_SENTENCES:
            raise TextError(f"There are more than {MAX_SENTENCES:,} sentences. Give fewer texts.")
    found = tuple(kept.values())
    if n_documents(found) >= LEAST_DOCUMENTS:
        return found
    return tuple(replace(sentence, document=f"sentence {row}") for row, sentence in enumerate(found))


def n_documents(sentences: Sequence[Sentence]) -> int:
    """Number of documents that sentences are from."""
    return len({sentence.document for sentence in sentences})


def _of_file(written: WrittenText, document: str) -> Sentence | None:
    words, tree, tags = written.words or (), written.tree, written.tags or ()
    if tree is None or tree.heads.count(0) != 1:
        return None
    cleaned = tuple(text_of([word], written.where).segments[0] for word in words)
    heads = tuple(head - 1 if head else ROOT for head in tree.heads)
    relations = tuple(
        ROOT_RELATION if head == ROOT else _of_stanford(name) for head, name in zip(heads, tree.relations)
    )
    return Sentence(cleaned, tags, heads, relations, document)


def _of_stanford(relation: str) -> str:
    return OF_STANFORD.get(relation, OF_STANFORD.get(main := relation.partition(":")[0], main))


def _of_tree(found: Dependencies, text: Text, document: str) -> Iterator[Sentence]:
    """Sentences of a text: the words under each root, if they stand side by side."""
    heads, shown, tags = found.heads.tolist(), found.words.shown(text), found.tags or ()
    roots = _roots(heads)
    n_runs = Counter(root for root, _ in groupby(roots))
    for root, run in groupby(range(len(heads)), key=roots.__getitem__):
        if n_runs[root] > 1:
            continue
        first, *others = run
        places = slice(first, first + 1 + len(others))
        own = tuple(ROOT if head == ROOT else head - first for head in heads[places])
        yield Sentence(shown[places], tags[places], own, found.relations[places], document)


def _roots(heads: Sequence[int]) -> list[int]:
    """The root that each word leads to; heads form no circle."""
    roots = [ROOT] * len(heads)
    for start in range(len(heads)):
        way, place = [start], start
        while roots[place] == ROOT and heads[place] != ROOT:
            place = heads[place]
            way.append(place)
        root = place if roots[place] == ROOT else roots[place]
        for passed in way:
            roots[passed] = root
    return roots
