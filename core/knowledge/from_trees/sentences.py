"""Sentences with parts of speech and a dependency tree, from CoNLL-U files or from spaCy's parse of any texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Final

from attention_sieve.core.errors import TextError
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.texts.given import WrittenText, read_conllu
from attention_sieve.core.texts.relations import ROOT, ROOT_RELATION, Dependencies, tagged_dependencies
from attention_sieve.core.texts.text import Text, decoded, text_of

MAX_SENTENCES: Final = 100_000
LENGTHS: Final = range(5, 29)
"""Length of the sentences used for tasks, in words and punctuation marks, as in the paper."""
LEAST_DOCUMENTS: Final = 30
"""With fewer documents, parts are split by sentence, as whole documents would fill them unevenly."""
STANFORD_NAMES: Final = {"obj": "dobj", "nsubj:pass": "nsubjpass", "csubj:pass": "csubjpass", "aux:pass": "auxpass"}
"""Universal Dependencies name -> spaCy's (Stanford's) name, for relations that both know; other subtypes of Universal
Dependencies, such as obl:tmod, count as their main relation."""


@dataclass(frozen=True)
class ParsedSentence:
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
    """Name of the document, or of the text, that the sentence is from."""

    @cached_property
    def root(self) -> int:
        """Index of the root."""
        return self.heads.index(ROOT)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the children of each word."""
        by_head: list[list[int]] = [[] for _ in self.words]
        for index, head in enumerate(self.heads):
            if head != ROOT:
                by_head[head].append(index)
        return tuple(map(tuple, by_head))

    def children_by(self, index: int, *relations: str) -> tuple[int, ...]:
        """Indices of a word's children with one of these relations."""
        return tuple(child for child in self.children[index] if self.relations[child] in relations)

    def subtree(self, index: int) -> frozenset[int]:
        """Indices of a word and of all words below it."""
        indices, pending = {index}, [index]
        while pending:
            pending += (children := self.children[pending.pop()])
            indices.update(children)
        return frozenset(indices)


def is_punctuation(word: str) -> bool:
    """Whether a word has no letter or digit, as also holds for quotation marks and symbols."""
    return not any(map(str.isalnum, word))


def conllu_sentences(name: str, content: bytes) -> Iterator[ParsedSentence]:
    """The sentences of a CoNLL-U file that have exactly one root.

    Args:
        name: of the file; distinguishes documents of the same name in several files.
        content: UTF-8, at most 20 MB.

    Raises: TextError, with the line.
    """
    n_written = 0
    for n_written, file_sentence in enumerate(read_conllu(decoded(content)), start=1):
        if n_written > MAX_SENTENCES:
            raise TextError(f"{name} has more than {MAX_SENTENCES:,} sentences. Split it, and give fewer.")
        sentence = _from_conllu(file_sentence, f"{name}: {file_sentence.document or file_sentence.where}")
        if sentence is not None:
            yield sentence
    if not n_written:
        raise TextError(f"{name} holds no sentence.")


def parsed_sentences(texts: Sequence[Text], shown: Iterable[Text] | None = None) -> Iterator[ParsedSentence]:
    """The sentences of texts, as segmented and parsed by spaCy.

    Args:
        shown: the texts again, as an iterator that shows how far it is; None for a progress bar.

    A sentence to which spaCy's tree gives several roots, or that another one interrupts, is left out.

    Raises: AnalysisError if no pipeline is installed.
    """
    shown = ProgressBar(texts, unit="text") if shown is None else shown
    for number, (text, dependencies) in enumerate(zip(shown, tagged_dependencies(texts), strict=True), start=1):
        yield from _from_parse(dependencies, text, text.document or f"text {number}")


def usable(sentences: Iterable[ParsedSentence]) -> tuple[ParsedSentence, ...]:
    """The sentences used for tasks: of 5 to 28 words and punctuation marks, without duplicates.

    With fewer than LEAST_DOCUMENTS documents, each sentence becomes a separate document.

    Raises: TextError for more than MAX_SENTENCES.
    """
    distinct: dict[tuple[str, ...], ParsedSentence] = {}
    for sentence in sentences:
        if len(sentence.words) in LENGTHS:
            distinct.setdefault(sentence.words, sentence)
        if len(distinct) > MAX_SENTENCES:
            raise TextError(f"There are more than {MAX_SENTENCES:,} sentences. Give fewer texts.")
    usable_sentences = tuple(distinct.values())
    if n_documents(usable_sentences) >= LEAST_DOCUMENTS:
        return usable_sentences
    return tuple(replace(sentence, document=f"sentence {row}") for row, sentence in enumerate(usable_sentences))


def n_documents(sentences: Sequence[ParsedSentence]) -> int:
    """Number of documents that sentences are from."""
    return len({sentence.document for sentence in sentences})


def _from_conllu(file_sentence: WrittenText, document: str) -> ParsedSentence | None:
    words, tree, tags = file_sentence.words or (), file_sentence.tree, file_sentence.tags or ()
    if tree is None or tree.heads.count(0) != 1:
        return None
    cleaned = tuple(text_of([word], file_sentence.where).segments[0] for word in words)
    heads = tuple(head - 1 if head else ROOT for head in tree.heads)
    relations = tuple(
        ROOT_RELATION if head == ROOT else _stanford_name(name) for head, name in zip(heads, tree.relations)
    )
    return ParsedSentence(cleaned, tags, heads, relations, document)


def _stanford_name(relation: str) -> str:
    return STANFORD_NAMES.get(relation, STANFORD_NAMES.get(main := relation.partition(":")[0], main))


def _from_parse(dependencies: Dependencies, text: Text, document: str) -> Iterator[ParsedSentence]:
    """Sentences of a text: the words under each root, if they are contiguous."""
    heads, word_forms, tags = dependencies.heads.tolist(), dependencies.words.shown(text), dependencies.tags or ()
    roots = _roots(heads)
    n_runs = Counter(root for root, _ in groupby(roots))
    for root, run in groupby(range(len(heads)), key=roots.__getitem__):
        if n_runs[root] > 1:
            continue
        first, *others = run
        words = slice(first, first + 1 + len(others))
        sentence_heads = tuple(ROOT if head == ROOT else head - first for head in heads[words])
        yield ParsedSentence(word_forms[words], tags[words], sentence_heads, dependencies.relations[words], document)


def _roots(heads: Sequence[int]) -> list[int]:
    """The root above each word; heads form no cycle."""
    roots = [ROOT] * len(heads)
    for start in range(len(heads)):
        path, index = [start], start
        while roots[index] == ROOT and heads[index] != ROOT:
            index = heads[index]
            path.append(index)
        root = index if roots[index] == ROOT else roots[index]
        for on_path in path:
            roots[on_path] = root
    return roots
