"""Passages of files with the pairs in them: closing brackets with their opening ones, names with their definitions,
words of translations with those that they are aligned to, mentions with earlier ones of the same entity."""

import ast
import io
import re
import tokenize
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.errors import TextError, quoted
from attention_sieve.core.texts.given import ANTECEDENT, WrittenPair

BRACKETS: Final = "brackets"
DEF_USE: Final = "def-use"
ALIGNMENTS: Final = "alignments"
ANTECEDENTS: Final = "antecedents"
KINDS: Final = (BRACKETS, DEF_USE, ALIGNMENTS, ANTECEDENTS)
PYTHON: Final = ".py"
_OPENING: Final = {")": "(", "]": "[", "}": "{"}
_PARAGRAPH: Final = re.compile(r"\S.*?(?=\n[^\S\n]*\n|\Z)", re.DOTALL)
_BETWEEN_SPACES: Final = re.compile(r"\S+")
_LINK: Final = re.compile(r"(\d{1,6})-(\d{1,6})", re.ASCII)
_KEYWORD: Final = re.compile(r"(?:async\s+)?def\s+|class\s+")


@dataclass(frozen=True)
class Passage:
    """A text, or two, with the pairs in them."""

    segments: tuple[str, ...]
    pairs: tuple[WrittenPair, ...]


def passages(kind: str, name: str, source: str) -> Iterator[Passage]:
    """The parts of a file that have pairs: the outermost functions of Python code, or paragraphs.

    Args:
        kind: BRACKETS or DEF_USE.
        name: of the file; its suffix decides whether it is Python.
        source: the file's characters.

    Raises: TextError for code that is none, and for definitions in another file.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    if not name.endswith(PYTHON):
        if kind == DEF_USE:
            raise TextError(f"{name} does not end in {PYTHON}, and uses of names are found in Python code alone.")
        marked = ((match[0], brackets(match[0])) for match in _PARAGRAPH.finditer(source))
    else:
        code = Code.of(name, source)
        functions = ((node, code.start(node), code.end(node)) for node in _functions(code.tree))
        marked = (
            (source[start:end], brackets(source[start:end], {place - start for place in code.unread}))
            if kind == BRACKETS
            else (source[start:end], definitions(node, code))
            for node, start, end in functions
        )
    for text, pairs in marked:
        if pairs:
            yield Passage((text,), tuple(pairs))


def alignments(sources: str, targets: str, links: str) -> Iterator[Passage]:
    """Sentences with their translations, each word of a translation with the word that it is aligned to.

    Words of a translation that are aligned to several words are in no pair.

    Args:
        sources: a sentence on each line, its words between spaces.
        targets: their translations.
        links: on each line the alignment of these two, such as 0-0 2-1: words of the sentence, from 0, with words of
            the translation.

    Raises: TextError for files that differ in their number of lines, and for a link that is none.
    """
    lines = [text.splitlines() for text in (sources, targets, links)]
    if len({*map(len, lines)}) > 1:
        counts = ", ".join(f"{len(part):,}" for part in lines)
        raise TextError(f"The three files have {counts} lines. Give a sentence, its translation and its links on each.")
    for number, (source, target, linked) in enumerate(zip(*lines), start=1):
        words = [[match.span() for match in _BETWEEN_SPACES.finditer(segment)] for segment in (source, target)]
        aligned: dict[int, list[int]] = {}
        for link in linked.split():
            match = _LINK.fullmatch(link)
            if match is None or not (int(match[1]) < len(words[0]) and int(match[2]) < len(words[1])):
                raise TextError(
                    f"Line {number:,}: {quoted(link)} joins no word of {len(words[0]):,} to one of {len(words[1]):,}. "
                    "Write their numbers, from 0, such as 0-1."
                )
            aligned.setdefault(int(match[2]), []).append(int(match[1]))
        pairs = tuple(
            WrittenPair("alignment", (1, *words[1][word]), (0, *words[0][others[0]]))
            for word, others in aligned.items()
            if len(others) == 1
        )
        if pairs:
            yield Passage((source, target), pairs)


def antecedents(text: MentionText) -> tuple[Passage, ...]:
    """A text with mentions as a passage, in which the head word of each leads to that of the nearest earlier one of the
    same entity; none without such a mention."""
    places = [(0, *text.spans[mention.head]) for mention in text.mentions]
    pairs = tuple(
        WrittenPair(ANTECEDENT, place, places[earlier[-1]])
        for place, earlier in zip(places, text.antecedents, strict=True)
        if earlier
    )
    return (Passage(text.text.segments, pairs),) if pairs else ()


def brackets(text: str, unread: Container[int] = ()) -> list[WrittenPair]:
    """Every closing bracket with its opening one: (), [] and {}.

    A bracket that does not match what is open is in no pair, nor is what was open before it.

    Characters at the places `unread`, such as those of strings, are passed over.
    """
    pairs, opened = list[WrittenPair](), list[int]()
    for place, character in enumerate(text):
        if place in unread:
            continue
        if character in _OPENING.values():
            opened.append(place)
        elif character in _OPENING:
            if opened and text[opened[-1]] == _OPENING[character]:
                start = opened.pop()
                pairs.append(WrittenPair("bracket", (0, place, place + 1), (0, start, start + 1)))
            else:
                opened.clear()
    return pairs


def definitions(function: ast.FunctionDef | ast.AsyncFunctionDef, code: "Code") -> list[WrittenPair]:
    """Every use of a parameter or local name with the one place that binds it.

    Names that are bound at several places of their scope, or by an exception handler, a pattern, :=, global or
    nonlocal, are left out: which binding a use reads would depend on how the code runs. So are names from outside the
    function, and what is in a class inside of it.
    """
    scopes = _Scopes(code)
    scopes.enter(function)
    first = code.start(function)
    left_out = set(_bound_otherwise(function))
    pairs = []
    for name, place, chain in scopes.uses:
        bound = next((scope[name] for scope in reversed(chain) if name in scope), [])
        if len(bound) == 1 and name not in left_out:
            spans = ((0, start - first, start - first + len(name)) for start in (place, bound[0]))
            pairs.append(WrittenPair(DEF_USE, *spans))
    return pairs


@dataclass(frozen=True, eq=False, kw_only=True)
class Code:
    """Python code: the syntax tree of a file, with the places of its nodes in characters."""

    source: str
    tree: ast.Module
    lines: Sequence[str]
    starts: Sequence[int]
    """Place of the first character of every line."""
    unread: frozenset[int]
    """Places of the characters of strings and comments."""

    @classmethod
    def of(cls, name: str, source: str) -> "Code":
        """Read a file, whose lines end in line feeds.

        Raises: TextError that begins with its name.
        """
        lines = source.split("\n")
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        try:
            tree = ast.parse(source)
            tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
        except (SyntaxError, ValueError, tokenize.TokenError, RecursionError) as error:
            line = f", line {error.lineno:,}" if isinstance(error, SyntaxError) and error.lineno else ""
            raise TextError(f"{name}{line} is not Python code that can be read ({error}). Correct it.") from None
        unread = frozenset(
            place
            for token in tokens
            if token.type in (tokenize.STRING, tokenize.COMMENT)
            for place in range(starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
        )
        return cls(source=source, tree=tree, lines=lines, starts=starts, unread=unread)

    def place(self, line: int, column: int) -> int:
        """The place of a line, from 1, and a column in bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.expr | ast.stmt | ast.arg | ast.alias) -> int:
        """The place where a node begins."""
        return self.place(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt | ast.arg | ast.alias) -> int:
        """The place after a node."""
        return self.place(node.end_lineno or node.lineno, node.end_col_offset or 0)


def _functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        else:
            yield from _functions(child)


def _bound_otherwise(function: ast.AST) -> Iterator[str | None]:
    """Names that are bound by other means than an assignment, a loop, an import, a parameter or a definition."""
    for node in ast.walk(function):
        match node:
            case ast.Global() | ast.Nonlocal():
                yield from node.names
            case ast.NamedExpr():
                yield node.target.id
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                yield node.name
            case ast.MatchMapping():
                yield node.rest


class _Scopes(ast.NodeVisitor):
    """Collects where each scope of a function binds names, and where names are used.

    Attributes:
        uses: name, place, and the scopes around, outermost first; each has the places that bind its names.
    """

    def __init__(self, code: Code) -> None:
        self.uses: list[tuple[str, int, tuple[dict[str, list[int]], ...]]] = []
        self._code, self._chain = code, tuple[dict[str, list[int]], ...]()

    def enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """A function as a scope of its own; defaults and decorators are not part of it."""
        around, self._chain = self._chain, (*self._chain, {})
        arguments = node.args
        several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in filter(None, [*several, arguments.vararg, arguments.kwarg]):
            self._bind(argument.arg, self._code.start(argument))
        for child in [node.body] if isinstance(node, ast.Lambda) else node.body:
            self.visit(child)
        self._chain = around

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._define(node)
        for outside in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(outside)
        self.enter(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for outside in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(outside)
        self.enter(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._define(node)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        around, self._chain = self._chain, (*self._chain, {})
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        inside = [part for generator in others for part in (generator.iter, generator.target, *generator.ifs)]
        for child in (first.target, *first.ifs, *inside, *results):
            self.visit(child)
        self._chain = around

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_Name(self, node: ast.Name) -> None:
        place = self._code.start(node)
        if not isinstance(node.ctx, ast.Load):
            self._bind(node.id, place)
        elif self._code.source.startswith(node.id, place):  # in an f-string before Python 3.12 it may be elsewhere
            self.uses.append((node.id, place, self._chain))

    def visit_alias(self, node: ast.alias) -> None:
        name = node.asname or node.name.split(".")[0]
        self._bind(name, self._code.end(node) - len(name) if node.asname else self._code.start(node))

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        start = self._code.start(node)
        keyword = _KEYWORD.match(self._code.source, start)
        self._bind(node.name, start if keyword is None else keyword.end())

    def _bind(self, name: str, place: int) -> None:
        self._chain[-1].setdefault(name, []).append(place)
