"""The language in which a reader writes a role: from tokens that are ... to tokens that are ...

A role is a table of TOML with a name, a letter, a colour, and two tables of conditions. All conditions of a table have
to hold, each for any of its values. As the name of a role in lists, links and requests, a written role is its own
table, so that nothing has to be looked up to know what it means.
"""

import base64
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.texts.patterns import QUERY, checked, checked_tree, names_query

FORMAT: Final = 1
"""Version of the language, which a file names."""
PREFIX: Final = "written:"
"""With which the name of a written role begins."""
MOST_BYTES: Final = 2_000
"""Of a file with a role, which a link has to hold."""
MOST_VALUES: Final = 100
"""Of one condition."""
LONGEST: Final = 50
"""Characters of a word or a name."""
FURTHEST: Final = 1_000
"""Tokens between a query and a key that are given by their offset."""
WIDEST: Final = 64
"""Offsets from the first to the last."""
CHANGED: Final = "A written role in the link is cut or changed. Copy the link anew, or open the role's file."
KINDS: Final = {
    "punctuation": "punctuation marks",
    "digits": "tokens of digits alone",
    "capitalised": "words that begin with a capital letter",
    "start": "the token before the text, such as [CLS]",
    "separator": "the tokens between and after segments, such as [SEP]",
    "template": "the tokens of a chat template",
    "first of segment": "the first token of a segment",
    "last of segment": "the last token of a segment",
}
"""Kinds of tokens, in words."""
Relative = Literal[
    "earlier copy",
    "after earlier copy",
    "head",
    "dependent",
    "same lemma",
    "opening bracket",
    "own segment",
    "other segment",
    "antecedent",
]
"""Where a key stands to its query."""
NAME: Final = re.compile(r"[^\W_](?:(?:[^\W_]|[ .'-])*[^\W_])?")
COLOUR: Final = re.compile(r"#[0-9A-Fa-f]{6}")
RELATION: Final = re.compile(r"[A-Za-z][A-Za-z:_]{0,29}")


@dataclass(frozen=True)
class Tokens:
    """Which tokens: those for which all that is given holds; any without conditions."""

    kinds: tuple[str, ...] = ()
    """Of KINDS."""
    words: tuple[str, ...] = ()
    """In lower case; a token is part of one of them."""
    pattern: str = ""
    """Of spaCy's Matcher, as of `attention_sieve.core.texts.patterns.checked`; a token is part of a match."""
    tree: str = ""
    """Of spaCy's DependencyMatcher, as of `attention_sieve.core.texts.patterns.checked_tree`; a token is part of the
    first word of a match. In the conditions on keys, another word may be the one that looks at it."""
    entities: tuple[str, ...] = ()
    """Kinds of named entities, as the parser names them, or any."""
    dependent_of: tuple[str, ...] = ()
    """Names of relations, or any; a token is part of a dependent."""
    head_of: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    """In the text, special tokens included; negative ones from its end."""


ANY: Final = Tokens()


@dataclass(frozen=True)
class Rule:
    """For each query the keys at which a head looks: those for which all that is given holds."""

    queries: Tokens
    keys: Tokens
    offset: tuple[int, int] | None = None
    """First and last distance of a key from its query; below 0 for earlier keys."""
    relative: Relative | None = None
    relations: tuple[str, ...] = ()
    """Names of relations, or any, where `relative` is the other end of one."""
    weight: Literal["none", "entropy"] = "none"
    """As of a record."""

    @property
    def in_trees(self) -> bool:
        """Whether a key and its query are words of one match of the keys' pattern of trees."""
        return bool(self.keys.tree) and names_query(self.keys.tree)


@dataclass(frozen=True)
class WrittenRole:
    """A role as its reader wrote it."""

    name: str
    letter: str
    colour: str
    """As #RRGGBB."""
    rule: Rule

    @property
    def id(self) -> str:
        """Its name in lists, links and requests, which holds everything."""
        packed = json.dumps(table_of(self), separators=(",", ":"), ensure_ascii=False).encode()
        return PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @property
    def canonical(self) -> str:
        """The rule in one form, whatever it is called: what kept results are known by."""
        rule = {name: value for name, value in table_of(self).items() if name not in ("name", "letter", "colour")}
        return json.dumps(rule, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def file_help() -> str:
    """What a file with a role holds, in a sentence for the help of commands."""
    return (
        f"a file of TOML with role = {FORMAT}, name, letter, colour (#RRGGBB) and one or two tables, [from] which "
        f"tokens and [to] which ones, each with any of {', '.join(READERS)}; under [to] also offset, or relative "
        f"({', '.join(get_args(Relative))}) with relations. All conditions have to hold, each for any of its values"
    )


def read_role(content: str) -> WrittenRole:
    """A role from a file of TOML.

    Raises: AnalysisError with the place: for a file that is too large, of another version, or no TOML, and for a
        condition that is not known, has no cases, or could take long.
    """
    if len(content.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise AnalysisError(f"The role has more than {MOST_BYTES:,} bytes. Shorten its lists.")
    try:
        table = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise AnalysisError(f"The role is not TOML: {error}.") from error
    return _role(table)


@lru_cache(maxsize=256)
def written_role(name: str) -> WrittenRole:
    """The role that is its own name.

    Raises: AnalysisError if it holds no role.
    """
    packed = name.removeprefix(PREFIX)
    try:
        if len(packed) > 2 * MOST_BYTES:
            raise ValueError("too long")
        table = json.loads(base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError) as error:
        raise AnalysisError(CHANGED) from error
    if not isinstance(table, dict) or (role := _role(table)).id != name:
        raise AnalysisError(CHANGED)
    return role


def table_of(role: WrittenRole) -> dict[str, Any]:
    """The table of a role, in one form: without what is not said, and with lists whose order says nothing sorted."""
    rule = role.rule
    table: dict[str, Any] = {"role": FORMAT, "name": role.name, "letter": role.letter, "colour": role.colour}
    if rule.weight != "none":
        table["weight"] = rule.weight
    keys = _conditions(rule.keys)
    if rule.offset is not None:
        keys["offset"] = rule.offset[0] if rule.offset[0] == rule.offset[1] else list(rule.offset)
    keys |= {"relative": rule.relative} if rule.relative else {}
    keys |= {"relations": list(rule.relations)} if rule.relations else {}
    return {**table, **({"from": queries} if (queries := _conditions(rule.queries)) else {}), "to": keys}


def _conditions(tokens: Tokens) -> dict[str, Any]:
    given = {field.name: getattr(tokens, field.name) for field in fields(tokens)}
    return {
        name: json.loads(value) if isinstance(value, str) else list(value) for name, value in given.items() if value
    }


def toml_of(table: Mapping[str, Any]) -> str:
    """The table of a role as a file, which `read_role` reads."""
    lines = [f"{name} = {_toml(value)}" for name, value in table.items() if not isinstance(value, dict)]
    for name, conditions in table.items():
        if isinstance(conditions, dict):
            lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in conditions.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(part)}' for key, part in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else json.dumps(key)


def _role(table: Mapping[str, Any]) -> WrittenRole:
    _check_names("The role", table, ("role", "name", "letter", "colour", "weight", "from", "to"))
    if table.get("role") != FORMAT:
        version = f"says role = {quoted(table['role'])}" if "role" in table else "does not say its version"
        raise AnalysisError(f"The role {version}. Versions of the language that are read: role = {FORMAT}.")
    letter = _matching(table, "letter", re.compile("[A-Z0-9]"), "one letter from A to Z, or a digit")
    name = _matching(table, "name", NAME, f"letters, digits and spaces, at most {LONGEST}")
    colour = _matching(table, "colour", COLOUR, "a colour such as #AA3377")
    weight = _one_of("weight", table.get("weight", "none"), ("none", "entropy"))
    queries, keys = (_table(table, side) for side in ("from", "to"))
    _check_names("from", queries, tuple(READERS))
    _check_names("to", keys, (*READERS, "offset", "relative", "relations"))
    rule = Rule(
        queries=_tokens(queries, "from"),
        keys=_tokens(keys, "to"),
        offset=_offset(keys.get("offset")),
        relative=_one_of("to.relative", keys["relative"], get_args(Relative)) if "relative" in keys else None,
        relations=_names_of_relations(keys["relations"], "to.relations") if "relations" in keys else (),
        weight=weight,
    )
    return WrittenRole(name, letter, colour.upper(), _sound(rule))


def _sound(rule: Rule) -> Rule:
    """The rule, with any relation where it names none.

    Raises: AnalysisError for one whose parts do not go together.
    """
    if rule.keys == ANY and rule.offset is None and rule.relative is None:
        raise AnalysisError("to: no condition says at which tokens a head looks. Add one, such as offset = -1.")
    if rule.offset is not None and rule.relative is not None:
        raise AnalysisError("to: offset and relative both say where a key stands to its query. Leave one of them out.")
    if rule.in_trees and (rule.offset is not None or rule.relative is not None):
        other = "relative" if rule.offset is None else "offset"
        raise AnalysisError(
            f"to: {other} and the word {QUERY} of tree both say where a key stands to its query. Leave one of them out."
        )
    is_relation = rule.relative in ("head", "dependent")
    if rule.relations and not is_relation:
        raise AnalysisError('to.relations: give them with relative = "head" or relative = "dependent".')
    is_set = rule.offset is None and not rule.in_trees and rule.relative in (None, "own segment", "other segment")
    if rule.weight != "none" and not is_set:
        raise AnalysisError("weight: entropy is for sets of tokens and for segments. Leave it out here.")
    relations = rule.relations or (("any",) if is_relation else ())
    return replace(rule, relations=relations)


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise AnalysisError(f"{name}: this is a table of conditions, and {quoted(value)} is none.")
    return value


def _check_names(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if unknown := [name for name in table if name not in known]:
        raise AnalysisError(f"{where} has {quoted(unknown[0])}, which is not known. Known: {', '.join(known)}.")


def _matching(table: Mapping[str, Any], name: str, form: re.Pattern[str], says: str) -> str:
    value = table.get(name)
    if not isinstance(value, str) or not form.fullmatch(value) or len(value) > LONGEST:
        problem = "is missing" if value is None else f"is {quoted(value)}"
        raise AnalysisError(f"{name} {problem}. Write {says}.")
    return value


def _one_of(where: str, value: Any, known: tuple[Any, ...]) -> Any:
    if value not in known:
        raise AnalysisError(f"{where} is {quoted(value)}. Choose one of: {', '.join(map(str, known))}.")
    return value


def _offset(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2 or any(type(end) is not int or abs(end) > FURTHEST for end in ends) or ends[0] > ends[1]:
        raise AnalysisError(
            f"to.offset is {quoted(value)}. Write a number of tokens such as -1, or the first and the last such as "
            f"[-2, 2], of at most {FURTHEST:,}."
        )
    if ends[1] - ends[0] >= WIDEST:
        raise AnalysisError(f"to.offset spans {ends[1] - ends[0] + 1:,} tokens. Leave at most {WIDEST}.")
    return ends[0], ends[1]


def _tokens(table: Mapping[str, Any], where: str) -> Tokens:
    return Tokens(**{name: READERS[name](table[name], f"{where}.{name}") for name in READERS if name in table})


def _values(value: Any, where: str, kind: type, says: str) -> list[Any]:
    values = value if isinstance(value, list) else [value]
    if not values or len(values) > MOST_VALUES:
        raise AnalysisError(f"{where} has {len(values):,} values. Give 1 to {MOST_VALUES}.")
    if wrong := [single for single in values if type(single) is not kind or (not single and kind is str)]:
        raise AnalysisError(f"{where} has {quoted(wrong[0])}. Write {says}.")
    if too_long := [single for single in values if len(str(single)) > LONGEST]:
        raise AnalysisError(f"{where} has {quoted(too_long[0])}, and at most {LONGEST} characters are compared.")
    return values


def _kinds(value: Any, where: str) -> tuple[str, ...]:
    kinds = _values(value, where, str, f"kinds of tokens: {', '.join(KINDS)}")
    return tuple(sorted({_one_of(where, kind, tuple(KINDS)) for kind in kinds}))


def _words(value: Any, where: str) -> tuple[str, ...]:
    words = _values(value, where, str, 'words such as ["who", "which"]')
    if parted := [word for word in words if not word.strip() or " " in word.strip()]:
        raise AnalysisError(f"{where} has {quoted(parted[0])}, which is not one word. Use a pattern for several words.")
    return tuple(sorted({word.strip().lower() for word in words}))


def _names_of_relations(value: Any, where: str) -> tuple[str, ...]:
    says = 'names of relations such as "nsubj", or "any"'
    names = _values(value, where, str, says)
    if wrong := [name for name in names if not RELATION.fullmatch(name)]:
        raise AnalysisError(f"{where} has {quoted(wrong[0])}. Write {says}.")
    return ("any",) if "any" in names else tuple(sorted(set(names)))


def _entities(value: Any, where: str) -> tuple[str, ...]:
    kinds = _values(value, where, str, 'kinds of named entities such as "PERSON", or "any"')
    return ("any",) if "any" in kinds else tuple(sorted(set(kinds)))


def _positions(value: Any, where: str) -> tuple[int, ...]:
    return tuple(sorted(set(_values(value, where, int, "positions such as 0, or -1 for the last"))))


READERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "kinds": _kinds,
    "words": _words,
    "pattern": checked,
    "tree": checked_tree,
    "entities": _entities,
    "dependent_of": _names_of_relations,
    "head_of": _names_of_relations,
    "positions": _positions,
}
"""How each condition is read, and checked."""
