"""Texts as read from a file, optionally with words and a dependency tree; reader for CoNLL-U."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.pairs import MAX_NAME, WrittenPair

N_COLUMNS: Final = 10
_ID, _FORM, _TAG, _HEAD, _RELATION = 0, 1, 4, 6, 7
_WORD = re.compile(r"[0-9]{1,9}")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc(?:\s+id\s*=\s*(.*))?")
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")
"""A multiword token, such as don't for do and n't, or an empty node."""


@dataclass(frozen=True)
class Tree:
    """Head and relation of each word of a segment."""

    heads: tuple[int, ...]
    """Position of each word's head in the segment, from 1; 0 for a root."""
    relations: tuple[str, ...]


@dataclass(frozen=True)
class GivenTokens:
    """The tokens of a text that is given by their ids, and never tokenized."""

    ids: tuple[int, ...]
    needle: tuple[int, int] | None = None
    """First and one-past-last token of what the answer copies; None if nothing is marked."""
    answer: tuple[int, int] | None = None
    """First and one-past-last token of the copy, which comes after the needle."""
    turns: tuple[tuple[int, int], ...] | None = None
    """First and one-past-last token of what is said in each turn of a chat, in order; all other tokens are those of the
    chat template. None if it is no chat."""

    @property
    def fields(self) -> dict[str, object]:
        """Its fields for JSON; the turns only of a chat, so that the keys of other results stay as they were."""
        fields = asdict(self)
        return fields if self.turns is not None else {name: fields[name] for name in fields if name != "turns"}


@dataclass(frozen=True)
class WrittenText:
    """One text as written in a file, not yet cleaned."""

    where: str
    """Its location in the file, with which error messages begin."""
    segments: tuple[str, ...] = ()
    """One or two; empty if the file gives words instead."""
    words: tuple[str, ...] | None = None
    """Words of the single segment."""
    tree: Tree | None = None
    """Dependency tree of these words."""
    tags: tuple[str, ...] | None = None
    """Part of speech of each of these words in the tag set of the file's language, column 5 of CoNLL-U."""
    document: str | None = None
    """Name of its document; None if the file does not mark documents."""
    given: GivenTokens | None = None
    """Its tokens, if the file gives their ids; its words are then these numbers."""
    pairs: tuple[WrittenPair, ...] | None = None
    """Pairs of spans of its segments, if the file marks them."""


def of_ids(given: GivenTokens, where: str) -> WrittenText:
    """A text that is given by the ids of its tokens: its words are these numbers, and no relation joins two of them."""
    n_tokens = len(given.ids)
    tree = Tree((0,) * n_tokens, ("root",) * n_tokens)
    return WrittenText(where, words=tuple(map(str, given.ids)), tree=tree, given=given)


def checked_tree(heads: Sequence[int], relations: Sequence[str], n_words: int, where: str) -> Tree:
    """Check and build the tree of a segment; it may have several roots, for example one per sentence.

    Raises: TextError if the number of heads or relations differs from the number of words, a head does not exist, the
        heads form a cycle, or the name of a relation is empty, too long or not printable.
    """
    for values, name in ((heads, "heads"), (relations, "relations")):
        if len(values) != n_words:
            raise TextError(
                f"{where}: the number of words is {n_words:,} and of {name} {len(values):,}. Give one for each word."
            )
    for position, (head, relation) in enumerate(zip(heads, relations), start=1):
        if not 0 <= head <= n_words:
            raise TextError(
                f"{where}: word {position:,} has head {head:,} and the last word is {n_words:,}. Count heads from 1; 0 "
                "is a root."
            )
        if not relation.strip():
            raise TextError(f"{where}: word {position:,} has a relation without a name. Fill it in.")
        if len(relation) > MAX_NAME or not relation.isprintable():
            raise TextError(
                f"{where}: the relation of word {position:,} has a name of more than {MAX_NAME} characters, or of some "
                "that cannot be shown. Give it a plain name."
            )
    if word_in_cycle := _word_in_cycle(heads):
        raise TextError(
            f"{where}: following the heads from word {word_in_cycle:,} leads back to it. Every word must lead to a "
            "root, whose head is 0."
        )
    return Tree(tuple(heads), tuple(relation.strip() for relation in relations))


def _word_in_cycle(heads: Sequence[int]) -> int:
    """A word on a cycle of heads, numbered from 1; 0 if there is none."""
    reached_from = [0] * (len(heads) + 1)
    for start in range(1, len(heads) + 1):
        word = start
        while word and not reached_from[word]:
            reached_from[word] = start
            word = heads[word - 1]
        if word and reached_from[word] == start:
            return word
    return 0


def read_conllu(value: str) -> Iterator[WrittenText]:
    """Read the sentences of a CoNLL-U file, each as a text of syntactic words; their forms are joined by spaces.

    A comment `# newdoc` or `# newdoc id = ...` begins a document; documents of one id are one document. Other comments,
    multiword tokens and empty nodes are skipped.

    Raises: TextError with the line number.
    """
    return sentences_of_lines(io.StringIO(value, newline=None))


def sentences_of_lines(lines: Iterable[str]) -> Iterator[WrittenText]:
    """The same of a file that is read line by line, each ending in a line feed."""
    rows: list[tuple[int, list[str]]] = []
    document = of_sentence = None
    for line, row in enumerate(lines, start=1):
        if row.startswith("#"):
            document = _document(line, row, document)
        elif row.strip():
            of_sentence = of_sentence if rows else document
            rows += _word(line, row.removesuffix("\n").split("\t"), len(rows))
        elif rows:
            yield _sentence(rows, of_sentence)
            rows = []
    if rows:
        yield _sentence(rows, of_sentence)


def _document(line: int, comment: str, previous: str | None) -> str | None:
    """Name of the document after a comment: its id, or the line where it begins."""
    begins = _NEW_DOCUMENT.fullmatch(comment.strip())
    return previous if begins is None else begins[1] or f"from line {line}"


def _word(line: int, cells: list[str], n_before: int) -> list[tuple[int, list[str]]]:
    """A row as the next word of its sentence; empty if the row is not a word."""
    if len(cells) != N_COLUMNS:
        raise TextError(
            f"Line {line:,}: the number of columns is {len(cells):,} and CoNLL-U has {N_COLUMNS}. Separate them by "
            "tabs, and sentences by an empty line."
        )
    if _NO_WORD.fullmatch(cells[_ID]):
        return []
    if cells[_ID] != str(n_before + 1):
        raise TextError(
            f'Line {line:,} begins with "{cells[_ID][:40]}" and word {n_before + 1:,} of the sentence is expected. '
            "Number the words from 1, and put an empty line between sentences."
        )
    if not _WORD.fullmatch(cells[_HEAD]):
        raise TextError(
            f'Line {line:,}: the head is "{cells[_HEAD][:40]}". Write the number of the head, 0 for a root, in column '
            "7."
        )
    return [(line, cells)]


def _sentence(rows: Sequence[tuple[int, list[str]]], document: str | None) -> WrittenText:
    where = f"The sentence from line {rows[0][0]:,}"
    words = tuple(cells[_FORM] for _, cells in rows)
    heads, relations = [int(cells[_HEAD]) for _, cells in rows], [cells[_RELATION] for _, cells in rows]
    tree = checked_tree(heads, relations, len(words), where)
    tags = tuple(cells[_TAG] for _, cells in rows)
    return WrittenText(where, words=words, tree=tree, tags=tags, document=document)
